//! The signals of a real loop with real components, on the story of the demo.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

mod api;
mod metrics;
mod stage;
mod traces;
