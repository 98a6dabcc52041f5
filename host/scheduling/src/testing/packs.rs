//! Packings with known results, and random ones held to the oracle.

use plimsoll_model::symbol::known;
use plimsoll_model::template::TemplatePod;
use plimsoll_model::{Cluster, Labels, Node, PodSpec, Resources, SpecId, Template};
use proptest::prelude::*;

use super::mirror::Mirror;
use super::random::{Dice, Sample, Themes, sample};
use super::{Scene, config};
use crate::oracle::Resident;
use crate::packing::{Bin, Effort, Limits, Packed, Target, estimate};
use crate::{Count, Gates, NodeId};

/// Adds a template of a node that the scene has last, taking the node away.
fn template(scene: &mut Scene, object: &str, pods: &[&str]) -> Template {
    scene.node("template", object);
    let node = scene.cluster.nodes.pop().unwrap();
    let pods = pods.iter().map(|pod| TemplatePod {
        name: "agent".into(),
        spec: scene.pod(pod),
        daemon_set: true,
        owner: None,
    });
    Template { pods: pods.collect(), ..Template::of(node) }
}

fn allocatable(amounts: &str) -> String {
    format!("{{status: {{allocatable: {{{amounts}}}}}}}")
}

fn asks(requests: &str) -> String {
    format!(
        "{{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{{name: c, resources: {{requests: {{{requests}}}}}}}]}}}}"
    )
}

fn asks_and(requests: &str, spec: &str) -> String {
    asks(requests).replace("spec: {", &format!("spec: {{{spec}, "))
}

fn spread(key: &str, max_skew: u32, min_domains: u32) -> String {
    let selector = "labelSelector: {matchLabels: {app: web}}";
    format!(
        "topologySpreadConstraints: [{{topologyKey: {key}, maxSkew: {max_skew}, minDomains: {min_domains}, \
         whenUnsatisfiable: DoNotSchedule, {selector}}}]"
    )
}

/// Packs pods (object and count) onto copies of templates of groups that have no nodes yet.
fn pack(scene: &mut Scene, templates: &[Template], pods: &[(String, u32)], most: u32) -> Packed {
    let specs: Vec<(SpecId, u32)> = pods.iter().map(|(pod, count)| (scene.pod(pod), *count)).collect();
    let mut snapshot = scene.snapshot();
    let bins: Vec<Bin> =
        templates.iter().map(|template| Bin { shape: snapshot.shape(template), most, size: 0 }).collect();
    let pods: Vec<Count> = specs.iter().map(|&(spec, count)| (snapshot.class(spec), count)).collect();
    estimate(&mut snapshot, &bins, &pods, Limits { nodes: Some(most), effort: Effort::Thorough, ..Limits::default() })
}

/// The peer's own cases: one empty old node in another zone, nodes that take ten pods.
#[test]
fn known_numbers_of_nodes() {
    let port = "hostNetwork: false, containers: [{name: c, ports: [{hostPort: 5555, containerPort: 5555}], resources: {requests: {cpu: 200m, memory: 1k}}}]";
    let port = format!("{{spec: {{{port}}}}}");
    for (name, pods, node, most, nodes, placed) in [
        ("cpu bound", vec![(asks("cpu: 350m, memory: 1k"), 10)], "cpu: 1000m", 1000, 5, vec![10]),
        ("bound by the number of pods", vec![(asks("cpu: 10m, memory: 100"), 20)], "cpu: 10000m", 1000, 2, vec![20]),
        ("one host port a node", vec![(port, 8)], "cpu: 1000m", 1000, 8, vec![8]),
        ("limited", vec![(asks("cpu: 500m, memory: 1k"), 20)], "cpu: 1000m", 5, 5, vec![10]),
        (
            "limited, most pods first",
            vec![(asks("cpu: 50m, memory: 1k"), 10), (asks("cpu: 500m, memory: 1k"), 10)],
            "cpu: 1000m",
            5,
            5,
            vec![10, 8],
        ),
        (
            "two on each host, the empty old node holds the minimum",
            vec![(asks_and("cpu: 200m, memory: 200", &spread("kubernetes.io/hostname", 2, 1)), 8)],
            "cpu: 1000m",
            1000,
            4,
            vec![8],
        ),
        (
            "the old zone stays empty",
            vec![(asks_and("cpu: 200m, memory: 100", &spread("zone", 2, 1)), 8)],
            "cpu: 1000m",
            1000,
            1,
            vec![2],
        ),
        (
            "at least three hosts, one of them the old one",
            vec![(asks_and("cpu: 20m, memory: 100", &spread("kubernetes.io/hostname", 1, 3)), 12)],
            "cpu: 1000m",
            1000,
            2,
            vec![12],
        ),
    ] {
        let mut scene = Scene::new();
        let old = "{metadata: {labels: {zone: old}}, status: {allocatable: {cpu: 100m, memory: 100Mi, pods: \"10\"}}}";
        scene.node("old", old);
        let node = format!(
            "{{metadata: {{labels: {{zone: new}}}}, status: {{allocatable: {{{node}, memory: 2000Mi, pods: \"10\"}}}}}}"
        );
        let template = template(&mut scene, &node, &[]);
        let packed = pack(&mut scene, &[template], &pods, most);
        assert_eq!((packed.node_count(), &packed.placed), (nodes, &placed), "{name}");
    }
}

