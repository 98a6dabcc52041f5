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

#[cfg(test)]
mod tests {
    use plimsoll_model::convert::Kind;

    use crate::testing::Scene;

    const BOUND: &str = "annotations: {pv.kubernetes.io/bind-completed: \"yes\"}";

    fn claim(scene: &mut Scene, name: &str, metadata: &str, spec: &str, status: &str) {
        let metadata = format!("{{name: {name}, namespace: default, uid: u-{name}, {metadata}}}");
        scene.add(
            Kind::PersistentVolumeClaim,
            &format!("{{metadata: {metadata}, spec: {{{spec}}}, status: {{{status}}}}}"),
        );
    }

    fn volume(scene: &mut Scene, name: &str, class: &str, size: &str, spec: &str) {
        let spec =
            format!("storageClassName: {class}, capacity: {{storage: {size}}}, accessModes: [ReadWriteOnce], {spec}");
        let object = format!("{{metadata: {{name: {name}}}, spec: {{{spec}}}, status: {{phase: Available}}}}");
        scene.add(Kind::PersistentVolume, &object);
    }

    fn on(node: &str) -> String {
        let term = format!("{{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [{node}]}}]}}");
        format!("nodeAffinity: {{required: {{nodeSelectorTerms: [{term}]}}}}")
    }

    fn pod(scene: &mut Scene, claims: &[&str]) -> plimsoll_model::SpecId {
        let volume = |name: &&str| format!("{{name: {name}, persistentVolumeClaim: {{claimName: {name}}}}}");
        let volumes: Vec<String> = claims.iter().map(volume).collect();
        scene.pod(&format!("{{spec: {{volumes: [{}]}}}}", volumes.join(", ")))
    }

