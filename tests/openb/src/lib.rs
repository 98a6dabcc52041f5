//! Turns the openb trace (1,523 machines and 8,152 pods of a production cluster) into what `plimsoll simulate` reads:
//! pending pods and one node group per shape of machine. The trace itself stays where its user has put it.
//!
//! ```text
//!  nodes.csv ─► Machine ─┬─► shapes ─► NodeGroup objects ─┐
//!  pods.csv ──► Task ────┼─► Pod objects ─────────────────┴─► one List as JSON
//!                        └─► lower bound on machines
//! ```
//!
//! With the times at which pods came and went, the trace is also played: [`replay`] lets them come and go on the simulated
//! cloud in front of the real loop, and [`hours`] says how few node-hours could have held them.

pub mod bound;
pub mod hours;
pub mod objects;
pub mod replay;
pub mod trace;

pub use bound::{Bound, lower_bounds};
pub use objects::list;
pub use trace::{Machine, Shape, Task, shapes};
