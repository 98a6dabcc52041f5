//! How much of a node is asked for (the peer's formula).

use plimsoll_model::{Cluster, Node, Pod, Resources, Symbol};

use crate::drain::DrainRules;

/// Extended resources of accelerator vendors, as the peer knows them.
pub const GPU_RESOURCES: &[&str] = &["nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "habana.ai/gaudi"];

/// The accelerator resource of a node, in the symbols of one cluster.
#[derive(Clone, Debug, Default)]
pub struct Accelerators {
    /// Label that marks a node with accelerators.
    pub label: Option<Symbol>,
    /// Vendor resources, in the order in which they are looked for.
    pub resources: Vec<Symbol>,
}

impl Accelerators {
    /// With the label that the provider names.
    pub fn new(cluster: &Cluster, label: Option<&str>) -> Self {
        Self {
            label: label.and_then(|label| cluster.symbols.find(label)),
            resources: GPU_RESOURCES.iter().filter_map(|name| cluster.symbols.find(name)).collect(),
        }
    }

    /// First vendor resource that the node offers, with its amount.
    pub fn resource_of(&self, allocatable: &Resources) -> Option<(Symbol, i64)> {
        self.resources.iter().map(|&name| (name, allocatable.scalar(name))).find(|&(_, amount)| amount > 0)
    }

    /// Whether a node has accelerators: by its label or by what it offers.
    pub fn has(&self, node: &Node) -> bool {
        self.label.is_some_and(|label| node.labels.get(label).is_some())
            || self.resource_of(&node.allocatable).is_some()
    }
}

/// Share of a node that is asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Utilization {
    /// The figure that is compared with the threshold; normally 0 to 1.
    pub share: f64,
    /// The resource that it comes from.
    pub resource: Measured,
}

/// The resource that a utilization comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measured {
    /// Processors.
    Cpu,
    /// Memory.
    Memory,
    /// An accelerator resource; none: the node should have some but offers none.
    Gpu(Option<Symbol>),
}

/// Why a utilization cannot be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UtilizationError {
    /// The node offers no cpu.
    #[error("node has no allocatable cpu")]
    NoCpu,
    /// The node offers no memory.
    #[error("node has no allocatable memory")]
    NoMemory,
}

/// Which pods do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ignore {
    /// `ignore-daemonsets-utilization`.
    pub daemon_sets: bool,
    /// `ignore-mirror-pods-utilization`.
    pub mirror_pods: bool,
}

/// Utilization of a node by its pods.
///
/// # Errors
///
/// If a node without accelerators offers no cpu or no memory.
pub fn of_node<'p>(
    node: &Node,
    pods: impl Iterator<Item = &'p Pod>,
    rules: &DrainRules<'_>,
    accelerators: &Accelerators,
    ignore: Ignore,
) -> Result<Utilization, UtilizationError> {
    let gpu = accelerators.resource_of(&node.allocatable).map(|(name, _)| name);
    let is_gpu_node = accelerators.has(node);
    let mut counted = (0i64, 0i64, 0i64);
    let mut skipped = (0i64, 0i64, 0i64);
    for pod in pods {
        let requests = &rules.cluster.specs[pod.held].requests;
        let skip = (ignore.daemon_sets && pod.is_daemon_set_pod()) || (ignore.mirror_pods && pod.drain.mirror);
        // What is left out on both sides is so even while it ends, as in the peer.
        if !skip && rules.is_long_terminating(pod) {
            continue;
        }
        let sums = if skip { &mut skipped } else { &mut counted };
        sums.0 = sums.0.saturating_add(requests.cpu_milli);
        sums.1 = sums.1.saturating_add(requests.memory_bytes);
        sums.2 = sums.2.saturating_add(gpu.map_or(0, |gpu| requests.scalar(gpu)));
    }
    let share = |asked: i64, offered: i64, skipped: i64| asked as f64 / (offered - skipped) as f64;
    if is_gpu_node {
        let share = gpu.map_or(0.0, |gpu| share(counted.2, node.allocatable.scalar(gpu), skipped.2));
        return Ok(Utilization { share, resource: Measured::Gpu(gpu) });
    }
    if node.allocatable.cpu_milli == 0 {
        return Err(UtilizationError::NoCpu);
    }
    if node.allocatable.memory_bytes == 0 {
        return Err(UtilizationError::NoMemory);
    }
    let cpu = share(counted.0, node.allocatable.cpu_milli, skipped.0);
    let memory = share(counted.1, node.allocatable.memory_bytes, skipped.1);
    Ok(if cpu > memory || memory.is_nan() {
        Utilization { share: cpu, resource: Measured::Cpu }
    } else {
        Utilization { share: memory, resource: Measured::Memory }
    })
}
