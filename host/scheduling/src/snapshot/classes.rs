//! Pod classes: pods that no predicate can tell apart.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use indexmap::IndexSet;
use plimsoll_model::devices::ClaimSpecId;
use plimsoll_model::pod::{ClaimReference, PodAffinityTerm, Volume};
use plimsoll_model::selector::{LabelSelector, NodeSelector, Operator};
use plimsoll_model::{Labels, PodSpec, SpecId, Symbol};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::base::{ClassId, NodeId};
use super::free::{Demand, Dim};
use crate::devices::wants::own_spec;
use crate::facts::Facts;
use crate::predicates::volumes::is_bound;
use crate::predicates::{self, NodeSet, RULES, Rule, volume_zone};
use crate::refusal::Refusal;
use crate::table::{Id, Table, ids};

ids! {
    /// Namespace and labels of pods, as far as selectors tell them apart.
    pub(crate) LabelSetId;
}

/// Namespace and labels that pods have in common.
#[derive(Debug)]
pub(crate) struct LabelSet {
    pub(crate) namespace: Symbol,
    pub(crate) labels: Labels,
    pub(crate) classes: Vec<ClassId>,
}

/// A pod class.
#[derive(Debug)]
pub(crate) struct Class {
    /// A spec that stands for all of the class.
    pub(crate) spec: SpecId,
    /// Whether its pods are being deleted.
    pub(crate) terminating: bool,
    pub(crate) label_set: LabelSetId,
    pub(crate) demand: Demand,
    volumes: VolumesId,
    claims: ClaimsId,
    /// Nodes that it is on, and perhaps some that it was on.
    pub(crate) sites: Vec<NodeId>,
    /// How many nodes it is on.
    pub(crate) live_sites: usize,
    /// What questions about it need; made on the first one.
    pub(crate) inquiry: Option<Box<Inquiry>>,
}

/// What questions about a class need.
#[derive(Debug)]
pub(crate) struct Inquiry {
    /// What the PreFilters say.
    pub(crate) admission: Result<Option<NodeSet>, Refusal>,
    /// Whether static verdicts differ between nodes of one kind.
    pub(crate) by_identity: bool,
    /// Static verdict by node kind, as far as known.
    pub(crate) verdicts: Vec<Option<bool>>,
    /// Which dynamic predicates may refuse it, as a bit mask.
    pub(crate) checks: u32,
    /// Of which generation of trackers this is.
    pub(crate) generation: u32,
}

ids! {
    /// A list of volumes, as far as predicates tell them apart.
    VolumesId;
}

/// A volume, as far as predicates tell it apart from others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum VolumeTrait {
    /// It matters which one it is.
    Itself(Symbol, Volume),
    /// A bound volume of which only the place matters.
    Bound { ephemeral: bool, affinity: Option<NodeSelector>, zones: [Option<Symbol>; 4] },
}

ids! {
    /// A list of resource claims, as far as predicates tell them apart.
    ClaimsId;
}

/// A resource claim, as far as predicates tell it apart from others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum ClaimTrait {
    /// It matters which one it is.
    Itself(Symbol, ClaimReference),
    /// One of the pod's own, without devices: only what it asks for matters.
    Own(ClaimSpecId),
}

/// All pod classes.
#[derive(Debug)]
pub(crate) struct Classes {
    pub(crate) table: Table<ClassId, Class>,
    pub(crate) label_sets: Table<LabelSetId, LabelSet>,
    pub(crate) by_namespace: FxHashMap<Symbol, Vec<LabelSetId>>,
    label_set_ids: FxHashMap<(Symbol, Labels), LabelSetId>,
    by_content: HashTable<ClassId>,
    by_spec: [Vec<Option<ClassId>>; 2],
    mentions: Mentions,
    volume_lists: IndexSet<Vec<VolumeTrait>, FxBuildHasher>,
    claim_lists: IndexSet<Vec<ClaimTrait>, FxBuildHasher>,
    /// CSI drivers of which some node takes only so many volumes, or none if it lacks the driver.
    pub(crate) limited_drivers: FxHashSet<Symbol>,
    /// Whether some pod spreads, so that it matters whether others are being deleted.
    any_spread: bool,
}

impl Classes {
    pub(crate) fn new(facts: &Facts<'_>) -> Self {
        let cluster = facts.cluster;
        let storage = &cluster.storage;
        let limits = storage.csi_nodes.values().flat_map(|node| &node.drivers).filter(|(_, limit)| limit.is_some());
        let demanding = storage.csi_drivers.iter().filter(|(_, driver)| driver.prevent_scheduling_if_missing);
        Self {
            table: Table::default(),
            label_sets: Table::default(),
            by_namespace: FxHashMap::default(),
            label_set_ids: FxHashMap::default(),
            by_content: HashTable::new(),
            by_spec: [vec![None; cluster.specs.len()], vec![None; cluster.specs.len()]],
            mentions: Mentions::of(cluster.specs.iter().map(|(_, spec)| spec)),
            volume_lists: IndexSet::default(),
            claim_lists: IndexSet::default(),
            limited_drivers: limits.map(|(driver, _)| *driver).chain(demanding.map(|(driver, _)| *driver)).collect(),
            any_spread: cluster.specs.iter().any(|(_, spec)| !spec.spread.is_empty()),
        }
    }

