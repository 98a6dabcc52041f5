//! Nodes, workloads, storage and the rest, from objects as the API server gives them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the functions that tests share may fail like tests")]

use plimsoll_model::cluster::Cluster;
use plimsoll_model::convert::{Kind, TaintParts, TemplateObjects, TemplateParts};
use plimsoll_model::node::ConditionStatus;
use plimsoll_model::pod::OwnerKind;
use plimsoll_model::selector::LabelSelector;
use plimsoll_model::storage::{BindingMode, VolumeMode, VolumePhase};
use plimsoll_model::symbol::known;
use plimsoll_model::taint::{TaintEffect, TolerationOperator};
use plimsoll_model::{Symbol, Time};
use serde_json::{Value, json};

fn cluster_with(kind: Kind, object: Value) -> Cluster {
    let mut cluster = Cluster::default();
    kind.import_value(object, &mut cluster).unwrap();
    cluster
}

fn find(cluster: &Cluster, text: &str) -> Symbol {
    cluster.symbols.find(text).unwrap_or_else(|| panic!("{text:?} was not interned"))
}

#[test]
fn nodes() {
    let cluster = cluster_with(
        Kind::Node,
        json!({
            "metadata": {
                "name": "n1", "uid": "u", "creationTimestamp": "1970-01-01T00:00:02Z", "labels": {"pool": "a"},
                "annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
                    "delay-deletion.cluster-autoscaler.kubernetes.io/volumes": ""},
            },
            "spec": {"providerID": "cloud://1", "unschedulable": true,
                "taints": [{"key": "k", "effect": "NoExecute"}, {"key": "l", "value": "v", "effect": "PreferNoSchedule"}]},
            "status": {
                "capacity": {"cpu": "2", "memory": "4Gi", "pods": "110", "nvidia.com/gpu": "0"},
                "allocatable": {"cpu": "1930m", "memory": "3Gi", "ephemeral-storage": "10Gi", "pods": 29, "foo": "1"},
                "addresses": [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.1"},
                    {"type": "InternalIP", "address": "fd00::1"}],
                "conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "lastTransitionTime": "1970-01-01T00:00:05Z"},
                    {"type": "MemoryPressure", "status": "Unknown"}],
                "declaredFeatures": ["b", "a"],
            },
        }),
    );
    let node = &cluster.nodes[0];
    assert_eq!((cluster.text(node.name), &*node.uid, &*node.provider_id), ("n1", "u", "cloud://1"));
    assert_eq!(node.created_at, Some(Time::from_millis(2000)));
    assert_eq!(node.internal_ip.as_deref(), Some("10.0.0.1"));
    assert!(node.unschedulable && node.scale_down_disabled && node.deletion_delayed);
    let taints: Vec<_> = node.taints.iter().map(|t| (cluster.text(t.key), cluster.text(t.value), t.effect)).collect();
    assert_eq!(taints, [("k", "", TaintEffect::NoExecute), ("l", "v", TaintEffect::PreferNoSchedule)]);
    assert_eq!((node.capacity.cpu_milli, node.capacity.memory_bytes, node.capacity.pods), (2000, 4 << 30, 110));
    assert_eq!(node.capacity.scalars[..], [(find(&cluster, "nvidia.com/gpu"), 0)], "named, though none is there");
    assert_eq!(
        (node.allocatable.cpu_milli, node.allocatable.ephemeral_storage_bytes, node.allocatable.pods),
        (1930, 10 << 30, 29)
    );
    assert!(node.allocatable.scalars.is_empty());
    let ready = node.condition(find(&cluster, "Ready")).unwrap();
    assert_eq!(
        (ready.status, cluster.text(ready.reason), ready.since),
        (ConditionStatus::False, "KubeletNotReady", Some(Time::from_millis(5000)))
    );
    assert_eq!(node.condition(find(&cluster, "MemoryPressure")).unwrap().status, ConditionStatus::Unknown);
    assert!(node.features.is_sorted() && node.features.len() == 2);
}