#[test]
fn the_benchmark_of_the_peer_in_closed_form() {
    let mut scene = Scene::new();
    let template = template(&mut scene, &allocatable("cpu: 1000m, memory: 5000Mi, pods: \"100\""), &[]);
    let pods = [(asks("cpu: 50m, memory: 100"), 50_000), (asks("cpu: 95m, memory: 190"), 1_000)];
    let packed = pack(&mut scene, &[template], &pods, 3000);
    assert_eq!(packed.pod_count(), 51_000);
    // 100 nodes with ten large pods and one small, 2,495 with twenty small ones.
    assert_eq!(packed.node_count(), 2595);
}

#[test]
fn a_template_without_room_is_not_used() {
    for (name, node, pod) in [
        ("too small", "{}", asks("cpu: 200")),
        (
            "cordoned, even if the pod tolerates it",
            "{spec: {unschedulable: true}}",
            asks_and("cpu: 1m", "tolerations: [{operator: Exists}]"),
        ),
        ("tainted", "{spec: {taints: [{key: a, effect: NoSchedule}]}}", asks("cpu: 1m")),
    ] {
        let mut scene = Scene::new();
        let template = template(&mut scene, node, &[]);
        let packed = pack(&mut scene, &[template], &[(pod, 3)], 10);
        assert_eq!((packed.node_count(), packed.pod_count()), (0, 0), "{name}");
    }
}

#[test]
fn a_host_port_that_an_agent_holds_is_taken_on_every_new_node() {
    let mut scene = Scene::new();
    let agent = "{spec: {containers: [{name: c, ports: [{hostPort: 8080, containerPort: 8080}]}]}}";
    let template = template(&mut scene, "{}", &[agent]);
    let packed = pack(&mut scene, &[template], &[(agent.to_owned(), 1)], 40);
    assert_eq!(packed.node_count(), 0);
}

#[test]
fn groups_in_several_zones_grow_together() {
    let mut scene = Scene::new();
    let zones = ["a", "b", "c"].map(|zone| {
        let node = format!("{{metadata: {{labels: {{zone: {zone}}}}}, status: {{allocatable: {{cpu: \"10\"}}}}}}");
        template(&mut scene, &node, &[])
    });
    let pods = [(asks_and("cpu: \"1\"", &spread("zone", 1, 1)), 50)];
    let packed = pack(&mut scene, &zones, &pods, 100);
    assert_eq!(packed.placed, [50]);
    assert_eq!([0, 1, 2].map(|bin| packed.nodes_of(bin)), [2, 2, 2]);
}

#[test]
fn without_constraints_groups_grow_evenly() {
    for (name, sizes, expected) in [
        ("from nothing", [0, 0, 0], [4, 3, 3]),
        ("the smallest catches up first", [5, 0, 5], [7, 7, 6]),
        ("the largest stays", [9, 1, 3], [9, 7, 7]),
    ] {
        let mut scene = Scene::new();
        let template = template(&mut scene, &allocatable("cpu: \"10\""), &[]);
        let apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: none, labelSelector: {}}]}}";
        for spec in [scene.pod(&asks("cpu: \"5\"")), scene.pod(&asks_and("cpu: \"5\"", apart))] {
            let mut snapshot = scene.snapshot();
            let shape = snapshot.shape(&template);
            let bins = sizes.map(|size| Bin { shape, most: 1000, size });
            let class = snapshot.class(spec);
            let packed = estimate(&mut snapshot, &bins, &[(class, 20)], Limits::default());
            let mut grown: Vec<u32> = (0..3).map(|bin| sizes[bin] + packed.nodes_of(bin)).collect();
            grown.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
            assert_eq!(grown, expected, "{name}");
        }
    }
}

