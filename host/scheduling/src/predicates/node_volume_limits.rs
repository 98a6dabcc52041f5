//! NodeVolumeLimits: how many volumes of one CSI driver a node takes.

use plimsoll_model::pod::{InlineDisk, Volume};
use plimsoll_model::storage::CsiNode;
use plimsoll_model::symbol::known;
use plimsoll_model::{PodSpec, Symbol};
use rustc_hash::FxHashMap;

use super::volumes::class;
use super::{DynamicRule, Predicate, Tracker, Verdict};
use crate::facts::Facts;
use crate::oracle::{Place, World};
use crate::refusal::Reason;
use crate::snapshot::base::{Base, ClassId, NodeId};
use crate::table::{Table, ids};

/// The volumes of a driver on a node, each handle once, are no more than the node's CSINode says. Nodes without CSINode
/// have no limits.
pub(crate) struct NodeVolumeLimits;

/// CSI drivers that took over in-tree plug-ins (csi-translation-lib).
const SUCCESSORS: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
];

fn successor(plugin: &str) -> Option<&'static str> {
    SUCCESSORS.iter().find(|(in_tree, _)| *in_tree == plugin).map(|(_, driver)| *driver)
}

/// What makes a volume the same as another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Handle {
    /// The driver's own name for it.
    Volume(Box<str>),
    /// Not made yet: the claim that it will be made for.
    Claim(Symbol, Symbol),
}

/// A volume that counts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Counted {
    driver: Symbol,
    handle: Handle,
    /// It counts only on nodes where this in-tree plug-in has given way to the driver.
    succeeds: Option<Symbol>,
}

impl Counted {
    fn on(&self, node: &CsiNode) -> bool {
        self.succeeds.is_none_or(|plugin| node.migrated_plugins.contains(&plugin))
    }
}

/// An in-tree volume by the name of its driver. The driver is none of the cluster's if no object names it, and then no
/// node limits it.
fn in_tree(facts: &Facts<'_>, plugin: &str, handle: &str) -> Option<Counted> {
    let driver = facts.symbols().find(successor(plugin)?)?;
    // Handles of this kind may be written with a zone before them, which the driver leaves away.
    let handle = handle.strip_prefix("aws://").and_then(|rest| rest.rsplit('/').next()).unwrap_or(handle);
    Some(Counted { driver, handle: Handle::Volume(handle.into()), succeeds: Some(facts.symbols().find(plugin)?) })
}

fn counted_disk(facts: &Facts<'_>, disk: &InlineDisk) -> Option<Counted> {
    let text = |symbol| facts.symbols().text(symbol);
    match *disk {
        InlineDisk::GcePersistentDisk { name, .. } => in_tree(facts, "kubernetes.io/gce-pd", text(name)),
        InlineDisk::AwsElasticBlockStore { id } => in_tree(facts, "kubernetes.io/aws-ebs", text(id)),
        InlineDisk::Migratable { plugin, handle } => in_tree(facts, text(plugin), text(handle)),
        InlineDisk::Iscsi { .. } | InlineDisk::Rbd { .. } => None,
    }
}

/// What a volume of a pod counts as. A claim without an object is for other predicates to refuse.
fn counted(facts: &Facts<'_>, namespace: Symbol, volume: &Volume) -> Option<Counted> {
    let storage = &facts.cluster.storage;
    let name = match volume {
        Volume::Claim(name) | Volume::Ephemeral { claim: name, .. } => *name,
        Volume::Disk(disk) => return counted_disk(facts, disk),
        Volume::InlineCsi(_) => return None,
    };
    let claim = storage.claims.get(&(namespace, name))?;
    if let Some(volume) = claim.volume.and_then(|volume| storage.volumes.get(&volume)) {
        if let Some((driver, handle)) = volume.csi {
            return Some(Counted { driver, handle: Handle::Volume(facts.text(handle)), succeeds: None });
        }
        let (plugin, handle) = volume.in_tree?;
        return in_tree(facts, facts.symbols().text(plugin), facts.symbols().text(handle));
    }
    let provisioner = storage.classes.get(&class(claim))?.provisioner;
    let handle = Handle::Claim(namespace, name);
    match successor(facts.symbols().text(provisioner)) {
        Some(driver) => Some(Counted { driver: facts.symbols().find(driver)?, handle, succeeds: Some(provisioner) }),
        None => (provisioner != known::EMPTY).then_some(Counted { driver: provisioner, handle, succeeds: None }),
    }
}

