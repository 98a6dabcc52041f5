//! What happened in the world, for those who watch.

use plimsoll_model::Time;

/// One thing that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Happened {
    /// When.
    pub at: Time,
    /// What.
    pub what: What,
}

/// Things that happen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// The story goes on.
    Told(String),
    /// Replicas of a workload changed: its name, before, after.
    Scaled(String, u32, u32),
    /// A machine became a node.
    NodeRegistered {
        /// Its group.
        group: String,
        /// Its name.
        node: String,
    },
    /// A node can take pods.
    NodeReady {
        /// Its group.
        group: String,
        /// Its name.
        node: String,
    },
    /// A node is gone.
    NodeGone {
        /// Its group.
        group: String,
        /// Its name.
        node: String,
    },
    /// A machine that was asked for will not come.
    MachineFailed {
        /// Its group.
        group: String,
        /// Why.
        why: String,
    },
    /// Pods of a workload were bound to nodes: workload, count.
    Bound(String, u32),
    /// A pod was evicted: its name.
    Evicted(String),
    /// An eviction was refused: pod, why.
    EvictionRefused(String, String),
}