#[test]
fn a_volume_in_one_zone_does_not_distort_spreading() {
    let mut scene = Scene::new();
    for (zone, count) in [("a", 1), ("b", 2), ("c", 1)] {
        let node = format!("{{metadata: {{labels: {{zone: {zone}}}}}, status: {{allocatable: {{cpu: 10m}}}}}}");
        scene.node(&format!("full-{zone}"), &node);
        (0..count).for_each(|_| scene.resident(&format!("full-{zone}"), "{metadata: {labels: {app: web}}}"));
    }
    let zones = ["a", "b", "c"].map(|zone| {
        let node = format!("{{metadata: {{labels: {{zone: {zone}}}}}}}");
        template(&mut scene, &node, &[])
    });
    use plimsoll_model::convert::Kind;
    let bound = "annotations: {pv.kubernetes.io/bind-completed: \"yes\"}";
    scene.add(
        Kind::PersistentVolumeClaim,
        &format!("{{metadata: {{name: data, namespace: default, {bound}}}, spec: {{volumeName: pv}}}}"),
    );
    let term = "{matchExpressions: [{key: zone, operator: In, values: [a]}]}";
    scene.add(
        Kind::PersistentVolume,
        &format!("{{metadata: {{name: pv}}, spec: {{nodeAffinity: {{required: {{nodeSelectorTerms: [{term}]}}}}}}}}"),
    );
    let volume = "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]";
    let pod = asks_and("cpu: \"1\"", &format!("{volume}, {}", spread("zone", 1, 3)));
    let packed = pack(&mut scene, &zones, &[(pod, 1)], 10);
    assert_eq!([0, 1, 2].map(|bin| packed.nodes_of(bin)), [1, 0, 0]);
}

#[test]
fn limits_on_volumes_of_a_template_count_if_it_has_them() {
    use plimsoll_model::convert::Kind;
    for (name, aware, nodes) in [("no drivers on the template", false, 1), ("drivers as on the node", true, 3)] {
        let mut scene = Scene::new();
        scene.node("full", "{}");
        scene.add(
            Kind::CSINode,
            "{metadata: {name: full}, spec: {drivers: [{name: csi, nodeID: x, allocatable: {count: 25}}]}}",
        );
        scene.add(
            Kind::StorageClass,
            "{metadata: {name: wait}, provisioner: csi, volumeBindingMode: WaitForFirstConsumer}",
        );
        let template = template(&mut scene, "{}", &[]);
        let specs: Vec<SpecId> = (0..60)
            .map(|index| {
                scene.add(
                    Kind::PersistentVolumeClaim,
                    &format!("{{metadata: {{name: c{index}, namespace: default}}, spec: {{storageClassName: wait}}}}"),
                );
                let volume = format!("volumes: [{{name: v, persistentVolumeClaim: {{claimName: c{index}}}}}]");
                scene.pod(&asks_and("cpu: 100m", &volume))
            })
            .collect();
        let drivers = scene.cluster.storage.csi_nodes.values().next().cloned();
        let mut snapshot = scene.snapshot();
        let shape = snapshot.shape_with_drivers(&template, drivers.as_ref().filter(|_| aware));
        let pods: Vec<Count> = specs.iter().map(|&spec| (snapshot.class(spec), 1)).collect();
        let packed = estimate(&mut snapshot, &[Bin { shape, most: 40, size: 0 }], &pods, Limits::default());
        assert_eq!((packed.node_count(), packed.pod_count()), (nodes, 60), "{name}");
    }
}

#[test]
fn every_order_of_the_pods_needs_as_many_nodes() {
    let sizes = [12, 6, 12, 6];
    for order in 0..24 {
        let mut left = sizes.to_vec();
        let mut code = order;
        let pods: Vec<(String, u32)> = (1..=4)
            .rev()
            .map(|choices| {
                let cpu = left.remove(code % choices);
                code /= choices;
                (asks(&format!("cpu: \"{cpu}\"")), 1)
            })
            .collect();
        let mut scene = Scene::new();
        let template = template(&mut scene, &allocatable("cpu: \"16\""), &[]);
        let packed = pack(&mut scene, &[template], &pods, 10);
        assert_eq!((packed.node_count(), packed.pod_count()), (3, 4), "order {order}");
    }
}

