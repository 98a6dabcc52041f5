//! What happened, in sentences.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use plimsoll_core::observation::Observation;
use plimsoll_core::plan::{NodeOutcome, Place, Plan};
use plimsoll_driver::Turned;
use plimsoll_model::Time;
use plimsoll_sim::{Happened, What};

use crate::expanders::Events;
use crate::terminal::plural;
use crate::why_chosen;

/// What kind of news a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tone {
    /// The story goes on.
    Story,
    /// Something in the cluster.
    Cluster,
    /// The loop decided to grow.
    Up,
    /// The loop decided to shrink.
    Down,
    /// An idle node stays.
    Kept,
    /// A plug-in came into service, or went out of it.
    Plugin,
    /// Something is wrong.
    Warning,
}

impl Tone {
    /// A word of fixed width.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Story => "story  ",
            Self::Cluster => "cluster",
            Self::Up => "UP     ",
            Self::Down => "DOWN   ",
            Self::Kept => "kept   ",
            Self::Plugin => "plug-in",
            Self::Warning => "warning",
        }
    }
}

/// One line of news.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    /// Since the beginning.
    pub(crate) at: Duration,
    pub(crate) tone: Tone,
    pub(crate) text: String,
}

/// As it stands in a log.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  {}  {}", clock(self.at), self.tone.mark(), self.text)
    }
}

/// `MM:SS` since the beginning.
pub(crate) fn clock(at: Duration) -> String {
    let seconds = at.as_secs();
    format!("{:02}:{:02}", seconds / 60, seconds % 60)
}

/// Something in the world.
pub(crate) fn happened(happened: &Happened, begun: Time) -> Line {
    let (tone, text) = match &happened.what {
        What::Told(text) => (Tone::Story, text.clone()),
        What::Scaled(workload, from, to) => (Tone::Cluster, format!("{workload} goes from {from} to {to} replicas")),
        What::NodeRegistered { group, node } => (Tone::Cluster, format!("{node} ({group}) registers, not ready yet")),
        What::NodeReady { node, .. } => (Tone::Cluster, format!("{node} is ready")),
        What::NodeGone { node, .. } => (Tone::Cluster, format!("{node} is gone")),
        What::MachineFailed { group, why } => (Tone::Warning, format!("the cloud refuses a machine of {group}: {why}")),
        What::Bound(workload, count) => {
            (Tone::Cluster, format!("the scheduler binds {} of {workload}", plural(*count as usize, "pod")))
        }
        What::Evicted(pod) => (Tone::Cluster, format!("{pod} is evicted")),
        What::EvictionRefused(pod, why) => (Tone::Cluster, format!("the eviction of {pod} is refused for now: {why}")),
    };
    Line { at: happened.at.since(begun), tone, text }
}

/// What a loop decided.
fn plan(plan: &Plan, observation: &Observation<'_>) -> Vec<(Tone, String)> {
    let mut lines = Vec::new();
    for growth in &plan.scale_up {
        let why = why_chosen::verdict(&growth.because);
        let rivals: Vec<String> =
            why_chosen::rivals(&growth.because).iter().take(3).map(|rival| rival.group.to_string()).collect();
        let before = if rivals.is_empty() { String::new() } else { format!(", before {}", rivals.join(", ")) };
        lines.push((
            Tone::Up,
            format!(
                "{} {} → {} for {}; {why}{before}",
                growth.group,
                growth.from,
                growth.to,
                plural(growth.pods.len(), "pod")
            ),
        ));
    }
    for removal in &plan.scale_down {
        let node = Place::Node(removal.node).name(observation.cluster);
        let how = match removal.moves.len() {
            0 => "empty".to_owned(),
            1 => "drained, its pod finds another place".to_owned(),
            moves => format!("drained, its {} find other places", plural(moves, "pod")),
        };
        lines.push((Tone::Down, format!("{node} ({}) goes: {how}", removal.group)));
    }
    lines
}

