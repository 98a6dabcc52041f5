//! How long the engine takes, on the inputs that the Go Cluster Autoscaler was measured with. Each result is checked.
//!
//! `cargo bench -p plimsoll-scheduling [-- WORD]`: only benchmarks whose name contains the word. Times are of one call,
//! the snapshot being there already unless the name says otherwise.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark may stop when its input is wrong"
)]
#![allow(missing_docs, reason = "a program, not a library")]

use std::io::Write;
use std::time::{Duration, Instant};

use plimsoll_model::convert::{Kind, TemplateObjects};
use plimsoll_model::pod::{NodeInclusion, PodAffinityTerm, SpreadConstraint};
use plimsoll_model::selector::{LabelSelector, Operator, Requirement};
use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Labels, Node, PodSpec, Resources, SpecId, Symbol, Template};
use plimsoll_scheduling::packing::{Bin, Effort, Limits, Packer, estimate};
use plimsoll_scheduling::{Candidates, Count, NodeId, Snapshot};

/// A measured thing: name, what came out, times.
struct Line {
    name: String,
    result: String,
    times: Vec<Duration>,
}

struct Bench {
    only: Option<String>,
    lines: Vec<Line>,
}

impl Bench {
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    /// Runs for about a second, at least five times. `run` gives what came out, the same each time.
    fn measure(&mut self, name: &str, mut run: impl FnMut() -> String) {
        let mut times = Vec::new();
        let begin = Instant::now();
        let mut result = String::new();
        while times.len() < 5 || (begin.elapsed() < Duration::from_secs(1) && times.len() < 1000) {
            let start = Instant::now();
            let found = run();
            times.push(start.elapsed());
            assert!(result.is_empty() || result == found, "{name} gives another result each time");
            result = found;
        }
        times.sort_unstable();
        self.lines.push(Line { name: name.to_owned(), result, times });
    }
}

fn main() {
    let only = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let mut bench = Bench { only, lines: Vec::new() };
    equal_pods(&mut bench);
    shapes(&mut bench);
    groups(&mut bench);
    topology(&mut bench);
    scale_down(&mut bench);
    steady(&mut bench);
    devices(&mut bench);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:<52} {:>10} {:>10} {:>10}  result", "", "median", "min", "max").unwrap();
    for Line { name, result, times } in &bench.lines {
        let show = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1000.0);
        let [median, min, max] = [times[times.len() / 2], times[0], times[times.len() - 1]].map(show);
        writeln!(out, "{name:<52} {median:>10} {min:>10} {max:>10}  {result}").unwrap();
    }
}

fn node(cluster: &mut Cluster, name: &str, cpu_milli: i64, memory_bytes: i64, labels: &[(Symbol, &str)]) -> Node {
    let name = cluster.symbols.intern(name);
    let labels: Vec<(Symbol, Symbol)> =
        labels.iter().map(|&(key, value)| (key, cluster.symbols.intern(value))).collect();
    let allocatable = Resources { cpu_milli, memory_bytes, pods: 100, ..Resources::default() };
    let labels = Labels::new(labels.into_iter().chain([(known::HOSTNAME, name)]));
    Node { labels, capacity: allocatable.clone(), allocatable, ..Node::bare(name) }
}

fn asks(cpu_milli: i64, memory_bytes: i64) -> PodSpec {
    let requests = Resources { cpu_milli, memory_bytes, pods: 1, ..Resources::default() };
    PodSpec { requests, ..PodSpec::bare(known::DEFAULT) }
}

fn template(cluster: &mut Cluster, cpu_milli: i64, memory_bytes: i64) -> Template {
    Template::of(node(cluster, "template", cpu_milli, memory_bytes, &[]))
}

/// 1,000 nodes from nothing, 50 equal pods on each.
fn equal_pods(bench: &mut Bench) {
    for times in [1, 2, 4] {
        let name = format!("{},000 nodes x 50 equal pods", times);
        if !bench.wants(&name) {
            continue;
        }
        let mut cluster = Cluster::default();
        let template = template(&mut cluster, 10_000, 10_000_000);
        let spec = cluster.specs.intern(asks(200, 200_000));
        let mut snapshot = Snapshot::new(&cluster);
        let bins = [Bin { shape: snapshot.shape(&template), most: 10_000, size: 0 }];
        let pods = [(snapshot.class(spec), 50_000 * times)];
        bench.measure(&name, || {
            let packed = estimate(&mut snapshot, &bins, &pods, Limits::default());
            assert_eq!((packed.node_count(), packed.pod_count()), (1000 * times, u64::from(50_000 * times)));
            format!("{} nodes", packed.node_count())
        });
    }
}