    /// Two nodes; classes `wait` (a driver makes volumes), `hand` (nobody does), `now` (binds at once).
    fn scene() -> Scene {
        let mut scene = Scene::new();
        scene.node("n1", "{metadata: {labels: {zone: a}}}");
        scene.node("n2", "{metadata: {labels: {zone: b}}}");
        for (name, provisioner, mode) in [
            ("wait", "csi.example.com", "WaitForFirstConsumer"),
            ("hand", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            ("now", "csi.example.com", "Immediate"),
        ] {
            let class =
                format!("{{metadata: {{name: {name}}}, provisioner: {provisioner}, volumeBindingMode: {mode}}}");
            scene.add(Kind::StorageClass, &class);
        }
        scene
    }

    #[test]
    fn claims_that_keep_the_pod_from_every_node() {
        for (name, metadata, spec, status, expected) in [
            ("not bound, binds at once", "", "storageClassName: now", "", "VolumeZone"),
            (
                "lost",
                BOUND,
                "volumeName: pv",
                "phase: Lost",
                "VolumeBinding (everywhere): persistentvolumeclaim \"data\" bound to non-existent persistentvolume \"pv\"",
            ),
            (
                "being deleted",
                "deletionTimestamp: \"2026-01-01T00:00:00Z\"",
                "storageClassName: wait",
                "",
                "VolumeBinding (everywhere): persistentvolumeclaim \"data\" is being deleted",
            ),
            (
                "names a volume, binding not done",
                "",
                "volumeName: pv, storageClassName: wait",
                "",
                "VolumeBinding (everywhere): pod has unbound immediate PersistentVolumeClaims",
            ),
        ] {
            let mut scene = scene();
            volume(&mut scene, "pv", "wait", "1Gi", "");
            claim(&mut scene, "data", metadata, spec, status);
            let pod = pod(&mut scene, &["data"]);
            let verdict = scene.verdict(pod);
            // The zone rule words the first case, and comes later; the binding rule is what the scheduler reports.
            let expected = if expected == "VolumeZone" {
                "VolumeBinding (everywhere): pod has unbound immediate PersistentVolumeClaims"
            } else {
                expected
            };
            assert_eq!(verdict, expected, "{name}");
        }
    }

    #[test]
    fn a_bound_volume_must_be_reachable() {
        for (name, affinity, expected) in [
            ("from anywhere", String::new(), vec!["n1", "n2"]),
            ("from one node", on("n2"), vec!["n2"]),
            ("fields alone match every node", "nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n9]}]}]}}".into(), vec!["n1", "n2"]),
        ] {
            let mut scene = scene();
            volume(&mut scene, "pv", "wait", "1Gi", &affinity);
            claim(&mut scene, "data", BOUND, "volumeName: pv", "phase: Bound");
            let pod = pod(&mut scene, &["data"]);
            assert_eq!(scene.fitting(pod), expected, "{name}");
        }
    }

    #[test]
    fn waiting_claims_find_the_smallest_volumes_that_will_do() {
        let request = |class: &str, size: &str| {
            format!(
                "storageClassName: {class}, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {size}}}}}"
            )
        };
        for (name, volumes, claims, expected) in [
            ("none there", vec![], vec!["1Gi"], vec![]),
            ("large enough", vec![("a", "2Gi", on("n1"))], vec!["1Gi"], vec!["n1"]),
            ("too small", vec![("a", "1Gi", on("n1"))], vec!["2Gi"], vec![]),
            ("one volume for two claims", vec![("a", "2Gi", on("n1"))], vec!["1Gi", "1Gi"], vec![]),
            (
                "the large volume is not spent on the small claim",
                vec![("a", "10Gi", on("n1")), ("b", "5Gi", on("n1"))],
                vec!["10Gi", "5Gi"],
                vec!["n1"],
            ),
            (
                "set aside for another claim",
                vec![("a", "2Gi", format!("{}, claimRef: {{namespace: default, name: other}}", on("n1")))],
                vec!["1Gi"],
                vec![],
            ),
            (
                "set aside for this claim",
                vec![
                    ("a", "2Gi", format!("{}, claimRef: {{namespace: default, name: data0}}", on("n2"))),
                    ("b", "2Gi", on("n1")),
                ],
                vec!["1Gi"],
                vec!["n2"],
            ),
        ] {
            let mut scene = scene();
            for (volume_name, size, spec) in &volumes {
                volume(&mut scene, volume_name, "hand", size, spec);
            }
            let names: Vec<String> = (0..claims.len()).map(|index| format!("data{index}")).collect();
            for (claim_name, size) in names.iter().zip(&claims) {
                claim(&mut scene, claim_name, "", &request("hand", size), "");
            }
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let pod = pod(&mut scene, &names);
            assert_eq!(scene.fitting(pod), expected, "{name}");
        }
    }

    #[test]
    fn what_no_volume_serves_is_made_where_the_class_can() {
        let request = "storageClassName: topo, resources: {requests: {storage: 5Gi}}";
        let zone_b = "allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [b, c]}]}]";
        let capacity = |topology: &str, sizes: &str| {
            format!(
                "{{metadata: {{name: c, namespace: default}}, storageClassName: topo, {sizes}, nodeTopology: {{matchLabels: {{zone: {topology}}}}}}}"
            )
        };
        for (name, topologies, metadata, capacities, expected) in [
            ("anywhere", "", "", vec![], vec!["n1", "n2"]),
            ("in one zone", zone_b, "", vec![], vec!["n2"]),
            ("an empty topology term", "allowedTopologies: [{}]", "", vec![], vec![]),
            (
                "on the node chosen before",
                "",
                "annotations: {volume.kubernetes.io/selected-node: n2}",
                vec![],
                vec!["n2"],
            ),
            ("enough left in a zone", "", "", vec![capacity("a", "capacity: 5Gi")], vec!["n1"]),
            ("too little left", "", "", vec![capacity("a", "capacity: 4Gi")], vec![]),
            (
                "enough left, but not for one volume",
                "",
                "",
                vec![capacity("a", "capacity: 9Gi, maximumVolumeSize: 4Gi")],
                vec![],
            ),
            ("nothing said about sizes", "", "", vec![capacity("a", "capacity: null")], vec![]),
        ] {
            let mut scene = scene();
            let object = format!(
                "{{metadata: {{name: topo}}, provisioner: csi.example.com, volumeBindingMode: WaitForFirstConsumer, {topologies}}}"
            );
            scene.add(Kind::StorageClass, &object);
            if name.contains("left") || name.contains("sizes") {
                scene.add(Kind::CSIDriver, "{metadata: {name: csi.example.com}, spec: {storageCapacity: true}}");
            }
            for object in &capacities {
                scene.add(Kind::CSIStorageCapacity, object);
            }
            claim(&mut scene, "data", metadata, request, "");
            let pod = pod(&mut scene, &["data"]);
            assert_eq!(scene.fitting(pod), expected, "{name}");
        }
    }

    #[test]
    fn the_claim_of_an_ephemeral_volume_belongs_to_its_pod() {
        let owner = |uid: &str| {
            format!("ownerReferences: [{{apiVersion: v1, kind: Pod, name: pod, uid: {uid}, controller: true}}]")
        };
        for (name, made, expected) in [
            (
                "not made yet",
                None,
                "VolumeBinding (everywhere): waiting for ephemeral volume controller to create the persistentvolumeclaim \"pod-tmp\"",
            ),
            ("its own", Some(owner("u1")), ""),
            (
                "of a pod of the same name",
                Some(owner("u2")),
                "VolumeBinding (everywhere): PVC default/pod-tmp was not created for pod default/pod (pod is not owner)",
            ),
            (
                "of nobody",
                Some(String::new()),
                "VolumeBinding (everywhere): PVC default/pod-tmp was not created for pod default/pod (pod is not owner)",
            ),
        ] {
            let mut scene = scene();
            if let Some(metadata) = made {
                claim(&mut scene, "pod-tmp", &metadata, "storageClassName: wait", "");
            }
            let pod = scene.pod(
                "{metadata: {uid: u1}, spec: {volumes: [{name: tmp, ephemeral: {volumeClaimTemplate: {spec: {}}}}]}}",
            );
            assert_eq!(scene.verdict(pod), expected, "{name}");
        }
    }
}
