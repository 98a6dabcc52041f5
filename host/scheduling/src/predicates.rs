//! The scheduler's filter plug-ins, one file each under its Kubernetes name, in the scheduler's order.
//!
//! A predicate is written twice, side by side. The plain rule looks at the world as it is and remembers nothing; the
//! [oracle](crate::oracle) runs it. The engine's part answers the same question from counters that follow every move. A
//! predicate whose verdict hangs on the pod and the node alone needs no engine part: its rule is asked once per pair of
//! classes. To add a predicate, write its file and add its line to [`RULES`].

use plimsoll_model::{Node, PodSpec, Symbol};

use crate::facts::Facts;
use crate::oracle::{Place, World};
use crate::refusal::{Phase, Reason, Refusal};
use crate::snapshot::base::{Base, ClassId, NodeId};
use crate::snapshot::topology::KeyId;

pub(crate) mod dynamic_resources;
pub(crate) mod inter_pod_affinity;
pub(crate) mod node_affinity;
pub(crate) mod node_declared_features;
pub(crate) mod node_name;
pub(crate) mod node_ports;
pub(crate) mod node_resources_fit;
pub(crate) mod node_unschedulable;
pub(crate) mod node_volume_limits;
pub(crate) mod pod_topology_spread;
pub(crate) mod taint_toleration;
pub(crate) mod volume_binding;
pub(crate) mod volume_restrictions;
pub(crate) mod volume_zone;
pub(crate) mod volumes;

/// All predicates in the order in which the scheduler asks them (default profile, Kubernetes 1.37).
pub(crate) const RULES: &[Rule] = &[
    Rule::Static(&node_unschedulable::NodeUnschedulable),
    Rule::Static(&node_name::NodeName),
    Rule::Static(&taint_toleration::TaintToleration),
    Rule::Static(&node_affinity::NodeAffinity),
    Rule::Dynamic(&node_ports::NodePorts),
    Rule::Dynamic(&node_resources_fit::NodeResourcesFit),
    Rule::Dynamic(&volume_restrictions::VolumeRestrictions),
    Rule::Dynamic(&node_volume_limits::NodeVolumeLimits),
    Rule::Static(&volume_binding::VolumeBinding),
    Rule::Static(&volume_zone::VolumeZone),
    Rule::Dynamic(&pod_topology_spread::PodTopologySpread),
    Rule::Dynamic(&inter_pod_affinity::InterPodAffinity),
    Rule::Dynamic(&dynamic_resources::DynamicResources),
    Rule::Static(&node_declared_features::NodeDeclaredFeatures),
];

/// A predicate, by what its verdict hangs on.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// On the pod and the node alone.
    Static(&'static dyn StaticRule),
    /// On other pods too.
    Dynamic(&'static dyn DynamicRule),
}

impl Rule {
    pub(crate) fn name(self) -> &'static str {
        self.predicate().name()
    }

    pub(crate) fn predicate(self) -> &'static dyn Predicate {
        match self {
            Self::Static(rule) => rule,
            Self::Dynamic(rule) => rule,
        }
    }
}

/// What a predicate says before any node is looked at (PreFilter).
pub(crate) enum Admission {
    /// Nothing.
    Anywhere,
    /// Only nodes of these names.
    Only(Vec<Symbol>),
    /// The pod fits nowhere.
    Nowhere(Reason),
}

/// What all predicates have.
pub(crate) trait Predicate: Sync {
    /// Kubernetes' name.
    fn name(&self) -> &'static str;

    /// What it says before any node is looked at. Hangs on nothing that moves.
    fn admit(&self, _facts: &Facts<'_>, _pod: &PodSpec) -> Admission {
        Admission::Anywhere
    }
}

/// A predicate whose verdict hangs on the pod and the node alone.
pub(crate) trait StaticRule: Predicate {
    /// Why the node is refused; empty if it is not.
    fn refuse(&self, facts: &Facts<'_>, pod: &PodSpec, node: &Node) -> Vec<Reason>;

    /// Whether the verdict may differ between two nodes that differ in nothing but their names and host-name labels.
    fn reads_identity(&self, _facts: &Facts<'_>, _pod: &PodSpec) -> bool {
        false
    }
}

/// A predicate whose verdict hangs on other pods too.
pub(crate) trait DynamicRule: Predicate {
    /// Why the node is refused; empty if it is not. Looks at the world as it is, however long that takes.
    fn refuse(&self, world: &World<'_>, pod: &PodSpec, node: &Place) -> Vec<Reason>;

    /// The engine's part, before any node or pod is known to it.
    fn tracker(&self) -> Box<dyn Tracker>;
}

/// What a tracker says of one class on one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// One more pod may come.
    Fits,
    /// None may, and placing further pods will not change that.
    Never,
    /// None may now; placing pods elsewhere may change that. With a key: what refused hangs only on the node's domain
    /// under this key, so every node of the domain is refused.
    NotNow(Option<KeyId>),
}

/// The engine's part of a predicate: counters that follow every move, so that each answer costs the same however many
/// pods there are. Every change has an exact inverse (the same call with the opposite sign), which is how undo works.
pub(crate) trait Tracker: Send + Sync {
    /// A class is new. True if classes that were [prepared](Self::prepare) before must be prepared again.
    fn meet(&mut self, _base: &Base<'_>, _class: ClassId) -> bool {
        false
    }

