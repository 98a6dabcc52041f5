//! An anonymized cluster is decided about as the cluster is, and nobody is named in it.

use std::collections::BTreeSet;

use plimsoll_core::Settings;
use plimsoll_core::observation::{CloudView, prepare};
use plimsoll_core::plan::{GroupReason, Place, Plan, PodOutcome};
use plimsoll_core::ranking::{RankRequest, Ranking, Verdict};
use plimsoll_core::{Action, Loop, Memory, Observation, Outcome};
use plimsoll_driver::steps::{self, Answers};
use plimsoll_model::Time;
use plimsoll_model::read::{Input, Reader};
use plimsoll_signals::anonymize::{Key, anonymize};
use plimsoll_signals::state::{Cloud, LoopState};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::simulate::groups::FileCloud;

fn at() -> Time {
    Time::parse("2026-01-31T12:00:00Z").unwrap()
}

fn read(objects: &[Value]) -> Input {
    let mut reader = Reader::keeping_objects();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    reader.add("test", list.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}\n{list:#}"));
    reader.finish().unwrap()
}

/// Cannot tell options apart, so that the draw between them hangs on their order.
struct Undecided;

impl Answers for Undecided {
    async fn rank(&mut self, _: &str, request: &RankRequest) -> Ranking {
        let verdict = |index| Verdict { index, score: 1.0, reason: None };
        Ok((0..u32::try_from(request.options.len()).unwrap()).map(verdict).collect())
    }

    async fn act(&mut self, action: &Action) -> Outcome {
        crate::simulate::accepted(action)
    }

    async fn remember(&mut self, _: &Memory) {}
}

/// A decision without names: everything by its position, which new names keep.
fn decide(objects: &[Value]) -> (Vec<String>, Option<String>) {
    let Input { mut cluster, node_groups, loop_state, .. } = read(objects);
    let state: Option<LoopState> = loop_state.map(|state| serde_json::from_value(state).unwrap());
    let settings = Settings { waits_elapsed: state.is_none(), ..Settings::default() };
    let (mut memory, known) = state.map(|state| (state.spec.memory, state.spec.cloud)).unwrap_or_default();
    let cloud =
        FileCloud::new(node_groups, &cluster, at(), &settings, &mut memory.ledger).unwrap().upon(known).unwrap();
    let view = CloudView {
        snapshot: &cloud.snapshot,
        capabilities: &cloud.capabilities,
        templates: &cloud.provided,
        fixed_templates: &cloud.templates,
        prices: cloud.prices.as_ref(),
    };
    let prepared = prepare(at(), &mut cluster, view, &settings, &mut memory.templates);
    let observation = Observation::new(prepared, &cluster, view, &settings);
    let turn = Loop::new(&observation, &settings, &mut memory);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let plan = runtime.block_on(steps::run(turn, &mut Undecided));
    let first = plan.scale_up.first().map(|growth| growth.group.to_string());
    (in_positions(&plan, &observation), first)
}

fn in_positions(plan: &Plan, observation: &Observation<'_>) -> Vec<String> {
    let group = |id: &plimsoll_core::cloud::GroupId| {
        observation
            .groups
            .iter()
            .position(|group| group.cloud.id == *id)
            .map_or("?".to_owned(), |at| format!("group {at}"))
    };
    let place = |place: &Place| match place {
        Place::Node(node) => format!("node {node}"),
        Place::New(id, number) => format!("{} #{number}", group(id)),
    };
    let mut lines = Vec::new();
    for growth in &plan.scale_up {
        lines.push(format!("{} {} → {} for {:?}", group(&growth.group), growth.from, growth.to, growth.pods));
    }
    for removal in &plan.scale_down {
        let moves: Vec<String> = removal.moves.iter().map(|(pod, to)| format!("{pod} to {}", place(to))).collect();
        lines.push(format!("node {} goes, drained {}: {moves:?}", removal.node, removal.drain));
    }
    for (pod, outcome) in &plan.pods {
        let outcome = match outcome {
            PodOutcome::FitsExisting(on) => format!("fits {}", place(on)),
            PodOutcome::FitsUpcoming(on) => format!("will fit {}", place(on)),
            PodOutcome::ScaleUp(on) => format!("gets {}", place(on)),
            PodOutcome::NotHelped => "not helped".to_owned(),
            PodOutcome::Ignored(reason) => format!("ignored: {reason:?}"),
        };
        lines.push(format!("pod {pod}: {outcome}"));
    }
    for class in &plan.not_helped {
        let reasons = class.reasons.iter().map(|(id, reason)| {
            let more = match reason {
                GroupReason::Refused(refusal) => format!("{} {}", refusal.predicate, refusal.reasons.len()),
                other => format!("{:?}", std::mem::discriminant(other)),
            };
            format!("{}: {} {more}", group(id), reason.plugin())
        });
        lines.push(format!("not helped {:?}: {:?}", class.pods, reasons.collect::<Vec<_>>()));
    }
    for verdict in &plan.nodes {
        let codes: Vec<&str> = verdict.reasons.iter().map(|reason| reason.code()).collect();
        lines.push(format!("node {}: {} {codes:?}", verdict.node, verdict.outcome.name()));
    }
    lines
}

/// Every name, label value and annotation value of objects: none may be left. All of them begin alike, but for the words
/// that everybody has.
const MARK: &str = "orig";

fn check(objects: Vec<Value>) {
    let before = decide(&objects);
    let anonymous = anonymize(objects.clone(), &Key::of("key")).unwrap();
    let text = serde_json::to_string(&anonymous).unwrap();
    if let Some(at) = text.find(MARK) {
        panic!("left: {}", &text[at.saturating_sub(60)..(at + 60).min(text.len())]);
    }
    let after = decide(&anonymous);
    assert_eq!(before.0, after.0, "{:#}\n became \n{:#}", json!(objects), json!(anonymous));
    assert_eq!(before.1.is_some(), after.1.is_some());
    // A second time with another key it is the same decision again.
    assert_eq!(decide(&anonymize(anonymous, &Key::of("other")).unwrap()).0, before.0);
}

fn metadata(name: &str, labels: &Value) -> Value {
    json!({"name": name, "labels": labels, "annotations": {"example.com/origin": "orig-annotation"}, "managedFields": [{"manager": "orig-m"}]})
}

fn node(index: usize, pool: &str, zone: &str, cpu: u32, generation: u32, tainted: bool) -> Value {
    let name = format!("orig-node-{index}");
    let mut taints = vec![];
    if tainted {
        taints.push(json!({"key": "team", "value": "orig-ml", "effect": "NoSchedule"}));
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": metadata(&name, &json!({
            "pool": pool, "topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name, "generation": generation.to_string(),
            "kubernetes.io/os": "linux",
        })),
        "spec": {"providerID": format!("orig:///{name}"), "taints": taints},
        "status": {
            "capacity": {"cpu": cpu.to_string(), "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "orig-message", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "addresses": [{"type": "InternalIP", "address": format!("10.99.0.{index}")}],
            "nodeInfo": {"machineID": "orig-machine"},
        },
    })
}