fn all_counted<'a>(facts: &'a Facts<'_>, pod: &'a PodSpec) -> impl Iterator<Item = Counted> + 'a {
    pod.volumes.iter().filter_map(|volume| counted(facts, pod.namespace, volume))
}

/// Volumes that the cluster has attached to a node.
fn attached<'a>(facts: &'a Facts<'_>, node: Symbol) -> impl Iterator<Item = Counted> + 'a {
    let storage = &facts.cluster.storage;
    storage.attachments.iter().filter(move |attachment| attachment.node == node).filter_map(|attachment| {
        let (_, handle) = storage.volumes.get(&attachment.volume?)?.csi?;
        Some(Counted { driver: attachment.attacher, handle: Handle::Volume(facts.text(handle)), succeeds: None })
    })
}

/// The driver that must be on the node and is not: its CSIDriver says that pods must not come then (1.37, gate
/// `VolumeLimitScaling`).
fn missing_driver(facts: &Facts<'_>, volumes: &[Counted], node: Option<&CsiNode>) -> Option<Reason> {
    let listed = |driver| node.is_some_and(|node| node.drivers.iter().any(|(name, _)| *name == driver));
    let demands = |driver: Symbol| {
        let object = facts.cluster.storage.csi_drivers.get(&driver);
        object.is_some_and(|driver| driver.prevent_scheduling_if_missing)
    };
    let on_node = volumes.iter().filter(|volume| volume.succeeds.is_none() || node.is_some_and(|node| volume.on(node)));
    let mut missing = on_node.filter(|volume| demands(volume.driver) && !listed(volume.driver));
    missing.next().map(|volume| Reason::DriverMissing { driver: facts.text(volume.driver) })
}

/// The first driver whose limit would be passed.
fn over_limit(
    facts: &Facts<'_>,
    node: &CsiNode,
    attached: impl Fn(Symbol) -> i64,
    more: impl Fn(Symbol) -> i64,
) -> Option<Reason> {
    let limits = node.drivers.iter().filter_map(|&(driver, limit)| Some((driver, i64::from(limit?))));
    let mut over = limits.filter(|&(driver, limit)| more(driver) > 0 && attached(driver) + more(driver) > limit);
    over.next().map(|(driver, limit)| Reason::TooManyVolumes {
        driver: facts.text(driver),
        limit,
        attached: attached(driver),
        more: more(driver),
    })
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Predicate for NodeVolumeLimits {
    fn name(&self) -> &'static str {
        "NodeVolumeLimits"
    }
}

impl DynamicRule for NodeVolumeLimits {
    fn refuse(&self, world: &World<'_>, pod: &PodSpec, node: &Place) -> Vec<Reason> {
        let facts = &world.facts;
        let csi_node = facts.cluster.storage.csi_nodes.get(&node.node.name);
        let wanted: Vec<Counted> = all_counted(facts, pod).collect();
        if let Some(reason) = missing_driver(facts, &wanted, csi_node) {
            return vec![reason];
        }
        let Some(csi_node) = csi_node else { return Vec::new() };
        let distinct = |volumes: Vec<Counted>| {
            let mut volumes: Vec<(Symbol, Handle)> = volumes
                .into_iter()
                .filter(|volume| volume.on(csi_node))
                .map(|volume| (volume.driver, volume.handle))
                .collect();
            volumes.sort_unstable();
            volumes.dedup();
            volumes
        };
        let residents = node.pods.iter().flat_map(|pod| all_counted(facts, world.spec(pod.spec)));
        let there = distinct(residents.chain(attached(facts, node.node.name)).collect());
        let mut new = distinct(wanted);
        new.retain(|volume| !there.contains(volume));
        let of =
            |volumes: &[(Symbol, Handle)], driver| count(volumes.iter().filter(|(name, _)| *name == driver).count());
        Vec::from_iter(over_limit(facts, csi_node, |driver| of(&there, driver), |driver| of(&new, driver)))
    }

