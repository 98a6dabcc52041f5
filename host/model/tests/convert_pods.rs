//! Pods, from objects as the API server gives them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the functions that tests share may fail like tests"
)]

use plimsoll_model::cluster::Cluster;
use plimsoll_model::convert::Kind;
use plimsoll_model::pod::{
    ClaimReference, InlineDisk, NodeInclusion, OwnerKind, Phase, Pod, PodSpec, RestartPolicy, SafeToEvict, Scheduling,
    Volume,
};
use plimsoll_model::selector::{LabelSelector, Operator};
use plimsoll_model::symbol::known;
use plimsoll_model::taint::{TaintEffect, TolerationOperator};
use plimsoll_model::{Resources, Symbol};
use serde_json::{Value, json};

/// A cluster with one pod.
fn cluster_with(pod: Value) -> Cluster {
    let mut cluster = Cluster::default();
    Kind::Pod.import_value(pod, &mut cluster).unwrap();
    cluster
}

fn pod(spec: Value, status: Value) -> Value {
    json!({"metadata": {"name": "p", "namespace": "shop"}, "spec": spec, "status": status})
}

fn only(cluster: &Cluster) -> (&Pod, &PodSpec) {
    let pod = &cluster.pods[0];
    (pod, &cluster.specs[pod.spec])
}

fn find(cluster: &Cluster, text: &str) -> Symbol {
    cluster.symbols.find(text).unwrap_or_else(|| panic!("{text:?} was not interned"))
}

/// cpu in thousandths, memory in bytes, and the scalars by name.
fn amounts(cluster: &Cluster, requests: &Resources) -> (i64, i64, i64, Vec<(String, i64)>) {
    let mut scalars: Vec<_> =
        requests.scalars.iter().map(|&(name, amount)| (cluster.text(name).to_owned(), amount)).collect();
    scalars.sort();
    (requests.cpu_milli, requests.memory_bytes, requests.ephemeral_storage_bytes, scalars)
}

fn asks(requests: Value) -> Value {
    json!({"name": "c", "resources": {"requests": requests}})
}

fn sidecar(requests: Value) -> Value {
    json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": requests}})
}

