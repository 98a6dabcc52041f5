//! VolumeRestrictions: claims for one pod alone, and disks that cannot be shared.

use plimsoll_model::pod::{InlineDisk, Volume};
use plimsoll_model::{PodSpec, Symbol};
use rustc_hash::FxHashMap;

use super::volumes::claims;
use super::{Admission, DynamicRule, Predicate, Tracker, Verdict};
use crate::facts::Facts;
use crate::oracle::{Place, World};
use crate::refusal::Reason;
use crate::snapshot::base::{Base, ClassId, NodeId};
use crate::snapshot::classes::SINGLE_POD;

/// A claim with access mode ReadWriteOncePod is for one pod of the whole cluster. A disk named in a pod is for one pod of
/// the node, unless both only read it, of the kinds that allow that.
pub(crate) struct VolumeRestrictions;

/// Whether two disks cannot be on one node (kube-scheduler VolumeRestrictions `isVolumeConflict`).
fn conflict(one: &InlineDisk, other: &InlineDisk) -> bool {
    use InlineDisk::{AwsElasticBlockStore, GcePersistentDisk, Iscsi, Rbd};
    match (one, other) {
        (GcePersistentDisk { name, read_only }, GcePersistentDisk { name: other_name, read_only: other_read_only }) => {
            name == other_name && !(*read_only && *other_read_only)
        }
        (AwsElasticBlockStore { id }, AwsElasticBlockStore { id: other_id }) => id == other_id,
        (Iscsi { iqn, read_only }, Iscsi { iqn: other_iqn, read_only: other_read_only }) => {
            iqn == other_iqn && !(*read_only && *other_read_only)
        }
        (
            Rbd { monitors, pool, image, read_only },
            Rbd { monitors: other_monitors, pool: other_pool, image: other_image, read_only: other_read_only },
        ) => {
            monitors.iter().any(|monitor| other_monitors.contains(monitor))
                && (pool, image) == (other_pool, other_image)
                && !(*read_only && *other_read_only)
        }
        _ => false,
    }
}

fn disks(pod: &PodSpec) -> impl Iterator<Item = &InlineDisk> {
    pod.volumes.iter().filter_map(|volume| match volume {
        Volume::Disk(disk) => Some(disk),
        Volume::Claim(_) | Volume::Ephemeral { .. } | Volume::InlineCsi(_) => None,
    })
}

/// Claims of the pod that one pod alone may use.
fn exclusive_claims<'a>(facts: &'a Facts<'_>, pod: &'a PodSpec) -> impl Iterator<Item = (Symbol, Symbol)> + 'a {
    let exclusive = |name: &(Symbol, Symbol)| {
        let claim = facts.cluster.storage.claims.get(name);
        claim.is_some_and(|claim| claim.access_modes.iter().any(|&mode| facts.symbols().text(mode) == SINGLE_POD))
    };
    claims(pod).map(|name| (pod.namespace, name)).filter(exclusive)
}

fn in_use(facts: &Facts<'_>, (_, name): (Symbol, Symbol)) -> Reason {
    Reason::ClaimInUse { claim: facts.text(name) }
}

impl Predicate for VolumeRestrictions {
    fn name(&self) -> &'static str {
        "VolumeRestrictions"
    }

    fn admit(&self, facts: &Facts<'_>, pod: &PodSpec) -> Admission {
        let missing = claims(pod).find(|name| !facts.cluster.storage.claims.contains_key(&(pod.namespace, *name)));
        missing.map_or(Admission::Anywhere, |name| Admission::Nowhere(Reason::ClaimMissing { claim: facts.text(name) }))
    }
}

impl DynamicRule for VolumeRestrictions {
    fn refuse(&self, world: &World<'_>, pod: &PodSpec, node: &Place) -> Vec<Reason> {
        let residents = node.pods.iter().map(|pod| world.spec(pod.spec));
        if residents.flat_map(disks).any(|taken| disks(pod).any(|wanted| conflict(wanted, taken))) {
            return vec![Reason::DiskInUse];
        }
        let everyone = || world.places.iter().flat_map(|place| &place.pods).map(|pod| world.spec(pod.spec));
        let taken = exclusive_claims(&world.facts, pod).find(|&(namespace, wanted)| {
            everyone().any(|other| other.namespace == namespace && claims(other).any(|name| name == wanted))
        });
        Vec::from_iter(taken.map(|claim| in_use(&world.facts, claim)))
    }

