//! The contract with plug-ins: one module for each version that this host serves.
//!
//! Types that are generated from the contract stay in here. Each version offers the same few things in the host's own
//! terms: a linker for providers and one for expanders, `LinkedProvider` and `LinkedExpander`, and the contract itself
//! for comparison. A new major version is a new module beside `v0`; what uses them picks by the version that a component
//! names in its imports and exports. `wasi_http` is the runtime's standard interface for requests.

pub(crate) mod v0;
pub(crate) mod wasi_http;