    fn tracker(&self) -> Box<dyn Tracker> {
        Box::new(Attached::default())
    }
}

ids! {
    /// A volume, by driver and handle.
    VolumeId;
}

/// Volumes on the nodes that have limits.
#[derive(Default)]
struct Attached {
    volumes: Table<VolumeId, (Symbol, Handle)>,
    by_name: FxHashMap<(Symbol, Handle), VolumeId>,
    /// What each class uses: volume, and the plug-in that must have given way.
    uses: Table<ClassId, Vec<(VolumeId, Option<Symbol>)>>,
    on_node: FxHashMap<NodeId, FxHashMap<VolumeId, i64>>,
    awake: bool,
}

impl Attached {
    fn volume(&mut self, driver: Symbol, handle: Handle) -> VolumeId {
        let next = self.volumes.next();
        let id = *self.by_name.entry((driver, handle.clone())).or_insert(next);
        if id == next {
            self.volumes.push((driver, handle));
        }
        id
    }

    fn refused(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Option<Reason> {
        let csi_node = base.csi_node(node);
        let spec = base.spec(class);
        if !base.facts.cluster.storage.csi_drivers.is_empty() {
            let wanted: Vec<Counted> = all_counted(&base.facts, spec).collect();
            if let Some(reason) = missing_driver(&base.facts, &wanted, csi_node) {
                return Some(reason);
            }
        }
        let csi_node = csi_node?;
        let there = self.on_node.get(&node);
        let is_there = |volume: &VolumeId| there.is_some_and(|there| there.contains_key(volume));
        let driver_of = |volume: VolumeId| self.volumes[volume].0;
        let mut new: Vec<VolumeId> = self.on(class, csi_node).filter(|volume| !is_there(volume)).collect();
        new.sort_unstable();
        new.dedup();
        let attached = |driver| {
            count(there.into_iter().flat_map(FxHashMap::keys).filter(|&&volume| driver_of(volume) == driver).count())
        };
        let more = |driver| count(new.iter().filter(|&&volume| driver_of(volume) == driver).count());
        over_limit(&base.facts, csi_node, attached, more)
    }

    fn on(&self, class: ClassId, node: &CsiNode) -> impl Iterator<Item = VolumeId> {
        let uses = self.uses.get(class).map_or(&[][..], Vec::as_slice);
        uses.iter()
            .filter(|(_, plugin)| plugin.is_none_or(|plugin| node.migrated_plugins.contains(&plugin)))
            .map(|use_| use_.0)
    }

    fn change(&mut self, node: NodeId, volume: VolumeId, delta: i64) {
        let there = self.on_node.entry(node).or_default();
        let uses = there.entry(volume).or_default();
        *uses += delta;
        if *uses == 0 {
            there.remove(&volume);
        }
    }
}

impl Tracker for Attached {
    fn meet(&mut self, base: &Base<'_>, class: ClassId) -> bool {
        let spec = base.spec(class);
        let storage = &base.facts.cluster.storage;
        if spec.volumes.is_empty() || storage.csi_nodes.is_empty() {
            return false;
        }
        if !self.awake {
            self.awake = true;
            let named: FxHashMap<Symbol, NodeId> = base.life.ids().map(|node| (base.node(node).name, node)).collect();
            for attachment in &storage.attachments {
                let Some(&node) = named.get(&attachment.node) else { continue };
                let handle = attachment.volume.and_then(|volume| storage.volumes.get(&volume)?.csi);
                if let Some((_, handle)) = handle {
                    let volume = self.volume(attachment.attacher, Handle::Volume(base.facts.text(handle)));
                    // Attached is attached, however many objects say so.
                    self.on_node.entry(node).or_default().insert(volume, 1);
                }
            }
        }
        let limited = |volume: &Counted| base.classes.limited_drivers.contains(&volume.driver);
        let counted: Vec<Counted> = all_counted(&base.facts, spec).filter(limited).collect();
        let uses: Vec<_> =
            counted.into_iter().map(|volume| (self.volume(volume.driver, volume.handle), volume.succeeds)).collect();
        if !uses.is_empty() {
            *self.uses.grown(class) = uses;
        }
        false
    }