/// 50,000 pods of 2,000 shapes, one group.
fn shapes(bench: &mut Bench) {
    for (effort, times) in [(Effort::Quick, 1), (Effort::Thorough, 1), (Effort::Thorough, 2), (Effort::Thorough, 4)] {
        let name = format!("{},000 pods of 2,000 shapes, {effort:?}", 50 * times);
        if !bench.wants(&name) {
            continue;
        }
        let mut cluster = Cluster::default();
        let template = template(&mut cluster, 10_000, 10_000_000);
        let specs: Vec<SpecId> =
            (0..2000).map(|s| cluster.specs.intern(asks(100 + s % 400, 50_000 + 37 * s))).collect();
        let mut snapshot = Snapshot::new(&cluster);
        let bins = [Bin { shape: snapshot.shape(&template), most: 10_000, size: 0 }];
        let pods: Vec<Count> = specs.iter().map(|&spec| (snapshot.class(spec), 25 * times)).collect();
        bench.measure(&name, || {
            let packed = estimate(&mut snapshot, &bins, &pods, Limits { effort, ..Limits::default() });
            assert_eq!(packed.pod_count(), u64::from(50_000 * times));
            assert!(packed.node_count() <= 1501 * times);
            format!("{} nodes", packed.node_count())
        });
    }
}

/// 300 groups, 20,000 pods of 200 shapes: an estimate for each group.
fn groups(bench: &mut Bench) {
    for (effort, times) in [(Effort::Quick, 1), (Effort::Quick, 2), (Effort::Thorough, 1)] {
        let name = format!("{} groups x 20,000 pods of 200 shapes, {effort:?}", 300 * times);
        if !bench.wants(&name) {
            continue;
        }
        let mut cluster = Cluster::default();
        let templates: Vec<Template> = (0..300 * times)
            .map(|g| template(&mut cluster, 4000 + 1000 * (g % 29), 8_000_000 + 1_000_000 * (g % 53)))
            .collect();
        let specs: Vec<SpecId> =
            (0..200).map(|s| cluster.specs.intern(asks(100 + 10 * s, 100_000 + 10_000 * s))).collect();
        let mut snapshot = Snapshot::new(&cluster);
        let bins: Vec<Bin> =
            templates.iter().map(|template| Bin { shape: snapshot.shape(template), most: 1000, size: 0 }).collect();
        let pods: Vec<Count> = specs.iter().map(|&spec| (snapshot.class(spec), 100)).collect();
        bench.measure(&name, || {
            let limits = Limits { nodes: Some(1000), effort, ..Limits::default() };
            let placed = bins.iter().map(|bin| estimate(&mut snapshot, &[*bin], &pods, limits).pod_count());
            format!("{} pods placed", placed.sum::<u64>())
        });
    }
}

fn selects(app: Symbol, value: Symbol) -> Option<LabelSelector> {
    Some(LabelSelector::All([Requirement { key: app, operator: Operator::In([value].into()) }].into()))
}

/// 999 existing nodes in three zones with ten pods each, and 5,000 pending pods of one class.
fn topology(bench: &mut Bench) {
    for (what, times) in ["apart by host", "spread over zones", "near the old by zone", "spread over hosts"]
        .into_iter()
        .flat_map(|what| [1, 2, 4].map(|times| (what, times)))
    {
        let name = format!("{} nodes, {} pods {what}", 999 * times, 5000 * times);
        if !bench.wants(&name) {
            continue;
        }
        let mut cluster = Cluster::default();
        let zones = ["a", "b", "c"];
        for index in 0..999 * times {
            let zone = zones[index % 3];
            let node = node(&mut cluster, &format!("n{index}"), 10_000, 10_000_000, &[(known::ZONE, zone)]);
            cluster.nodes.push(node);
        }
        let templates: Vec<Template> = zones
            .iter()
            .map(|zone| {
                let node = node(&mut cluster, "template", 10_000, 10_000_000, &[(known::ZONE, zone)]);
                Template::of(node)
            })
            .collect();
        let [app, old, new] = ["app", "old", "new"].map(|text| cluster.symbols.intern(text));
        let resident = cluster.specs.intern(PodSpec { labels: Labels::new([(app, old)]), ..asks(990, 100) });
        let term = |value, topology_key| PodAffinityTerm {
            selector: selects(app, value),
            namespaces: [known::DEFAULT].into(),
            namespace_selector: None,
            topology_key,
        };
        let spread = |topology_key| SpreadConstraint {
            max_skew: 1,
            topology_key,
            selector: selects(app, new),
            min_domains: 1,
            node_affinity_policy: NodeInclusion::Honor,
            node_taints_policy: NodeInclusion::Ignore,
        };
        let mut pending = PodSpec { labels: Labels::new([(app, new)]), ..asks(500, 1000) };
        let (nodes, per_zone) = match what {
            "apart by host" => {
                pending.anti_affinity = [term(new, known::HOSTNAME)].into();
                (5000 * times, None)
            }
            "spread over zones" => {
                pending.spread = [spread(known::ZONE)].into();
                (if times == 1 { 252 } else { 250 * times + 2 }, Some(84))
            }
            "spread over hosts" => {
                pending.spread = [spread(known::HOSTNAME)].into();
                (5000 * times, None)
            }
            _ => {
                pending.affinity = [term(old, known::ZONE)].into();
                (250 * times, None)
            }
        };
        let pending = cluster.specs.intern(pending);
        let mut snapshot = Snapshot::new(&cluster);
        let old = snapshot.class(resident);
        (0..999 * times).for_each(|index| snapshot.place(old, NodeId::new(index), 10));
        let bins: Vec<Bin> =
            templates.iter().map(|template| Bin { shape: snapshot.shape(template), most: 30_000, size: 333 }).collect();
        let count = u32::try_from(5000 * times).unwrap();
        let pods = [(snapshot.class(pending), count)];
        bench.measure(&name, || {
            let limits = Limits { effort: Effort::Thorough, ..Limits::default() };
            let packed = Packer::default().estimate(&mut snapshot, &bins, &pods, limits);
            assert_eq!(packed.placed, [count]);
            let found = packed.node_count();
            assert!(usize::try_from(found).unwrap() <= nodes, "{found} nodes, at most {nodes}");
            if let (Some(per_zone), 1) = (per_zone, times) {
                assert!((0..3).all(|bin| packed.nodes_of(bin) == per_zone));
            }
            format!("{found} nodes")
        });
    }
}

