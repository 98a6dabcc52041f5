//! Explanations for people.

use std::fmt::Write as _;
use std::time::Duration;

use plimsoll_model::Time;
use plimsoll_signals::account::{GroupDetail, NodeDetail, NodeReason, PodDetail};

use crate::terminal::{Ink, plural};
use crate::why_chosen;

/// Most lines of one kind.
const MOST: usize = 40;

/// Rows of two columns or more, below a heading.
struct Rows {
    ink: Ink,
    head: String,
    rows: Vec<(String, String)>,
}

impl Rows {
    fn new(name: &str, facts: &[String], ink: Ink) -> Self {
        let head = std::iter::once(ink.heading(name)).chain(facts.iter().filter(|fact| !fact.is_empty()).cloned());
        Self { ink, head: head.collect::<Vec<_>>().join("   "), rows: vec![] }
    }

    fn row(&mut self, name: &str, text: impl Into<String>) {
        self.rows.push((name.to_owned(), text.into()));
    }

    /// A row for each of some texts, the name beside the first only.
    fn list(&mut self, name: &str, texts: impl IntoIterator<Item = String>) {
        let texts: Vec<String> = texts.into_iter().collect();
        for (index, text) in texts.iter().take(MOST).enumerate() {
            self.row(if index == 0 { name } else { "" }, text.clone());
        }
        if texts.len() > MOST {
            self.row("", format!("… and {} more (--output json has all)", texts.len() - MOST));
        }
    }

    fn text(self) -> String {
        let width = self.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let mut text = self.head + "\n";
        for (name, rest) in &self.rows {
            let rest = if name == WAY_OUT { self.ink.warning(rest) } else { rest.clone() };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {name:width$}   {rest}");
        }
        text
    }
}

const WAY_OUT: &str = "nearest way out";

pub(super) fn pod(detail: &PodDetail, ink: Ink) -> String {
    let pod = &detail.pod;
    let on = pod.on.as_deref().unwrap_or_default();
    let age = age(pod.since.as_deref(), &detail.at);
    let class = detail.helpless.as_ref().map(|class| {
        let owner = if class.owner.is_empty() { String::new() } else { format!(" ({})", class.owner) };
        if class.pods > 1 { format!("class of {}{owner}", class.pods) } else { format!("alone in its class{owner}") }
    });
    let pending = if age.is_empty() { "pending".to_owned() } else { format!("pending {age}") };
    let state = match pod.outcome.as_str() {
        "has-node" => format!("has a node: {on}"),
        "fits-existing" => format!("{pending}, fits on {on}, which is there"),
        "fits-upcoming" => format!("{pending}, fits on {on}, which is on its way"),
        "scale-up" => format!("{pending}, gets {on}, which is asked for now"),
        "ignored" => format!("not considered: {}", pod.ignored.as_deref().unwrap_or_default()),
        _ => pending,
    };
    let mut rows = Rows::new(&pod.pod, &[state, class.unwrap_or_default()], ink);
    if let Some(class) = &detail.helpless {
        if class.existing.is_empty() {
            if detail.nodes == 0 {
                rows.row("existing nodes", "none");
            }
        } else {
            let looked: u32 = class.existing.iter().map(|(_, count)| count).sum();
            let counts = class.existing.iter().map(|(reason, count)| format!("{count} {reason}"));
            let counts: Vec<String> = counts.collect();
            rows.row("existing nodes", format!("{looked} looked at: {}", counts.join(", ")));
        }
        let width = class.reasons.iter().map(|reason| reason.plugin.chars().count()).max().unwrap_or(0);
        for reason in &class.reasons {
            rows.row(&reason.group, format!("no   {:width$}   {}", reason.plugin, reason.message));
        }
        if class.reasons.is_empty() {
            rows.row("node groups", "there is none");
        }
        if !class.ways_out.is_empty() {
            rows.row(WAY_OUT, class.ways_out.join(", or "));
        }
    }
    if let Some(node) = &detail.runs_on {
        rows.row("its node", node_state(node.outcome.as_deref(), &node.reasons));
        let holds = node.reasons.iter().filter(|reason| reason.message.starts_with(&format!("{}:", pod.pod)));
        rows.list("it holds it", holds.map(|reason| reason.message.clone()));
    }
    rows.text()
}

