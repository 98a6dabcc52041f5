//! `similar`: whether two groups are grown together.

use anyhow::Context;
use plimsoll_core::similar::Likeness;
use plimsoll_model::Cluster;
use plimsoll_model::convert::TemplateObjects;

use crate::Outcome;
use crate::case::{Case, TemplateValues};

pub(crate) fn run(case: &Case) -> anyhow::Result<Outcome> {
    let mut cluster = Cluster::default();
    let [one, other] = case.pair.as_slice() else { anyhow::bail!("pair holds {} templates", case.pair.len()) };
    let one = cluster.template_from_values("one", objects(one))?;
    let other = cluster.template_from_values("other", objects(other))?;
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

fn objects(values: &TemplateValues) -> TemplateObjects {
    TemplateObjects { node: values.node.clone(), pods: values.pods.clone(), ..TemplateObjects::default() }
}
