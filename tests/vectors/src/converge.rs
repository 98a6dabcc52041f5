//! `converge`: the peer runs its loop until nothing changes; we decide everything in one.
//!
//! The answer must help at least as many pods with no more nodes than the peer's worst run.

use anyhow::Context;
use plimsoll_core::plan::PodOutcome;
use serde::Deserialize;

use crate::case::Case;
use crate::scene::Scene;
use crate::{Difference, Outcome, audit};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Expect {
    helped: usize,
    nodes_max: u32,
    nodes_min: u32,
    #[serde(default)]
    nodes_after_trim: Option<u32>,
}

pub(crate) fn run(case: &Case) -> anyhow::Result<Outcome> {
    let expect: Expect = serde_json::from_value(case.expect.clone()).context("expect")?;
    let mut scene = Scene::new(case)?;
    let turn = scene.turn(case.at()?);
    let mut differences = Vec::new();
    if let Err(error) = audit::growth(&scene, &turn) {
        differences.push(Difference::new("a placement is invalid", format!("{error:#}")));
    }
    let helps = |outcome: &PodOutcome| {
        matches!(outcome, PodOutcome::FitsExisting(_) | PodOutcome::FitsUpcoming(_) | PodOutcome::ScaleUp(_))
    };
    let pending = |pod: usize| scene.cluster.pods.get(pod).is_some_and(|pod| pod.counts_on().is_none());
    let helped = turn.plan.pods.iter().filter(|(pod, outcome)| pending(*pod) && helps(outcome)).count();
    let nodes: u32 = turn.increases.values().sum();
    if helped < expect.helped {
        let reasons: Vec<String> = turn
            .plan
            .not_helped
            .iter()
            .map(|class| {
                let pod = class.pods.first().and_then(|&pod| scene.entries.get(pod)).map_or("", String::as_str);
                let words: Vec<String> = class.reasons.iter().map(|(group, why)| format!("{group} {why}")).collect();
                format!("{} of {pod}: {}", class.pods.len(), words.join(", "))
            })
            .collect();
        let text = format!(
            "peer {} on {} to {} nodes, we {helped} on {nodes} {:?}; {reasons:?}",
            expect.helped, expect.nodes_min, expect.nodes_max, turn.increases
        );
        differences.push(Difference::new("fewer pods are helped", text));
    } else if nodes > expect.nodes_max && helped == expect.helped {
        let text = format!(
            "peer {} to {} for {} pods, we {nodes} {:?}",
            expect.nodes_min, expect.nodes_max, expect.helped, turn.increases
        );
        differences.push(Difference::new("more nodes are asked for", text));
    }
    let nodes = expect.nodes_after_trim.map(|trimmed| (nodes, trimmed));
    Ok(match Outcome::of_all(&differences) {
        Outcome::Passed { remark, .. } => Outcome::Passed { remark, nodes },
        Outcome::Failed { cause, difference, .. } => Outcome::Failed { cause, difference, nodes },
    })
}