#[test]
fn requests_of_a_pod_as_a_whole() {
    type Expected = (i64, i64, i64, Vec<(&'static str, i64)>);
    let cases: Vec<(&str, Value, Expected)> = vec![
        ("nothing", json!({"containers": [{"name": "c"}]}), (0, 0, 0, vec![])),
        (
            "halves of a byte are added before they are rounded",
            json!({"containers": [asks(json!({"memory": "500m"})), asks(json!({"memory": "500m"}))]}),
            (0, 1, 0, vec![]),
        ),
        (
            "limits do not count",
            json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}),
            (0, 0, 0, vec![]),
        ),
        (
            "init containers run one after another",
            json!({"containers": [asks(json!({"cpu": "1"}))], "initContainers": [asks(json!({"cpu": "3"})), asks(json!({"cpu": "2"}))]}),
            (3000, 0, 0, vec![]),
        ),
        (
            "sidecars run beside the containers",
            json!({"containers": [asks(json!({"cpu": "1"}))], "initContainers": [sidecar(json!({"cpu": "2"}))]}),
            (3000, 0, 0, vec![]),
        ),
        (
            "an init container runs beside the sidecars before it, not after it",
            json!({"containers": [asks(json!({"cpu": "1"}))], "initContainers": [
                asks(json!({"cpu": "5"})), sidecar(json!({"cpu": "2"})), asks(json!({"cpu": "2"}))]}),
            (5000, 0, 0, vec![]),
        ),
        (
            "sidecars at their most before the containers start",
            json!({"containers": [asks(json!({"cpu": "1"}))], "initContainers": [
                sidecar(json!({"cpu": "2"})), asks(json!({"cpu": "4"}))]}),
            (6000, 0, 0, vec![]),
        ),
        (
            "the greater one is taken per resource",
            json!({"containers": [asks(json!({"cpu": "1", "memory": "10"}))], "initContainers": [asks(json!({"cpu": "2", "memory": "5"}))]}),
            (2000, 10, 0, vec![]),
        ),
        (
            "overhead comes on top",
            json!({"containers": [asks(json!({"cpu": "1"}))], "overhead": {"cpu": "100m", "memory": "7"}}),
            (1100, 7, 0, vec![]),
        ),
        (
            "the pod level replaces, even by less, and overhead still comes on top",
            json!({"containers": [asks(json!({"cpu": "2", "memory": "10", "hugepages-2Mi": "4Mi"}))],
                "resources": {"requests": {"cpu": "1", "hugepages-2Mi": "2Mi"}}, "overhead": {"cpu": "1"}}),
            (2000, 10, 0, vec![("hugepages-2Mi", 2 << 20)]),
        ),
        (
            "the pod level cannot name other resources",
            json!({"containers": [asks(json!({"ephemeral-storage": "5"}))], "resources": {"requests": {"ephemeral-storage": "1"}}}),
            (0, 0, 5, vec![]),
        ),
        (
            "limits of the pod level replace nothing",
            json!({"containers": [asks(json!({"cpu": "2"}))], "resources": {"limits": {"cpu": "1"}}}),
            (2000, 0, 0, vec![]),
        ),
        (
            "names that count",
            json!({"containers": [asks(json!({"nvidia.com/gpu": "2", "storage": "1", "foo": "1", "requests.example.com/a": "1",
                "example.kubernetes.io/x": "1", "attachable-volumes-x": "3", "example.com/none": "0"}))]}),
            (0, 0, 0, vec![("attachable-volumes-x", 3), ("example.kubernetes.io/x", 1), ("nvidia.com/gpu", 2)]),
        ),
        (
            "less than nothing is nothing",
            json!({"containers": [asks(json!({"cpu": "-1", "memory": "-5"}))]}),
            (0, 0, 0, vec![]),
        ),
        (
            "numbers are amounts too",
            json!({"containers": [asks(json!({"cpu": 2, "memory": 1.5}))]}),
            (2000, 2, 0, vec![]),
        ),
        (
            "ephemeral containers do not count",
            json!({"containers": [asks(json!({"cpu": "1"}))], "ephemeralContainers": [asks(json!({"cpu": "9"}))]}),
            (1000, 0, 0, vec![]),
        ),
    ];
    for (name, spec, (cpu, memory, storage, scalars)) in cases {
        let cluster = cluster_with(pod(spec, json!({})));
        let (pod, spec) = only(&cluster);
        let scalars = scalars.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect();
        assert_eq!(amounts(&cluster, &spec.requests), (cpu, memory, storage, scalars), "{name}");
        assert_eq!(spec.requests.pods, 1, "{name}");
        assert_eq!(pod.held, pod.spec, "{name}");
    }
}

