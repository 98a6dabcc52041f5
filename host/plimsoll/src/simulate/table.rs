//! A plan for people: `--output table`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_core::observation::Observation;
use plimsoll_core::plan::{
    NodeOutcome, NodeReason, NodeVerdict, NotHelped, Place, Plan, PodIndex, PodOutcome, Rival, ScaleDown, ScaleUp,
};

use super::output::Stats;
use crate::terminal::{Ink, count, plural};
use crate::why_chosen;

/// Most lines of one kind; the rest is counted.
const MOST: usize = 40;
/// Most groups named in one line.
const MOST_NAMES: usize = 4;

/// The plan as text.
pub(crate) fn render(
    plan: &Plan,
    observation: &Observation<'_>,
    warnings: &[String],
    stats: Stats,
    ink: Ink,
) -> String {
    let table = Table { plan, observation, ink };
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = table.write(&mut text, warnings, stats);
    text
}

struct Table<'a> {
    plan: &'a Plan,
    observation: &'a Observation<'a>,
    ink: Ink,
}

impl Table<'_> {
    fn write(&self, text: &mut String, warnings: &[String], stats: Stats) -> std::fmt::Result {
        let ink = self.ink;
        let pending = self.plan.pods.iter().filter(|(_, outcome)| !matches!(outcome, PodOutcome::Ignored(_))).count();
        writeln!(
            text,
            "{}   {} · {} · {} pending · {}   decided in {:.1} ms",
            ink.heading("Cluster"),
            plural(stats.nodes, "node"),
            plural(stats.pods, "pod"),
            count(pending),
            plural(stats.groups, "group"),
            stats.loop_ms
        )?;
        for warning in warnings.iter().cloned().chain(self.plan.warnings.iter().map(ToString::to_string)) {
            writeln!(text, "{} {warning}", ink.warning("warning:"))?;
        }
        text.push('\n');
        self.growth(text)?;
        self.removals(text)?;
        self.placed(text)?;
        self.unhelped(text)?;
        self.kept(text)?;
        if self.plan.scale_up.is_empty() && self.plan.scale_down.is_empty() {
            writeln!(text, "Nothing to do: no group grows, and no node goes.")?;
        }
        Ok(())
    }

    fn growth(&self, text: &mut String) -> std::fmt::Result {
        if self.plan.scale_up.is_empty() {
            return Ok(());
        }
        writeln!(text, "{}", self.ink.heading("SCALE UP"))?;
        let width = self.plan.scale_up.iter().map(|growth| growth.group.as_str().chars().count()).max().unwrap_or(0);
        for growth in &self.plan.scale_up {
            writeln!(
                text,
                "  {:width$}   {:>4} → {:<4} +{:<4} {:>10}   {}",
                growth.group.as_str(),
                growth.from,
                growth.to,
                growth.to - growth.from,
                plural(growth.pods.len(), "pod"),
                because(growth)
            )?;
        }
        Ok(())
    }

    fn removals(&self, text: &mut String) -> std::fmt::Result {
        if self.plan.scale_down.is_empty() {
            return Ok(());
        }
        writeln!(text, "{}", self.ink.heading("SCALE DOWN"))?;
        let name = |removal: &ScaleDown| Place::Node(removal.node).name(self.observation.cluster);
        let width = self.plan.scale_down.iter().map(|removal| name(removal).chars().count()).max().unwrap_or(0);
        for removal in &self.plan.scale_down {
            let how = if removal.drain { "drain" } else { "empty" };
            write!(text, "  {:width$}  ({})  {how}", name(removal), removal.group)?;
            if !removal.moves.is_empty() {
                let mut to: BTreeMap<String, usize> = BTreeMap::new();
                for (_, place) in &removal.moves {
                    *to.entry(place.name(self.observation.cluster)).or_default() += 1;
                }
                let to: Vec<String> = to.into_iter().map(|(node, pods)| format!("{node} ({pods})")).collect();
                write!(text, "   {} → {}", plural(removal.moves.len(), "pod"), some(&to, ", "))?;
            }
            text.push('\n');
        }
        Ok(())
    }

    fn placed(&self, text: &mut String) -> std::fmt::Result {
        let (mut existing, mut upcoming, mut ignored) = (Vec::new(), Vec::new(), 0);
        for (pod, outcome) in &self.plan.pods {
            match outcome {
                PodOutcome::FitsExisting(place) => existing.push((*pod, place)),
                PodOutcome::FitsUpcoming(place) => upcoming.push((*pod, place)),
                PodOutcome::Ignored(_) => ignored += 1,
                PodOutcome::ScaleUp(_) | PodOutcome::NotHelped => {}
            }
        }
        self.fitting(text, "FIT ON NODES THAT ARE THERE", &existing)?;
        self.fitting(text, "FIT ON NODES ON THEIR WAY", &upcoming)?;
        if ignored > 0 {
            let mut why: BTreeMap<String, usize> = BTreeMap::new();
            for (_, outcome) in &self.plan.pods {
                if let PodOutcome::Ignored(reason) = outcome {
                    *why.entry(reason.to_string()).or_default() += 1;
                }
            }
            writeln!(text, "{}   {}", self.ink.heading("NOT CONSIDERED"), plural(ignored, "pod"))?;
            for (reason, pods) in why {
                writeln!(text, "  {pods:>6}   {reason}")?;
            }
        }
        Ok(())
    }

    /// Pods that need nothing new: a line for each class, with the nodes that have room.
    fn fitting(&self, text: &mut String, heading: &str, pods: &[(PodIndex, &Place)]) -> std::fmt::Result {
        if pods.is_empty() {
            return Ok(());
        }
        writeln!(text, "{}   {}", self.ink.heading(heading), plural(pods.len(), "pod"))?;
        let cluster = self.observation.cluster;
        let mut classes: BTreeMap<_, (Vec<PodIndex>, BTreeMap<String, usize>)> = BTreeMap::new();
        for &(index, place) in pods {
            let class = cluster.pods.get(index).map(|pod| (pod.spec, pod.owner.map(|owner| owner.name)));
            let (members, places) = classes.entry(class).or_default();
            members.push(index);
            *places.entry(place.name(cluster)).or_default() += 1;
        }
        let lines = classes.values().take(MOST).map(|(members, places)| {
            let several = members.len() > 1;
            let place =
                |(name, pods): (&String, &usize)| if several { format!("{name} ({pods})") } else { name.clone() };
            let places: Vec<String> = places.iter().map(place).collect();
            (self.class_name(members), some(&places, ", "))
        });
        let lines: Vec<(String, String)> = lines.collect();
        let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, places) in &lines {
            writeln!(text, "  {name:width$}   {places}")?;
        }
        more(text, classes.len(), "class")
    }

    fn unhelped(&self, text: &mut String) -> std::fmt::Result {
        let classes = &self.plan.not_helped;
        if classes.is_empty() {
            return Ok(());
        }
        let pods: usize = classes.iter().map(|class| class.pods.len()).sum();
        let head = self.ink.heading("NOT HELPED");
        writeln!(text, "{head}   {} in {}", plural(pods, "pod"), plural(classes.len(), "class"))?;
        let names: Vec<String> =
            classes.iter().take(MOST).map(|class: &NotHelped| self.class_name(&class.pods)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for (name, class) in names.iter().zip(classes) {
            // Groups with the same reason share a line.
            let mut by_reason: Vec<(String, Vec<String>)> = Vec::new();
            for (group, reason) in &class.reasons {
                let message = reason.to_string();
                match by_reason.iter_mut().find(|(known, _)| *known == message) {
                    Some((_, groups)) => groups.push(group.to_string()),
                    None => by_reason.push((message, vec![group.to_string()])),
                }
            }
            if by_reason.is_empty() {
                by_reason.push(("there is no node group".to_owned(), vec![]));
            }
            let all = by_reason.len() == 1 && class.reasons.len() > MOST_NAMES;
            let reasons = by_reason.into_iter().map(|(reason, groups)| match groups.as_slice() {
                [] => reason,
                _ if all => format!("all groups: {reason}"),
                groups => format!("{}: {reason}", some(groups, ", ")),
            });
            let reasons: Vec<String> = reasons.collect();
            if reasons.len() <= 2 {
                writeln!(text, "  {name:width$}   {}", reasons.join(" · "))?;
            } else {
                for (line, reason) in reasons.iter().enumerate() {
                    let name = if line == 0 { name.as_str() } else { "" };
                    writeln!(text, "  {name:width$}   {reason}")?;
                }
            }
        }
        more(text, classes.len(), "class")
    }

    /// A name for pods that nothing can tell apart.
    fn class_name(&self, pods: &[PodIndex]) -> String {
        let cluster = self.observation.cluster;
        let Some(pod) = pods.first().and_then(|&index| cluster.pods.get(index)) else { return String::new() };
        let namespace = cluster.text(cluster.specs[pod.spec].namespace);
        match (pods.len(), pod.owner.map(|owner| cluster.text(owner.name))) {
            (1, _) => cluster.pod_name(pod),
            (number, Some(owner)) => format!("{namespace}/{owner} ×{}", count(number)),
            (number, None) => format!("{}… ×{}", cluster.pod_name(pod), count(number)),
        }
    }

    fn kept(&self, text: &mut String) -> std::fmt::Result {
        let foreign = |verdict: &&NodeVerdict| verdict.reasons.contains(&NodeReason::NotAutoscaled);
        let (outside, kept): (Vec<&NodeVerdict>, Vec<&NodeVerdict>) = self
            .plan
            .nodes
            .iter()
            .filter(|verdict| matches!(verdict.outcome, NodeOutcome::Blocked | NodeOutcome::Unneeded))
            .partition(foreign);
        self.idle(text, &kept)?;
        if !outside.is_empty() {
            writeln!(text, "{}   {}, left alone", self.ink.heading("IN NO GROUP"), plural(outside.len(), "node"))?;
        }
        Ok(())
    }

    fn idle(&self, text: &mut String, kept: &[&NodeVerdict]) -> std::fmt::Result {
        if kept.is_empty() {
            return Ok(());
        }
        writeln!(text, "{}   {}", self.ink.heading("IDLE BUT KEPT"), plural(kept.len(), "node"))?;
        let cluster = self.observation.cluster;
        let name = |node| Place::Node(node).name(cluster);
        let width = kept.iter().take(MOST).map(|verdict| name(verdict.node).chars().count()).max().unwrap_or(0);
        for verdict in kept.iter().take(MOST) {
            let reasons: Vec<String> = verdict.reasons.iter().map(|reason| reason.describe(cluster)).collect();
            writeln!(text, "  {:width$}   {}", name(verdict.node), some(&reasons, " · "))?;
        }
        more(text, kept.len(), "node")
    }
}

fn because(growth: &ScaleUp) -> String {
    let rival = |rival: &&Rival| {
        let nodes = plural(usize::try_from(rival.nodes).unwrap_or(usize::MAX), "node");
        match rival.score {
            Some(score) => format!("{} ({nodes}, score {score:.2})", rival.group),
            None => format!("{} ({nodes})", rival.group),
        }
    };
    let verdict = why_chosen::verdict(&growth.because);
    let rivals: Vec<String> = why_chosen::rivals(&growth.because).iter().map(rival).collect();
    if rivals.is_empty() { verdict } else { format!("{verdict}   before {}", some(&rivals, ", ")) }
}

/// The first few of many, and how many more there are.
fn some(names: &[String], between: &str) -> String {
    let shown: Vec<&str> = names.iter().take(MOST_NAMES).map(String::as_str).collect();
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown.join(between),
        more => format!("{}{between}and {more} more", shown.join(between)),
    }
}

fn more(text: &mut String, all: usize, what: &str) -> std::fmt::Result {
    if all > MOST {
        writeln!(text, "  and {} more; --output json tells of all", plural(all - MOST, what))
    } else {
        Ok(())
    }
}