fn group(index: usize, pool: &str, zone: &str, cpu: u32, max: u32, generation: u32) -> Value {
    let mut template = node(0, pool, zone, cpu, generation, false);
    template["metadata"]["labels"].as_object_mut().unwrap().remove("kubernetes.io/hostname");
    template["metadata"].as_object_mut().unwrap().remove("name");
    json!({
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": "NodeGroup",
        "metadata": {"name": format!("orig-group-{index}")},
        "spec": {"minSize": 0, "maxSize": max, "nodeSelector": {"pool": pool, "topology.kubernetes.io/zone": zone}, "template": template,
                 "options": {"scale-down-unneeded-time": "5m"}},
    })
}

#[derive(Debug, Clone)]
struct PodKind {
    app: usize,
    cpu: u32,
    replicas: usize,
    wish: u8,
    on: Option<usize>,
}

fn pods(kind: &PodKind, number: usize, nodes: usize) -> Vec<Value> {
    let app = format!("orig-app-{}", kind.app);
    let namespace = ["orig-shop", "kube-system", "default"][kind.app % 3];
    let affinity_term = json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "topology.kubernetes.io/zone", "namespaces": [namespace]});
    let extra = match kind.wish {
        1 => json!({"nodeSelector": {"pool": "orig-pool-1"}}),
        2 => json!({"tolerations": [{"key": "team", "value": "orig-ml", "effect": "NoSchedule"}]}),
        3 => {
            json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [affinity_term]}}})
        }
        4 => json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": [app]}]}}]}),
        5 => {
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "generation", "operator": "Gt", "values": ["4"]}]}]}}}})
        }
        6 => {
            json!({"volumes": [{"name": "orig-data", "persistentVolumeClaim": {"claimName": format!("orig-claim-{}", kind.app)}}]})
        }
        7 => {
            json!({"volumes": [{"name": "orig-cache", "emptyDir": {}}, {"name": "orig-cfg", "configMap": {"name": "orig-config"}}]})
        }
        8 => {
            json!({"volumes": [{"name": "orig-scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "orig-class"}}}}]})
        }
        _ => json!({}),
    };
    let one = |replica: usize| {
        let name = format!("orig-pod-{number}-{replica}");
        let mut spec = json!({
            "containers": [{"name": "orig-main", "image": "orig/image:1", "command": ["orig-cmd"],
                "env": [{"name": "ORIG", "value": "orig-secret"}], "resources": {"requests": {"cpu": format!("{}m", kind.cpu), "memory": "256Mi"}}}],
            "serviceAccountName": "orig-account",
        });
        spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let mut status = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "orig"}]});
        if let Some(on) = kind.on.filter(|_| nodes > 0) {
            spec["nodeName"] = json!(format!("orig-node-{}", (on + replica) % nodes));
            status = json!({"phase": "Running"});
        }
        let mut metadata = metadata(&name, &json!({"app": app, "pod-name": name}));
        metadata["namespace"] = json!(namespace);
        metadata["uid"] = json!(format!("orig-uid-{number}-{replica}"));
        metadata["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": format!("orig-rs-{}", kind.app), "controller": true}]);
        if kind.wish == 7 {
            metadata["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"] =
                json!("orig-cache");
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
    };
    let mut objects: Vec<Value> = (0..kind.replicas).map(one).collect();
    if kind.wish == 8 {
        objects.extend((0..kind.replicas).map(|replica| json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": format!("orig-pod-{number}-{replica}-orig-scratch"), "namespace": namespace,
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": format!("orig-pod-{number}-{replica}"), "uid": format!("orig-uid-{number}-{replica}"), "controller": true}]},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "orig-class", "resources": {"requests": {"storage": "1Gi"}}},
        })));
    }
    objects
}

