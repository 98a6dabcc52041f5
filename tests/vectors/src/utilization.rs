//! `utilization`: how much of a node is asked for.

use anyhow::Context;
use plimsoll_core::Settings;
use plimsoll_core::drain::DrainRules;
use plimsoll_core::utilization::{Accelerators, GPU_RESOURCES, Ignore, Measured, of_node};
use serde::Deserialize;
use serde_json::Value;

use crate::Outcome;
use crate::case::Case;
use crate::scene::ACCELERATOR_LABEL;

#[derive(Debug, Deserialize)]
struct Expect {
    #[serde(default)]
    utilization: Value,
    #[serde(default)]
    resource: String,
    #[serde(default)]
    error: String,
}

pub(crate) fn run(case: &Case) -> anyhow::Result<Outcome> {
    let mut cluster = case.cluster()?;
    cluster.symbols.intern(ACCELERATOR_LABEL);
    let expect: Expect = serde_json::from_value(case.expect.clone()).context("expect")?;
    let settings = Settings::default();
    let rules = DrainRules { settings: &settings, cluster: &cluster, controllers: None, at: case.at()? };
    let ignore = Ignore {
        daemon_sets: case.flag("ignore-daemonsets-utilization", false),
        mirror_pods: case.flag("ignore-mirror-pods-utilization", false),
    };
    let accelerators = Accelerators::new(&cluster, Some(ACCELERATOR_LABEL));
    let node = case.node(&cluster)?;
    let on_node = cluster.pods.iter().filter(|pod| pod.counts_on() == Some(node.name));
    let ours = of_node(node, on_node, &rules, &accelerators, ignore);
    let differs = match (&ours, expect.error.is_empty()) {
        (Err(_), fails) => fails,
        (Ok(_), false) => true,
        (Ok(ours), true) => {
            let resource = match ours.resource {
                Measured::Cpu => "cpu",
                Measured::Memory => "memory",
                // A node that should have some but has none is told by the first vendor's name.
                Measured::Gpu(name) => match name {
                    Some(name) => cluster.text(name),
                    None => GPU_RESOURCES.first().copied().unwrap_or_default(),
                },
            };
            !same(number(&expect.utilization)?, ours.share) || resource != expect.resource
        }
    };
    let differences = differs.then(|| format!("peer {expect:?}, we {ours:?}"));
    Ok(Outcome::of(differences.as_slice()))
}

fn number(value: &Value) -> anyhow::Result<f64> {
    match value {
        Value::Number(number) => number.as_f64().context("a number out of range"),
        // Figures that JSON has no numbers for.
        Value::String(text) => text.parse().with_context(|| format!("{text:?} is no number")),
        other => anyhow::bail!("utilization: {other}"),
    }
}

/// Equal up to the last bits, which depend on the order of additions.
fn same(one: f64, other: f64) -> bool {
    one == other || (one.is_nan() && other.is_nan()) || ((one - other) / one).abs() < 1e-12
}
