//! VolumeZone: zone and region labels of bound volumes.

use plimsoll_model::storage::{BindingMode, PersistentVolume};
use plimsoll_model::symbol::known;
use plimsoll_model::{Node, PodSpec, Symbol};

use super::volumes::claims;
use super::{Admission, Predicate, StaticRule};
use crate::facts::Facts;
use crate::refusal::Reason;

/// A bound volume that carries zone or region labels goes only to nodes of the same zone or region, as far as the nodes
/// are labelled at all.
pub(crate) struct VolumeZone;

/// The labels that count, each with the one of the node to look at if the node lacks it: older keys give way to newer
/// ones, never the reverse.
pub(crate) const KEYS: [(Symbol, Option<Symbol>); 4] = [
    (known::BETA_ZONE, Some(known::ZONE)),
    (known::BETA_REGION, Some(known::REGION)),
    (known::ZONE, None),
    (known::REGION, None),
];

/// The volume of a claim: none if the claim waits for its first consumer.
fn volume<'c>(facts: &Facts<'c>, namespace: Symbol, name: Symbol) -> Result<Option<&'c PersistentVolume>, Reason> {
    let storage = &facts.cluster.storage;
    let Some(claim) = storage.claims.get(&(namespace, name)) else {
        return Err(Reason::ClaimMissing { claim: facts.text(name) });
    };
    let Some(volume) = claim.volume else {
        let class = claim.class.filter(|&class| class != known::EMPTY).ok_or(Reason::ClaimWithoutClass)?;
        let Some(found) = storage.classes.get(&class) else {
            return Err(Reason::ClassMissing { class: facts.text(class) });
        };
        return match found.binding_mode {
            None => Err(Reason::ClassWithoutMode { class: facts.text(class) }),
            Some(BindingMode::WaitForFirstConsumer) => Ok(None),
            Some(BindingMode::Immediate) => Err(Reason::ClaimWithoutVolume),
        };
    };
    match storage.volumes.get(&volume) {
        Some(volume) => Ok(Some(volume)),
        None => Err(Reason::VolumeMissing { volume: facts.text(volume) }),
    }
}

/// Whether a zone label of a volume, one value or several between `__`, names the node's value. A list with an empty
/// element says nothing.
fn names(facts: &Facts<'_>, list: Symbol, value: Option<Symbol>) -> bool {
    let (list, value) = (facts.symbols().text(list), value.map(|value| facts.symbols().text(value)));
    let mut zones = list.split("__").map(str::trim);
    zones.clone().any(str::is_empty) || zones.any(|zone| Some(zone) == value)
}

impl Predicate for VolumeZone {
    fn name(&self) -> &'static str {
        "VolumeZone"
    }

    fn admit(&self, facts: &Facts<'_>, pod: &PodSpec) -> Admission {
        let refused = claims(pod).find_map(|name| volume(facts, pod.namespace, name).err());
        refused.map_or(Admission::Anywhere, Admission::Nowhere)
    }
}

impl StaticRule for VolumeZone {
    fn refuse(&self, facts: &Facts<'_>, pod: &PodSpec, node: &Node) -> Vec<Reason> {
        if KEYS.iter().all(|&(key, _)| node.labels.get(key).is_none()) {
            return Vec::new();
        }
        let volumes = claims(pod).filter_map(|name| volume(facts, pod.namespace, name).ok().flatten());
        let mut labels = volumes
            .flat_map(|volume| KEYS.iter().filter_map(|&(key, newer)| Some((volume.labels.get(key)?, key, newer))));
        let refused = labels.any(|(zones, key, newer)| {
            let value = node.labels.get(key).or_else(|| node.labels.get(newer?));
            !names(facts, zones, value)
        });
        Vec::from_iter(refused.then_some(Reason::VolumeZone))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::convert::Kind;

    use crate::testing::Scene;

    const USES: &str = "{spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}}";

    #[test]
    fn a_volume_with_zones_goes_to_nodes_of_these() {
        let beta = "failure-domain.beta.kubernetes.io";
        let zone = |zone: &str| format!("topology.kubernetes.io/zone: {zone}");
        let beta_zone = |zone: &str| format!("{beta}/zone: {zone}");
        for (name, volume, node, fits) in [
            ("an unlabelled node", format!("{}, {}", zone("a"), beta_zone("a")), String::new(), true),
            ("one of several zones", beta_zone("a__b"), beta_zone("b"), true),
            ("none of several zones", beta_zone("a__b"), beta_zone("c"), false),
            ("a list with a hole says nothing", beta_zone("a____b"), beta_zone("c"), true),
            ("the region is missing", format!("{}, topology.kubernetes.io/region: r", zone("a")), zone("a"), false),
            ("the newer key does not fall back", zone("a"), beta_zone("a"), false),
            ("the older key falls back", beta_zone("a"), zone("a"), true),
            ("to another zone", beta_zone("a"), zone("b"), false),
            ("a volume without zones", String::new(), zone("b"), true),
        ] {
            let mut scene = Scene::new();
            scene.node("n1", &format!("{{metadata: {{labels: {{{node}}}}}}}"));
            let bound = "annotations: {pv.kubernetes.io/bind-completed: \"yes\"}";
            scene.add(
                Kind::PersistentVolumeClaim,
                &format!("{{metadata: {{name: data, namespace: default, {bound}}}, spec: {{volumeName: pv}}}}"),
            );
            scene.add(Kind::PersistentVolume, &format!("{{metadata: {{name: pv, labels: {{{volume}}}}}, spec: {{}}}}"));
            let pod = scene.pod(USES);
            let expected = if fits { "" } else { "VolumeZone: node(s) had no available volume zone" };
            assert_eq!(scene.verdict(pod), expected, "{name}");
        }
    }

    #[test]
    fn a_bound_volume_must_exist() {
        let mut scene = Scene::new();
        scene.node("n1", "{}");
        let bound = "annotations: {pv.kubernetes.io/bind-completed: \"yes\"}";
        scene.add(
            Kind::PersistentVolumeClaim,
            &format!("{{metadata: {{name: data, namespace: default, {bound}}}, spec: {{volumeName: gone}}}}"),
        );
        let pod = scene.pod(USES);
        assert_eq!(scene.verdict(pod), "VolumeZone (everywhere): persistentvolume \"gone\" not found");
    }
}
