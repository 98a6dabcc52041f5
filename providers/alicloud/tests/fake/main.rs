//! The provider against a fake of the cloud: the same code as in a component, over a transport that signs as the host
//! does, on virtual time, with the answers varied by chance.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

mod bench;
mod chaos;
mod crash;
mod failures;
mod kinds;
mod pools;
mod prices;
mod reading;
mod rights;
mod sizes;
mod withdrawal;
