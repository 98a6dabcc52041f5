//! Chart, manifests and the fake nodes themselves against a real control plane: `make e2e`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

mod deploy;
mod fake_nodes;

use std::path::{Path, PathBuf};

use plimsoll_tests_e2e::stage::LIMIT;

/// The program.
fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_plimsoll"))
}

/// The folder of a test.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e").join(name)
}
