//! The program against a real control plane, for long: `make e2e-long`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

mod api_trouble;
mod away;
mod beside_others;
mod dump;
mod horizontal;
mod image;
mod kills;
mod peers_manifests;
mod replicas;
mod rights;
mod scale;
mod timers;
mod up_and_down;

use std::path::{Path, PathBuf};

use plimsoll_tests_e2e::stage::{FLAGS, LIMIT};

/// The program.
fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_plimsoll"))
}

/// The folder of a test.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e").join(name)
}
