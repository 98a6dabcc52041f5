//! The live cluster: watches in, careful writes out, one leader.
//!
//! ```text
//!  API server ──► reflector (one for each kind) ──► mirror ──► Live::observe ──► the loop
//!      ▲                                             │ a pod fits nowhere ──► the next loop begins at once
//!      │                                             ▼
//!      └── writes: taints, evictions ◄── Live ◄── fence ◄── lease
//!          events, status, memory
//! ```
//!
//! | file | what |
//! |---|---|
//! | `client` | where the API server is; how often it may be asked |
//! | `resources`, `reflector`, `watches` | what is watched and how |
//! | `mirror`, `rows` | the objects in the model, kept up to date |
//! | `live` | the cluster as the driver sees it |
//! | `writes` | taints, cordons, evictions |
//! | `lease` | who is the leader |
//! | `memory`, `config_map` | what outlives the process |
//! | `status` | the status ConfigMap |
//! | `lists` | everything, once, for dumps |
//! | `events` | what happened, told on the objects |

mod client;
mod config_map;
mod events;
mod lease;
pub mod lists;
mod live;
mod memory;
mod mirror;
mod reflector;
mod resources;
mod rows;
mod status;
#[cfg(test)]
mod testing;
pub mod told;
mod watches;
mod writes;

pub use kube::Client;

pub use client::{ConnectError, Endpoint, Pace, configure, connect};
pub use events::{About, Event, Recorder, Tone};
pub use lease::{Candidate, Leadership, LeaseOptions, host_name, identity};
pub use live::{Fence, Live, LiveOptions};
pub use memory::{MemoryStore, RestoreError, Restored};
pub use status::{Document, Reporter, StatusWriter};
pub use writes::WriteError;
