//! The components of AliCloud and Utho against the fakes of their clouds, with those clouds' own faults.
//!
//! ```text
//!  seed ──► Scenario ──► play ──► Report, or a Violation
//!                         │
//!            World (cluster: pods, nodes) ◄── nodes are the machines that the fake has, whatever the provider says of them
//!            Sky (the fake)               ◄── requests of the component; each is looked at with what it did
//! ```
//!
//! The cluster, the API server, the disk and the lease are those of the other runs; so are the invariants, as far as they can
//! be seen from outside of the cloud.

mod events;
mod play;
mod scenario;
mod sky;

pub(crate) use play::play;
pub(crate) use scenario::Scenario;
