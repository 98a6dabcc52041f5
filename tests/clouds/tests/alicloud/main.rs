//! The fake of Alibaba Cloud keeps the rules that are known of the real one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

mod client;
mod credentials;
mod faults;
mod front;
mod groups;
mod reads;
mod resize;
mod vectors;
mod withdraw;
