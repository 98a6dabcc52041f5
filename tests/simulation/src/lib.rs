//! The real core and the real components against an in-memory cluster and cloud in which everything fails.
//!
//! ```text
//!  seed ──► Scenario (settings, pools, workloads, what happens when) ──► Stage::play ──► Report, or a Violation
//!                                                                          │
//!            World (cluster, cloud)  ◄── Cloud (requests of the provider) ─┤   each with the faults that the
//!                                    ◄── Server (writes to the API) ───────┤   scenario asks for, and with a look
//!                                    ◄── Disk (what outlives the process) ─┘   at what passes: the invariants
//! ```
//!
//! One seed in ten plays the component of AliCloud, and one that of Utho, against the fakes of their clouds instead, with
//! those clouds' own faults (`clouds`). A seed always plays the same. What it breaks can be replayed by the command that the
//! report prints, and is shrunk to the few happenings that are needed.

mod books;
mod cloud;
mod clouds;
mod end;
mod faults;
mod orders;
mod scenario;
mod server;
mod shrink;
mod stage;
mod story;
mod violation;

pub use shrink::shrink;
pub use stage::{Components, Report};
pub use story::{Story, play, play_recorded};
pub use violation::{Invariant, Violation};
