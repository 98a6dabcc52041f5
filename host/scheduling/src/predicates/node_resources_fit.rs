//! NodeResourcesFit: resources and the pod limit.

use plimsoll_model::{PodSpec, Resources};

use super::{DynamicRule, Predicate, Tracker, Verdict};
use crate::facts::Facts;
use crate::oracle::{Place, World};
use crate::refusal::Reason;
use crate::snapshot::base::{Base, ClassId, NodeId};

/// What is left of each resource that the pod asks for must be enough, and there must be a place for one more pod.
/// Resources that it does not ask for are not looked at, even if they are over-committed; nor are those that the node leaves
/// to devices (see [`DynamicResources`](super::dynamic_resources)).
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
fn short(pod: &PodSpec, allocatable: &Resources, requested: &Resources, pods: i64, facts: &Facts<'_>) -> Vec<Reason> {
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
    let counted = asked.scalars.iter().filter(|(scalar, _)| !facts.is_left_to_devices(*scalar, offered));
    let scalars =
        counted.map(|&(scalar, asked)| (facts.text(scalar), asked, offered.scalar(scalar), taken.scalar(scalar)));
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
        short(pod, &node.node.allocatable, &requested, pods, &world.facts)
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
        short(base.spec(class), allocatable, &requested, requested.pods, &base.facts)
    }

    fn digest(&self, _base: &Base<'_>, _state: &mut dyn std::hash::Hasher) {}
}

#[cfg(test)]
mod tests {
    use crate::testing::Scene;

    /// A node with 10m cpu, 20 bytes of memory, 32 pods, 5 of example.com/a, 20 bytes of storage, 5 of huge pages.
    fn scene(used: &str) -> Scene {
        let mut scene = Scene::new();
        scene.node(
            "n1",
            "{status: {allocatable: {cpu: 10m, memory: \"20\", ephemeral-storage: \"20\", pods: \"32\", \
             example.com/a: \"5\", hugepages-2Mi: \"5\"}}}",
        );
        scene.resident("n1", &requests(used));
        scene
    }

    fn container(requests: &str) -> String {
        format!("{{name: c, resources: {{requests: {{{requests}}}}}}}")
    }

    fn requests(requests: &str) -> String {
        format!("{{spec: {{containers: [{}]}}}}", container(requests))
    }

    fn with_inits(main: &str, inits: &[&str]) -> String {
        let inits: Vec<String> = inits.iter().map(|init| container(init)).collect();
        format!("{{spec: {{containers: [{}], initContainers: [{}]}}}}", container(main), inits.join(", "))
    }

    #[test]
    fn what_is_asked_for_must_be_left() {
        let refused = |reasons: &str| format!("NodeResourcesFit: {reasons}");
        for (name, used, pod, expected) in [
            ("nothing asked of a full node", "cpu: 10m, memory: \"20\"", "{}".to_owned(), String::new()),
            (
                "two resources are short",
                "cpu: 10m, memory: \"20\"",
                requests("cpu: 1m, memory: \"1\""),
                refused("Insufficient cpu; Insufficient memory"),
            ),
            (
                "one resource is short",
                "cpu: 9m, memory: \"5\"",
                requests("cpu: 2m, memory: \"1\""),
                refused("Insufficient cpu"),
            ),
            ("exactly enough", "cpu: 5m, memory: \"19\"", requests("cpu: 5m, memory: \"1\""), String::new()),
            (
                "an init container asks for more",
                "cpu: 8m, memory: \"19\"",
                with_inits("cpu: 1m, memory: \"1\"", &["cpu: 3m, memory: \"1\""]),
                refused("Insufficient cpu"),
            ),
            (
                "the larger of two init containers counts",
                "cpu: 7m, memory: \"19\"",
                with_inits("cpu: 1m, memory: \"1\"", &["cpu: 3m, memory: \"1\"", "cpu: 2m, memory: \"1\""]),
                String::new(),
            ),
            (
                "init containers do not add up",
                "cpu: 9m, memory: \"19\"",
                with_inits("cpu: 1m, memory: \"1\"", &["cpu: 1m, memory: \"1\"", "cpu: 1m, memory: \"1\""]),
                String::new(),
            ),
            ("an extended resource", "example.com/a: \"2\"", requests("example.com/a: \"3\""), String::new()),
            (
                "too much of it",
                "example.com/a: \"2\"",
                requests("example.com/a: \"4\""),
                refused("Insufficient example.com/a"),
            ),
            (
                "one that the node does not know",
                "",
                requests("example.com/b: \"1\""),
                refused("Insufficient example.com/b"),
            ),
            ("none of one that the node does not know", "", requests("example.com/b: \"0\""), String::new()),
            (
                "huge pages",
                "hugepages-2Mi: \"1\"",
                requests("hugepages-2Mi: \"5\""),
                refused("Insufficient hugepages-2Mi"),
            ),
            ("ephemeral storage", "", requests("ephemeral-storage: \"21\""), refused("Insufficient ephemeral-storage")),
            (
                "overhead is added",
                "memory: \"15\"",
                format!("{{spec: {{overhead: {{memory: \"3\"}}, containers: [{}]}}}}", container("memory: \"3\"")),
                refused("Insufficient memory"),
            ),
            (
                "halves of a byte are added before they are rounded",
                "memory: \"19\"",
                format!("{{spec: {{containers: [{0}, {0}]}}}}", container("memory: 500m")),
                String::new(),
            ),
        ] {
            let mut scene = scene(used);
            let pod = scene.pod(&pod);
            assert_eq!(scene.verdict(pod), expected, "{name}");
        }
    }

    #[test]
    fn the_number_of_pods_is_limited() {
        for (name, limit, residents, fits) in [
            ("room for one more", "pods: \"2\"", 1, true),
            ("no room", "pods: \"1\"", 1, false),
            ("no limit given is no room", "", 0, false),
        ] {
            let mut scene = Scene::new();
            scene.node(
                "n1",
                &format!("{{status: {{allocatable: {{pods: null, {limit}}}}}}}").replace("pods: null, pods", "pods"),
            );
            if limit.is_empty() {
                scene.cluster.nodes[0].allocatable.pods = 0;
            }
            (0..residents).for_each(|_| scene.resident("n1", "{}"));
            let pod = scene.pod("{}");
            let expected = if fits { "" } else { "NodeResourcesFit: Too many pods" };
            assert_eq!(scene.verdict(pod), expected, "{name}");
        }
    }

    #[test]
    fn a_dimension_that_is_not_asked_for_may_be_overcommitted() {
        let mut scene = scene("cpu: 50m");
        let (memory, cpu) = (scene.pod(&requests("memory: \"1\"")), scene.pod(&requests("cpu: 1m")));
        assert_eq!(scene.verdict(memory), "");
        assert_eq!(scene.verdict(cpu), "NodeResourcesFit: Insufficient cpu");
    }
}