    /// A class is about to be asked about: build what the answers need. False if this tracker can never refuse it.
    fn prepare(&mut self, base: &mut Base<'_>, class: ClassId) -> bool;

    /// Whether moves matter to it at present.
    fn is_awake(&self) -> bool;

    /// `delta` pods of a class came to a node, or left it if negative. The base already counts them.
    fn moved(&mut self, base: &Base<'_>, class: ClassId, node: NodeId, delta: i64);

    /// A node came, with the pods that are on it.
    fn node_added(&mut self, base: &Base<'_>, node: NodeId) {
        base.runs[node].iter().for_each(|&(class, count)| self.moved(base, class, node, i64::from(count)));
    }

    /// A node is about to be undone, with the pods that are on it; the base still has it, as removed.
    fn node_undone(&mut self, base: &Base<'_>, node: NodeId) {
        base.runs[node].iter().for_each(|&(class, count)| self.moved(base, class, node, -i64::from(count)));
    }

    /// A node was closed or removed, or that was undone; the base has the new state. Pods that are on it stay there.
    fn node_changed(&mut self, _base: &Base<'_>, _node: NodeId) {}

    /// Whether one more pod of a prepared class may come.
    fn verdict(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Verdict;

    /// How many more pods of a prepared class may come one after another, if the first one may.
    fn room(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> u32;

    /// Why one more pod of a prepared class may not come; empty if it may. Same answer as [`DynamicRule::refuse`].
    fn reasons(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Vec<Reason>;

    /// Label keys under whose domains the verdict on a prepared class may go from no to yes as pods are placed.
    fn shifting_keys(&self, _class: ClassId, _keys: &mut Vec<KeyId>) {}

    /// A number that changes whenever placing pods may have turned [`Verdict::NotNow`] of one of these keys into
    /// [`Verdict::Fits`] somewhere else than on the node that the pod was placed on.
    fn epoch(&self, _class: ClassId, _keys: &[KeyId]) -> u64 {
        0
    }

    /// What it has counted, independent of the order in which things came, to compare two trackers that were asked to
    /// prepare the same classes in the same order.
    fn digest(&self, base: &Base<'_>, state: &mut dyn std::hash::Hasher);
}

/// Names of nodes that a pod is narrowed to, and by which predicates.
#[derive(Clone, Debug)]
pub(crate) struct NodeSet {
    pub(crate) names: Vec<Symbol>,
    pub(crate) predicates: &'static str,
}

/// All PreFilters one after another: why the pod fits nowhere, or the nodes that it is narrowed to (none: all).
///
/// The scheduler intersects the sets as it goes and stops at the first refusal (framework `RunPreFilterPlugins`).
pub(crate) fn admit(facts: &Facts<'_>, pod: &PodSpec) -> Result<Option<NodeSet>, Refusal> {
    let mut set: Option<NodeSet> = None;
    for rule in RULES {
        let refused = |predicate, reason| Refusal { predicate, phase: Phase::PreFilter, reasons: vec![reason] };
        match rule.predicate().admit(facts, pod) {
            Admission::Anywhere => {}
            Admission::Nowhere(reason) => return Err(refused(rule.name(), reason)),
            Admission::Only(names) => match &mut set {
                None => set = Some(NodeSet { names, predicates: rule.name() }),
                Some(set) => {
                    set.names.retain(|name| names.contains(name));
                    // The only two predicates that narrow nodes, sorted as the scheduler reports them.
                    set.predicates = "NodeAffinity, NodeName";
                    if set.names.is_empty() {
                        return Err(refused("", Reason::DisjointNodeSets { predicates: "NodeAffinity NodeName" }));
                    }
                }
            },
        }
    }
    Ok(set)
}
