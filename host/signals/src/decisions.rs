//! Decisions in the log: one line each, with the reasons as fields. What did not change since the last loop is not said
//! again.

use std::collections::BTreeMap;

use plimsoll_core::plan::Warning;
use plimsoll_driver::Write;
use tracing::{debug, info, warn};

use crate::account::{Account, Growth};
use crate::metrics::failure;

/// What was said last of each thing.
#[derive(Debug, Default)]
pub(crate) struct Said(BTreeMap<String, String>);

impl Said {
    /// Whether this is news.
    fn is_new(&mut self, about: String, text: &str) -> bool {
        self.0.insert(about, text.to_owned()).as_deref() != Some(text)
    }

    /// Says what a loop decided and did.
    pub(crate) fn tell(&mut self, account: &Account, warnings: &[Warning], writes: &[Write]) {
        let at = account.at.as_str();
        let gists: BTreeMap<String, String> =
            warnings.iter().map(|warning| (warning.to_string(), warning.gist())).collect();
        let gist = |text: &str| format!("warning {}", gists.get(text).map_or(text, String::as_str));
        for growth in &account.scale_up {
            info!(
                at,
                group = growth.group,
                from = growth.from,
                to = growth.to,
                pods = growth.pods,
                expander = growth.expander,
                score = growth.score,
                reason = growth.reason,
                against = against(growth),
                "scale-up"
            );
        }
        for removal in &account.scale_down {
            let (node, group, drain, moves) = (&removal.node, &removal.group, removal.drain, removal.moves.len());
            info!(at, node, group, drain, moves, "scale-down");
        }
        for write in writes {
            let (name, group, node) = (write.action.name(), write.action.group(), write.node.as_str());
            let took_ms = u64::try_from(write.took.as_millis()).unwrap_or(u64::MAX);
            match failure(write) {
                None => debug!(at, write = name, group, node, took_ms, "written"),
                Some((_, error)) => warn!(at, write = name, group, node, took_ms, error, "a write failed"),
            }
        }
        for warning in &account.warnings {
            if self.is_new(gist(warning), "") {
                warn!(at, "{warning}");
            }
        }
        self.waiting(account);
        self.idle(account);
        let totals = &account.totals;
        debug!(
            at,
            nodes = totals.nodes,
            pods = totals.pods,
            pending = totals.pending,
            groups = totals.groups,
            "loop ended"
        );
        self.forget(account, gist);
    }

    fn waiting(&mut self, account: &Account) {
        for class in &account.classes {
            let reasons = class.reasons.iter().map(|reason| format!("{}: {}", reason.group, reason.message));
            let reasons = reasons.collect::<Vec<_>>().join(" · ");
            if self.is_new(format!("class {}", class.example), &reasons) {
                let (at, pod, ways_out) = (&account.at, &class.example, class.ways_out.join(", or "));
                info!(at, pod, alike = class.pods, reasons, ways_out, "no group helps");
            }
        }
    }

    /// Waits tick; only a change of what holds a node is news.
    fn idle(&mut self, account: &Account) {
        for node in &account.nodes {
            if !matches!(node.outcome.as_deref(), Some("blocked" | "unneeded")) {
                continue;
            }
            let codes: Vec<&str> = node.reasons.iter().map(|reason| reason.code.as_str()).collect();
            if self.is_new(format!("node {}", node.node), &codes.join(" ")) {
                let messages: Vec<&str> = node.reasons.iter().map(|reason| reason.message.as_str()).collect();
                let (at, name, reasons) = (&account.at, &node.node, messages.join(" · "));
                info!(at, node = name, group = node.group, reasons, "idle, but stays");
            }
        }
    }

    /// What is gone is news when it comes back; and nothing is kept for ever.
    fn forget(&mut self, account: &Account, gist: impl Fn(&str) -> String) {
        let classes = account.classes.iter().map(|class| format!("class {}", class.example));
        let idle = |outcome: Option<&str>| matches!(outcome, Some("blocked" | "unneeded"));
        let nodes = account.nodes.iter().filter(|node| idle(node.outcome.as_deref()));
        let warnings = account.warnings.iter().map(|warning| gist(warning));
        let kept = classes.chain(nodes.map(|node| format!("node {}", node.node))).chain(warnings);
        let kept: std::collections::BTreeSet<String> = kept.collect();
        self.0.retain(|about, _| kept.contains(about));
    }
}

fn against(growth: &Growth) -> String {
    let rivals = growth.against.iter().map(|rival| match rival.score {
        Some(score) => format!("{} {score:.2}", rival.group),
        None => rival.group.clone(),
    });
    rivals.collect::<Vec<_>>().join(", ")
}
