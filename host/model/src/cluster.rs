//! Everything that the API server has, as the loop needs it.

use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::{Deserialize, Serialize};

use crate::devices::Devices;
use crate::labels::Labels;
use crate::node::Node;
use crate::pod::{Pod, PodSpec};
use crate::storage::Storage;
use crate::symbol::{Symbol, Symbols};
use crate::workload::{Controller, DaemonSet, PodDisruptionBudget};

/// Number of a [`PodSpec`] in [`Specs`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SpecId(u32);

impl SpecId {
    /// Position, dense from 0.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Every pod spec, once. Only grows.
#[derive(Clone, Debug, Default)]
pub struct Specs {
    specs: indexmap::IndexSet<PodSpec, FxBuildHasher>,
}

impl Specs {
    /// The number of a spec, given if it is new.
    pub fn intern(&mut self, spec: PodSpec) -> SpecId {
        let (index, _) = self.specs.insert_full(spec);
        SpecId(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.specs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// All specs in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (SpecId, &PodSpec)> {
        (0..).map(SpecId).zip(&self.specs)
    }
}

impl std::ops::Index<SpecId> for Specs {
    type Output = PodSpec;
    /// # Panics
    ///
    /// If the number is of another table and out of range.
    #[allow(clippy::indexing_slicing, reason = "an index operator may panic, and says so")]
    #[inline]
    fn index(&self, id: SpecId) -> &PodSpec {
        &self.specs[id.index()]
    }
}

/// A ConfigMap that the autoscaler reads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ConfigMap {
    /// Namespace.
    pub namespace: Symbol,
    /// Name.
    pub name: Symbol,
    /// `data`.
    pub data: Vec<(String, String)>,
}

/// Everything that the API server has, as the loop needs it.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Strings.
    pub symbols: Symbols,
    /// Pod specs.
    pub specs: Specs,
    /// Nodes, in the order of arrival.
    pub nodes: Vec<Node>,
    /// Pods, in the order of arrival; terminal ones too.
    pub pods: Vec<Pod>,
    /// DaemonSets.
    pub daemon_sets: Vec<DaemonSet>,
    /// ReplicaSets, StatefulSets, Jobs, ReplicationControllers.
    pub controllers: Vec<Controller>,
    /// PodDisruptionBudgets.
    pub disruption_budgets: Vec<PodDisruptionBudget>,
    /// Namespaces with their labels.
    pub namespaces: FxHashMap<Symbol, Labels>,
    /// Storage objects.
    pub storage: Storage,
    /// Devices and claims to them.
    pub devices: Devices,
    /// ConfigMaps.
    pub config_maps: Vec<ConfigMap>,
}

impl Cluster {
    /// `namespace/name` of a pod, as people and the outputs write it.
    pub fn pod_name(&self, pod: &Pod) -> String {
        format!("{}/{}", self.symbols.text(self.specs[pod.spec].namespace), pod.name)
    }

    /// Text of a symbol.
    pub fn text(&self, symbol: Symbol) -> &str {
        self.symbols.text(symbol)
    }
}