pub(super) fn node(detail: &NodeDetail, ink: Ink) -> String {
    let node = &detail.node;
    let group = node.group.as_ref().map_or_else(|| "in no node group".to_owned(), |group| format!("group {group}"));
    let ready = if node.ready { String::new() } else { "not ready".to_owned() };
    let state = node_state(node.outcome.as_deref(), &node.reasons);
    let mut rows = Rows::new(&node.node, &[group, plural(node.pods, "pod"), ready, state], ink);
    if let Some(removal) = &detail.removal {
        rows.row("goes", if removal.drain { "drained" } else { "empty" });
        rows.list("pods go to", removal.moves.iter().map(|(pod, to)| format!("{pod} → {to}")));
    }
    let width = node.reasons.iter().map(|reason| reason.code.chars().count()).max().unwrap_or(0);
    let name = if node.outcome.as_deref() == Some("needed") { "needed" } else { "stays" };
    rows.list(name, node.reasons.iter().map(|reason| format!("{:width$}   {}", reason.code, reason.message)));
    rows.text()
}

fn node_state(outcome: Option<&str>, reasons: &[NodeReason]) -> String {
    match outcome {
        Some("needed") => "needed".to_owned(),
        Some("removable") => "goes now".to_owned(),
        Some("unneeded") => "idle; it may go later".to_owned(),
        Some("blocked") => format!("idle, but held by {}", plural(reasons.len(), "reason")),
        Some(other) => other.to_owned(),
        None => "not looked at in this loop".to_owned(),
    }
}

pub(super) fn group(detail: &GroupDetail, ink: Ink) -> String {
    let group = &detail.group;
    let sizes = format!("target {} of {}–{}", group.target, group.min, group.max);
    let nodes = format!("{}, {} ready", plural(group.nodes, "node"), group.ready);
    let upcoming = if group.upcoming > 0 { format!("{} on their way", group.upcoming) } else { String::new() };
    let mut rows = Rows::new(&group.group, &[sizes, nodes, upcoming], ink);
    match &detail.growth {
        Some(growth) => {
            let why = why_chosen::of_growth(growth);
            rows.row("grows", format!("{} → {} for {}; {why}", growth.from, growth.to, plural(growth.pods, "pod")));
        }
        None => match &group.closed {
            Some(why) => rows.row("cannot grow", why.clone()),
            None if !detail.passed_over_for.is_empty() => {
                rows.row("does not grow", format!("passed over for {}", detail.passed_over_for.join(", ")));
            }
            None => rows.row("does not grow", "no pod needs it"),
        },
    }
    match &group.template {
        Ok(free) => rows.row("a new node has", free.clone()),
        Err(why) => rows.row("a new node has", format!("nobody knows: {why}")),
    }
    if let Some(price) = group.price_micros_per_hour {
        #[allow(clippy::cast_precision_loss, reason = "a price for people")]
        let price = price as f64 / 1_000_000.0;
        rows.row("price", format!("{price} per node and hour"));
    }
    let going = detail
        .removals
        .iter()
        .map(|removal| format!("{} ({})", removal.node, if removal.drain { "drained" } else { "empty" }));
    rows.list("goes", going);
    let idle = detail.members.iter().filter(|node| matches!(node.outcome.as_deref(), Some("blocked" | "unneeded")));
    rows.list(
        "idle, stays",
        idle.map(|node| {
            let reasons: Vec<&str> = node.reasons.iter().map(|reason| reason.message.as_str()).collect();
            format!("{}: {}", node.node, reasons.join(" · "))
        }),
    );
    let unhelped = detail.unhelped.iter().map(|class| match class.pods {
        1 => format!("{}: {}", class.example, class.message),
        pods => format!("{} and {} like it: {}", class.example, pods - 1, class.message),
    });
    rows.list("does not help", unhelped);
    rows.text()
}

/// How long before another moment something was, such as `14m`; empty if one of them is unknown.
fn age(since: Option<&str>, at: &str) -> String {
    let (Some(since), Some(at)) = (since.and_then(Time::parse), Time::parse(at)) else { return String::new() };
    let span: Duration = at.since(since);
    match span.as_secs() {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let at = "2026-01-31T12:00:00Z";
        for (since, age) in [
            (Some("2026-01-31T11:59:30Z"), "30s"),
            (Some("2026-01-31T11:46:00Z"), "14m"),
            (Some("2026-01-31T02:00:00Z"), "10h"),
            (Some("2026-01-01T12:00:00Z"), "30d"),
            (None, ""),
        ] {
            assert_eq!(self::age(since, at), age);
        }
    }
}