#[test]
fn capacity_and_allocatable_stand_for_each_other() {
    for (status, capacity, allocatable) in [
        (json!({"capacity": {"cpu": "2"}}), 2000, 2000),
        (json!({"allocatable": {"cpu": "1"}}), 1000, 1000),
        (json!({"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}}), 2000, 1000),
        (json!({}), 0, 0),
    ] {
        let cluster = cluster_with(Kind::Node, json!({"metadata": {"name": "n"}, "status": status}));
        let node = &cluster.nodes[0];
        assert_eq!((node.capacity.cpu_milli, node.allocatable.cpu_milli), (capacity, allocatable), "{status}");
    }
}

#[test]
fn daemon_sets() {
    let cluster = cluster_with(
        Kind::DaemonSet,
        json!({
            "metadata": {"name": "agent", "namespace": "kube-system", "uid": "u"},
            "spec": {"selector": {}, "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "nodeName": "n1", "hostNetwork": true, "priority": 7, "priorityClassName": "system-node-critical",
                    "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}, {"key": "x", "operator": "Exists"}],
                    "containers": [{"name": "c", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}, "requests": {"memory": "5"}}}],
                    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "host", "labelSelector": {}, "matchLabelKeys": ["app"], "mismatchLabelKeys": ["app"]}]}},
                },
            }},
        }),
    );
    let set = &cluster.daemon_sets[0];
    let spec = &cluster.specs[set.spec];
    assert_eq!((cluster.text(set.name), cluster.text(set.uid), set.node_critical), ("agent", "u", true));
    assert_eq!(spec.namespace, known::KUBE_SYSTEM);
    assert_eq!(spec.labels.get(find(&cluster, "app")), Some(find(&cluster, "agent")));
    assert_eq!(spec.node_name.map(|node| cluster.text(node)), Some("n1"));
    assert_eq!((spec.requests.cpu_milli, spec.requests.memory_bytes), (0, 5), "limits of a template are no requests");
    assert!(spec.host_ports.is_empty(), "container ports of a template are no host ports");
    assert_eq!(spec.priority, Some(7));
    let tolerated: Vec<_> = spec.tolerations.iter().map(|t| (cluster.text(t.key), t.operator, t.effect)).collect();
    let exists = TolerationOperator::Exists;
    assert_eq!(
        tolerated,
        [
            ("node.kubernetes.io/not-ready", exists, Some(TaintEffect::NoExecute)),
            ("x", exists, None),
            ("node.kubernetes.io/unreachable", exists, Some(TaintEffect::NoExecute)),
            ("node.kubernetes.io/disk-pressure", exists, Some(TaintEffect::NoSchedule)),
            ("node.kubernetes.io/memory-pressure", exists, Some(TaintEffect::NoSchedule)),
            ("node.kubernetes.io/pid-pressure", exists, Some(TaintEffect::NoSchedule)),
            ("node.kubernetes.io/unschedulable", exists, Some(TaintEffect::NoSchedule)),
            ("node.kubernetes.io/network-unavailable", exists, Some(TaintEffect::NoSchedule)),
        ]
    );
    let Some(LabelSelector::All(all)) = &spec.anti_affinity[0].selector else { panic!("a valid selector") };
    assert_eq!(all.len(), 2, "nobody else merges label keys into a template");

    let bare = cluster_with(Kind::DaemonSet, json!({"metadata": {"name": "bare"}}));
    assert_eq!(bare.specs[bare.daemon_sets[0].spec].tolerations.len(), 6, "the network is only for pods of the host's");
}

#[test]
fn controllers() {
    for (kind, object, owner, replicas) in [
        (Kind::ReplicaSet, json!({"spec": {"replicas": 3}}), OwnerKind::ReplicaSet, Some(3)),
        (Kind::ReplicaSet, json!({}), OwnerKind::ReplicaSet, None),
        (Kind::StatefulSet, json!({"spec": {"replicas": 0}}), OwnerKind::StatefulSet, Some(0)),
        (Kind::Job, json!({"spec": {"parallelism": 4}}), OwnerKind::Job, Some(4)),
        (Kind::ReplicationController, json!({"spec": {"replicas": 2}}), OwnerKind::ReplicationController, Some(2)),
    ] {
        let mut object = object;
        object["metadata"] = json!({"name": "x", "namespace": "shop"});
        let cluster = cluster_with(kind, object);
        let found = &cluster.controllers[0];
        assert_eq!((found.kind, found.replicas, cluster.text(found.namespace)), (owner, replicas, "shop"), "{kind:?}");
    }
}