#[test]
fn what_a_pod_holds_while_it_is_resized() {
    let infeasible = json!([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]);
    let deferred = json!([{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]);
    let two = json!({"nodeName": "n", "containers": [
        {"name": "a", "resources": {"requests": {"cpu": "1"}}}, {"name": "b", "resources": {"requests": {"cpu": "2"}}}]});
    let one =
        |cpu: &str| json!({"nodeName": "n", "containers": [{"name": "a", "resources": {"requests": {"cpu": cpu}}}]});
    let status = |name: &str, allocated: &str, actuated: Option<&str>| {
        let resources = actuated.map(|cpu| json!({"requests": {"cpu": cpu}}));
        json!({"name": name, "allocatedResources": {"cpu": allocated}, "resources": resources})
    };
    for (name, spec, status, cpu_milli) in [
        (
            "the greatest of sums, not the sum of the greatest",
            two,
            json!({"containerStatuses": [status("a", "2", Some("2")), status("b", "1", Some("1"))]}),
            3000,
        ),
        (
            "a pending decrease still holds what it had",
            one("1"),
            json!({"containerStatuses": [status("a", "1", Some("4"))]}),
            4000,
        ),
        (
            "a deferred increase is counted",
            one("6"),
            json!({"conditions": deferred, "containerStatuses": [status("a", "2", Some("2"))]}),
            6000,
        ),
        (
            "an infeasible increase is not",
            one("6"),
            json!({"conditions": infeasible, "containerStatuses": [status("a", "4", Some("2"))]}),
            4000,
        ),
        (
            "infeasible, nothing allocated yet",
            one("4"),
            json!({"conditions": infeasible, "containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "2"}}}]}),
            2000,
        ),
        ("infeasible, nothing known", one("4"), json!({"conditions": infeasible}), 0),
        (
            "the pod's own figures stand for those of its containers",
            one("1"),
            json!({"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}},
                "containerStatuses": [status("a", "9", Some("9"))]}),
            3000,
        ),
        (
            "the pod level with what is allocated to it",
            json!({"nodeName": "n", "resources": {"requests": {"cpu": "2"}}, "containers": [{"name": "a"}]}),
            json!({"allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "3"}}}),
            3000,
        ),
        (
            "the pod level, infeasible",
            json!({"nodeName": "n", "resources": {"requests": {"cpu": "9"}}, "containers": [{"name": "a"}]}),
            json!({"conditions": infeasible, "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "3"}}}),
            3000,
        ),
    ] {
        let cluster = cluster_with(pod(spec, status));
        let (pod, spec) = only(&cluster);
        let held = &cluster.specs[pod.held];
        assert_eq!(held.requests.cpu_milli, cpu_milli, "{name}");
        assert_eq!(PodSpec { requests: spec.requests.clone(), ..held.clone() }, *spec, "{name}: only requests differ");
    }
}

#[test]
fn host_ports() {
    let cluster = cluster_with(pod(
        json!({
            "hostNetwork": true,
            "containers": [
                {"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}, {"containerPort": 82, "hostPort": 0}]},
                {"name": "b", "ports": [{"containerPort": 81, "hostPort": 81, "protocol": "TCP", "hostIP": "0.0.0.0"},
                    {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "127.0.0.1"}]},
            ],
            "initContainers": [
                {"name": "init", "ports": [{"containerPort": 90, "hostPort": 90}]},
                {"name": "side", "restartPolicy": "Always", "ports": [{"containerPort": 91, "hostPort": 91}]},
            ],
        }),
        json!({}),
    ));
    let mut found: Vec<_> = only(&cluster)
        .1
        .host_ports
        .iter()
        .map(|port| (port.port, cluster.text(port.protocol), cluster.text(port.address)))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [(53, "UDP", "127.0.0.1"), (81, "TCP", "0.0.0.0"), (91, "TCP", "0.0.0.0")]);
}

#[test]
fn tolerations() {
    let cluster = cluster_with(pod(
        json!({"containers": [], "tolerations": [
            {"key": "a", "value": "1", "effect": "NoSchedule"},
            {"operator": "Exists"},
            {"key": "b", "operator": "Gt", "value": "3"},
            {"key": "c", "operator": "Like"},
            {"key": "d", "operator": "Exists", "effect": "NoFun"},
        ]}),
        json!({}),
    ));
    let found: Vec<_> = only(&cluster)
        .1
        .tolerations
        .iter()
        .map(|t| (cluster.text(t.key), t.operator, cluster.text(t.value), t.effect))
        .collect();
    assert_eq!(
        found,
        [
            ("a", TolerationOperator::Equal, "1", Some(TaintEffect::NoSchedule)),
            ("", TolerationOperator::Exists, "", None),
            ("b", TolerationOperator::Gt, "3", None),
            ("c", TolerationOperator::Unknown, "", None),
            ("d", TolerationOperator::Unknown, "", None),
        ]
    );
}

#[test]
fn spread_constraints() {
    let mut object = pod(
        json!({"containers": [], "topologySpreadConstraints": [
            {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": ["hash", "absent"]},
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}},
            {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["hash"],
             "minDomains": 3, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"},
            {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"hash": "1"}}, "matchLabelKeys": ["hash"]},
            {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"a b": "1"}}, "matchLabelKeys": ["hash"]},
        ]}),
        json!({}),
    );
    object["metadata"]["labels"] = json!({"hash": "1"});
    let cluster = cluster_with(object);
    let [merged, nothing, already, invalid] = &*only(&cluster).1.spread else { panic!("four hard constraints") };

    let (hash, one) = (find(&cluster, "hash"), find(&cluster, "1"));
    let Some(LabelSelector::All(all)) = &merged.selector else { panic!("a valid selector") };
    assert_eq!(all.len(), 2);
    assert_eq!((all[1].key, &all[1].operator), (hash, &Operator::In([one].into())));
    assert_eq!((merged.max_skew, merged.min_domains), (2, 1));
    assert_eq!((merged.node_affinity_policy, merged.node_taints_policy), (NodeInclusion::Honor, NodeInclusion::Ignore));

    assert_eq!(nothing.selector, None);
    assert_eq!(nothing.min_domains, 3);
    assert_eq!(
        (nothing.node_affinity_policy, nothing.node_taints_policy),
        (NodeInclusion::Ignore, NodeInclusion::Honor)
    );

    assert!(matches!(&already.selector, Some(LabelSelector::All(all)) if all.len() == 1));
    assert!(matches!(invalid.selector, Some(LabelSelector::Invalid(_))));
}

#[test]
fn pod_affinity() {
    let terms = json!([
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": ["app"]},
        {"topologyKey": "zone", "labelSelector": {}, "namespaces": ["y", "x", "y"]},
        {"topologyKey": "zone", "namespaceSelector": {}},
    ]);
    let mut object = pod(
        json!({"containers": [], "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms},
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "a"}}, "mismatchLabelKeys": ["app"]}],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "host"}}],
            },
        }}),
        json!({}),
    );
    object["metadata"]["labels"] = json!({"app": "b"});
    let cluster = cluster_with(object);
    let spec = only(&cluster).1;
    let [own, named, all] = &*spec.affinity else { panic!("three terms") };
    let requirements = |selector: &Option<LabelSelector>| match selector {
        Some(LabelSelector::All(all)) => Some(all.len()),
        _ => None,
    };
    let texts = |names: &[Symbol]| names.iter().map(|&name| cluster.text(name).to_owned()).collect::<Vec<_>>();

    assert_eq!(texts(&own.namespaces), ["shop"]);
    assert_eq!(requirements(&own.selector), Some(1), "the API server merges keys of real pods, nobody else");
    let mut both = texts(&named.namespaces);
    both.sort();
    assert_eq!(both, ["x", "y"]);
    assert!(named.selector.as_ref().is_some_and(LabelSelector::is_everything));
    assert!(all.namespaces.is_empty() && all.selector.is_none());
    assert!(all.namespace_selector.as_ref().is_some_and(LabelSelector::is_everything));
    assert_eq!(spec.anti_affinity.len(), 1, "what is only preferred never keeps a pod away");
    assert_eq!(requirements(&spec.anti_affinity[0].selector), Some(1));
}