/// 2,000 nodes with 40 equal pods each: which can be emptied one after another, their pods going elsewhere?
fn scale_down(bench: &mut Bench) {
    for times in [1, 2, 4] {
        let name = format!("{},000 nodes x 40 pods, drain what can be", 2 * times);
        if !bench.wants(&name) {
            continue;
        }
        let mut cluster = Cluster::default();
        for index in 0..2000 * times {
            let node = node(&mut cluster, &format!("n{index}"), 10_000, 10_000, &[]);
            cluster.nodes.push(node);
        }
        let spec = cluster.specs.intern(asks(100, 100));
        let mut snapshot = Snapshot::new(&cluster);
        let class = snapshot.class(spec);
        (0..2000 * times).for_each(|index| snapshot.place(class, NodeId::new(index), 40));
        bench.measure(&name, || {
            snapshot.fork();
            let removed = drain_all(&mut snapshot);
            snapshot.revert();
            assert_eq!(removed, 1200 * times);
            format!("{removed} removable")
        });
    }
}

fn drain_all(snapshot: &mut Snapshot<'_>) -> usize {
    let nodes: Vec<NodeId> = snapshot.nodes().collect();
    nodes.into_iter().rev().filter(|&node| drain(snapshot, node)).count()
}

/// Moves a node's pods elsewhere; leaves everything as it was if that does not work.
fn drain(snapshot: &mut Snapshot<'_>, node: NodeId) -> bool {
    snapshot.fork();
    snapshot.close(node);
    let pods: Vec<Count> = snapshot.pods_on(node).to_vec();
    for (class, count) in pods {
        snapshot.unplace(class, node, count);
        let placed: u32 = snapshot.pack(class, count, Candidates::All).iter().map(|run| run.count).sum();
        if placed < count {
            snapshot.revert();
            return false;
        }
    }
    snapshot.commit();
    true
}

/// A full cluster in which nothing can be done: building the snapshot, and finding that nothing can be drained.
fn steady(bench: &mut Bench) {
    for (nodes, on_each) in [(3000, 30), (15_000, 100)] {
        let names = [
            format!("{nodes} nodes x {on_each} pods: build the snapshot"),
            format!("{nodes} nodes x {on_each} pods: no node can go"),
        ];
        if !names.iter().any(|name| bench.wants(name)) {
            continue;
        }
        let mut cluster = Cluster::default();
        for index in 0..nodes {
            let zone = ["a", "b", "c"][index % 3];
            let node = node(&mut cluster, &format!("n{index}"), 10_000, 10_000_000, &[(known::ZONE, zone)]);
            cluster.nodes.push(node);
        }
        let cpu = i64::try_from(10_000 / on_each).unwrap();
        let classes = 5000;
        let specs: Vec<SpecId> =
            (0..classes).map(|shape| cluster.specs.intern(asks(cpu - 10 + shape % 10, 1000 + shape))).collect();
        // Thirty kinds of pods on a node, several of each where there are more pods.
        let pods: Vec<(SpecId, NodeId)> = (0..nodes * on_each)
            .map(|pod| {
                let (node, kind) = (pod / on_each, pod % on_each % 30);
                (specs[(node * 31 + kind * 7) % specs.len()], NodeId::new(node))
            })
            .collect();
        let build = || {
            let mut snapshot = Snapshot::new(&cluster);
            for &(spec, node) in &pods {
                let class = snapshot.class(spec);
                snapshot.place(class, node, 1);
            }
            snapshot
        };
        if bench.wants(&names[0]) {
            bench.measure(&names[0], || format!("{} nodes", build().len()));
        }
        if bench.wants(&names[1]) {
            let mut snapshot = build();
            bench.measure(&names[1], || {
                let nodes: Vec<NodeId> = snapshot.nodes().collect();
                let removed = nodes.into_iter().filter(|&node| drain(&mut snapshot, node)).count();
                format!("{removed} removable")
            });
        }
    }
}

