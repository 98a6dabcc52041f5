//! Pods: what scheduling looks at (shared), and the rest (one each).

use serde::{Deserialize, Serialize};

use crate::cluster::SpecId;
use crate::labels::Labels;
use crate::resources::Resources;
use crate::selector::{LabelSelector, NodeSelector};
use crate::symbol::Symbol;
use crate::taint::Toleration;
use crate::time::Time;

/// Everything of a pod that a filter predicate may look at. Pods with equal specs cannot be told apart by any of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct PodSpec {
    /// Namespace.
    pub namespace: Symbol,
    /// Labels.
    pub labels: Labels,
    /// A node that the pod insists on by name; not the node that it already runs on.
    pub node_name: Option<Symbol>,
    /// `spec.nodeSelector`: each pair must be on the node.
    pub node_selector: Labels,
    /// Required node affinity.
    pub node_affinity: Option<NodeSelector>,
    /// Tolerations.
    pub tolerations: Box<[Toleration]>,
    /// Effective requests: containers, init containers, pod level and overhead together; `pods` is 1.
    pub requests: Resources,
    /// What its containers alone ask for, if that is something else; expanders compare options by it, as the peer's do.
    #[serde(default)]
    pub of_containers: Option<OfContainers>,
    /// Host ports, normalised, sorted, each once.
    pub host_ports: Box<[HostPort]>,
    /// Hard topology spread constraints (`DoNotSchedule`).
    pub spread: Box<[SpreadConstraint]>,
    /// Required pod affinity.
    pub affinity: Box<[PodAffinityTerm]>,
    /// Required pod anti-affinity.
    pub anti_affinity: Box<[PodAffinityTerm]>,
    /// Volumes that scheduling looks at, in the pod's order.
    pub volumes: Box<[Volume]>,
    /// Resource claims, in the pod's order. In what a running pod asks for when it looks for another node, those that were
    /// made for it are [`ClaimReference::Fresh`].
    pub claims: Box<[ClaimReference]>,
    /// Features that a node must declare, sorted.
    pub features: Box<[Symbol]>,
    /// Priority; none is not expendable and counts as 0 elsewhere.
    pub priority: Option<i32>,
}

impl PodSpec {
    /// What its containers alone ask for.
    pub fn of_containers(&self) -> OfContainers {
        let Resources { cpu_milli, memory_bytes, .. } = self.requests;
        self.of_containers.unwrap_or(OfContainers { cpu_milli, memory_bytes })
    }

    /// A pod that asks for nothing, for tests and as a base to build on.
    pub fn bare(namespace: Symbol) -> Self {
        Self {
            namespace,
            labels: Labels::default(),
            node_name: None,
            node_selector: Labels::default(),
            node_affinity: None,
            tolerations: Box::default(),
            requests: Resources { pods: 1, ..Resources::default() },
            of_containers: None,
            host_ports: Box::default(),
            spread: Box::default(),
            affinity: Box::default(),
            anti_affinity: Box::default(),
            volumes: Box::default(),
            claims: Box::default(),
            features: Box::default(),
            priority: None,
        }
    }
}

/// What the containers of a pod ask for together, without init containers, requests of the pod as a whole and overhead.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct OfContainers {
    /// Thousandths of a core.
    pub cpu_milli: i64,
    /// Bytes.
    pub memory_bytes: i64,
}

/// A port of the node that a pod occupies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct HostPort {
    /// Host address; `0.0.0.0` if the pod names none.
    pub address: Symbol,
    /// Protocol; `TCP` if the pod names none.
    pub protocol: Symbol,
    /// Port number.
    pub port: u16,
}

/// Whether a spread constraint counts nodes that the pod could not use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum NodeInclusion {
    /// Only nodes that the pod's rule allows count.
    Honor,
    /// All nodes count.
    Ignore,
}

/// A hard topology spread constraint.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SpreadConstraint {
    /// Greatest allowed difference to the emptiest domain.
    pub max_skew: i32,
    /// Label key whose values are the domains.
    pub topology_key: Symbol,
    /// Which pods count, `matchLabelKeys` merged in; none matches nothing.
    pub selector: Option<LabelSelector>,
    /// Fewer domains than this make the minimum 0.
    pub min_domains: i32,
    /// For the pod's node selector and affinity.
    pub node_affinity_policy: NodeInclusion,
    /// For taints.
    pub node_taints_policy: NodeInclusion,
}

