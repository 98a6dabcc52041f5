//! What stays as it is while pods are moved about: strings, storage objects, namespaces, gates.

use plimsoll_model::storage::PersistentVolume;
use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Labels, Symbol, Symbols, Taint, Toleration};
use rustc_hash::FxHashMap;

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
        Self { cluster, gates, volumes_by_class }
    }

    /// For rules that do not look at storage.
    pub(crate) fn without_storage(cluster: &'c Cluster, gates: Gates) -> Self {
        Self { cluster, gates, volumes_by_class: FxHashMap::default() }
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
