//! `drain`: what becomes of the pods of a node that is to go, and what holds it.

use std::collections::BTreeSet;

use anyhow::Context;
use plimsoll_core::drain::{Budgets, Controllers, DrainRules, Fate};
use serde::Deserialize;

use crate::Outcome;
use crate::case::Case;
use crate::options;

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
    let settings = options::settings(&case.options)?;
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
