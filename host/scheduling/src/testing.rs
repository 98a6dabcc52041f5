//! Test support: small random clusters, and the oracle beside the engine.

mod mirror;
mod random;
mod scene;

mod equivalence;

pub(crate) use scene::Scene;
