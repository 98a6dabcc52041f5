//! Small clusters written as YAML, for tables of cases.

use plimsoll_model::convert::Kind;
use plimsoll_model::{Cluster, PodSpec, SpecId};
use serde_json::{Map, Value};

use crate::oracle::{Resident, World};
use crate::{Gates, NodeId, Phase, Refusal, Snapshot};

/// A cluster, its running pods, and the question what the engine and the oracle say of a pod: always the same.
#[derive(Default)]
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    residents: Vec<(usize, Resident)>,
    gates: Gates,
}

fn yaml(text: &str) -> Value {
    // A node may be called "n" or "y".
    let options = serde_saphyr::options! { strict_booleans: true };
    let read = serde_saphyr::from_str_with_options(text, options);
    let value: Value = read.unwrap_or_else(|error| panic!("{error} in {text}"));
    if value.is_null() { Value::Object(Map::new()) } else { value }
}

/// Puts `over` into `base`; objects are merged, what is null goes away, everything else is replaced.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    base.remove(&key);
                } else {
                    merge(base.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (base, over) => *base = over,
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with_gates(gates: Gates) -> Self {
        Self { gates, ..Self::default() }
    }

    pub(crate) fn add(&mut self, kind: Kind, object: &str) {
        kind.import_value(yaml(object), &mut self.cluster).unwrap_or_else(|error| panic!("{error} in {object}"));
    }

    /// A node with host name, room for everything, and what the YAML says besides.
    pub(crate) fn node(&mut self, name: &str, object: &str) {
        let labels = format!("{{kubernetes.io/hostname: {name}}}");
        let status = "{allocatable: {cpu: \"100\", memory: 100Gi, ephemeral-storage: 100Gi, pods: \"110\"}}";
        let mut node = yaml(&format!("{{metadata: {{name: {name}, labels: {labels}}}, status: {status}}}"));
        merge(&mut node, yaml(object));
        Kind::Node.import_value(node, &mut self.cluster).unwrap_or_else(|error| panic!("{error} in {object}"));
    }

    fn import_pod(&mut self, object: &str) -> plimsoll_model::Pod {
        let mut pod = yaml("{metadata: {name: pod, namespace: default}, spec: {containers: [{name: c}]}}");
        merge(&mut pod, yaml(object));
        Kind::Pod.import_value(pod, &mut self.cluster).unwrap_or_else(|error| panic!("{error} in {object}"));
        self.cluster.pods.pop().unwrap()
    }

    /// What a pod asks for and what it holds where it runs: thousandths of a core, bytes of memory, and `example.com/gpu`.
    pub(crate) fn amounts(&mut self, pod: Value) -> ([i64; 3], [i64; 3]) {
        Kind::Pod.import_value(pod, &mut self.cluster).unwrap_or_else(|error| panic!("{error}"));
        let pod = self.cluster.pods.pop().unwrap();
        let gpu = self.cluster.symbols.intern("example.com/gpu");
        let of = |spec: SpecId| {
            let requests = &self.cluster.specs[spec].requests;
            [requests.cpu_milli, requests.memory_bytes, requests.scalar(gpu)]
        };
        (of(pod.spec), of(pod.held))
    }

    /// A pod to place.
    pub(crate) fn pod(&mut self, object: &str) -> SpecId {
        self.import_pod(object).spec
    }

    /// A pod to place, with a change that YAML cannot say.
    pub(crate) fn pod_with(&mut self, object: &str, change: impl FnOnce(&mut Cluster, &mut PodSpec)) -> SpecId {
        let pod = self.import_pod(object);
        let mut spec = self.cluster.specs[pod.spec].clone();
        change(&mut self.cluster, &mut spec);
        self.cluster.specs.intern(spec)
    }

    /// A pod that runs on a node.
    pub(crate) fn resident(&mut self, node: &str, object: &str) {
        let pod = self.import_pod(object);
        let at = self.index(node);
        self.residents.push((at, Resident { spec: pod.held, terminating: pod.deletion.is_some() }));
    }

    fn index(&self, name: &str) -> usize {
        let named = |node: &plimsoll_model::Node| self.cluster.text(node.name) == name;
        self.cluster.nodes.iter().position(named).unwrap_or_else(|| panic!("no node {name}"))
    }

    /// The snapshot with the running pods in it.
    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        let mut snapshot = Snapshot::with_gates(&self.cluster, self.gates);
        for &(node, Resident { spec, terminating }) in &self.residents {
            let class = if terminating { snapshot.terminating_class(spec) } else { snapshot.class(spec) };
            snapshot.place(class, NodeId::new(node), 1);
        }
        snapshot
    }

    /// What keeps a pod from each node, by the engine and by the oracle.
    pub(crate) fn refusals(&self, pod: SpecId) -> Vec<Option<Refusal>> {
        let mut snapshot = self.snapshot();
        let mut world = World::new(&self.cluster, self.gates);
        for &(node, resident) in &self.residents {
            world.places[node].pods.push(resident);
        }
        let class = snapshot.class(pod);
        let nodes = 0..self.cluster.nodes.len();
        let both = nodes.map(|node| {
            let oracle = world.refusal(&self.cluster.specs[pod], node);
            assert_eq!(snapshot.refusal(class, NodeId::new(node)), oracle, "engine and oracle differ on node {node}");
            assert_eq!(snapshot.fits(class, NodeId::new(node)), oracle.is_none());
            oracle
        });
        both.collect()
    }

    /// Names of the nodes that a pod fits.
    pub(crate) fn fitting(&self, pod: SpecId) -> Vec<&str> {
        let refusals = self.refusals(pod);
        let nodes = self.cluster.nodes.iter().zip(refusals).filter(|(_, refusal)| refusal.is_none());
        nodes.map(|(node, _)| self.cluster.text(node.name)).collect()
    }

    /// What keeps a pod from the first node, as `Predicate: reasons`, with `(everywhere)` after the predicate for what
    /// keeps it from all nodes; empty if it fits.
    pub(crate) fn verdict(&self, pod: SpecId) -> String {
        match self.refusals(pod).into_iter().next() {
            Some(Some(Refusal { predicate, phase, reasons })) => {
                let everywhere = if phase == Phase::PreFilter { " (everywhere)" } else { "" };
                let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                format!("{predicate}{everywhere}: {}", reasons.join("; "))
            }
            Some(None) => String::new(),
            None => panic!("a scene without nodes"),
        }
    }
}
