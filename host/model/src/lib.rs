//! What a cluster is: nodes, pods, workloads and resources, interned and exact.
//!
//! Everything that the scheduler and the loop compare often is a small integer: strings become [`Symbol`]s, and the part
//! of a pod that scheduling looks at becomes a [`SpecId`], shared by all pods that have it in common. Quantities are
//! converted once, on the way in, with Kubernetes' own rounding; after that only integers are left.
//!
//! ```text
//!  files, watches ──► read / convert ──► Cluster { symbols, specs, nodes, pods, workloads, storage }
//!                     (k8s_openapi stops here)
//! ```
//!
//! No I/O happens here: the reader is given text, and the driver that opened the file tells its name.

pub mod cluster;
pub mod convert;
pub mod devices;
pub mod group;
pub mod labels;
pub mod node;
pub mod pod;
pub mod quantity;
pub mod read;
pub mod resources;
pub mod selector;
pub mod storage;
pub mod symbol;
pub mod taint;
pub mod template;
pub mod time;
pub mod workload;

pub use cluster::{Cluster, SpecId, Specs};
pub use labels::Labels;
pub use node::Node;
pub use pod::{Pod, PodSpec};
pub use quantity::Quantity;
pub use resources::Resources;
pub use symbol::{Symbol, Symbols};
pub use taint::{Taint, TaintEffect, Toleration};
pub use template::Template;
pub use time::Time;
