//! Limits of the whole cluster: nodes, cores, memory, accelerators.

use plimsoll_model::{Cluster, Node, Symbol};

use crate::plan::Limit;
use crate::settings::Settings;
use crate::utilization::Accelerators;

/// What one node counts for the limits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Weight {
    cores: i64,
    memory: i64,
    /// Accelerator model and count.
    gpu: Option<(Symbol, i64)>,
    /// Nodes of a virtual kubelet count for nothing.
    counts: bool,
}

/// Tells weights apart and adds them up.
#[derive(Clone, Debug)]
pub struct Limits<'a> {
    settings: &'a Settings,
    accelerators: Accelerators,
    virtual_kubelet: Option<(Symbol, Symbol)>,
    gpu_limits: Vec<(Symbol, &'a str, crate::settings::Bounds)>,
    nodes: i64,
    cores: i64,
    memory: i64,
    gpus: Vec<i64>,
}

impl<'a> Limits<'a> {
    /// With nothing counted yet.
    pub fn new(cluster: &Cluster, settings: &'a Settings, accelerators: &Accelerators) -> Self {
        let find = |text: &str| cluster.symbols.find(text);
        let gpu_limits: Vec<_> = settings
            .gpu_total
            .iter()
            .filter_map(|(model, bounds)| Some((find(model)?, model.as_str(), *bounds)))
            .collect();
        Self {
            settings,
            accelerators: accelerators.clone(),
            virtual_kubelet: find("type").zip(find("virtual-kubelet")),
            gpus: vec![0; gpu_limits.len()],
            gpu_limits,
            nodes: 0,
            cores: 0,
            memory: 0,
        }
    }

    /// What a node counts: whole cores (rounded up) and bytes of its capacity, and its accelerators.
    pub fn weigh(&self, node: &Node) -> Weight {
        let counts = self.virtual_kubelet.is_none_or(|(key, value)| node.labels.get(key) != Some(value));
        let model = self.accelerators.label.and_then(|label| node.labels.get(label));
        let gpu = model.map(|model| (model, self.accelerators.resource_of(&node.allocatable).map_or(0, |(_, n)| n)));
        Weight {
            cores: node.capacity.cpu_milli.max(0).saturating_add(999) / 1000,
            memory: node.capacity.memory_bytes.max(0),
            gpu,
            counts,
        }
    }

    /// Adds nodes (or takes them off, if negative).
    pub fn count(&mut self, weight: &Weight, nodes: i64) {
        self.nodes += nodes;
        if !weight.counts {
            return;
        }
        self.cores = self.cores.saturating_add(weight.cores.saturating_mul(nodes));
        self.memory = self.memory.saturating_add(weight.memory.saturating_mul(nodes));
        if let Some((model, amount)) = weight.gpu {
            for ((limited, ..), used) in self.gpu_limits.iter().zip(&mut self.gpus) {
                if *limited == model {
                    *used = used.saturating_add(amount.saturating_mul(nodes));
                }
            }
        }
    }

    /// Nodes counted.
    pub fn nodes(&self) -> i64 {
        self.nodes
    }

    /// How many more such nodes are allowed, and the limit that says so.
    pub fn room(&self, weight: &Weight) -> (u32, Option<Limit>) {
        let mut room = (i64::MAX, None);
        let mut apply = |left: i64, each: i64, limit: Limit| {
            if each > 0 && left.max(0) / each < room.0 {
                room = (left.max(0) / each, Some(limit));
            }
        };
        if let Some(most) = self.settings.max_nodes_total {
            apply(i64::from(most) - self.nodes, 1, Limit::Nodes(most));
        }
        if weight.counts {
            let (cores, memory) = (self.settings.cores_total.max, self.settings.memory_total.max);
            apply(cores - self.cores, weight.cores, Limit::Cores(cores));
            apply(memory - self.memory, weight.memory, Limit::Memory(memory));
            if let Some((model, amount)) = weight.gpu {
                for ((limited, name, bounds), used) in self.gpu_limits.iter().zip(&self.gpus) {
                    if *limited == model {
                        apply(bounds.max - used, amount, Limit::Gpu((*name).to_owned(), bounds.max));
                    }
                }
            }
        }
        (u32::try_from(room.0).unwrap_or(u32::MAX), room.1)
    }

    /// The lower limit that removing such a node would break.
    pub fn removal_breaks(&self, weight: &Weight) -> Option<Limit> {
        if !weight.counts {
            return None;
        }
        let (cores, memory) = (self.settings.cores_total.min, self.settings.memory_total.min);
        if cores > 0 && weight.cores > 0 && self.cores - weight.cores < cores {
            return Some(Limit::Cores(cores));
        }
        if memory > 0 && weight.memory > 0 && self.memory - weight.memory < memory {
            return Some(Limit::Memory(memory));
        }
        let (model, amount) = weight.gpu.filter(|&(_, amount)| amount > 0)?;
        let mut limits = self.gpu_limits.iter().zip(&self.gpus);
        limits.find_map(|((limited, name, bounds), used)| {
            let broken = *limited == model && bounds.min > 0 && used - amount < bounds.min;
            broken.then(|| Limit::Gpu((*name).to_owned(), bounds.min))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Bounds;
    use plimsoll_model::Resources;

    fn node(cluster: &mut Cluster, cpu_milli: i64, memory_bytes: i64) -> Node {
        let capacity = Resources { cpu_milli, memory_bytes, ..Resources::default() };
        Node { capacity, ..Node::bare(cluster.symbols.intern("n")) }
    }

    #[test]
    fn the_tightest_limit_wins() {
        let mut cluster = Cluster::default();
        let node = node(&mut cluster, 3500, 8 << 30);
        for (name, nodes, cores, memory, expected) in [
            ("no limit", None, 320_000, 6_400_000 << 30, None),
            ("nodes", Some(3), 100, 1 << 50, Some((1, Limit::Nodes(3)))),
            ("cores, rounded up", Some(30), 17, 1 << 50, Some((2, Limit::Cores(17)))),
            ("memory", Some(30), 100, 24 << 30, Some((1, Limit::Memory(24 << 30)))),
            ("spent", Some(1), 100, 1 << 50, Some((0, Limit::Nodes(1)))),
        ] {
            let settings = Settings {
                max_nodes_total: nodes,
                cores_total: Bounds { min: 0, max: cores },
                memory_total: Bounds { min: 0, max: memory },
                ..Settings::default()
            };
            let mut limits = Limits::new(&cluster, &settings, &Accelerators::default());
            let weight = limits.weigh(&node);
            limits.count(&weight, 2);
            let (room, limit) = limits.room(&weight);
            match expected {
                None => assert!(room > 70_000, "{name}: {room}"),
                Some((count, which)) => assert_eq!((room, limit), (count, Some(which)), "{name}"),
            }
        }
    }

    #[test]
    fn lower_limits_hold_nodes() {
        let mut cluster = Cluster::default();
        let node = node(&mut cluster, 4000, 8 << 30);
        for (name, cores, broken) in
            [("equal is allowed", 4, false), ("below is not", 5, true), ("zero is none", 0, false)]
        {
            let settings = Settings { cores_total: Bounds { min: cores, max: 100 }, ..Settings::default() };
            let mut limits = Limits::new(&cluster, &settings, &Accelerators::default());
            let weight = limits.weigh(&node);
            limits.count(&weight, 2);
            assert_eq!(limits.removal_breaks(&weight), broken.then_some(Limit::Cores(cores)), "{name}");
        }
    }
}
