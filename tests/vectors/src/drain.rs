//! `drain`: what becomes of the pods of a node that is to go, and what holds it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use plimsoll_core::Settings;
use plimsoll_core::drain::{Budgets, Controllers, DrainRules, Fate};
use plimsoll_model::time::go_duration_nanos;
use serde::Deserialize;
use serde_json::Value;

use crate::Outcome;
use crate::case::Case;

#[derive(Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Answer {
    blocked: bool,
    reason: String,
    blocking_pod: String,
    evict: BTreeSet<String>,
    daemon_set_pods: BTreeSet<String>,
    on_completion_pods: BTreeSet<String>,
}

pub(crate) fn run(case: &Case) -> anyhow::Result<Outcome> {
    let cluster = case.cluster()?;
    let expect: Answer = serde_json::from_value(case.expect.clone()).context("expect")?;
    let settings = settings(case)?;
    let controllers = Controllers::new(&cluster);
    let budgets = Budgets::new(&cluster);
    let rules = DrainRules { settings: &settings, cluster: &cluster, controllers: Some(&controllers), at: case.at()? };
    let node = case.node(&cluster)?.name;
    let mut ours = Answer::default();
    for pod in cluster.pods.iter().filter(|pod| pod.counts_on() == Some(node)) {
        let name = format!("{}/{}", cluster.text(cluster.specs[pod.spec].namespace), pod.name);
        match rules.fate(pod, Some(&budgets)) {
            Fate::Ignored => {}
            Fate::DaemonSet => drop(ours.daemon_set_pods.insert(name)),
            Fate::Moves => drop(ours.evict.insert(name)),
            Fate::Completes => drop(ours.on_completion_pods.insert(name)),
            // The peer stops at the first; we go on, so that all are known.
            Fate::Blocks(blocker) if !ours.blocked => {
                (ours.blocked, ours.reason, ours.blocking_pod) = (true, blocker.code().to_owned(), name);
            }
            Fate::Blocks(_) => {}
        }
    }
    if ours.blocked {
        ours = Answer { blocked: true, reason: ours.reason, blocking_pod: ours.blocking_pod, ..Answer::default() };
    }
    let differences = (ours != expect).then(|| format!("peer {expect:?}, we {ours:?}"));
    Ok(Outcome::of(differences.as_slice()))
}

fn settings(case: &Case) -> anyhow::Result<Settings> {
    let default = Settings::default();
    // The peer's spelling.
    let timeout = match case.options.get("blocking-system-pod-distruption-timeout") {
        None => default.blocking_system_pod_disruption_timeout,
        Some(given) => duration(given)?,
    };
    Ok(Settings {
        skip_nodes_with_system_pods: case.flag("skip-nodes-with-system-pods", true),
        skip_nodes_with_local_storage: case.flag("skip-nodes-with-local-storage", true),
        skip_nodes_with_custom_controller_pods: case.flag("skip-nodes-with-custom-controller-pods", true),
        min_replica_count: case.number("min-replica-count").map_or(default.min_replica_count, i64::from),
        blocking_system_pod_disruption_timeout: timeout,
        ..default
    })
}

fn duration(value: &Value) -> anyhow::Result<Duration> {
    let text = value.as_str().with_context(|| format!("{value} is no duration"))?;
    let nanos = go_duration_nanos(text).with_context(|| format!("{text:?} is no duration"))?;
    Ok(Duration::from_nanos(u64::try_from(nanos)?))
}
