//! Plug-ins that behave, and plug-ins that do not, through the public interface of the host.
//!
//! Most guests are made here from a few lines of WebAssembly text, so that each does exactly one wrong thing; the last
//! module runs the real components.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected should stop"
)]

mod alicloud;
mod bundled;
mod cloud;
mod credentials;
mod deterministic;
mod documentation;
mod expander;
mod guests;
mod hostile;
mod library;
mod network;
mod provider;
mod world;
