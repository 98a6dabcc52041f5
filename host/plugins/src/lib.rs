//! The wasm side of the host: engine, stores, egress, manifests, the contract.
//!
//! ```text
//!  file or embedded bytes
//!       │ load: look (manifest, contract) ► compile ► link ► bind once
//!       ▼
//!    Plugin ──► Provider   one task, one store, one call at a time; restarts, quarantine
//!          └──► Expander   a fresh store for each decision
//!                  │
//!       store: memory, tables, handles, time, log, settings: all bounded
//!                  │
//!       egress: the only way out; grants, addresses, signatures (`credentials`)
//! ```
//!
//! Nothing that a plug-in does is trusted, and everything that it does wrong comes back as data: a
//! [`CallError`] for the caller, an [`Event`](observer::Event) for the operator. Types generated from
//! the contract stay in `abi`; callers see the records of `plimsoll_core`.

mod abi;
pub mod cache;
pub mod call;
pub mod clock;
pub mod credentials;
pub mod egress;
pub mod engine;
pub mod expander;
pub mod folder;
pub mod library;
pub mod limits;
pub mod load;
mod log;
pub mod manifest;
pub mod memory;
mod mismatch;
pub mod observer;
pub mod plugin;
pub mod provider;
pub mod random;
pub mod report;
mod request_counts;
pub mod restart;
mod settings;
mod stdio;
mod store;

pub use call::{Call, CallError, Failure};
pub use engine::{HostOptions, PluginHost};
pub use expander::Expander;
pub use library::Library;
pub use load::{LoadError, inspect};
pub use plimsoll_grants::{PluginConfig, config};
pub use plugin::{Kind, Origin, Plugin, Source};
pub use provider::Provider;
pub use report::Report;
pub use request_counts::{RequestCounts, RequestKind};

/// A future that can be kept and sent.
pub type Pending<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