    /// The class of a spec, and whether it is new.
    pub(crate) fn intern(
        &mut self,
        facts: &Facts<'_>,
        scalars: &[Symbol],
        id: SpecId,
        terminating: bool,
    ) -> (ClassId, bool) {
        let terminating = terminating && self.any_spread;
        let known = |classes: &Self| classes.by_spec.get(usize::from(terminating))?.get(id.index()).copied().flatten();
        if let Some(class) = known(self) {
            return (class, false);
        }
        let spec = &facts.cluster.specs[id];
        let label_set = self.label_set(spec);
        let volumes = self.volumes(facts, spec);
        let claims = self.claims(facts, spec);
        let look = Look { spec, label_set, volumes, claims, terminating };
        let same = |table: &Table<ClassId, Class>, &class: &ClassId| look == Look::of(facts, &table[class]);
        let found = self.by_content.find(look.hash_code(), |class| same(&self.table, class)).copied();
        let class = found.unwrap_or_else(|| {
            let demand = demand(spec, scalars);
            let class = self.table.push(Class {
                spec: id,
                terminating,
                label_set,
                demand,
                volumes,
                claims,
                sites: Vec::new(),
                live_sites: 0,
                inquiry: None,
            });
            let rehash = |&class: &ClassId| Look::of(facts, &self.table[class]).hash_code();
            self.by_content.insert_unique(look.hash_code(), class, rehash);
            self.label_sets[label_set].classes.push(class);
            class
        });
        let slot = self.by_spec.get_mut(usize::from(terminating)).and_then(|by_spec| by_spec.get_mut(id.index()));
        if let Some(slot) = slot {
            *slot = Some(class);
        }
        (class, found.is_none())
    }

    fn label_set(&mut self, spec: &PodSpec) -> LabelSetId {
        let labels = self.mentions.project(&spec.labels);
        *self.label_set_ids.entry((spec.namespace, labels)).or_insert_with_key(|(namespace, labels)| {
            let set = LabelSet { namespace: *namespace, labels: labels.clone(), classes: Vec::new() };
            let id = self.label_sets.push(set);
            self.by_namespace.entry(*namespace).or_default().push(id);
            id
        })
    }

    fn volumes(&mut self, facts: &Facts<'_>, spec: &PodSpec) -> VolumesId {
        let traits = spec.volumes.iter().map(|volume| self.volume_trait(facts, spec.namespace, volume)).collect();
        VolumesId::at(self.volume_lists.insert_full(traits).0)
    }

    fn claims(&mut self, facts: &Facts<'_>, spec: &PodSpec) -> ClaimsId {
        let traits = spec.claims.iter().map(|claim| match own_spec(facts, spec.namespace, claim) {
            Some(spec) => ClaimTrait::Own(spec),
            None => ClaimTrait::Itself(spec.namespace, *claim),
        });
        ClaimsId::at(self.claim_lists.insert_full(traits.collect()).0)
    }

    /// A bound volume of a driver without limits, which several pods may use, matters only by the place where it is.
    fn volume_trait(&self, facts: &Facts<'_>, namespace: Symbol, volume: &Volume) -> VolumeTrait {
        let place = || {
            let storage = &facts.cluster.storage;
            let (name, ephemeral) = match volume {
                Volume::Claim(name) => (*name, false),
                Volume::Ephemeral { claim, .. } => (*claim, true),
                Volume::Disk(_) | Volume::InlineCsi(_) => return None,
            };
            let claim = storage.claims.get(&(namespace, name))?;
            let owned = match volume {
                Volume::Ephemeral { pod, pod_uid, .. } => claim.owner_pod == Some((*pod, *pod_uid)),
                _ => true,
            };
            let exclusive = claim.access_modes.iter().any(|&mode| facts.symbols().text(mode) == SINGLE_POD);
            let healthy = is_bound(claim)
                && owned
                && !exclusive
                && !claim.deleting
                && claim.phase != plimsoll_model::storage::VolumePhase::Lost;
            let found = storage.volumes.get(&claim.volume.filter(|_| healthy)?)?;
            found.csi.filter(|(driver, _)| !self.limited_drivers.contains(driver))?;
            let zones = volume_zone::KEYS.map(|(key, _)| found.labels.get(key));
            Some(VolumeTrait::Bound { ephemeral, affinity: found.node_affinity.clone(), zones })
        };
        place().unwrap_or_else(|| VolumeTrait::Itself(namespace, volume.clone()))
    }
}

/// Access mode of claims that one pod alone may use.
pub(crate) const SINGLE_POD: &str = "ReadWriteOncePod";

