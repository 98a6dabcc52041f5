//! `similar`: whether two groups are grown together.

use anyhow::Context;
use plimsoll_core::similar::Likeness;
use plimsoll_model::Cluster;

use crate::Outcome;
use crate::case::Case;

pub(crate) fn run(case: &Case) -> anyhow::Result<Outcome> {
    let mut cluster = Cluster::default();
    let [one, other] = case.pair.as_slice() else { anyhow::bail!("pair holds {} templates", case.pair.len()) };
    let one = cluster.template_from_values("one", one.node.clone(), one.pods.clone())?;
    let other = cluster.template_from_values("other", other.node.clone(), other.pods.clone())?;
    let default = Likeness::default();
    let likeness = Likeness {
        memory_difference_ratio: case.ratio("memory-difference-ratio", default.memory_difference_ratio),
        max_allocatable_difference_ratio: case
            .ratio("max-allocatable-difference-ratio", default.max_allocatable_difference_ratio),
        max_free_difference_ratio: case.ratio("max-free-difference-ratio", default.max_free_difference_ratio),
        ignored_labels: case.texts("balancing-ignore-label"),
        only_labels: case.texts("balancing-label"),
    };
    let expected = case.expect.get("similar").and_then(serde_json::Value::as_bool).context("expect.similar")?;
    let ours = likeness.holds(&one, &other, &cluster);
    let there_and_back = likeness.holds(&other, &one, &cluster);
    let mut differences = Vec::new();
    if ours != expected {
        differences.push(format!("peer {expected}, we {ours}"));
    }
    if ours != there_and_back {
        differences.push(format!("the other way round we say {there_and_back}"));
    }
    Ok(Outcome::of(&differences))
}
