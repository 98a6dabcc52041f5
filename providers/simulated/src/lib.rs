//! Cloud provider for the simulated cloud, an in-memory cloud that answers HTTP inside the host.
//!
//! ```text
//!  host ──(contract)──► provider ──(wire, JSON over wasi:http)──► simulated cloud, inside the host
//! ```
//!
//! The simulated cloud needs only [`wire`]: depend on this crate with `default-features = false`.
//!
//! The cloud configuration is JSON, and may be left out:
//!
//! ```json
//! {"endpoint": "https://sim.plimsoll.internal", "provider-id-prefixes": ["sim://"], "accelerator-label": "sim/gpu"}
//! ```

pub mod wire;

#[cfg(feature = "provider")]
mod contract;
#[cfg(feature = "provider")]
mod provider;

#[cfg(feature = "provider")]
pub use provider::Simulated;
#[cfg(feature = "provider")]
plimsoll_guest::export_provider!(Simulated<plimsoll_guest::http::Wasi>, pricing);