fn others(apps: usize) -> Vec<Value> {
    let mut objects = vec![
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "orig-class"},
            "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer", "parameters": {"orig": "orig"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "orig-secret"}, "data": {"orig": "b3JpZw=="}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "orig-shop", "labels": {"team": "orig-team"}}}),
    ];
    for app in 0..apps {
        let namespace = ["orig-shop", "kube-system", "default"][app % 3];
        let name = format!("orig-app-{app}");
        objects.push(json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": namespace}, "spec": {"replicas": 3, "selector": {"matchLabels": {"app": name}}}}));
        if app % 2 == 0 {
            objects.push(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": namespace},
                "spec": {"selector": {"matchLabels": {"app": name}}}, "status": {"disruptionsAllowed": app % 4, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}}));
        }
        objects.push(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": format!("orig-claim-{app}"), "namespace": namespace,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "orig-class", "volumeName": format!("orig-pv-{app}"), "resources": {"requests": {"storage": "1Gi"}}},
            "status": {"phase": "Bound"}}));
        objects.push(json!({"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": format!("orig-pv-{app}"), "labels": {"topology.kubernetes.io/zone": if app % 2 == 0 { "orig-z0" } else { "orig-z0__orig-z1" }}},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "orig-class",
                "claimRef": {"namespace": namespace, "name": format!("orig-claim-{app}")},
                "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": format!("orig-vol-{app}")}},
            "status": {"phase": "Bound"}}));
    }
    objects
}

prop_compose! {
    fn pod_kind()(app in 0..6_usize, cpu in 1..40_u32, replicas in 1..4_usize, wish in 0..9_u8, on in prop::option::weighted(0.6, 0..8_usize)) -> PodKind {
        PodKind { app, cpu: cpu * 100, replicas, wish, on }
    }
}

