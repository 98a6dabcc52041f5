//! What stays as it is while pods are moved about: strings, storage objects, namespaces, gates.

use plimsoll_model::storage::PersistentVolume;
use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Labels, Resources, Symbol, Symbols, Taint, Toleration};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::devices::pools::Inventory;
use crate::devices::{ClaimKey, Selectors, held, wants};

/// Feature gates of Kubernetes that change verdicts. The default is Kubernetes 1.37's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gates {
    /// `TaintTolerationComparisonOperators`: tolerations with operator `Lt` and `Gt` compare numbers (alpha).
    pub numeric_tolerations: bool,
}

/// What stays as it is while pods are moved about.
#[derive(Debug)]
pub(crate) struct Facts<'c> {
    pub(crate) cluster: &'c Cluster,
    pub(crate) gates: Gates,
    /// PersistentVolumes by class, the smallest first.
    volumes_by_class: FxHashMap<Symbol, Vec<(Symbol, &'c PersistentVolume)>>,
    /// Extended resources that stand for devices, with the class of these.
    pub(crate) classes_of_resources: FxHashMap<Symbol, Symbol>,
    /// Which devices there are.
    pub(crate) inventory: Inventory,
    /// Selectors of devices.
    pub(crate) selectors: Selectors,
    /// Claims that were made for a pod and go with it.
    pub(crate) given_back: FxHashSet<ClaimKey>,
    /// How many consumers each claim is reserved for that are no pods of the cluster with this claim.
    pub(crate) strange_consumers: FxHashMap<ClaimKey, usize>,
}

impl<'c> Facts<'c> {
    pub(crate) fn new(cluster: &'c Cluster, gates: Gates) -> Self {
        let mut volumes_by_class = FxHashMap::<_, Vec<_>>::default();
        for (&name, volume) in &cluster.storage.volumes {
            volumes_by_class.entry(volume.class).or_default().push((name, volume));
        }
        for volumes in volumes_by_class.values_mut() {
            volumes.sort_by_key(|&(name, volume)| (volume.capacity_bytes, cluster.symbols.text(name)));
        }
        let bare = Self::without_storage(cluster, gates);
        Self {
            volumes_by_class,
            classes_of_resources: wants::classes_of_resources(cluster),
            inventory: Inventory::new(&cluster.devices.slices),
            given_back: held::given_back(cluster),
            strange_consumers: wants::strange_consumers(cluster),
            ..bare
        }
    }

    /// For rules that look at neither storage nor devices.
    pub(crate) fn without_storage(cluster: &'c Cluster, gates: Gates) -> Self {
        Self {
            cluster,
            gates,
            volumes_by_class: FxHashMap::default(),
            classes_of_resources: FxHashMap::default(),
            inventory: Inventory::default(),
            selectors: Selectors::default(),
            given_back: FxHashSet::default(),
            strange_consumers: FxHashMap::default(),
        }
    }

    /// Whether a node leaves a resource to devices: they stand for it, and the node itself has none.
    pub(crate) fn is_left_to_devices(&self, resource: Symbol, allocatable: &Resources) -> bool {
        self.classes_of_resources.contains_key(&resource) && allocatable.scalar(resource) == 0
    }

    pub(crate) fn symbols(&self) -> &'c Symbols {
        &self.cluster.symbols
    }

    pub(crate) fn text(&self, symbol: Symbol) -> Box<str> {
        self.cluster.symbols.text(symbol).into()
    }

    /// PersistentVolumes of a class, the smallest first.
    pub(crate) fn volumes_of_class(&self, class: Symbol) -> &[(Symbol, &'c PersistentVolume)] {
        self.volumes_by_class.get(&class).map_or(&[], Vec::as_slice)
    }

    /// Labels of a Namespace object; none if there is no such object.
    pub(crate) fn namespace(&self, name: Symbol) -> Option<&'c Labels> {
        self.cluster.namespaces.get(&name)
    }

    /// Whether some toleration puts up with a taint, as the gates have it.
    pub(crate) fn tolerated(&self, tolerations: &[Toleration], taint: &Taint) -> bool {
        tolerations.iter().any(|toleration| {
            toleration.tolerates(taint)
                || (self.gates.numeric_tolerations
                    && crate::predicates::taint_toleration::compares(toleration, taint, self.symbols()))
        })
    }
}

/// The taint that a node gets when the autoscaler is about to remove it.
pub(crate) const TO_BE_DELETED: Taint =
    Taint { key: known::TO_BE_DELETED, value: known::EMPTY, effect: plimsoll_model::TaintEffect::NoSchedule };
