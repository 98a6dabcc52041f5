//! The provider against the Utho fake, each test under many seeds of switches and quirks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

mod bench;
mod crash;
mod deleting;
mod failures;
mod identity;
mod model;
mod races;
mod scaling;