    fn tracker(&self) -> Box<dyn Tracker> {
        Box::new(Taken::default())
    }
}

/// Who uses what.
#[derive(Default)]
struct Taken {
    /// Pods by exclusive claim.
    claims: FxHashMap<(Symbol, Symbol), i64>,
    /// Disks by node, with how often each is used.
    disks: FxHashMap<NodeId, Vec<(InlineDisk, i64)>>,
    awake: bool,
}

impl Taken {
    fn concerns(base: &Base<'_>, class: ClassId) -> bool {
        let spec = base.spec(class);
        !spec.volumes.is_empty()
            && (disks(spec).next().is_some() || exclusive_claims(&base.facts, spec).next().is_some())
    }

    fn refused(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Option<Reason> {
        let spec = base.spec(class);
        let taken = self.disks.get(&node).map_or(&[][..], Vec::as_slice);
        if taken.iter().any(|(taken, _)| disks(spec).any(|wanted| conflict(wanted, taken))) {
            return Some(Reason::DiskInUse);
        }
        let taken = exclusive_claims(&base.facts, spec).find(|claim| self.claims.contains_key(claim));
        taken.map(|claim| in_use(&base.facts, claim))
    }
}

impl Tracker for Taken {
    fn meet(&mut self, base: &Base<'_>, class: ClassId) -> bool {
        self.awake |= Self::concerns(base, class);
        false
    }

    fn prepare(&mut self, base: &mut Base<'_>, class: ClassId) -> bool {
        Self::concerns(base, class)
    }

    fn is_awake(&self) -> bool {
        self.awake
    }

    fn moved(&mut self, base: &Base<'_>, class: ClassId, node: NodeId, delta: i64) {
        let spec = base.spec(class);
        if spec.volumes.is_empty() {
            return;
        }
        for claim in exclusive_claims(&base.facts, spec) {
            let users = self.claims.entry(claim).or_default();
            *users += delta;
            if *users == 0 {
                self.claims.remove(&claim);
            }
        }
        for disk in disks(spec) {
            let taken = self.disks.entry(node).or_default();
            match taken.iter_mut().find(|(taken, _)| taken == disk) {
                Some((_, times)) => *times += delta,
                None => taken.push((disk.clone(), delta)),
            }
            taken.retain(|(_, times)| *times != 0);
            if taken.is_empty() {
                self.disks.remove(&node);
            }
        }
    }