#[test]
fn disruption_budgets() {
    for (spec, everything, nothing) in [
        (json!({"selector": {}}), true, false),
        (json!({}), false, true),
        (json!({"selector": {"matchLabels": {"a": "b"}}}), false, false),
    ] {
        let object = json!({"metadata": {"name": "x"}, "spec": spec, "status": {"disruptionsAllowed": 2}});
        let cluster = cluster_with(Kind::PodDisruptionBudget, object);
        let budget = &cluster.disruption_budgets[0];
        assert_eq!(budget.selector.as_ref().is_some_and(LabelSelector::is_everything), everything, "{spec}");
        assert_eq!(budget.selector.is_none(), nothing, "{spec}");
        assert_eq!(budget.disruptions_allowed, 2);
    }
}

#[test]
fn claims() {
    let cluster = cluster_with(
        Kind::PersistentVolumeClaim,
        json!({
            "metadata": {"name": "data", "namespace": "shop", "uid": "u", "deletionTimestamp": "1970-01-01T00:00:00Z",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/selected-node": "n1",
                    "volume.beta.kubernetes.io/storage-class": "old"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pu", "controller": true}]},
            "spec": {"volumeName": "pv", "storageClassName": "new", "accessModes": ["ReadWriteOnce"], "volumeMode": "Block",
                "selector": {}, "volumeAttributesClassName": "fast", "resources": {"requests": {"storage": "1Ki"}}},
            "status": {"phase": "Lost"},
        }),
    );
    let claim = &cluster.storage.claims[&(find(&cluster, "shop"), find(&cluster, "data"))];
    let text = |symbol: Option<Symbol>| symbol.map(|symbol| cluster.text(symbol));
    assert_eq!(
        (text(claim.volume), text(claim.class), text(claim.attributes_class)),
        (Some("pv"), Some("old"), Some("fast"))
    );
    assert_eq!(text(claim.selected_node), Some("n1"));
    assert_eq!(claim.owner_pod.map(|(name, uid)| (cluster.text(name), cluster.text(uid))), Some(("p", "pu")));
    assert!(claim.bind_completed && claim.deleting);
    assert_eq!((claim.request_bytes, claim.mode, claim.phase), (Some(1024), VolumeMode::Block, VolumePhase::Lost));
    assert!(claim.selector.as_ref().is_some_and(LabelSelector::is_everything));

    for (spec, class) in
        [(json!({}), None), (json!({"storageClassName": ""}), Some("")), (json!({"storageClassName": "c"}), Some("c"))]
    {
        let cluster = cluster_with(Kind::PersistentVolumeClaim, json!({"metadata": {"name": "x"}, "spec": spec}));
        let claim = &cluster.storage.claims[&(known::DEFAULT, find(&cluster, "x"))];
        assert_eq!(claim.class.map(|class| cluster.text(class)), class);
        assert_eq!((claim.volume, claim.request_bytes, claim.phase), (None, None, VolumePhase::Unset));
    }
}

#[test]
fn persistent_volumes() {
    let cluster = cluster_with(
        Kind::PersistentVolume,
        json!({
            "metadata": {"name": "pv", "labels": {"topology.kubernetes.io/zone": "a__b"}},
            "spec": {"capacity": {"storage": "2Gi"}, "storageClassName": "c", "accessModes": ["ReadOnlyMany", "ReadWriteOnce"],
                "csi": {"driver": "d", "volumeHandle": "h"},
                "claimRef": {"namespace": "shop", "name": "data"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}}},
            "status": {"phase": "Available"},
        }),
    );
    let volume = &cluster.storage.volumes[&find(&cluster, "pv")];
    assert_eq!((volume.capacity_bytes, volume.phase), (2 << 30, VolumePhase::Available));
    assert_eq!(volume.csi.map(|(driver, handle)| (cluster.text(driver), cluster.text(handle))), Some(("d", "h")));
    let claim = volume.claim.map(|(namespace, name, uid)| [namespace, name, uid].map(|symbol| cluster.text(symbol)));
    assert_eq!(claim, Some(["shop", "data", ""]));
    assert_eq!(volume.node_affinity.as_ref().unwrap().terms.len(), 1);
    assert_eq!((volume.access_modes.len(), volume.in_tree), (2, None));

    let cluster = cluster_with(
        Kind::PersistentVolume,
        json!({"metadata": {"name": "pv"}, "spec": {"awsElasticBlockStore": {"volumeID": "aws://a/vol-1"}}, "status": {"phase": "Released"}}),
    );
    let volume = &cluster.storage.volumes[&find(&cluster, "pv")];
    let in_tree = volume.in_tree.map(|(plugin, handle)| (cluster.text(plugin), cluster.text(handle)));
    assert_eq!(in_tree, Some(("kubernetes.io/aws-ebs", "vol-1")));
    assert_eq!((volume.class, volume.phase), (known::EMPTY, VolumePhase::Gone));
}