/// A required term of pod affinity or anti-affinity.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct PodAffinityTerm {
    /// Which pods are meant, `matchLabelKeys` and `mismatchLabelKeys` merged in as the API server does; none: no pod.
    pub selector: Option<LabelSelector>,
    /// Namespaces by name, sorted; the pod's own if the term names neither names nor a selector.
    pub namespaces: Box<[Symbol]>,
    /// Namespaces by their labels, in addition.
    pub namespace_selector: Option<LabelSelector>,
    /// Label key whose values are the domains.
    pub topology_key: Symbol,
}

/// A volume that scheduling looks at. Others (config maps, secrets, empty directories, …) are left out.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Volume {
    /// A persistent volume claim of the pod's namespace, by name.
    Claim(Symbol),
    /// A generic ephemeral volume. Its claim must be owned by the pod, so no two pods share such a spec.
    Ephemeral {
        /// Name of its claim: pod name, dash, volume name.
        claim: Symbol,
        /// Name of the pod.
        pod: Symbol,
        /// UID of the pod; empty if the input has none.
        pod_uid: Symbol,
    },
    /// A disk named in the pod itself.
    Disk(InlineDisk),
    /// A CSI volume named in the pod itself: the driver.
    InlineCsi(Symbol),
}

/// A disk named in the pod itself, of the kinds that cannot be shared at will.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum InlineDisk {
    /// GCE persistent disk.
    GcePersistentDisk {
        /// Disk name.
        name: Symbol,
        /// Whether it is mounted read-only.
        read_only: bool,
    },
    /// AWS EBS volume.
    AwsElasticBlockStore {
        /// Volume id.
        id: Symbol,
    },
    /// iSCSI target.
    Iscsi {
        /// Qualified name of the target.
        iqn: Symbol,
        /// Whether it is mounted read-only.
        read_only: bool,
    },
    /// Ceph block device.
    Rbd {
        /// Monitors, sorted.
        monitors: Box<[Symbol]>,
        /// Pool.
        pool: Symbol,
        /// Image.
        image: Symbol,
        /// Whether it is mounted read-only.
        read_only: bool,
    },
    /// Another in-tree disk that counts against a CSI driver's limit once migrated: in-tree plug-in name and handle.
    Migratable {
        /// In-tree plug-in.
        plugin: Symbol,
        /// Handle of the disk.
        handle: Symbol,
    },
}

/// Which ResourceClaim a pod means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum ClaimReference {
    /// The one of this name, which other pods may mean too.
    Named(Symbol),
    /// The one of this name, which was made from a template for this pod, and so must be owned by it.
    Made {
        /// Name of the claim.
        claim: Symbol,
        /// Name of the pod.
        pod: Symbol,
        /// UID of the pod.
        pod_uid: Symbol,
    },
    /// One that is to be made from a template for this pod, and was not yet.
    Awaited {
        /// Name of the pod.
        pod: Symbol,
    },
    /// None: the entry was deliberately left without a claim.
    Unneeded,
    /// One that will be made for each pod like this, once there is such a pod.
    Fresh {
        /// A claim that asks for the same.
        like: Option<Symbol>,
        /// The ResourceClaimTemplate.
        template: Option<Symbol>,
    },
    /// The one of this name, which the scheduler made for the extended resources of this pod.
    ForResources(Symbol),
}

/// Kinds of controllers that the drain rules tell apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum OwnerKind {
    /// `apps/ReplicaSet`.
    ReplicaSet,
    /// `apps/StatefulSet`.
    StatefulSet,
    /// `apps/DaemonSet`.
    DaemonSet,
    /// `batch/Job`.
    Job,
    /// `v1/ReplicationController`.
    ReplicationController,
    /// `v1/Node`: a mirror pod.
    Node,
    /// Any other kind.
    Other(Symbol),
}

/// The controller of a pod.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Owner {
    /// Kind.
    pub kind: OwnerKind,
    /// Name.
    pub name: Symbol,
    /// UID.
    pub uid: Symbol,
}

