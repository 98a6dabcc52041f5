//! VolumeBinding: claims must have a volume that the node can reach, or get one there.

use plimsoll_model::pod::Volume;
use plimsoll_model::selector::LabelSelector;
use plimsoll_model::storage::{Claim, PersistentVolume, StorageClass, VolumePhase};
use plimsoll_model::symbol::known;
use plimsoll_model::{Labels, Node, PodSpec, Symbol, Symbols};

use super::node_affinity::selector_reads_identity;
use super::volumes::{all_claims, class, delayed_class, is_bound};
use super::{Admission, Predicate, StaticRule};
use crate::facts::Facts;
use crate::refusal::Reason;

/// Bound claims: the volume's node affinity. Claims that wait for their first consumer: a free volume that fits, or a class
/// that can make one for this node. Other claims without volume keep the pod from every node.
///
/// Volumes are not set aside for pods that were placed, as in the peer.
pub(crate) struct VolumeBinding;

/// Provisioner of classes whose volumes are made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Whether a volume can be reached from a node with these labels. Only labels count, so a term that has nothing but
/// fields matches every node.
fn reachable(volume: &PersistentVolume, labels: &Labels, symbols: &Symbols) -> bool {
    volume.node_affinity.as_ref().is_none_or(|affinity| affinity.matches(labels, None, symbols))
}

/// What is wrong with a claim before any node is looked at.
fn broken(facts: &Facts<'_>, pod: &PodSpec, volume: &Volume) -> Option<Reason> {
    let (name, owner) = match volume {
        Volume::Claim(name) => (*name, None),
        Volume::Ephemeral { claim, pod, pod_uid } => (*claim, Some((*pod, *pod_uid))),
        Volume::Disk(_) | Volume::InlineCsi(_) => return None,
    };
    let text = |symbol| facts.text(symbol);
    let Some(claim) = facts.cluster.storage.claims.get(&(pod.namespace, name)) else {
        return Some(match owner {
            Some(_) => Reason::ClaimAwaited { claim: text(name) },
            None => Reason::ClaimMissing { claim: text(name) },
        });
    };
    if claim.phase == VolumePhase::Lost {
        return Some(Reason::ClaimLost { claim: text(name), volume: claim.volume.map(text).unwrap_or_default() });
    }
    if claim.deleting {
        return Some(Reason::ClaimDeleted { claim: text(name) });
    }
    let owner = owner.filter(|_| claim.owner_pod != owner)?;
    let qualified = |name| format!("{}/{}", text(pod.namespace), text(name)).into();
    Some(Reason::ClaimOfOther { claim: qualified(name), pod: qualified(owner.0) })
}

/// Claims that wait for their first consumer, with name and class.
fn delayed<'c>(facts: &Facts<'c>, pod: &PodSpec) -> Vec<(Symbol, &'c Claim, &'c StorageClass)> {
    let claims = &facts.cluster.storage.claims;
    let unbound = all_claims(pod).filter_map(|name| {
        let claim = claims.get(&(pod.namespace, name)).filter(|claim| !is_bound(claim))?;
        Some((name, claim, delayed_class(facts, claim)?))
    });
    unbound.collect()
}

/// Whether a volume is set aside for a claim.
fn is_for(volume: &PersistentVolume, namespace: Symbol, name: Symbol, claim: &Claim) -> bool {
    volume.claim.is_some_and(|(to_namespace, to_name, uid)| {
        (to_namespace, to_name) == (namespace, name) && (uid == known::EMPTY || uid == claim.uid)
    })
}

/// The volume for a claim on a node: one set aside for it, else the smallest that will do
/// (component-helpers `volume.FindMatchingVolume`).
fn matching_volume(
    facts: &Facts<'_>,
    namespace: Symbol,
    (name, claim): (Symbol, &Claim),
    node: &Labels,
    taken: &[Symbol],
) -> Option<Symbol> {
    let symbols = facts.symbols();
    let candidates = facts.volumes_of_class(class(claim)).iter().filter(|(volume_name, volume)| {
        let mine = is_for(volume, namespace, name, claim);
        !taken.contains(volume_name)
            && (volume.claim.is_none() || mine)
            && volume.capacity_bytes >= claim.request_bytes.unwrap_or(0)
            && volume.mode == claim.mode
            && volume.attributes_class == claim.attributes_class
            && !volume.deleting
    });
    let mut smallest = None;
    for &(volume_name, volume) in candidates {
        let reachable = reachable(volume, node, symbols);
        if is_for(volume, namespace, name, claim) {
            return reachable.then_some(volume_name);
        }
        let chosen_by_selector =
            claim.selector.as_ref().is_none_or(|selector| selector.matches(&volume.labels, symbols));
        let usable = volume.phase == VolumePhase::Available
            && chosen_by_selector
            && reachable
            && claim.access_modes.iter().all(|mode| volume.access_modes.contains(mode));
        if usable && smallest.is_none() {
            smallest = Some(volume_name);
        }
    }
    smallest
}

/// Whether the class makes volumes for a node with these labels: some term of `allowedTopologies` has all its labels.
fn allows(class: &StorageClass, node: &Labels) -> bool {
    let holds = |(key, values): &(Symbol, Box<[Symbol]>)| node.get(*key).is_some_and(|value| values.contains(&value));
    class.allowed_topologies.is_empty()
        || class.allowed_topologies.iter().any(|term| !term.is_empty() && term.iter().all(holds))
}