prop_compose! {
    fn cluster()(
        nodes in prop::collection::vec((0..3_usize, 0..2_usize, 2..9_u32, 3..7_u32, prop::bool::weighted(0.2)), 0..8),
        groups in prop::collection::vec((0..3_usize, 0..2_usize, 2..9_u32, 1..6_u32, 3..7_u32), 1..4),
        kinds in prop::collection::vec(pod_kind(), 0..10),
    ) -> Vec<Value> {
        let zone = |zone: usize| format!("orig-z{zone}");
        let mut objects = others(6);
        let mut seen = BTreeSet::new();
        let mut sizes = std::collections::BTreeMap::new();
        for (index, &(pool, at, cpu, generation, tainted)) in nodes.iter().enumerate() {
            objects.push(node(index, &format!("orig-pool-{pool}"), &zone(at), cpu, generation, tainted));
            *sizes.entry((pool, at)).or_insert(0_u32) += 1;
        }
        for (index, &(pool, at, cpu, more, generation)) in groups.iter().enumerate() {
            if seen.insert((pool, at)) {
                let max = sizes.get(&(pool, at)).copied().unwrap_or(0) + more;
                objects.push(group(index, &format!("orig-pool-{pool}"), &zone(at), cpu, max, generation));
            }
        }
        for (number, kind) in kinds.iter().enumerate() {
            objects.extend(pods(kind, number, nodes.len()));
        }
        objects
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn random_clusters(objects in cluster()) {
        check(objects);
    }
}

#[test]
fn priorities_name_groups_by_patterns() {
    let priorities = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-autoscaler-priority-expander", "namespace": "kube-system"},
        "data": {"priorities": "50:\n- orig-group-.*1\n10:\n- .*\n", "orig-other": "orig"}});
    let objects =
        vec![group(0, "orig-pool-0", "orig-z0", 4, 5, 5), group(1, "orig-pool-1", "orig-z0", 4, 5, 5), priorities];
    let anonymous = anonymize(objects, &Key::of("key")).unwrap();
    let text = anonymous[2]["data"]["priorities"].as_str().unwrap();
    let names: Vec<&str> = anonymous[..2].iter().map(|group| group["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(text, format!("10:\n  - '^{}$'\n50:\n  - '^{}$'\n", names[0], names[1]));
    assert!(!serde_json::to_string(&anonymous).unwrap().contains(MARK));
}

#[test]
fn what_a_process_remembers_is_renamed_with_the_rest() {
    let mut objects =
        vec![node(0, "orig-pool-0", "orig-z0", 4, 5, false), node(1, "orig-pool-0", "orig-z0", 4, 5, false)];
    let running = PodKind { app: 2, cpu: 100, replicas: 1, wish: 0, on: Some(0) };
    objects.extend(pods(&running, 0, 2));
    objects.extend(others(3));
    let mut memory = Memory::default();
    // One has been unneeded for long enough, the other has not.
    memory.unneeded_since_ms.insert("orig-node-0".to_owned(), at().millis() - 30_000);
    memory.unneeded_since_ms.insert("orig-node-1".to_owned(), at().millis() - 3_600_000);
    memory.back_off(&"orig-group-9".into(), at(), "orig-reason".to_owned(), &Settings::default());
    let mut snapshot = plimsoll_core::cloud::Snapshot { groups: vec![], complete: true };
    let mut cloud_group = plimsoll_core::cloud::Group::sized("orig-group-1", 0, 5, 2);
    cloud_group.observed_at = at();
    cloud_group.instances = (0..2)
        .map(|index| {
            let id = plimsoll_core::cloud::NodeMatch::ProviderId(format!("orig:///orig-node-{index}"));
            plimsoll_core::cloud::Instance::new(
                format!("orig-i-{index}"),
                id,
                plimsoll_core::cloud::InstanceState::Running,
            )
        })
        .collect();
    snapshot.groups.push(cloud_group);
    let cloud = Cloud { snapshot, ..Cloud::default() };
    let state = LoopState::new(at().to_string(), vec!["--namespace=orig-shop".to_owned()], memory, cloud);
    objects.push(serde_json::to_value(state).unwrap());
    let (lines, _) = decide(&objects);
    assert!(lines.iter().any(|line| line.starts_with("node 1 goes")), "{lines:#?}");
    assert!(lines.iter().all(|line| !line.starts_with("node 0 goes")), "{lines:#?}");
    check(objects);
}
