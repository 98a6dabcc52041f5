//! What `/metrics` tells, compared with what the Go autoscaler was seen to tell.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_signals::metrics::families::ALL;
use plimsoll_signals::metrics::family::{Peer, When};

use crate::stage::Stage;

/// Labels that the text format itself adds.
const OF_THE_FORMAT: [&str; 2] = ["le", "quantile"];

#[derive(Debug, Default)]
struct Exposed {
    kind: String,
    labels: BTreeSet<String>,
    /// Values of series by what stands between the braces.
    series: BTreeMap<String, f64>,
}

/// Families of a text by name.
fn parse(text: &str) -> BTreeMap<String, Exposed> {
    let mut families: BTreeMap<String, Exposed> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            let known = families.insert(name.to_owned(), Exposed { kind: kind.to_owned(), ..Exposed::default() });
            assert!(known.is_none(), "{name} is there twice");
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) =
                series.split_once('{').map_or((series, ""), |(name, rest)| (name, rest.trim_end_matches('}')));
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| {
                let base = name.strip_suffix(suffix)?;
                let found = families.get(base)?;
                ["histogram", "summary"].contains(&found.kind.as_str()).then_some(base)
            });
            let family = families.get_mut(base.unwrap_or(name)).unwrap_or_else(|| panic!("{name} has no type"));
            let names = labels.split("\",").filter_map(|pair| pair.split_once('=')).map(|(label, _)| label.to_owned());
            family.labels.extend(names.filter(|label| !OF_THE_FORMAT.contains(&label.as_str())));
            family
                .series
                .insert(format!("{}{labels}", &name[base.map_or(name.len(), str::len)..]), value.parse().unwrap());
        }
    }
    families
}

/// What the Go autoscaler was seen to expose: name, type, labels.
fn peer() -> BTreeMap<&'static str, (&'static str, BTreeSet<String>)> {
    let lines = include_str!("../peer-families.txt").lines().filter(|line| !line.starts_with('#'));
    let facts = lines.map(|line| {
        let mut words = line.split(' ');
        let (name, kind) = (words.next().unwrap(), words.next().unwrap());
        let labels = words.next().into_iter().flat_map(|labels| labels.split(',')).map(str::to_owned);
        (name, (kind, labels.collect()))
    });
    facts.collect()
}

#[test]
fn the_table_has_what_the_peer_has() {
    let known: BTreeMap<&str, _> = ALL.iter().map(|family| (family.name, family)).collect();
    assert_eq!(known.len(), ALL.len(), "names are unique");
    for (name, (kind, labels)) in peer() {
        let family = known.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(matches!(family.peer, Peer::Same(_)), "{name}");
        assert_eq!(family.when, When::Always, "{name}");
        assert_eq!(family.kind.name(), kind, "type of {name}");
        assert_eq!(
            family.labels.iter().map(|label| (*label).to_owned()).collect::<BTreeSet<_>>(),
            labels,
            "labels of {name}"
        );
    }
    for family in ALL {
        let theirs = family.name.starts_with("cluster_autoscaler_");
        assert_eq!(theirs, family.peer != Peer::New, "{}", family.name);
    }
}

#[test]
fn the_table_in_the_docs_is_true() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    assert_eq!(std::fs::read_to_string(path).unwrap(), plimsoll_signals::metrics::markdown(), "run `make docs`");
}

#[tokio::test]
async fn a_day_of_the_shop_in_figures() {
    let mut stage = Stage::set_up().await;
    stage.signals.monitor();
    let loops = stage.play(Duration::from_secs(17 * 60)).await;
    let text = stage.signals.metrics_text();
    let families = parse(&text);
    for (name, (kind, labels)) in peer() {
        let exposed = families.get(name).unwrap_or_else(|| panic!("{name} is not exposed"));
        assert_eq!(exposed.kind, kind, "type of {name}");
        if !exposed.series.is_empty() {
            assert_eq!(exposed.labels, labels, "labels of {name}");
        }
    }
    let value = |name: &str, labels: &str| {
        let family = families.get(name).unwrap_or_else(|| panic!("{name} is not exposed"));
        *family.series.get(labels).unwrap_or_else(|| panic!("{name} has no {labels:?}: {:?}", family.series))
    };
    let sum = |name: &str| families[name].series.values().sum::<f64>();
    let ca = |name: &str| format!("cluster_autoscaler_{name}");
    // What the demo tells: three groups grow, gpu-t4 for the training job; nodes go empty and drained; pods move.
    assert_eq!(value(&ca("function_duration_seconds"), r#"_countfunction="main""#), loops as f64);
    assert_eq!(
        value(&ca("function_duration_quantile_seconds"), r#"_countfunction="cloudProviderRefresh""#),
        loops as f64
    );
    assert!(sum(&ca("scaled_up_nodes_total")) >= 10.0);
    assert!(sum(&ca("scaled_up_gpu_nodes_total")) >= 2.0);
    assert!(sum(&ca("failed_scale_ups_total")) >= 1.0, "workers-a runs out of machines");
    assert!(
        value(&ca("scaled_down_nodes_total"), r#"reason="empty",gpu_resource_name="",gpu_name="",dra_drivers="""#)
            >= 1.0
    );
    assert!(
        value(
            &ca("scaled_down_nodes_total"),
            r#"reason="underutilized",gpu_resource_name="",gpu_name="",dra_drivers="""#
        ) >= 1.0
    );
    assert!(value(&ca("evicted_pods_total"), r#"eviction_result="succeeded""#) >= 1.0);
    assert_eq!(value(&ca("cluster_safe_to_autoscale"), ""), 1.0);
    assert_eq!(value(&ca("node_groups_count"), r#"node_group_type="autoscaled""#), 4.0);
    assert!(value(&ca("nodes_count"), r#"state="ready""#) >= 1.0);
    assert!(value(&ca("node_group_max_count"), r#"node_group="workers-a""#) >= 6.0);
    assert!(value(&ca("cluster_cpu_current_cores"), "") >= 1.0);
    assert_eq!(value(&ca("errors_total"), r#"type="internalError""#), 0.0);
    let refreshes = value("plimsoll_plugin_calls_total", r#"plugin="simulated",call="refresh",outcome="ok""#);
    assert_eq!(refreshes, loops as f64);
    assert!(sum("plimsoll_plugin_requests_total") >= loops as f64);
    assert!(value("plimsoll_plugin_memory_bytes", r#"plugin="simulated""#) > 0.0);
    assert!(value("plimsoll_plugin_calls_total", r#"plugin="least-waste",call="rank",outcome="ok""#) >= 1.0);
    assert!(value("plimsoll_writes_total", r#"write="increase-size",result="ok""#) >= 3.0);
    for line in text.lines().filter(|line| line.starts_with("# HELP")) {
        assert!(line.split(' ').count() > 4, "{line}");
    }
}