/// `status.phase`, without the terminal ones: those pods are not in the model unless a rule asks for them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Phase {
    /// Not started.
    Pending,
    /// Started, or unknown to the API server.
    #[default]
    Running,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
}

/// What the scheduler has said of a pod without a node (condition `PodScheduled`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Scheduling {
    /// Nothing yet.
    #[default]
    Unseen,
    /// It fits nowhere: reason `Unschedulable`.
    Unschedulable,
    /// Scheduling gates hold it back.
    Gated,
    /// False with another reason.
    Refused,
    /// It has a node.
    Done,
}

/// `cluster-autoscaler.kubernetes.io/safe-to-evict`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum SafeToEvict {
    /// Absent or another word.
    #[default]
    Unset,
    /// `true`: never blocks.
    Yes,
    /// `false`: blocks.
    No,
    /// `on-completion`: the node waits until the pod ends.
    OnCompletion,
}

/// `spec.restartPolicy`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum RestartPolicy {
    /// Always.
    #[default]
    Always,
    /// On failure.
    OnFailure,
    /// Never.
    Never,
}

/// What the drain rules look at beyond the spec.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DrainTraits {
    /// Annotation `kubernetes.io/config.mirror` is there.
    pub mirror: bool,
    /// Annotation `kubernetes.io/config.source` is there and not `api`.
    pub static_pod: bool,
    /// Annotation `cluster-autoscaler.kubernetes.io/daemonset-pod: "true"`.
    pub daemon_set_annotation: bool,
    /// `cluster-autoscaler.kubernetes.io/safe-to-evict`.
    pub safe_to_evict: SafeToEvict,
    /// First volume with local storage that no annotation declares safe to lose: its name.
    pub local_storage: Option<Symbol>,
    /// `cluster-autoscaler.kubernetes.io/enable-ds-eviction`, if present: whether it is `"true"`.
    pub daemon_set_eviction: Option<bool>,
}

/// A pod that is being deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Deletion {
    /// `metadata.deletionTimestamp`.
    pub at: Time,
    /// `metadata.deletionGracePeriodSeconds`, in seconds.
    pub grace_seconds: Option<i64>,
}

/// One pod.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pod {
    /// Name within its namespace (the namespace is in the spec).
    pub name: Box<str>,
    /// UID; empty if the input has none.
    pub uid: Box<str>,
    /// What it asks for when it looks for a node.
    pub spec: SpecId,
    /// What it holds on the node that it is on; differs from `spec` only while a resize is under way, or in resource claims
    /// that were made for it.
    pub held: SpecId,
    /// `spec.nodeName`.
    pub node: Option<Symbol>,
    /// `status.nominatedNodeName`.
    pub nominated_node: Option<Symbol>,
    /// `spec.schedulerName`.
    pub scheduler: Symbol,
    /// Its controller.
    pub owner: Option<Owner>,
    /// Phase.
    pub phase: Phase,
    /// What the scheduler said.
    pub scheduling: Scheduling,
    /// When it was made; none: long ago.
    pub created_at: Option<Time>,
    /// Whether it is being deleted.
    pub deletion: Option<Deletion>,
    /// `spec.terminationGracePeriodSeconds`, in seconds.
    pub termination_grace_seconds: Option<i64>,
    /// `spec.restartPolicy`.
    pub restart_policy: RestartPolicy,
    /// For the drain rules.
    pub drain: DrainTraits,
    /// `cluster-autoscaler.kubernetes.io/pod-scale-up-delay`, in milliseconds, if it can be read.
    pub scale_up_delay_ms: Option<i64>,
}

impl Pod {
    /// Whether it ended, by its phase.
    #[inline]
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Whether a DaemonSet, or an annotation that says so, stands behind it.
    #[inline]
    pub fn is_daemon_set_pod(&self) -> bool {
        self.drain.daemon_set_annotation || self.owner.is_some_and(|owner| owner.kind == OwnerKind::DaemonSet)
    }

    /// The node that it counts on: where it runs, or else where it is nominated.
    #[inline]
    pub fn counts_on(&self) -> Option<Symbol> {
        self.node.or(self.nominated_node)
    }
}