#[test]
fn limits_hold() {
    let mut scene = Scene::new();
    let template = template(&mut scene, &allocatable("cpu: \"1\""), &[]);
    let specs = [asks("cpu: \"1\""), asks_and("cpu: \"1\"", &spread("kubernetes.io/hostname", 5, 1))];
    let specs = specs.map(|pod| scene.pod(&pod));
    let mut snapshot = scene.snapshot();
    let shape = snapshot.shape(&template);
    for spec in specs {
        let pods = [(snapshot.class(spec), 50)];
        let bin = |most| Bin { shape, most, size: 0 };
        let mut nodes = |bins: &[Bin], limits| estimate(&mut snapshot, bins, &pods, limits).node_count();
        assert_eq!(nodes(&[bin(7)], Limits::default()), 7, "of one group");
        assert_eq!(nodes(&[bin(7), bin(4)], Limits::default()), 11, "of two groups");
        assert_eq!(nodes(&[bin(7), bin(40)], Limits { nodes: Some(9), ..Limits::default() }), 9, "of all together");
        assert_eq!(nodes(&[bin(0)], Limits::default()), 0, "none at all");
        assert_eq!(nodes(&[], Limits::default()), 0, "no group");
        let stop = || false;
        assert_eq!(nodes(&[bin(7)], Limits { proceed: Some(&stop), ..Limits::default() }), 0, "no time left");
    }
}

#[test]
fn pods_find_places_on_existing_nodes_that_new_ones_open() {
    let mut scene = Scene::new();
    for (zone, cpu) in [("a", 1), ("b", 9)] {
        let node = format!("{{metadata: {{labels: {{zone: {zone}}}}}, status: {{allocatable: {{cpu: \"{cpu}\"}}}}}}");
        scene.node(zone, &node);
        scene.resident(zone, &asks("cpu: \"1\""));
    }
    let zone_a = template(&mut scene, "{metadata: {labels: {zone: a}}, status: {allocatable: {cpu: \"2\"}}}", &[]);
    let packed = pack(&mut scene, &[zone_a], &[(asks_and("cpu: \"1\"", &spread("zone", 1, 1)), 6)], 10);
    // One to zone b at once; then zone a must grow for each further pair.
    assert_eq!(packed.placed, [6]);
    assert_eq!(packed.node_count(), 2);
    assert_eq!(packed.existing.iter().map(|step| step.count).sum::<u32>(), 3);
}

#[test]
fn what_was_found_can_be_done() {
    let mut scene = Scene::new();
    let template = template(&mut scene, &allocatable("cpu: \"4\""), &[&asks("cpu: 500m")]);
    let specs = [scene.pod(&asks("cpu: \"1\"")), scene.pod(&asks("cpu: 200m"))];
    let mut snapshot = scene.snapshot();
    let bins = [Bin { shape: snapshot.shape(&template), most: 10, size: 0 }];
    let pods: Vec<Count> = specs.iter().map(|&spec| (snapshot.class(spec), 7)).collect();
    let packed = estimate(&mut snapshot, &bins, &pods, Limits::default());
    let nodes = packed.apply(&mut snapshot, &bins, &pods);
    assert_eq!(u32::try_from(nodes.len()).unwrap(), packed.node_count());
    let on_nodes: u64 = nodes.iter().flat_map(|&node| snapshot.pods_on(node)).map(|run| u64::from(run.1)).sum();
    assert_eq!(on_nodes, packed.pod_count() + u64::from(packed.node_count()), "an agent on each, and all pods");
    assert!(nodes.iter().all(|&node| snapshot.free(node).cpu_milli >= 0));
}

/// A node with so many thousandths of a core and bytes, room for 100 pods.
fn sized(cluster: &mut Cluster, cpu_milli: i64, memory_bytes: i64) -> Node {
    let name = cluster.symbols.intern("sized");
    let allocatable = Resources { cpu_milli, memory_bytes, pods: 100, ..Resources::default() };
    Node { labels: Labels::new([(known::HOSTNAME, name)]), allocatable, ..Node::bare(name) }
}

#[test]
fn two_thousand_shapes_need_no_more_nodes_than_the_peer_takes() {
    let mut cluster = Cluster::default();
    let node = sized(&mut cluster, 10_000, 10_000_000);
    let specs: Vec<SpecId> = (0..2000)
        .map(|shape| {
            let requests = Resources {
                cpu_milli: 100 + shape % 400,
                memory_bytes: 50_000 + 37 * shape,
                pods: 1,
                ..Resources::default()
            };
            cluster.specs.intern(PodSpec { requests, ..PodSpec::bare(known::DEFAULT) })
        })
        .collect();
    let mut snapshot = crate::Snapshot::new(&cluster);
    let bins = [Bin { shape: snapshot.shape(&Template::of(node)), most: 5000, size: 0 }];
    let pods: Vec<Count> = specs.iter().map(|&spec| (snapshot.class(spec), 25)).collect();
    let packed = estimate(&mut snapshot, &bins, &pods, Limits::default());
    assert_eq!(packed.pod_count(), 50_000);
    // 1,498 is the least that the resources allow, 1,501 what the peer takes.
    assert!((1498..=1501).contains(&packed.node_count()), "{}", packed.node_count());
}

