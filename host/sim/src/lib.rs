//! A cluster and a cloud that live in memory on a virtual clock.
//!
//! ```text
//!  World { now, cluster, cloud, workloads }
//!    │  advance_to(t): machines boot, nodes register and turn ready, controllers make pods, the scheduler binds them
//!    │
//!    ├── api::answer(request) ◄── wasi:http of the component providers/simulated, answered inside the host
//!    └── taint, untaint, evict ◄── what a driver writes to the API server
//! ```
//!
//! In front of another cloud, real or a fake, [`joins::Joins`] takes the place of the cloud: nodes join and leave as that
//! cloud's snapshots say, and a [`scenario::Scenario`] file says which pods there are.
//!
//! Nothing here decides anything about scaling: the demo, what-if questions and fault tests put the real loop and real
//! components in front of it. The scheduler uses the naive oracle, not the engine that the loop plans with.

pub mod api;
pub mod cloud;
pub mod events;
pub mod joins;
mod mishaps;
pub mod scenario;
mod scheduler;
pub mod story;
pub mod workload;
pub mod world;

pub use events::{Happened, What};
pub use world::World;
