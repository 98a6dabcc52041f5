//! A plan as one object: `--output json` and `yaml`.

use plimsoll_core::observation::Observation;
use plimsoll_core::plan::{Because, Place, Plan, PodOutcome};
use serde::Serialize;

/// The whole answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    api_version: &'static str,
    kind: &'static str,
    at: String,
    scale_up: Vec<ScaleUp>,
    scale_down: Vec<ScaleDown>,
    pods: Vec<Pod>,
    nodes: Vec<Node>,
    warnings: Vec<String>,
    stats: Stats,
}

#[derive(Serialize)]
struct ScaleUp {
    group: String,
    from: u32,
    to: u32,
    pods: Vec<String>,
    because: Why,
}

#[derive(Serialize)]
struct Why {
    expander: Option<String>,
    score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    against: Vec<Rival>,
}

#[derive(Serialize)]
struct Rival {
    group: String,
    nodes: u32,
    score: Option<f64>,
}

#[derive(Serialize)]
struct ScaleDown {
    node: String,
    group: String,
    how: &'static str,
    moves: Vec<Move>,
}

#[derive(Serialize)]
struct Move {
    pod: String,
    to: String,
}

#[derive(Serialize)]
struct Pod {
    pod: String,
    outcome: &'static str,
    on: Option<String>,
    reasons: Vec<PodReason>,
}

#[derive(Clone, Serialize)]
struct PodReason {
    group: String,
    plugin: &'static str,
    message: String,
}

#[derive(Serialize)]
struct Node {
    node: String,
    outcome: &'static str,
    reasons: Vec<NodeReason>,
}

#[derive(Serialize)]
struct NodeReason {
    code: &'static str,
    message: String,
}

/// Figures of the run.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stats {
    pub(crate) nodes: usize,
    pub(crate) pods: usize,
    pub(crate) groups: usize,
    /// From the model in memory to the decision, expanders included.
    pub(crate) loop_ms: f64,
    /// How long of it the program really ran, summed over its threads; less where others had the processor.
    pub(crate) loop_cpu_ms: f64,
    /// From the first byte of the files to the model in memory.
    pub(crate) read_ms: f64,
    /// Most memory that the process held, in MiB.
    pub(crate) peak_rss_mib: f64,
}

impl Answer {
    /// Everything that a plan says, with names.
    pub(crate) fn new(plan: &Plan, observation: &Observation<'_>, warnings: &[String], stats: Stats) -> Self {
        let cluster = observation.cluster;
        let pod = |index: usize| cluster.pods.get(index).map(|pod| cluster.pod_name(pod)).unwrap_or_default();
        let node = |index: usize| Place::Node(index).name(cluster);
        let scale_up = plan.scale_up.iter().map(|growth| ScaleUp {
            group: growth.group.to_string(),
            from: growth.from,
            to: growth.to,
            pods: growth.pods.iter().map(|&index| pod(index)).collect(),
            because: why(&growth.because),
        });
        let scale_down = plan.scale_down.iter().map(|removal| ScaleDown {
            node: node(removal.node),
            group: removal.group.to_string(),
            how: if removal.drain { "drain" } else { "empty" },
            moves: removal.moves.iter().map(|(index, to)| Move { pod: pod(*index), to: to.name(cluster) }).collect(),
        });
        let mut unhelped = std::collections::BTreeMap::new();
        for class in &plan.not_helped {
            let reason = |(group, reason): &(plimsoll_core::cloud::GroupId, plimsoll_core::plan::GroupReason)| {
                PodReason { group: group.to_string(), plugin: reason.plugin(), message: reason.to_string() }
            };
            let reasons: Vec<PodReason> = class.reasons.iter().map(reason).collect();
            unhelped.extend(class.pods.iter().map(|&pod| (pod, reasons.clone())));
        }
        let pods = plan.pods.iter().map(|(index, outcome)| {
            let (outcome, on, reasons) = match outcome {
                PodOutcome::FitsExisting(place) => ("fits-existing", Some(place.name(cluster)), vec![]),
                PodOutcome::FitsUpcoming(place) => ("fits-upcoming", Some(place.name(cluster)), vec![]),
                PodOutcome::ScaleUp(place) => ("scale-up", Some(place.name(cluster)), vec![]),
                PodOutcome::NotHelped => ("not-helped", None, unhelped.remove(index).unwrap_or_default()),
                PodOutcome::Ignored(reason) => {
                    let reason = PodReason { group: String::new(), plugin: "PodFilter", message: reason.to_string() };
                    ("ignored", None, vec![reason])
                }
            };
            Pod { pod: pod(*index), outcome, on, reasons }
        });
        let nodes = plan.nodes.iter().map(|verdict| Node {
            node: node(verdict.node),
            outcome: verdict.outcome.name(),
            reasons: verdict
                .reasons
                .iter()
                .map(|reason| NodeReason { code: reason.code(), message: reason.describe(cluster) })
                .collect(),
        });
        Self {
            api_version: "plimsoll.dev/v1alpha1",
            kind: "Plan",
            at: observation.at.to_string(),
            scale_up: scale_up.collect(),
            scale_down: scale_down.collect(),
            pods: pods.collect(),
            nodes: nodes.collect(),
            warnings: warnings.iter().cloned().chain(plan.warnings.iter().map(ToString::to_string)).collect(),
            stats,
        }
    }
}

fn why(because: &Because) -> Why {
    Why {
        expander: because.expander.clone(),
        score: because.score,
        reason: because.reason.clone(),
        against: because
            .against
            .iter()
            .map(|rival| Rival { group: rival.group.to_string(), nodes: rival.nodes, score: rival.score })
            .collect(),
    }
}
