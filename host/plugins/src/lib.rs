//! The wasm side of the host: engine, stores, egress, manifests, the contract.