    fn verdict(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Verdict {
        self.refused(base, class, node).map_or(Verdict::Fits, |_| Verdict::Never)
    }

    fn room(&self, base: &Base<'_>, class: ClassId, _node: NodeId) -> u32 {
        let spec = base.spec(class);
        let alone = exclusive_claims(&base.facts, spec).next().is_some()
            || disks(spec).any(|one| disks(spec).any(|other| conflict(one, other)));
        if alone { 1 } else { u32::MAX }
    }

    fn reasons(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Vec<Reason> {
        Vec::from_iter(self.refused(base, class, node))
    }

    fn digest(&self, base: &Base<'_>, state: &mut dyn std::hash::Hasher) {
        let mut claims: Vec<_> = self.claims.iter().collect();
        claims.sort_unstable();
        for ((namespace, name), users) in claims {
            state.write_usize(namespace.index());
            state.write_usize(name.index());
            state.write_i64(*users);
        }
        for node in base.life.ids() {
            let mut taken: Vec<_> = self.disks.get(&node).into_iter().flatten().collect();
            taken.sort_by_key(|(disk, _)| format!("{disk:?}"));
            for (disk, times) in taken {
                state.write_usize(node.index());
                state.write(format!("{disk:?}").as_bytes());
                state.write_i64(*times);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::convert::Kind;

    use crate::testing::Scene;

    fn uses(volumes: &str) -> String {
        format!("{{spec: {{volumes: [{volumes}]}}}}")
    }

    #[test]
    fn disks_named_in_pods_are_not_shared() {
        let gce = |name: &str, read_only: bool| {
            format!("{{name: v, gcePersistentDisk: {{pdName: {name}, readOnly: {read_only}}}}}")
        };
        let ebs = |id: &str, read_only: bool| {
            format!("{{name: v, awsElasticBlockStore: {{volumeID: {id}, readOnly: {read_only}}}}}")
        };
        let iscsi = |iqn: &str, lun: u32, read_only: bool| {
            format!("{{name: v, iscsi: {{targetPortal: t, iqn: {iqn}, lun: {lun}, readOnly: {read_only}}}}}")
        };
        let rbd = |monitors: &str, pool: &str, image: &str, read_only: bool| {
            format!("{{name: v, rbd: {{monitors: [{monitors}], pool: {pool}, image: {image}, readOnly: {read_only}}}}}")
        };
        for (name, wanted, taken, fits) in [
            ("GCE, the same to write", gce("d", false), gce("d", false), false),
            ("GCE, one reads", gce("d", true), gce("d", false), false),
            ("GCE, both read", gce("d", true), gce("d", true), true),
            ("GCE, another", gce("d", false), gce("e", false), true),
            ("EBS, even to read", ebs("d", true), ebs("d", true), false),
            ("EBS, another", ebs("d", false), ebs("e", false), true),
            ("iSCSI, another unit of the same target", iscsi("q", 0, false), iscsi("q", 1, false), false),
            ("iSCSI, both read", iscsi("q", 0, true), iscsi("q", 0, true), true),
            ("iSCSI, another target", iscsi("q", 0, false), iscsi("r", 0, false), true),
            ("RBD, one monitor in common", rbd("a, b", "p", "i", false), rbd("b, c", "p", "i", false), false),
            ("RBD, no monitor in common", rbd("a", "p", "i", false), rbd("c", "p", "i", false), true),
            ("RBD, another pool", rbd("a", "p", "i", false), rbd("a", "q", "i", false), true),
            ("RBD, another image", rbd("a", "p", "i", false), rbd("a", "p", "j", false), true),
            ("RBD, both read", rbd("a", "p", "i", true), rbd("a", "p", "i", true), true),
            ("different kinds", gce("d", false), ebs("d", false), true),
        ] {
            let mut scene = Scene::new();
            scene.node("n1", "{}");
            scene.resident("n1", &uses(&taken));
            let pod = scene.pod(&uses(&wanted));
            let expected = if fits { "" } else { "VolumeRestrictions: node(s) had no available disk" };
            assert_eq!(scene.verdict(pod), expected, "{name}");
        }
    }

    #[test]
    fn a_claim_for_one_pod_alone_is_taken_everywhere() {
        let in_use = "VolumeRestrictions: node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode \
                      already in-use by another pod";
        for (name, mode, used_on, expected) in [
            ("free", "ReadWriteOncePod", None, ""),
            ("used on the node", "ReadWriteOncePod", Some("n1"), in_use),
            ("used on another node", "ReadWriteOncePod", Some("n2"), in_use),
            ("one that pods may share", "ReadWriteOnce", Some("n1"), ""),
        ] {
            let mut scene = Scene::new();
            scene.node("n1", "{}");
            scene.node("n2", "{}");
            let class = "{metadata: {name: wait}, provisioner: p, volumeBindingMode: WaitForFirstConsumer}";
            scene.add(Kind::StorageClass, class);
            let claim = format!(
                "{{metadata: {{name: data, namespace: default}}, spec: {{storageClassName: wait, accessModes: [{mode}]}}}}"
            );
            scene.add(Kind::PersistentVolumeClaim, &claim);
            let pod = uses("{name: v, persistentVolumeClaim: {claimName: data}}");
            if let Some(node) = used_on {
                scene.resident(node, &pod);
            }
            let pod = scene.pod(&pod);
            assert_eq!(scene.verdict(pod), expected, "{name}");
        }
    }

    #[test]
    fn a_claim_must_exist() {
        let mut scene = Scene::new();
        scene.node("n1", "{}");
        let pod = scene.pod(&uses("{name: v, persistentVolumeClaim: {claimName: none}}"));
        assert_eq!(scene.verdict(pod), "VolumeRestrictions (everywhere): persistentvolumeclaim \"none\" not found");
    }
}