/// Whether the storage behind a class has room for a claim on a node, if its driver tells how much there is.
fn has_capacity(facts: &Facts<'_>, claim: &Claim, provisioner: Symbol, node: &Labels) -> bool {
    let storage = &facts.cluster.storage;
    let tells = storage.csi_drivers.get(&provisioner).is_some_and(|driver| driver.storage_capacity);
    let Some(bytes) = claim.request_bytes.filter(|_| tells) else { return true };
    storage.capacities.iter().any(|capacity| {
        let reaches = |topology: &LabelSelector| topology.matches(node, facts.symbols());
        capacity.class == class(claim)
            && capacity.maximum_volume_bytes.or(capacity.capacity_bytes).is_some_and(|room| room >= bytes)
            && capacity.topology.as_ref().is_some_and(reaches)
    })
}

impl Predicate for VolumeBinding {
    fn name(&self) -> &'static str {
        "VolumeBinding"
    }

    fn admit(&self, facts: &Facts<'_>, pod: &PodSpec) -> Admission {
        if let Some(reason) = pod.volumes.iter().find_map(|volume| broken(facts, pod, volume)) {
            return Admission::Nowhere(reason);
        }
        let claims = all_claims(pod).filter_map(|name| facts.cluster.storage.claims.get(&(pod.namespace, name)));
        let mut immediate = claims.filter(|claim| !is_bound(claim) && delayed_class(facts, claim).is_none());
        immediate.next().map_or(Admission::Anywhere, |_| Admission::Nowhere(Reason::UnboundImmediateClaim))
    }
}

impl StaticRule for VolumeBinding {
    fn refuse(&self, facts: &Facts<'_>, pod: &PodSpec, node: &Node) -> Vec<Reason> {
        let storage = &facts.cluster.storage;
        // Kubernetes reports these in this order, each at most once.
        let (mut affinity, mut no_volume, mut too_full, mut missing) = (false, false, false, false);
        for name in all_claims(pod) {
            let claim = storage.claims.get(&(pod.namespace, name)).filter(|claim| is_bound(claim));
            let Some(volume) = claim.and_then(|claim| claim.volume) else { continue };
            match storage.volumes.get(&volume) {
                None => missing = true,
                Some(volume) => affinity = !reachable(volume, &node.labels, facts.symbols()),
            }
            // The scheduler looks no further than the first bound claim that fails.
            if missing || affinity {
                break;
            }
        }
        let mut claims = delayed(facts, pod);
        let elsewhere = |claim: &Claim| claim.selected_node.is_some_and(|selected| selected != node.name);
        if claims.iter().any(|(_, claim, _)| elsewhere(claim)) {
            no_volume = true;
            claims.clear();
        }
        // The smallest claim chooses first, so that a large volume is not spent on it.
        claims.sort_by_key(|(_, claim, _)| (claim.selected_node.is_none(), claim.request_bytes.unwrap_or(0)));
        let mut taken = Vec::new();
        let mut to_make = Vec::new();
        for &(name, claim, class) in &claims {
            let found = match claim.selected_node {
                Some(_) => None,
                None => matching_volume(facts, pod.namespace, (name, claim), &node.labels, &taken),
            };
            match found {
                Some(volume) => taken.push(volume),
                None => to_make.push((claim, class)),
            }
        }
        for (claim, class) in to_make {
            let provisioner = facts.symbols().text(class.provisioner);
            if provisioner.is_empty() || provisioner == NO_PROVISIONER || !allows(class, &node.labels) {
                no_volume = true;
                break;
            }
            if !has_capacity(facts, claim, class.provisioner, &node.labels) {
                too_full = true;
                break;
            }
        }
        let found = [
            (affinity, Reason::VolumeAffinity),
            (no_volume, Reason::NoVolume),
            (too_full, Reason::NotEnoughStorage),
            (missing, Reason::BoundVolumeMissing),
        ];
        found.into_iter().filter(|(found, _)| *found).map(|(_, reason)| reason).collect()
    }

    fn reads_identity(&self, facts: &Facts<'_>, pod: &PodSpec) -> bool {
        let storage = &facts.cluster.storage;
        let by_name = |volume: &PersistentVolume| volume.node_affinity.as_ref().is_some_and(selector_reads_identity);
        all_claims(pod).filter_map(|name| storage.claims.get(&(pod.namespace, name))).any(|claim| {
            let bound = claim.volume.filter(|_| is_bound(claim));
            match bound {
                Some(volume) => storage.volumes.get(&volume).is_some_and(by_name),
                // Volumes to choose from, topologies and capacities may all name hosts.
                None => {
                    let of_class = storage.classes.get(&class(claim));
                    let topologies = of_class.map_or(&[][..], |class| &class.allowed_topologies);
                    claim.selected_node.is_some()
                        || facts.volumes_of_class(class(claim)).iter().any(|(_, volume)| by_name(volume))
                        || topologies.iter().flatten().any(|(key, _)| *key == known::HOSTNAME)
                        || storage.capacities.iter().filter_map(|capacity| capacity.topology.as_ref()).any(names_host)
                }
            }
        })
    }
}

fn names_host(selector: &LabelSelector) -> bool {
    match selector {
        LabelSelector::All(requirements) => requirements.iter().any(|requirement| requirement.key == known::HOSTNAME),
        LabelSelector::Invalid(_) => false,
    }
}
