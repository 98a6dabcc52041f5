//! One loop that decides everything, beside one choice a loop until nothing changes: never worse.
//!
//! Any case that whole loops are run over will do: no recorded answer is needed.

use plimsoll_core::plan::PodOutcome;

use crate::case::Case;
use crate::scene::{Scene, Turn};
use crate::{Difference, Outcome, audit};

/// Where an endless to and fro would be noticed.
const MOST_LOOPS: usize = 100;

/// Time between two loops.
const PERIOD_MILLIS: i64 = 1;

/// Compares both ways on a case of kind `scaleup` or `converge`.
///
/// # Errors
///
/// If the case cannot be read.
pub fn compare(case: &Case) -> anyhow::Result<Outcome> {
    let at = case.at()?;
    let mut scene = Scene::new(case)?;
    // Filling groups up is another matter.
    scene.settings.enforce_node_group_min_size = false;
    let turn = scene.turn(at);
    let mut differences = Vec::new();
    if let Err(error) = audit::growth(&scene, &turn) {
        differences.push(Difference::new("a placement is invalid", format!("{error:#}")));
    }
    let (helped, nodes) = (helped(&scene, &turn), turn.increases.values().sum::<u32>());

    let mut step_by_step = Scene::new(case)?;
    step_by_step.settings.enforce_node_group_min_size = false;
    step_by_step.settings.scale_up_rounds = Some(1);
    let (mut theirs, mut asked, mut at) = (0, std::collections::BTreeMap::<String, u32>::new(), at);
    for _ in 0..MOST_LOOPS {
        let turn = step_by_step.turn(at);
        step_by_step.grant(&turn);
        theirs = self::helped(&step_by_step, &turn);
        if turn.increases.is_empty() {
            break;
        }
        turn.increases.into_iter().for_each(|(group, delta)| *asked.entry(group).or_default() += delta);
        at = plimsoll_model::Time::from_millis(at.millis() + PERIOD_MILLIS);
    }
    let their_nodes = asked.values().sum::<u32>();
    let text = || {
        format!("step by step {theirs} on {their_nodes} {asked:?}, at once {helped} on {nodes} {:?}", turn.increases)
    };
    if helped < theirs {
        differences.push(Difference::new("fewer pods are helped", text()));
    } else if helped == theirs && nodes > their_nodes {
        differences.push(Difference::new("more nodes are asked for", text()));
    }
    Ok(match Outcome::of_all(&differences) {
        Outcome::Passed { remark, .. } => Outcome::Passed { remark, nodes: Some((nodes, their_nodes)) },
        Outcome::Failed { cause, difference, .. } => {
            Outcome::Failed { cause, difference, nodes: Some((nodes, their_nodes)) }
        }
    })
}

/// Pods without a node that have a place in the end.
fn helped(scene: &Scene, turn: &Turn) -> usize {
    let helps = |outcome: &PodOutcome| {
        matches!(outcome, PodOutcome::FitsExisting(_) | PodOutcome::FitsUpcoming(_) | PodOutcome::ScaleUp(_))
    };
    let pending = |pod: usize| scene.cluster.pods.get(pod).is_some_and(|pod| pod.counts_on().is_none());
    turn.plan.pods.iter().filter(|(pod, outcome)| pending(*pod) && helps(outcome)).count()
}
