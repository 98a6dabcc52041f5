//! The question to an expander, and its answer.
//!
//! No pod bodies cross this line: classes, counts and amounts only. The answer refers to options by index.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cloud::{Attributes, GroupId};

/// Amounts in text form: resource names outside the model's symbols.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Amounts {
    /// Thousandths of a core.
    pub cpu_milli: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes of local disk.
    pub ephemeral_storage_bytes: u64,
    /// Everything else, by resource name.
    pub extended: Vec<(String, u64)>,
}

/// Pods that no predicate can tell apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodClass {
    /// Namespace and owner for people, such as `shop/ReplicaSet/web`.
    pub label: String,
    /// Pending pods of this class in the whole cluster.
    pub pending: u32,
    /// What one pod asks for.
    pub requests: Amounts,
    /// Kubernetes priority.
    pub priority: i32,
}

/// The node that an option would add.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shape {
    /// Machine type.
    pub instance_type: String,
    /// CPU architecture.
    pub arch: String,
    /// Operating system.
    pub os: String,
    /// Region.
    pub region: String,
    /// Zone; none if the cloud chooses.
    pub zone: Option<String>,
    /// What the machine has.
    pub capacity: Amounts,
    /// What pods may use on one node.
    pub allocatable: Amounts,
    /// Accelerator model.
    pub accelerator_model: Option<String>,
    /// Whether the cloud may take the machine back.
    pub spot: bool,
    /// Its labels.
    pub labels: Attributes,
}

/// How well the pods fill the new nodes. All nodes of the option together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// What the containers of the helped pods ask for, without init containers and overhead, which the peer does not count.
    pub wanted: Amounts,
    /// What the new nodes offer.
    pub offered: Amounts,
    /// What stays unused.
    pub wasted: Amounts,
    /// Unused share of the offered processors, in millionths.
    pub wasted_cpu_micro: u32,
    /// Unused share of the offered memory, in millionths.
    pub wasted_memory_micro: u32,
}

/// What an option costs. Millionths of the currency per hour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cost {
    /// ISO 4217 code.
    pub currency: String,
    /// All new nodes.
    pub nodes_micros_per_hour: u64,
    /// What the helped pods would cost on nodes that fit exactly.
    pub pods_micros_per_hour: Option<u64>,
    /// What a small pod (half a core, 500 MiB) costs; steadies the ratio of the two.
    pub small_pod_micros_per_hour: Option<u64>,
}

/// A group that is like the option's group and would share the growth with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimilarGroup {
    /// The group.
    pub group: GroupId,
    /// Its target now.
    pub target_size: u32,
    /// Its greatest size.
    pub max_size: u32,
    /// How many of the option's nodes it would get.
    pub share: u32,
}

/// One way to grow.
#[derive(Clone, PartialEq, Debug)]
pub struct GrowthOption {
    /// The group that grows.
    pub group: GroupId,
    /// How many nodes are added, in all groups.
    pub node_count: u32,
    /// The group's target now.
    pub target_size: u32,
    /// The group's greatest size.
    pub max_size: u32,
    /// The pods that it helps: index of the class and count.
    pub pods: Vec<(u32, u32)>,
    /// The node that it adds.
    pub shape: Shape,
    /// How well it is used.
    pub usage: Usage,
    /// What it costs; none if no prices are known.
    pub cost: Option<Cost>,
    /// The operator's priority of the group; higher wins. None: no rule names it.
    pub priority: Option<i32>,
    /// Whether the group exists already.
    pub exists: bool,
    /// Groups that share the growth.
    pub similar: Vec<SimilarGroup>,
}

/// The question.
#[derive(Clone, PartialEq, Debug)]
pub struct RankRequest {
    /// The options; answers refer to them by index.
    pub options: Vec<GrowthOption>,
    /// The pod classes that the options refer to.
    pub pod_classes: Vec<PodClass>,
    /// Nodes in the cluster, with those on their way.
    pub cluster_nodes: u32,
    /// For strategies that draw lots; recorded, so that a decision can be replayed.
    pub seed: u64,
    /// How long the host waits.
    pub deadline: Duration,
}

/// Score of one option.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// Index into the options.
    pub index: u32,
    /// The higher the better; finite.
    pub score: f64,
    /// Why, for people.
    pub reason: Option<String>,
}

/// The answer of an expander: scores, or why there are none.
pub type Ranking = Result<Vec<Verdict>, RankingFailure>;

/// Why an expander gave no usable answer. The next in the chain decides.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
pub enum RankingFailure {
    /// No such expander is loaded.
    #[error("expander {name:?} is not loaded: {reason}")]
    Missing {
        /// Name in the chain.
        name: String,
        /// Why not.
        reason: String,
    },
    /// It trapped, ran out of time or memory, or reported an error.
    #[error("expander {name:?} failed: {reason}")]
    Failed {
        /// Name in the chain.
        name: String,
        /// What happened.
        reason: String,
    },
    /// It answered with an index twice or out of range, or a score that is not finite.
    #[error("expander {name:?} gave an answer that cannot be used: {reason}")]
    Unusable {
        /// Name in the chain.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}
