//! What the claims of a pod come to: devices to be picked, claims that have theirs, or a refusal.

use plimsoll_model::devices::{
    Allocation, Choice, ClaimRequest, ClaimSpec, ClaimSpecId, DeviceCount, DeviceRequest, IMPLICIT_RESOURCE,
    ResourceClaim,
};
use plimsoll_model::pod::ClaimReference;
use plimsoll_model::{Cluster, Node, PodSpec, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};

use super::ClaimKey;
use crate::facts::Facts;
use crate::refusal::Reason;

/// What the claims of a pod come to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Wants {
    /// Claims of its own, to be given devices.
    pub(crate) own: Vec<ClaimSpecId>,
    /// Claims that it shares with others, to be given devices.
    pub(crate) shared: Vec<ClaimKey>,
    /// Claims that have devices.
    pub(crate) allocated: Vec<ClaimKey>,
    /// Of these, those that were made for it.
    pub(crate) made: Vec<ClaimKey>,
    /// Claims that others may use too, whether they have devices or not.
    pub(crate) named: Vec<ClaimKey>,
    /// Resources that stand for devices of a class, with amounts.
    pub(crate) resources: Vec<(Symbol, Symbol, i64)>,
}

/// The class that stands behind each extended resource.
pub(crate) fn classes_of_resources(cluster: &Cluster) -> FxHashMap<Symbol, Symbol> {
    let classes = &cluster.devices.classes;
    let mut found: FxHashMap<Symbol, Symbol> = FxHashMap::default();
    for &name in classes.keys() {
        let implicit = format!("{IMPLICIT_RESOURCE}{}", cluster.text(name));
        found.extend(cluster.symbols.find(&implicit).map(|resource| (resource, name)));
    }
    let mut explicit: Vec<_> =
        classes.iter().filter_map(|(&name, class)| Some((class.extended_resource?, class.created_at, name))).collect();
    // Of several classes the youngest counts; of equally old ones the first by name.
    explicit.sort_by(|one, other| one.1.cmp(&other.1).then_with(|| cluster.text(other.2).cmp(cluster.text(one.2))));
    found.extend(explicit.into_iter().map(|(resource, _, name)| (resource, name)));
    found
}

/// How many consumers each claim is reserved for, without the pods of the cluster that name it.
pub(crate) fn strange_consumers(cluster: &Cluster) -> FxHashMap<ClaimKey, usize> {
    if cluster.devices.claims.values().all(|claim| claim.reserved_for.is_empty()) {
        return FxHashMap::default();
    }
    let mut known: FxHashSet<(ClaimKey, Symbol)> = FxHashSet::default();
    for pod in &cluster.pods {
        let spec = &cluster.specs[pod.spec];
        for claim in &spec.claims {
            if let (ClaimReference::Named(name), Some(uid)) = (claim, cluster.symbols.find(&pod.uid)) {
                known.insert(((spec.namespace, *name), uid));
            }
        }
    }
    let claims = cluster.devices.claims.iter().filter(|(_, claim)| !claim.reserved_for.is_empty());
    let strange = claims.map(|(key, claim)| {
        let is_strange = |uid: &&Symbol| !known.contains(&(*key, **uid));
        (*key, claim.reserved_for.iter().filter(is_strange).count())
    });
    strange.collect()
}

/// What a claim that does not exist yet will ask for.
pub(crate) fn fresh(
    cluster: &Cluster,
    namespace: Symbol,
    like: Option<Symbol>,
    template: Option<Symbol>,
) -> Option<ClaimSpecId> {
    let template = template.and_then(|template| cluster.devices.templates.get(&(namespace, template)).copied());
    template.or_else(|| Some(cluster.devices.claims.get(&(namespace, like?))?.spec))
}

/// The claim that was made for a pod, if it is in order.
fn made<'c>(
    facts: &Facts<'c>,
    namespace: Symbol,
    name: Symbol,
    pod: (Symbol, Symbol),
) -> Result<&'c ResourceClaim, Reason> {
    let claim = named(facts, namespace, name)?;
    if claim.owner_pod != Some(pod) {
        let text = |name| format!("{}/{}", facts.text(namespace), facts.text(name)).into();
        return Err(Reason::DeviceClaimOfOther { claim: text(name), pod: text(pod.0) });
    }
    Ok(claim)
}

fn named<'c>(facts: &Facts<'c>, namespace: Symbol, name: Symbol) -> Result<&'c ResourceClaim, Reason> {
    let found = facts.cluster.devices.claims.get(&(namespace, name));
    let found = found.ok_or_else(|| Reason::DeviceClaimMissing {
        claim: format!("{}/{}", facts.text(namespace), facts.text(name)).into(),
    })?;
    if found.deleting {
        return Err(Reason::DeviceClaimDeleted { claim: facts.text(name) });
    }
    Ok(found)
}