    fn prepare(&mut self, base: &mut Base<'_>, class: ClassId) -> bool {
        let counts = self.uses.get(class).is_some_and(|uses| !uses.is_empty());
        let storage = &base.facts.cluster.storage;
        counts
            || (storage.csi_drivers.values().any(|driver| driver.prevent_scheduling_if_missing)
                && !base.spec(class).volumes.is_empty())
    }

    fn is_awake(&self) -> bool {
        self.awake
    }

    fn moved(&mut self, base: &Base<'_>, class: ClassId, node: NodeId, delta: i64) {
        if self.uses.get(class).is_none_or(Vec::is_empty) {
            return;
        }
        let Some(csi_node) = base.csi_node(node) else { return };
        let volumes: Vec<VolumeId> = self.on(class, csi_node).collect();
        volumes.into_iter().for_each(|volume| self.change(node, volume, delta));
    }

    fn verdict(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Verdict {
        self.refused(base, class, node).map_or(Verdict::Fits, |_| Verdict::Never)
    }

    fn room(&self, _base: &Base<'_>, _class: ClassId, _node: NodeId) -> u32 {
        // Further pods of the class use the very same volumes.
        u32::MAX
    }

    fn reasons(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Vec<Reason> {
        Vec::from_iter(self.refused(base, class, node))
    }

    fn digest(&self, base: &Base<'_>, state: &mut dyn std::hash::Hasher) {
        for node in base.life.ids() {
            let mut there: Vec<_> = self.on_node.get(&node).into_iter().flatten().collect();
            there.sort_by_key(|(volume, _)| &self.volumes[**volume]);
            for (&volume, uses) in there {
                state.write_usize(node.index());
                state.write(format!("{:?}", self.volumes[volume]).as_bytes());
                state.write_i64(*uses);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::convert::Kind;

    use crate::testing::Scene;

    const FULL: &str = "NodeVolumeLimits: node(s) exceed max volume count";

    fn bound(scene: &mut Scene, claim: &str, source: &str) {
        let annotations = "annotations: {pv.kubernetes.io/bind-completed: \"yes\"}";
        scene.add(Kind::PersistentVolumeClaim, &format!("{{metadata: {{name: {claim}, namespace: default, {annotations}}}, spec: {{volumeName: pv-{claim}, storageClassName: wait}}}}"));
        scene.add(Kind::PersistentVolume, &format!("{{metadata: {{name: pv-{claim}}}, spec: {{{source}}}}}"));
    }

    fn waiting(scene: &mut Scene, claim: &str, class: &str) {
        scene.add(
            Kind::PersistentVolumeClaim,
            &format!("{{metadata: {{name: {claim}, namespace: default}}, spec: {{storageClassName: {class}}}}}"),
        );
    }

    fn uses(claims: &[&str]) -> String {
        let volume = |name: &&str| format!("{{name: {name}, persistentVolumeClaim: {{claimName: {name}}}}}");
        format!("{{spec: {{volumes: [{}]}}}}", claims.iter().map(volume).collect::<Vec<_>>().join(", "))
    }

    /// One node that takes `limit` volumes of driver `csi`.
    fn scene(limit: &str, migrated: &str) -> Scene {
        let mut scene = Scene::new();
        scene.node("n1", "{}");
        let annotations = format!("annotations: {{storage.alpha.kubernetes.io/migrated-plugins: \"{migrated}\"}}");
        let drivers = format!("[{{name: csi, nodeID: x, {limit}}}, {{name: ebs.csi.aws.com, nodeID: x, {limit}}}]");
        scene.add(Kind::CSINode, &format!("{{metadata: {{name: n1, {annotations}}}, spec: {{drivers: {drivers}}}}}"));
        scene.add(
            Kind::StorageClass,
            "{metadata: {name: wait}, provisioner: csi, volumeBindingMode: WaitForFirstConsumer}",
        );
        scene.add(
            Kind::StorageClass,
            "{metadata: {name: other}, provisioner: other, volumeBindingMode: WaitForFirstConsumer}",
        );
        for claim in ["a", "b", "c"] {
            bound(&mut scene, claim, &format!("csi: {{driver: csi, volumeHandle: h-{claim}}}"));
        }
        waiting(&mut scene, "w", "wait");
        waiting(&mut scene, "x", "other");
        scene
    }

    #[test]
    fn volumes_of_a_driver_are_counted_once_each() {
        for (name, limit, on_node, wanted, fits) in [
            ("below the limit", "allocatable: {count: 3}", vec![vec!["a"], vec!["b"]], vec!["c"], true),
            ("at the limit", "allocatable: {count: 2}", vec![vec!["a"], vec!["b"]], vec!["c"], false),
            ("no limit", "allocatable: null", vec![vec!["a"], vec!["b"]], vec!["c"], true),
            ("attached already", "allocatable: {count: 2}", vec![vec!["a"], vec!["b"]], vec!["b"], true),
            ("two pods share one", "allocatable: {count: 2}", vec![vec!["a"], vec!["a"]], vec!["b"], true),
            ("two at once", "allocatable: {count: 2}", vec![vec!["a"]], vec!["b", "c"], false),
            ("not made yet counts", "allocatable: {count: 1}", vec![vec!["w"]], vec!["a"], false),
            ("not made yet, asked for", "allocatable: {count: 1}", vec![vec!["a"]], vec!["w"], false),
            ("not made yet, shared", "allocatable: {count: 1}", vec![vec!["w"]], vec!["w"], true),
            ("of another driver", "allocatable: {count: 1}", vec![vec!["a"]], vec!["x"], true),
            ("others do not count for it", "allocatable: {count: 1}", vec![vec!["x"]], vec!["a"], true),
        ] {
            let mut scene = scene(limit, "");
            on_node.iter().for_each(|claims| scene.resident("n1", &uses(claims)));
            let pod = scene.pod(&uses(&wanted));
            assert_eq!(scene.verdict(pod), if fits { "" } else { FULL }, "{name}");
        }
    }

    #[test]
    fn what_the_cluster_has_attached_counts_too() {
        let mut scene = scene("allocatable: {count: 1}", "");
        scene.add(
            Kind::VolumeAttachment,
            "{metadata: {name: va}, spec: {attacher: csi, nodeName: n1, source: {persistentVolumeName: pv-a}}}",
        );
        let (same, other) = (scene.pod(&uses(&["a"])), scene.pod(&uses(&["b"])));
        assert_eq!(scene.verdict(same), "");
        assert_eq!(scene.verdict(other), FULL);
    }

    #[test]
    fn in_tree_volumes_count_where_their_driver_took_over() {
        let ebs = |id: &str| format!("awsElasticBlockStore: {{volumeID: {id}}}");
        for (name, migrated, fits) in [("took over", "kubernetes.io/aws-ebs", false), ("did not", "", true)] {
            let mut scene = scene("allocatable: {count: 1}", migrated);
            bound(&mut scene, "old", &ebs("vol-1"));
            scene.resident("n1", &uses(&["old"]));
            let pod = scene.pod(&format!("{{spec: {{volumes: [{{name: v, {}}}]}}}}", ebs("vol-2")));
            assert_eq!(scene.verdict(pod), if fits { "" } else { FULL }, "{name}");
        }
    }

    #[test]
    fn a_driver_may_insist_on_being_there() {
        for (name, insists, on_node, fits) in [
            ("it does not insist", false, false, true),
            ("it insists and is absent", true, false, false),
            ("it insists and is there", true, true, true),
        ] {
            let mut scene = scene("allocatable: null", "");
            let driver = if on_node { "csi" } else { "other" };
            let claim = if on_node { "w" } else { "x" };
            scene.add(
                Kind::CSIDriver,
                &format!("{{metadata: {{name: {driver}}}, spec: {{preventPodSchedulingIfMissing: {insists}}}}}"),
            );
            let pod = scene.pod(&uses(&[claim]));
            assert_eq!(scene.verdict(pod).is_empty(), fits, "{name}");
        }
    }
}