impl Class {
    /// Static rules in order, asked of one node.
    pub(crate) fn statically_fits(facts: &Facts<'_>, spec: &PodSpec, node: &plimsoll_model::Node) -> bool {
        RULES.iter().all(|rule| match rule {
            Rule::Static(rule) => rule.refuse(facts, spec, node).is_empty(),
            Rule::Dynamic(_) => true,
        })
    }
}

impl Inquiry {
    pub(crate) fn new(facts: &Facts<'_>, spec: &PodSpec) -> Self {
        let admission = predicates::admit(facts, spec);
        let by_identity = matches!(admission, Ok(Some(_)))
            || RULES.iter().any(|rule| match rule {
                Rule::Static(rule) => rule.reads_identity(facts, spec),
                Rule::Dynamic(_) => false,
            });
        Self { admission, by_identity, verdicts: Vec::new(), checks: 0, generation: 0 }
    }
}

/// What makes a class, by reference.
struct Look<'a> {
    spec: &'a PodSpec,
    label_set: LabelSetId,
    volumes: VolumesId,
    claims: ClaimsId,
    terminating: bool,
}

impl<'a> Look<'a> {
    fn of(facts: &Facts<'a>, class: &Class) -> Self {
        let &Class { spec, label_set, volumes, claims, terminating, .. } = class;
        Self { spec: &facts.cluster.specs[spec], label_set, volumes, claims, terminating }
    }

    /// Everything of a spec but labels, volumes, claims (these are numbered) and priority (no predicate looks at it).
    fn parts(&self) -> impl PartialEq + Hash + use<'a> {
        let PodSpec {
            namespace,
            labels: _,
            node_name,
            node_selector,
            node_affinity,
            tolerations,
            requests,
            of_containers: _,
            host_ports,
            spread,
            affinity,
            anti_affinity,
            volumes: _,
            claims: _,
            features,
            priority: _,
        } = self.spec;
        (
            (self.label_set, self.volumes, self.terminating, namespace, node_name, node_selector, node_affinity),
            (tolerations, requests, host_ports, spread, affinity, anti_affinity, self.claims, features),
        )
    }

    fn hash_code(&self) -> u64 {
        FxBuildHasher.hash_one(self.parts())
    }
}

impl PartialEq for Look<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

fn demand(spec: &PodSpec, scalars: &[Symbol]) -> Demand {
    let requests = &spec.requests;
    let native = [
        (Dim::CPU, requests.cpu_milli),
        (Dim::MEMORY, requests.memory_bytes),
        (Dim::STORAGE, requests.ephemeral_storage_bytes),
    ];
    let others = scalars.iter().enumerate().map(|(index, &name)| (Dim::scalar(index), requests.scalar(name)));
    let asked = native.into_iter().chain(others).filter(|&(_, amount)| amount > 0);
    // The pod count first: it is never zero, and it is what a full node lacks most often.
    std::iter::once((Dim::PODS, 1)).chain(asked).collect()
}

/// Labels of pods that some selector mentions.
#[derive(Debug, Default)]
struct Mentions(FxHashMap<Symbol, Mention>);

#[derive(Debug, Default)]
struct Mention {
    /// Values that are told apart.
    values: FxHashSet<Symbol>,
    /// Whether it matters that the key is there at all.
    presence: bool,
}

/// Stands for every value of a mentioned key that no selector mentions. No label has it.
const OTHER_VALUE: Symbol = Symbol::nameless(1);

impl Mentions {
    fn of<'a>(specs: impl Iterator<Item = &'a PodSpec>) -> Self {
        let mut mentions = Self::default();
        for spec in specs {
            let spreads = spec.spread.iter().filter_map(|constraint| constraint.selector.as_ref());
            let terms = spec.affinity.iter().chain(&spec.anti_affinity);
            let selectors = spreads.chain(terms.filter_map(|term: &PodAffinityTerm| term.selector.as_ref()));
            selectors.for_each(|selector| mentions.add(selector));
        }
        mentions
    }

    fn add(&mut self, selector: &LabelSelector) {
        let LabelSelector::All(requirements) = selector else { return };
        for requirement in requirements {
            let mention = self.0.entry(requirement.key).or_default();
            match &requirement.operator {
                Operator::In(values) | Operator::NotIn(values) => mention.values.extend(values.iter().copied()),
                Operator::Exists | Operator::DoesNotExist => mention.presence = true,
                // Not for pods; such a requirement never holds.
                Operator::Gt(_) | Operator::Lt(_) => {}
            }
        }
    }

    fn project(&self, labels: &Labels) -> Labels {
        let mentioned = labels.iter().filter_map(|(key, value)| {
            let mention = self.0.get(&key)?;
            let told_apart = mention.values.contains(&value).then_some(value);
            Some((key, told_apart.or(mention.presence.then_some(OTHER_VALUE))?))
        });
        Labels::new(mentioned)
    }
}
