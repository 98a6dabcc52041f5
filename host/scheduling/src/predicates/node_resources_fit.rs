//! NodeResourcesFit: resources and the pod limit.

use plimsoll_model::{PodSpec, Resources};

use super::{DynamicRule, Predicate, Tracker, Verdict};
use crate::oracle::{Place, World};
use crate::refusal::Reason;
use crate::snapshot::base::{Base, ClassId, NodeId};

/// What is left of each resource that the pod asks for must be enough, and there must be a place for one more pod.
/// Resources that it does not ask for are not looked at, even if they are over-committed.
///
/// The engine's part is the base's own [`Free`](crate::snapshot::free::Free), which is asked first and inline; only the
/// reasons come from here.
pub(crate) struct NodeResourcesFit;

impl Predicate for NodeResourcesFit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }
}

/// All resources that are short, in the scheduler's order: pods, cpu, memory, ephemeral storage, then the others.
fn short(
    pod: &PodSpec,
    allocatable: &Resources,
    requested: &Resources,
    pods: i64,
    name: impl Fn(plimsoll_model::Symbol) -> Box<str>,
) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if pods.wrapping_add(1) > allocatable.pods {
        reasons.push(Reason::TooManyPods { limit: allocatable.pods });
    }
    let (asked, offered, taken) = (&pod.requests, allocatable, requested);
    let native = [
        ("cpu", asked.cpu_milli, offered.cpu_milli, taken.cpu_milli),
        ("memory", asked.memory_bytes, offered.memory_bytes, taken.memory_bytes),
        (
            "ephemeral-storage",
            asked.ephemeral_storage_bytes,
            offered.ephemeral_storage_bytes,
            taken.ephemeral_storage_bytes,
        ),
    ];
    let native = native.into_iter().map(|(name, asked, offered, taken)| (Box::from(name), asked, offered, taken));
    let scalars = asked
        .scalars
        .iter()
        .map(|&(scalar, asked)| (name(scalar), asked, offered.scalar(scalar), taken.scalar(scalar)));
    for (resource, asked, allocatable, taken) in native.chain(scalars) {
        let free = allocatable.wrapping_sub(taken);
        if asked > 0 && asked > free {
            reasons.push(Reason::Insufficient { resource, asked, free, allocatable });
        }
    }
    reasons
}

impl DynamicRule for NodeResourcesFit {
    fn refuse(&self, world: &World<'_>, pod: &PodSpec, node: &Place) -> Vec<Reason> {
        let mut requested = Resources::default();
        let mut scalars = Vec::new();
        for resident in &node.pods {
            let asked = &world.spec(resident.spec).requests;
            requested.cpu_milli = requested.cpu_milli.wrapping_add(asked.cpu_milli);
            requested.memory_bytes = requested.memory_bytes.wrapping_add(asked.memory_bytes);
            requested.ephemeral_storage_bytes =
                requested.ephemeral_storage_bytes.wrapping_add(asked.ephemeral_storage_bytes);
            scalars.extend(asked.scalars.iter().copied());
        }
        let pods = i64::try_from(node.pods.len()).unwrap_or(i64::MAX);
        let requested = requested.with_scalars(scalars);
        short(pod, &node.node.allocatable, &requested, pods, |name| world.facts.text(name))
    }

    fn tracker(&self) -> Box<dyn Tracker> {
        Box::new(InTheBase)
    }
}

/// The base counts resources itself.
struct InTheBase;

impl Tracker for InTheBase {
    fn prepare(&mut self, _base: &mut Base<'_>, _class: ClassId) -> bool {
        false
    }

    fn is_awake(&self) -> bool {
        false
    }

    fn moved(&mut self, _base: &Base<'_>, _class: ClassId, _node: NodeId, _delta: i64) {}

    fn verdict(&self, _base: &Base<'_>, _class: ClassId, _node: NodeId) -> Verdict {
        Verdict::Fits
    }

    fn room(&self, _base: &Base<'_>, _class: ClassId, _node: NodeId) -> u32 {
        u32::MAX
    }

    fn reasons(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Vec<Reason> {
        let requested = base.requested(node);
        let allocatable = &base.node(node).allocatable;
        short(base.spec(class), allocatable, &requested, requested.pods, |name| base.facts.text(name))
    }

    fn digest(&self, _base: &Base<'_>, _state: &mut dyn std::hash::Hasher) {}
}