#[test]
fn volumes() {
    let mut cluster = cluster_with(pod(
        json!({"containers": [], "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "c", "configMap": {"name": "x"}},
            {"name": "d", "gcePersistentDisk": {"pdName": "disk", "readOnly": true}},
            {"name": "e", "awsElasticBlockStore": {"volumeID": "vol-1"}},
            {"name": "f", "iscsi": {"iqn": "iqn.x", "lun": 1, "targetPortal": "t"}},
            {"name": "g", "rbd": {"monitors": ["m2", "m1"], "image": "i"}},
            {"name": "h", "azureDisk": {"diskName": "n", "diskURI": "uri"}},
            {"name": "i", "csi": {"driver": "secrets.csi"}},
            {"name": "j", "emptyDir": {}},
        ]}),
        json!({}),
    ));
    let mut name = |text: &str| cluster.symbols.intern(text);
    let [data, b, p, disk, vol, iqn, pool, image, azure, uri, secrets] =
        ["data", "p-b", "p", "disk", "vol-1", "iqn.x", "rbd", "i", "kubernetes.io/azure-disk", "uri", "secrets.csi"]
            .map(&mut name);
    let mut monitors = ["m1", "m2"].map(&mut name);
    monitors.sort_unstable();
    assert_eq!(
        *only(&cluster).1.volumes,
        [
            Volume::Claim(data),
            Volume::Ephemeral { claim: b, pod: p, pod_uid: known::EMPTY },
            Volume::Disk(InlineDisk::GcePersistentDisk { name: disk, read_only: true }),
            Volume::Disk(InlineDisk::AwsElasticBlockStore { id: vol }),
            Volume::Disk(InlineDisk::Iscsi { iqn, read_only: false }),
            Volume::Disk(InlineDisk::Rbd { monitors: monitors.into(), pool, image, read_only: false }),
            Volume::Disk(InlineDisk::Migratable { plugin: azure, handle: uri }),
            Volume::InlineCsi(secrets),
        ]
    );
}