/// Pods that nothing helps, and why.
pub(crate) fn unhelped(plan: &Plan, observation: &Observation<'_>) -> Vec<String> {
    let cluster = observation.cluster;
    let line = |class: &plimsoll_core::plan::NotHelped| {
        let pod = class.pods.first().and_then(|&pod| cluster.pods.get(pod));
        let name = pod.map(|pod| cluster.pod_name(pod)).unwrap_or_default();
        let reasons: Vec<String> = class.reasons.iter().map(|(group, reason)| format!("{group}: {reason}")).collect();
        let reasons = match reasons.as_slice() {
            [] => "no node group is known".to_owned(),
            reasons => reasons.join(" · "),
        };
        format!("nothing helps {name} (one of {}): {reasons}", class.pods.len())
    };
    plan.not_helped.iter().map(line).collect()
}

/// What the loop thinks, and what of it was said already.
#[derive(Default)]
pub(crate) struct Voice {
    /// What was said last of a node or a failing part, so that it is said once.
    said: BTreeMap<String, String>,
    /// What the last loop says of each node that is idle but stays.
    pub(crate) verdicts: BTreeMap<String, Vec<String>>,
    /// What the last loop says of pods that are not helped.
    pub(crate) unhelped: Vec<String>,
}

/// What a loop has to tell, but for its troubles.
pub(crate) struct Told {
    decisions: Vec<Line>,
    judgements: Vec<Line>,
}

impl Voice {
    /// What is to be told of a plan, while its observation is there.
    pub(crate) fn look(&mut self, at: Duration, plan: &Plan, observation: &Observation<'_>) -> Told {
        let decisions = self::plan(plan, observation).into_iter().map(|(tone, text)| Line { at, tone, text });
        Told { decisions: decisions.collect(), judgements: self.judgements(at, plan, observation) }
    }

    /// Everything that is new after a loop: what happened in the world, what became of plug-ins, what was decided, what went
    /// wrong, and what the loop thinks of what stays.
    pub(crate) fn lines(
        &mut self,
        at: Duration,
        happened: impl Iterator<Item = Line>,
        turned: Turned<Told>,
        events: &Events,
    ) -> Vec<Line> {
        let turns = events.take_turns().into_iter().map(|text| Line { at, tone: Tone::Plugin, text });
        let mut lines: Vec<Line> = happened.chain(turns).chain(turned.seen.decisions).collect();
        let warnings = turned.plan.warnings.iter().map(|warning| (warning.gist(), warning.to_string()));
        let troubles = turned.troubles.into_iter().chain(events.take()).map(|text| (text.clone(), text));
        lines.extend(self.news(at, troubles.chain(warnings)));
        lines.extend(turned.seen.judgements);
        lines
    }

    /// Troubles, each after its gist, that were not told before.
    fn news(&mut self, at: Duration, troubles: impl Iterator<Item = (String, String)>) -> Vec<Line> {
        let mut lines = Vec::new();
        for (gist, text) in troubles {
            let known = self.said.insert(format!("trouble {gist}"), String::new()).is_some();
            if !known {
                lines.push(Line { at, tone: Tone::Warning, text });
            }
        }
        lines
    }

    /// What changed in what the loop thinks of idle nodes and of pods that it cannot help.
    fn judgements(&mut self, at: Duration, plan: &Plan, observation: &Observation<'_>) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut verdicts = BTreeMap::new();
        for verdict in &plan.nodes {
            let idle = matches!(verdict.outcome, NodeOutcome::Blocked | NodeOutcome::Unneeded);
            let Some(node) = observation.cluster.nodes.get(verdict.node).filter(|_| idle) else { continue };
            let name = observation.cluster.text(node.name).to_owned();
            let reasons: Vec<String> =
                verdict.reasons.iter().map(|reason| reason.describe(observation.cluster)).collect();
            // Waits tick; only what holds a node for good is news.
            if verdict.outcome == NodeOutcome::Blocked {
                let codes: Vec<&str> = verdict.reasons.iter().map(|reason| reason.code()).collect();
                let key = format!("node {name}");
                if self.said.insert(key, codes.join(" ")).as_deref() != Some(codes.join(" ").as_str()) {
                    let text = format!("{name} is idle but stays: {}", reasons.join(" · "));
                    lines.push(Line { at, tone: Tone::Kept, text });
                }
            }
            verdicts.insert(name, reasons);
        }
        self.verdicts = verdicts;
        self.unhelped = unhelped(plan, observation);
        for text in &self.unhelped {
            if self.said.insert(format!("unhelped {text}"), String::new()).is_none() {
                lines.push(Line { at, tone: Tone::Warning, text: text.clone() });
            }
        }
        lines
    }
}