/// Packs random pods onto random templates, and takes every step in the oracle's world.
fn replay(seed: u64, themes: Themes) {
    let dice = &mut Dice::new(seed);
    let Sample { cluster, specs, templates } = sample(dice, themes);
    let mut mirror = Mirror::new(&cluster, Gates::default());
    let shapes: Vec<_> = templates.iter().map(|template| mirror.snapshot.shape(template)).collect();
    let nodes: Vec<NodeId> = mirror.nodes().collect();
    for _ in 0..dice.below(8) {
        let pod = Resident { spec: dice.pick(&specs), terminating: dice.one_in(6) };
        mirror.place(pod, dice.pick(&nodes), 1);
    }
    let bins: Vec<Bin> = shapes
        .iter()
        .map(|&shape| {
            let [most, size] = [6, 3].map(|bound| u32::try_from(dice.below(bound)).unwrap());
            Bin { shape, most, size }
        })
        .collect();
    let pods: Vec<(SpecId, u32)> = specs.iter().map(|&spec| (spec, u32::try_from(dice.below(7)).unwrap())).collect();
    let counts: Vec<Count> = pods.iter().map(|&(spec, count)| (mirror.snapshot.class(spec), count)).collect();
    let limit = if dice.one_in(3) { Some(u32::try_from(dice.below(5)).unwrap()) } else { None };
    let limits = Limits { nodes: limit, effort: Effort::Thorough, ..Limits::default() };
    let quick = estimate(&mut mirror.snapshot, &bins, &counts, Limits { effort: Effort::Quick, ..limits });
    let digest = mirror.snapshot.digest();
    let packed = estimate(&mut mirror.snapshot, &bins, &counts, limits);
    assert_eq!(mirror.snapshot.digest(), digest, "packing leaves no trace");
    assert!(
        (packed.pod_count(), std::cmp::Reverse(packed.node_count()))
            >= (quick.pod_count(), std::cmp::Reverse(quick.node_count())),
        "more effort is never worse"
    );
    for packed in [quick, packed] {
        mirror.fork();
        let first = mirror.nodes().count();
        let of_node: Vec<usize> = packed.bins().collect();
        let mut placed = vec![0; pods.len()];
        for step in packed.steps() {
            let node = match step.target {
                Target::Existing(node) => node,
                Target::New(index) => {
                    let index = usize::try_from(index).unwrap();
                    if first + index == mirror.nodes().count() {
                        mirror.add_copy(shapes[of_node[index]], &templates[of_node[index]]);
                    }
                    NodeId::new(first + index)
                }
            };
            for _ in 0..step.count {
                let (spec, _) = pods[step.entry];
                assert_eq!(mirror.oracle(spec, node), None, "{step:?}");
                mirror.place(Resident { spec, terminating: false }, node, 1);
            }
            placed[step.entry] += step.count;
        }
        assert_eq!(placed, packed.placed);
        assert_eq!(mirror.nodes().count() - first, of_node.len(), "every new node has a pod");
        assert!(pods.iter().zip(&placed).all(|((_, count), placed)| placed <= count));
        assert!(limit.is_none_or(|limit| packed.node_count() <= limit));
        assert!(bins.iter().enumerate().all(|(index, bin)| packed.nodes_of(index) <= bin.most));
        mirror.revert(false);
    }
    // Doing it at once comes to the same as step by step.
    mirror.snapshot.fork();
    let before = mirror.snapshot.len();
    let new = mirror.snapshot.nodes().count();
    let packed = estimate(&mut mirror.snapshot, &bins, &counts, limits);
    let nodes = packed.apply(&mut mirror.snapshot, &bins, &counts);
    assert_eq!(mirror.snapshot.len(), before + nodes.len());
    assert_eq!(mirror.snapshot.nodes().count(), new + nodes.len());
    mirror.snapshot.revert();
    assert_eq!(mirror.snapshot.digest(), digest);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn packings_are_valid_for_plain_pods(seed: u64) {
        replay(seed, Themes { statics: true, resources: true, ..Themes::NONE });
    }

    #[test]
    fn packings_are_valid_with_ports_and_affinity(seed: u64) {
        replay(seed, Themes { resources: true, ports: true, affinity: true, ..Themes::NONE });
    }

    #[test]
    fn packings_are_valid_with_spreading(seed: u64) {
        replay(seed, Themes { resources: true, spread: true, statics: true, ..Themes::NONE });
    }

    #[test]
    fn packings_are_valid_with_everything(seed: u64) {
        replay(seed, Themes::ALL);
    }
}
