//! Where a pod may run: predicates, a snapshot with undo, packing.
//!
//! ```text
//!                    predicates/*.rs   one file per filter of the scheduler
//!                    /             \
//!        the plain rule            the engine's part (a rule asked once per class, or a tracker)
//!              |                            |
//!   oracle::World ◄── held equal by ──► Snapshot ── fits · room · refusal · pack · fork/revert
//!                        tests              |
//!                                        packing ── how many nodes of a template do these pods need?
//! ```
//!
//! [`Snapshot`] answers for pod classes, not for pods: a class is a set of pods that no predicate can tell apart, so
//! nothing costs more for there being more of them. Every change is undone by its exact inverse.
//!
//! The rules are those of kube-scheduler 1.37 with its default configuration, PreFilter and Filter only.

#![allow(
    clippy::indexing_slicing,
    reason = "tables are indexed by the ids that the same snapshot handed out; an id of another is a mistake in this crate"
)]

mod daemon_sets;
mod devices;

mod facts;
pub mod oracle;
pub mod packing;
mod predicates;
mod refusal;
mod snapshot;
mod table;
#[cfg(test)]
mod testing;

pub use daemon_sets::runs_daemon_pod;
pub use facts::Gates;
pub use refusal::{Phase, Reason, Refusal};
pub use snapshot::base::{ClassId, Count, NodeId, ShapeId};
pub use snapshot::{Candidates, Run, Snapshot};