#[test]
fn classes_and_drivers() {
    let mut cluster = cluster_with(
        Kind::StorageClass,
        json!({"metadata": {"name": "c"}, "provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}, {}]}),
    );
    let class = &cluster.storage.classes[&find(&cluster, "c")];
    assert_eq!((cluster.text(class.provisioner), class.binding_mode), ("p", Some(BindingMode::WaitForFirstConsumer)));
    let zones: Box<[Symbol]> = [find(&cluster, "a"), find(&cluster, "b")].into();
    assert_eq!(class.allowed_topologies, [vec![(find(&cluster, "zone"), zones)], vec![]]);

    Kind::CSINode
        .import_value(
            json!({"metadata": {"name": "n", "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"}},
                "spec": {"drivers": [{"name": "d", "nodeID": "x", "allocatable": {"count": 4}}, {"name": "e", "nodeID": "x"}]}}),
            &mut cluster,
        )
        .unwrap();
    let node = &cluster.storage.csi_nodes[&find(&cluster, "n")];
    assert_eq!(node.drivers, [(find(&cluster, "d"), Some(4)), (find(&cluster, "e"), None)]);
    assert_eq!(
        node.migrated_plugins[..],
        ["kubernetes.io/gce-pd", "kubernetes.io/aws-ebs"].map(|name| find(&cluster, name))
    );

    let driver =
        json!({"metadata": {"name": "d"}, "spec": {"storageCapacity": true, "preventPodSchedulingIfMissing": true}});
    Kind::CSIDriver.import_value(driver, &mut cluster).unwrap();
    let driver = cluster.storage.csi_drivers[&find(&cluster, "d")];
    assert!(driver.storage_capacity && driver.prevent_scheduling_if_missing);

    let capacity = json!({"metadata": {"name": "x"}, "storageClassName": "c", "capacity": "1Gi", "nodeTopology": {}});
    Kind::CSIStorageCapacity.import_value(capacity, &mut cluster).unwrap();
    let capacity = &cluster.storage.capacities[0];
    assert_eq!((capacity.capacity_bytes, capacity.maximum_volume_bytes), (Some(1 << 30), None));
    assert!(capacity.topology.as_ref().is_some_and(LabelSelector::is_everything));

    let attachment = json!({"metadata": {"name": "x"}, "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}});
    Kind::VolumeAttachment.import_value(attachment, &mut cluster).unwrap();
    let attachment = &cluster.storage.attachments[0];
    assert_eq!((cluster.text(attachment.attacher), cluster.text(attachment.node)), ("d", "n"));
    assert_eq!(attachment.volume, cluster.symbols.find("pv"));
}

#[test]
fn namespaces_and_config_maps() {
    let mut cluster = cluster_with(Kind::Namespace, json!({"metadata": {"name": "shop", "labels": {"team": "a"}}}));
    assert_eq!(cluster.namespaces[&find(&cluster, "shop")].get(find(&cluster, "team")), cluster.symbols.find("a"));
    let map = json!({"metadata": {"name": "m", "namespace": "kube-system"}, "data": {"priorities": "10: [x]"}});
    Kind::ConfigMap.import_value(map, &mut cluster).unwrap();
    let map = &cluster.config_maps[0];
    assert_eq!((map.namespace, cluster.text(map.name)), (known::KUBE_SYSTEM, "m"));
    assert_eq!(map.data, [("priorities".to_owned(), "10: [x]".to_owned())]);
}

#[test]
fn kinds() {
    for (api_version, kind, expected) in [
        ("v1", "Pod", Some(Kind::Pod)),
        ("apps/v1", "DaemonSet", Some(Kind::DaemonSet)),
        ("policy/v1", "PodDisruptionBudget", Some(Kind::PodDisruptionBudget)),
        ("apps/v1", "Deployment", Some(Kind::Unneeded)),
        ("scheduling.k8s.io/v1", "PriorityClass", Some(Kind::Unneeded)),
        ("v1", "Secret", Some(Kind::Unneeded)),
        ("apps/v1", "Pod", None),
        ("policy/v1beta1", "PodDisruptionBudget", None),
        ("resource.k8s.io/v1", "ResourceClaim", Some(Kind::ResourceClaim)),
        ("resource.k8s.io/v1beta1", "ResourceSlice", Some(Kind::ResourceSlice)),
        ("resource.k8s.io/v1alpha3", "DeviceTaintRule", None),
        ("example.com/v1", "Node", None),
    ] {
        assert_eq!(Kind::find(api_version, kind), expected, "{api_version} {kind}");
    }
    assert!(Kind::Pod.is_namespaced() && !Kind::Node.is_namespaced());
}

#[test]
fn templates_from_nodes() {
    let mut cluster = Cluster::default();
    let node = json!({"status": {"allocatable": {"cpu": "4", "pods": "10"}}});
    let pods = vec![
        json!({"metadata": {"name": "agent", "namespace": "kube-system", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": true}]},
            "spec": {"containers": [], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}}}}}),
        json!({"metadata": {"name": "proxy", "annotations": {"kubernetes.io/config.mirror": "x"}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]}}),
    ];
    let template =
        cluster.template_from_values("workers", TemplateObjects { node, pods, ..TemplateObjects::default() }).unwrap();
    assert_eq!(cluster.text(template.node.name), "workers");
    assert_eq!(template.node.capacity.cpu_milli, 4000);
    let [agent, proxy] = &template.pods[..] else { panic!("two pods") };
    assert_eq!((&*agent.name, agent.daemon_set), ("kube-system/agent", true));
    assert_eq!(cluster.specs[agent.spec].node_affinity, None, "it is for every node, not for that one");
    assert_eq!(
        (&*proxy.name, proxy.daemon_set, cluster.specs[proxy.spec].requests.cpu_milli),
        ("default/proxy", false, 100)
    );
    assert!(cluster.pods.is_empty());

    let objects =
        TemplateObjects { node: json!({"status": {"capacity": {"cpu": "4 cores"}}}), ..TemplateObjects::default() };
    let bad = cluster.template_from_values("x", objects).unwrap_err();
    assert_eq!(bad.path().to_string(), "template.status.capacity.cpu");
    let pods = vec![json!({"metadata": {"name": "p"}, "spec": 1})];
    let objects = TemplateObjects { node: json!({}), pods, ..TemplateObjects::default() };
    let bad = cluster.template_from_values("x", objects).unwrap_err();
    assert_eq!(bad.path().to_string(), "templatePods[0].spec");
}

