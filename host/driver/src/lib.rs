//! One loop of the autoscaler against a cluster, live or in memory.
//!
//! ```text
//!  Clouds::refresh ──► Api::follow ──► prepare, Observation ──► core::Loop ──► Acting ──► clouds, Api
//!   (providers)        (the cluster)                              │   ▲
//!                                                                 ▼   │
//!                                                        Store::save before and after each write
//! ```
//!
//! The decisions are the core's. Here is what turns them into calls, in one piece for the live loop, the demo, `run` on an
//! in-memory cluster and the fault tests.

pub mod acting;
pub mod clouds;
mod in_memory;
pub mod measured;
pub mod simulated;
pub mod steps;
mod turn;

pub use acting::{Api, Store};
pub use clouds::Clouds;
pub use in_memory::{Joining, lock};
pub use measured::{Evicted, Timings, Write};
pub use turn::{Driver, Turned};
