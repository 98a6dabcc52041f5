//! Cloud provider for Alibaba Cloud: scaling groups of Auto Scaling (ESS), and node pools of Container Service (ACK).
//!
//! ```text
//!  host ──► provider ──► refresh ──► groups, instances, activities ──┐
//!                   ├──► templates ──► configuration, types, zones ──┼──► api ──► ess / ecs / vpc / cs, signed by the host
//!                   └──► increase, decrease, delete ─────────────────┘     └── errors: code ──► class and scope
//! ```
//!
//! Requests leave unsigned and name the credential slot `api`; the host signs them by ACS3 (V3) or by the older RPC
//! signature (V1), whichever the operator bound to the slot. What operators need to know is in
//! `docs/providers/alicloud.md`.
//!
//! The rules that keep machines safe: a change is computed only from sizes that were read in the same call, it is sent
//! as a difference and with a client token, and a target is only lowered as far as no machine has to go.

mod ack;
mod activities;
mod api;
mod capacity;
mod charge;
mod decrease;
mod delete;
mod endpoints;
mod errors;
mod fingerprint;
mod groups;
mod ids;
mod increase;
mod instances;
mod memory;
mod prices;
mod provider;
mod refresh;
mod self_test;
mod settings;
mod spec;
mod template;
mod time;

pub use provider::{AliCloud, Clock};

plimsoll_guest::export_provider!(AliCloud<plimsoll_guest::http::Wasi>, pricing);