#[test]
fn templates_from_a_providers_words() {
    let mut cluster = Cluster::default();
    let text = |pairs: &[(&str, &str)]| pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect::<Vec<_>>();
    let (labels, capacity) =
        (text(&[("pool", "a")]), text(&[("cpu", "2"), ("memory", "1Gi"), ("nvidia.com/gpu", "1")]));
    let allocatable = text(&[("cpu", "1500m")]);
    let taints = [TaintParts { key: "gpu", value: "yes", effect: "NoSchedule" }];
    let parts =
        TemplateParts { name: "a", labels: &labels, taints: &taints, capacity: &capacity, allocatable: &allocatable };

    let node = cluster.converter().template_node(&parts).unwrap();
    assert_eq!((node.capacity.cpu_milli, node.allocatable.cpu_milli, node.allocatable.memory_bytes), (2000, 1500, 0));
    assert_eq!(node.labels.get(find(&cluster, "pool")), cluster.symbols.find("a"));
    assert_eq!(node.taints[0].effect, TaintEffect::NoSchedule);
    let all = cluster.converter().template_node(&TemplateParts { allocatable: &[], ..parts }).unwrap();
    assert_eq!(all.allocatable, all.capacity);

    let taints = [TaintParts { key: "gpu", value: "", effect: "noschedule" }];
    for (parts, expected) in [
        (
            TemplateParts { taints: &taints, ..parts },
            "taints[0].effect: \"noschedule\" is not a taint effect; expected NoSchedule, PreferNoSchedule or NoExecute",
        ),
        (
            TemplateParts { capacity: &text(&[("cpu", "two")]), ..parts },
            "capacity.cpu: \"two\" is not a quantity; expected a number such as 250m, 1.5 or 4Gi",
        ),
        (
            TemplateParts { allocatable: &text(&[("memory", "1GiB")]), ..parts },
            "allocatable.memory: \"1GiB\" is not a quantity: \"GiB\" is not one of n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent such as e3",
        ),
    ] {
        assert_eq!(cluster.converter().template_node(&parts).unwrap_err().to_string(), expected);
    }
}