/// Spec of a claim of a pod's own that has no devices yet.
pub(crate) fn own_spec(facts: &Facts<'_>, namespace: Symbol, claim: &ClaimReference) -> Option<ClaimSpecId> {
    match *claim {
        ClaimReference::Made { claim, pod, pod_uid } => {
            let claim = made(facts, namespace, claim, (pod, pod_uid)).ok()?;
            claim.allocation.is_none().then_some(claim.spec)
        }
        ClaimReference::Fresh { like, template } => fresh(facts.cluster, namespace, like, template),
        _ => None,
    }
}

/// What the claims of a pod come to, or why it fits nowhere (PreFilter).
pub(crate) fn of(facts: &Facts<'_>, pod: &PodSpec) -> Result<Wants, Reason> {
    let mut wants = Wants::default();
    let namespace = pod.namespace;
    let mut has_claim_for_resources = false;
    for reference in &pod.claims {
        match *reference {
            ClaimReference::Unneeded => {}
            ClaimReference::Awaited { pod } => {
                let pod = format!("{}/{}", facts.text(namespace), facts.text(pod));
                return Err(Reason::DeviceClaimAwaited { pod: pod.into() });
            }
            ClaimReference::Fresh { like, template } => {
                let spec = fresh(facts.cluster, namespace, like, template).ok_or_else(|| {
                    let name = like.or(template).map_or_else(Box::default, |name| facts.text(name));
                    Reason::DeviceClaimMissing { claim: format!("{}/{name}", facts.text(namespace)).into() }
                })?;
                wants.own.push(spec);
            }
            ClaimReference::Made { claim: name, pod, pod_uid } => {
                let claim = made(facts, namespace, name, (pod, pod_uid))?;
                if claim.allocation.is_some() {
                    wants.allocated.push((namespace, name));
                    wants.made.push((namespace, name));
                } else {
                    wants.own.push(claim.spec);
                }
            }
            ClaimReference::Named(name) => {
                let claim = named(facts, namespace, name)?;
                let list = if claim.allocation.is_some() { &mut wants.allocated } else { &mut wants.shared };
                if !list.contains(&(namespace, name)) {
                    list.push((namespace, name));
                    wants.named.push((namespace, name));
                }
            }
            ClaimReference::ForResources(name) => {
                has_claim_for_resources |= named(facts, namespace, name)?.allocation.is_some();
            }
        }
    }
    if !has_claim_for_resources && !facts.classes_of_resources.is_empty() {
        let asked = pod.requests.scalars.iter().filter(|(_, amount)| *amount > 0);
        let backed = asked.filter_map(|&(name, amount)| Some((name, *facts.classes_of_resources.get(&name)?, amount)));
        wants.resources = backed.collect();
    }
    Ok(wants)
}

/// Claims that a pod names, each once: those that others may use too.
pub(crate) fn named_claims(pod: &PodSpec) -> impl Iterator<Item = ClaimKey> {
    let name = |claim: &ClaimReference| match *claim {
        ClaimReference::Named(name) => Some(name),
        _ => None,
    };
    let names =
        pod.claims.iter().enumerate().filter(|(at, claim)| !pod.claims.iter().take(*at).any(|other| other == *claim));
    names.filter_map(move |(_, claim)| Some((pod.namespace, name(claim)?)))
}

/// Claims with devices that a pod has as long as it runs, and gives back when it goes.
pub(crate) fn held<'a>(facts: &'a Facts<'_>, pod: &'a PodSpec) -> impl Iterator<Item = (ClaimKey, &'a Allocation)> {
    let keys = pod.claims.iter().filter_map(|claim| match *claim {
        ClaimReference::Made { claim, .. } | ClaimReference::ForResources(claim) => Some((pod.namespace, claim)),
        _ => None,
    });
    keys.filter(|key| facts.given_back.contains(key))
        .filter_map(|key| Some((key, facts.cluster.devices.claims.get(&key)?.allocation.as_ref()?)))
}

impl Wants {
    /// Whether it is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.allocated.is_empty() && self.named.is_empty() && self.resources.is_empty()
    }

    /// The resources that a node does not have itself.
    pub(crate) fn missing(&self, node: &Node) -> impl Iterator<Item = &(Symbol, Symbol, i64)> {
        self.resources.iter().filter(|(name, ..)| node.allocatable.scalar(*name) == 0)
    }

    /// A claim for the resources that a node does not have itself.
    pub(crate) fn claim_for_resources(&self, node: &Node) -> Option<ClaimSpec> {
        let requests: Box<[ClaimRequest]> = self
            .missing(node)
            .map(|&(name, class, amount)| ClaimRequest {
                name,
                choice: Choice::Exactly(DeviceRequest {
                    name,
                    class,
                    selectors: Box::default(),
                    count: DeviceCount::Exactly(amount),
                    admin: false,
                    tolerations: Box::default(),
                    capacity: Box::default(),
                    derives_attributes: false,
                }),
            })
            .collect();
        (!requests.is_empty()).then(|| ClaimSpec { requests, constraints: Box::default() })
    }

    /// Whether devices are to be picked for it on a node.
    pub(crate) fn picks(&self, node: &Node) -> bool {
        !self.own.is_empty() || !self.shared.is_empty() || self.missing(node).next().is_some()
    }
}