#[test]
fn resource_claims() {
    let mut cluster = cluster_with(pod(
        json!({"containers": [], "resourceClaims": [
            {"name": "shared", "resourceClaimName": "gpu"},
            {"name": "made", "resourceClaimTemplateName": "t"},
            {"name": "needless", "resourceClaimTemplateName": "t"},
            {"name": "awaited", "resourceClaimTemplateName": "t"},
        ]}),
        json!({"resourceClaimStatuses": [{"name": "made", "resourceClaimName": "p-made-x"}, {"name": "needless"}]}),
    ));
    let mut name = |text: &str| cluster.symbols.intern(text);
    let [gpu, made_x, p, uid] = ["gpu", "p-made-x", "p", ""].map(&mut name);
    assert_eq!(
        *only(&cluster).1.claims,
        [
            ClaimReference::Named(gpu),
            ClaimReference::Made { claim: made_x, pod: p, pod_uid: uid },
            ClaimReference::Unneeded,
            ClaimReference::Awaited { pod: p },
        ]
    );
}

#[test]
fn running_pods_hold_their_claims_and_would_ask_for_new_ones() {
    let mut cluster = cluster_with(pod(
        json!({"nodeName": "n1", "containers": [], "resourceClaims": [
            {"name": "shared", "resourceClaimName": "gpu"},
            {"name": "made", "resourceClaimTemplateName": "t"},
        ]}),
        json!({
            "resourceClaimStatuses": [{"name": "made", "resourceClaimName": "p-made-x"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "p-extended", "requestMappings": []},
        }),
    ));
    let mut name = |text: &str| cluster.symbols.intern(text);
    let [gpu, made_x, p, uid, t, extended] = ["gpu", "p-made-x", "p", "", "t", "p-extended"].map(&mut name);
    let pod = &cluster.pods[0];
    assert_eq!(
        *cluster.specs[pod.spec].claims,
        [ClaimReference::Named(gpu), ClaimReference::Fresh { like: Some(made_x), template: Some(t) }]
    );
    assert_eq!(
        *cluster.specs[pod.held].claims,
        [
            ClaimReference::Named(gpu),
            ClaimReference::Made { claim: made_x, pod: p, pod_uid: uid },
            ClaimReference::ForResources(extended),
        ]
    );
}

#[test]
fn declared_features() {
    let restart = json!([{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]);
    for (name, spec, expected) in [
        ("none", json!({"containers": [{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}]}), &[][..]),
        ("restart all", json!({"containers": restart}), &["RestartAllContainersOnContainerExits"]),
        (
            "restart all, init",
            json!({"containers": [], "initContainers": restart}),
            &["RestartAllContainersOnContainerExits"],
        ),
        (
            "user namespace",
            json!({"containers": [], "hostNetwork": true, "hostUsers": false}),
            &["UserNamespacesHostNetworkSupport"],
        ),
        ("user namespace alone", json!({"containers": [], "hostUsers": false}), &[]),
        (
            "bind mount options",
            json!({"containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/v", "bindMountOptions": ["ro"]}]}]}),
            &["VolumeBindMountOptions"],
        ),
    ] {
        let cluster = cluster_with(pod(spec, json!({})));
        let found: Vec<_> = only(&cluster).1.features.iter().map(|&feature| cluster.text(feature)).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn scheduling_state() {
    let condition = |status: &str, reason: Value| json!({"conditions": [{"type": "PodScheduled", "status": status, "reason": reason}]});
    for (name, spec, status, expected) in [
        ("unseen", json!({"containers": []}), json!({}), Scheduling::Unseen),
        (
            "unschedulable",
            json!({"containers": []}),
            condition("False", json!("Unschedulable")),
            Scheduling::Unschedulable,
        ),
        ("gated", json!({"containers": []}), condition("False", json!("SchedulingGated")), Scheduling::Gated),
        (
            "gated, not seen yet",
            json!({"containers": [], "schedulingGates": [{"name": "g"}]}),
            json!({}),
            Scheduling::Gated,
        ),
        ("no reason", json!({"containers": []}), condition("False", Value::Null), Scheduling::Unseen),
        ("other reason", json!({"containers": []}), condition("False", json!("SchedulerError")), Scheduling::Refused),
        ("has a node", json!({"containers": [], "nodeName": "n"}), json!({}), Scheduling::Done),
    ] {
        let cluster = cluster_with(pod(spec, status));
        assert_eq!(only(&cluster).0.scheduling, expected, "{name}");
    }
}

#[test]
fn the_rest_of_a_pod() {
    let cluster = cluster_with(json!({
        "metadata": {
            "name": "p", "namespace": "shop", "uid": "u-1", "creationTimestamp": "2026-12-01T12:00:00Z",
            "deletionTimestamp": "2026-12-01T12:01:00Z", "deletionGracePeriodSeconds": 7,
            "annotations": {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": "1m30s"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Other", "name": "no", "uid": "0"},
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cart", "uid": "1", "controller": true},
            ],
        },
        "spec": {"containers": [], "nodeName": "n1", "priority": -5, "schedulerName": "mine", "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 60, "nodeSelector": {"pool": "a"}},
        "status": {"phase": "Failed", "nominatedNodeName": "n2"},
    }));
    let (pod, spec) = only(&cluster);
    assert_eq!((&*pod.name, &*pod.uid), ("p", "u-1"));
    assert_eq!(cluster.pod_name(pod), "shop/p");
    assert_eq!(pod.created_at.unwrap().to_string(), "2026-12-01T12:00:00Z");
    let deletion = pod.deletion.unwrap();
    assert_eq!((deletion.at.to_string().as_str(), deletion.grace_seconds), ("2026-12-01T12:01:00Z", Some(7)));
    assert_eq!(pod.scale_up_delay_ms, Some(90_000));
    let owner = pod.owner.unwrap();
    assert_eq!((owner.kind, cluster.text(owner.name)), (OwnerKind::ReplicaSet, "cart"));
    assert_eq!(pod.node.map(|node| cluster.text(node)), Some("n1"));
    assert_eq!(pod.nominated_node.map(|node| cluster.text(node)), Some("n2"));
    assert_eq!(cluster.text(pod.scheduler), "mine");
    assert_eq!((pod.phase, pod.restart_policy), (Phase::Failed, RestartPolicy::Never));
    assert_eq!((spec.priority, spec.node_name, pod.termination_grace_seconds), (Some(-5), None, Some(60)));
    assert_eq!(spec.node_selector.get(find(&cluster, "pool")), Some(find(&cluster, "a")));

    let cluster = cluster_with(json!({"metadata": {"name": "bare"}}));
    let (pod, spec) = only(&cluster);
    assert_eq!((spec.namespace, pod.scheduler), (known::DEFAULT, known::DEFAULT_SCHEDULER));
    assert_eq!((pod.phase, pod.node, pod.owner), (Phase::Pending, None, None));
}

#[test]
fn owners() {
    for (api_version, kind, expected, is_daemon_set_pod) in [
        ("apps/v1", "ReplicaSet", Ok(OwnerKind::ReplicaSet), false),
        ("apps/v1", "StatefulSet", Ok(OwnerKind::StatefulSet), false),
        ("apps.example.com/v1", "StatefulSet", Err("StatefulSet"), false),
        ("apps/v1", "DaemonSet", Ok(OwnerKind::DaemonSet), true),
        ("apps.example.com/v1", "DaemonSet", Err("DaemonSet"), true),
        ("batch/v1", "Job", Ok(OwnerKind::Job), false),
        ("v1", "ReplicationController", Ok(OwnerKind::ReplicationController), false),
        ("v1", "Node", Ok(OwnerKind::Node), false),
        ("example.com/v1", "Custom", Err("Custom"), false),
    ] {
        let cluster = cluster_with(json!({"metadata": {"name": "p", "ownerReferences": [
            {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "1", "controller": true}]}}));
        let pod = only(&cluster).0;
        let expected = expected.unwrap_or_else(|kind| OwnerKind::Other(find(&cluster, kind)));
        assert_eq!(pod.owner.unwrap().kind, expected, "{api_version} {kind}");
        assert_eq!(pod.is_daemon_set_pod(), is_daemon_set_pod, "{api_version} {kind}");
    }
}

#[test]
fn drain_traits() {
    let with = |annotations: Value, volumes: Value| {
        cluster_with(
            json!({"metadata": {"name": "p", "annotations": annotations}, "spec": {"containers": [], "volumes": volumes}}),
        )
    };
    let plain = with(json!({}), json!([]));
    assert_eq!(only(&plain).0.drain, Default::default());

    let all = with(
        json!({"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file",
            "cluster-autoscaler.kubernetes.io/daemonset-pod": "true", "cluster-autoscaler.kubernetes.io/enable-ds-eviction": "no"}),
        json!([]),
    );
    let traits = only(&all).0.drain;
    assert!(traits.mirror && traits.static_pod && traits.daemon_set_annotation);
    assert_eq!(traits.daemon_set_eviction, Some(false));
    assert!(!only(&with(json!({"kubernetes.io/config.source": "api"}), json!([]))).0.drain.static_pod);

    for (value, expected) in [
        ("true", SafeToEvict::Yes),
        ("false", SafeToEvict::No),
        ("on-completion", SafeToEvict::OnCompletion),
        ("maybe", SafeToEvict::Unset),
    ] {
        let cluster = with(json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": value}), json!([]));
        assert_eq!(only(&cluster).0.drain.safe_to_evict, expected, "{value}");
    }

    let volumes = json!([
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "a", "emptyDir": {}},
        {"name": "b", "hostPath": {"path": "/"}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "x"}},
    ]);
    for (safe, expected) in
        [("", Some("a")), ("a", Some("b")), ("a,b", None), ("a, b", Some("b")), ("memory,b", Some("a"))]
    {
        let annotations = json!({"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": safe});
        let cluster = with(annotations, volumes.clone());
        let found = only(&cluster).0.drain.local_storage.map(|name| cluster.text(name));
        assert_eq!(found, expected, "safe: {safe:?}");
    }
}

