//! Cloud provider for node pools of Utho Kubernetes clusters.
//!
//! ```text
//!  host ──► provider ──┬─ refresh, templates ──► snapshot, template ◄── cluster ◄─┐
//!                      ├─ increase ─┐                                             ├── api ──► api.utho.com/v2
//!                      └─ delete ───┴─► reads the cluster, judges, writes once ───┘
//!                             └── memory: what was written lately, kept by the host
//! ```
//!
//! What shapes this code:
//!
//! - The API has one read (the whole cluster) and no idempotency. A new size is written as an absolute count, and is
//!   always computed from a count that was read in the same call.
//! - A count of zero removes the pool, and a lower count removes machines of Utho's choice. So a count that is written is
//!   always above the one that was read and above the machines that are there; machines are deleted one by one, by id.
//! - Answers vary in form: quoted numbers, empty maps as lists, failures with status 200. Reading is lenient in form and
//!   strict in meaning: what cannot be read is never taken for empty.
//!
//! The operator's side is in `docs/providers/utho.md`.

mod api;
mod cluster;
mod config;
mod delete;
mod errors;
mod increase;
mod lenient;
mod memory;
mod provider;
mod snapshot;
mod template;

#[cfg(test)]
mod testing;

pub use provider::Utho;

plimsoll_guest::export_provider!(Utho<plimsoll_guest::http::Wasi>);
