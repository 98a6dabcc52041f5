//! Test support: small random clusters, and the oracle beside the engine.

mod mirror;
mod random;
mod scene;

mod equivalence;
mod packs;
mod requests;

pub(crate) use scene::Scene;

/// How property tests run: cases are seeds, so there is nothing to shrink. `PROPTEST_CASES` asks for more of them.
fn config() -> proptest::test_runner::Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64);
    let default = proptest::test_runner::Config::default();
    proptest::test_runner::Config { cases, max_shrink_iters: 0, failure_persistence: None, ..default }
}