/// Pods with a claim each, on nodes with eight devices.
fn devices(bench: &mut Bench) {
    let names = ["500 nodes x 8 pods with a device each", "800 nodes x 4 pods with a device each: all drained"];
    if !names.iter().any(|name| bench.wants(name)) {
        return;
    }
    let mut cluster = Cluster::default();
    let add = |cluster: &mut Cluster, kind: Kind, object| kind.import_value(object, cluster).unwrap();
    let selector = serde_json::json!({"cel": {"expression": "device.driver == \"gpu.example.com\""}});
    let class = serde_json::json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}});
    add(&mut cluster, Kind::DeviceClass, class);
    let slice = |node: &str| {
        let devices: Vec<_> = (0..8)
            .map(|index| serde_json::json!({"name": format!("d{index}"), "attributes": {"uuid": {"string": format!("{node}-{index}")}}}))
            .collect();
        let pool = serde_json::json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        serde_json::json!({"metadata": {"name": node}, "spec": {
            "driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}})
    };
    let requests = serde_json::json!([{"name": "r", "exactly": {"deviceClassName": "gpu"}}]);
    for index in 0..800 {
        let name = format!("n{index}");
        let listed = node(&mut cluster, &name, 10_000, 10_000_000, &[]);
        cluster.nodes.push(listed);
        add(&mut cluster, Kind::ResourceSlice, slice(&name));
        for pod in 0..4 {
            let (pod, claim) = (format!("p{index}-{pod}"), format!("c{index}-{pod}"));
            let owner =
                serde_json::json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": pod, "controller": true});
            let device = format!("d{}", pod.bytes().last().unwrap() - b'0');
            let result =
                serde_json::json!({"request": "r", "driver": "gpu.example.com", "pool": name, "device": device});
            add(
                &mut cluster,
                Kind::ResourceClaim,
                serde_json::json!({
                "metadata": {"name": claim, "namespace": "default", "ownerReferences": [owner]},
                "spec": {"devices": {"requests": requests}},
                "status": {"allocation": {"devices": {"results": [result]}}}}),
            );
            add(
                &mut cluster,
                Kind::Pod,
                serde_json::json!({
                "metadata": {"name": pod, "namespace": "default", "uid": pod},
                "spec": {"nodeName": name, "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}],
                    "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]},
                "status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": claim}]}}),
            );
        }
    }
    let objects = TemplateObjects {
        node: serde_json::json!({"metadata": {"name": "t"}, "status": {"allocatable": {"cpu": "10", "pods": "100"}}}),
        resource_slices: vec![slice("t")],
        ..TemplateObjects::default()
    };
    let template = cluster.template_from_values("t", objects).unwrap();
    let mut snapshot = Snapshot::new(&cluster);
    for (index, pod) in cluster.pods.iter().enumerate() {
        let class = snapshot.class(pod.held);
        snapshot.place(class, NodeId::new(index / 4), 1);
    }
    let wanted = snapshot.class(cluster.pods[0].spec);
    if bench.wants(names[0]) {
        let bins = [Bin { shape: snapshot.shape(&template), most: 1000, size: 0 }];
        bench.measure(names[0], || {
            let packed = estimate(&mut snapshot, &bins, &[(wanted, 4000)], Limits::default());
            format!("{} pods on {} nodes", packed.pod_count(), packed.node_count())
        });
    }
    if bench.wants(names[1]) {
        bench.measure(names[1], || {
            snapshot.fork();
            let mut drained = 0;
            for index in (0..800).rev() {
                let node = NodeId::new(index);
                snapshot.fork();
                snapshot.close(node);
                let pods = snapshot.pods_on(node).to_vec();
                pods.iter().for_each(|&(class, count)| snapshot.unplace(class, node, count));
                let count: u32 = pods.iter().map(|(_, count)| count).sum();
                let placed: u32 = snapshot.pack(wanted, count, Candidates::All).iter().map(|run| run.count).sum();
                match placed == count {
                    true => snapshot.commit(),
                    false => snapshot.revert(),
                }
                drained += usize::from(placed == count);
            }
            snapshot.revert();
            format!("{drained} nodes drained")
        });
    }
}
