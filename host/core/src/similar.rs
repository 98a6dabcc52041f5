//! Which node groups are alike, so that they are grown together (the peer's comparison of templates).

use serde::{Deserialize, Serialize};

use plimsoll_model::{Cluster, Resources, Symbol, Template};
use rustc_hash::FxHashSet;

/// Labels that never tell groups apart.
const IGNORED_LABELS: &[&str] = &[
    "kubernetes.io/hostname",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "beta.kubernetes.io/fluentd-ds-ready",
    "kops.k8s.io/instancegroup",
];

/// How far templates may differ. Field names are those of the peer's flags.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Likeness {
    /// `memory-difference-ratio`: of the capacity's memory.
    pub memory_difference_ratio: f64,
    /// `max-allocatable-difference-ratio`: of every allocatable resource.
    pub max_allocatable_difference_ratio: f64,
    /// `max-free-difference-ratio`: of what the pods of a fresh node leave free.
    pub max_free_difference_ratio: f64,
    /// `balancing-ignore-label`, in addition to those that are always ignored.
    pub ignored_labels: Vec<String>,
    /// `balancing-label`: if there are any, only these are compared, and nothing else.
    pub only_labels: Vec<String>,
}

impl Default for Likeness {
    fn default() -> Self {
        Self {
            memory_difference_ratio: 0.015,
            max_allocatable_difference_ratio: 0.05,
            max_free_difference_ratio: 0.05,
            ignored_labels: vec![],
            only_labels: vec![],
        }
    }
}

impl Likeness {
    /// Whether two templates are alike. Taints are not compared. Source: the peer's comparison, documented with its flag
    /// `balance-similar-node-groups`; ratios are of the larger of the two.
    pub fn holds(&self, one: &Template, other: &Template, cluster: &Cluster) -> bool {
        if !self.only_labels.is_empty() {
            return self.only_labels.iter().all(|label| same_label(label, one, other, cluster));
        }
        self.same_capacity(&one.node.capacity, &other.node.capacity)
            && within_all(&one.node.allocatable, &other.node.allocatable, self.max_allocatable_difference_ratio)
            && self.same_free(one, other, cluster)
            && self.same_labels(one, other, cluster)
    }

    fn same_capacity(&self, one: &Resources, other: &Resources) -> bool {
        within(one.memory_bytes, other.memory_bytes, self.memory_difference_ratio)
            && one.cpu_milli == other.cpu_milli
            && one.pods == other.pods
            && one.ephemeral_storage_bytes == other.ephemeral_storage_bytes
            && one.scalars == other.scalars
    }

    fn same_free(&self, one: &Template, other: &Template, cluster: &Cluster) -> bool {
        let (used, used_by_other) = (used(one, cluster), used(other, cluster));
        let free = one.node.allocatable.minus(&used);
        let free_of_other = other.node.allocatable.minus(&used_by_other);
        let ratio = self.max_free_difference_ratio;
        let requested: FxHashSet<Symbol> =
            used.scalars.iter().chain(&used_by_other.scalars).map(|&(name, _)| name).collect();
        base(&free).into_iter().zip(base(&free_of_other)).all(|(one, other)| within(one, other, ratio))
            && requested.iter().all(|&name| within(free.scalar(name), free_of_other.scalar(name), ratio))
    }

    fn same_labels(&self, one: &Template, other: &Template, cluster: &Cluster) -> bool {
        let counts = |&(key, _): &(Symbol, Symbol)| {
            let key = cluster.text(key);
            !IGNORED_LABELS.contains(&key) && !self.ignored_labels.iter().any(|ignored| ignored == key)
        };
        let of =
            |template: &Template| -> Vec<(Symbol, Symbol)> { template.node.labels.iter().filter(counts).collect() };
        of(one) == of(other)
    }
}

fn same_label(label: &str, one: &Template, other: &Template, cluster: &Cluster) -> bool {
    let Some(key) = cluster.symbols.find(label) else { return false };
    let value = one.node.labels.get(key);
    value.is_some() && value == other.node.labels.get(key)
}

/// What the pods of a fresh node ask for.
fn used(template: &Template, cluster: &Cluster) -> Resources {
    let requests = template.pods.iter().map(|pod| &cluster.specs[pod.spec].requests);
    requests.fold(Resources::default(), |sum, requests| sum.plus(requests))
}

fn base(resources: &Resources) -> [i64; 4] {
    [resources.cpu_milli, resources.memory_bytes, resources.pods, resources.ephemeral_storage_bytes]
}

/// Whether every resource is in both, and differs by no more than a share of the larger amount.
fn within_all(one: &Resources, other: &Resources, ratio: f64) -> bool {
    let names = |resources: &Resources| -> Vec<Symbol> { resources.scalars.iter().map(|&(name, _)| name).collect() };
    names(one) == names(other)
        && base(one).into_iter().zip(base(other)).all(|(one, other)| within(one, other, ratio))
        && one.scalars.iter().zip(&other.scalars).all(|(&(_, one), &(_, other))| within(one, other, ratio))
}

#[allow(clippy::cast_precision_loss, reason = "the peer compares in floating point too")]
fn within(one: i64, other: i64, ratio: f64) -> bool {
    let (one, other) = (one as f64, other as f64);
    (one - other).abs() <= one.max(other) * ratio
}