#[test]
fn pods_of_a_daemon_set_share_a_spec_wherever_they_run() {
    let on = |node: &str| {
        json!({
            "metadata": {"name": format!("agent-{node}"), "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": true}]},
            "spec": {"nodeName": node, "containers": [], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}}}},
        })
    };
    let mut cluster = cluster_with(on("n1"));
    Kind::Pod.import_value(on("n2"), &mut cluster).unwrap();
    assert_eq!(cluster.pods[0].spec, cluster.pods[1].spec);
    assert_eq!(cluster.specs[cluster.pods[0].spec].node_affinity, None);

    let mut pending = on("n3");
    pending["spec"]["nodeName"] = json!("");
    let cluster = cluster_with(pending);
    assert!(only(&cluster).1.node_affinity.is_some(), "until it runs, it belongs to its node");
}

#[test]
fn what_cannot_be_read_says_where() {
    for (pod, expected) in [
        (json!({"metadata": {}}), "metadata.name: the object has no name; give it one"),
        (
            pod(json!({"containers": [{"name": "a"}, asks(json!({"cpu": "1.5.0"}))]}), json!({})),
            "spec.containers[1].resources.requests.cpu: \"1.5.0\" is not a quantity; expected a number such as 250m, 1.5 or 4Gi",
        ),
        (
            pod(json!({"containers": [], "initContainers": [asks(json!({"nvidia.com/gpu": ""}))]}), json!({})),
            "spec.initContainers[0].resources.requests[\"nvidia.com/gpu\"]: the quantity is empty; expected a number such as 250m, 1.5 or 4Gi",
        ),
        (
            pod(json!({"containers": [], "overhead": {"cpu": "x"}}), json!({})),
            "spec.overhead.cpu: \"x\" is not a quantity; expected a number such as 250m, 1.5 or 4Gi",
        ),
        (
            pod(json!({"containers": [], "resources": {"requests": {"cpu": "x"}}}), json!({})),
            "spec.resources.requests.cpu: \"x\" is not a quantity; expected a number such as 250m, 1.5 or 4Gi",
        ),
        (
            pod(
                json!({"containers": [{"name": "a"}]}),
                json!({"containerStatuses": [{"name": "z"}, {"name": "a", "allocatedResources": {"cpu": "x"}}]}),
            ),
            "status.containerStatuses[1].allocatedResources.cpu: \"x\" is not a quantity; expected a number such as 250m, 1.5 or 4Gi",
        ),
        (
            pod(json!({"containers": []}), json!({"allocatedResources": {}, "resources": {"requests": {"cpu": "x"}}})),
            "status.resources.requests.cpu: \"x\" is not a quantity; expected a number such as 250m, 1.5 or 4Gi",
        ),
        (
            pod(json!({"containers": [{"name": "a", "ports": [{"containerPort": 1, "hostPort": 70000}]}]}), json!({})),
            "spec.containers[0].ports[0].hostPort: 70000 is not a port number; expected 1 to 65535",
        ),
        (pod(json!({"containers": {}}), json!({})), "spec.containers: expected a list, found an object"),
    ] {
        let mut cluster = Cluster::default();
        let error = Kind::Pod.import_value(pod, &mut cluster).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(cluster.pods.is_empty(), "nothing is added");
    }
}
