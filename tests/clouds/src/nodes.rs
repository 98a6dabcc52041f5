//! What a machine shows to Kubernetes once it runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::UnixMs;

/// Which provider ID a node gets.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderId {
    /// As the cloud's own set-up writes it.
    #[default]
    Usual,
    /// The cloud's other spelling, if it has one.
    Alias,
    /// None at all.
    Missing,
    /// This text, whatever it means.
    Text(String),
}

/// How the machines of a group become nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// From the machine's start to the node's registration; none: it never registers.
    pub registers_after_ms: Option<u64>,
    /// Its provider ID.
    pub provider_id: ProviderId,
    /// How many nodes one machine registers.
    pub copies: u8,
    /// How long the node outlives its machine.
    pub outlives_ms: u64,
}

impl Default for Script {
    fn default() -> Self {
        Self { registers_after_ms: Some(30_000), provider_id: ProviderId::Usual, copies: 1, outlives_ms: 0 }
    }
}

/// A node as Kubernetes would see it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Node {
    /// Name.
    pub name: String,
    /// `spec.providerID`; none if it is not set.
    pub provider_id: Option<String>,
    /// Machine behind it.
    pub machine: String,
    /// Group of the machine.
    pub group: String,
    /// When it registered.
    pub since: UnixMs,
}

impl Script {
    /// Nodes that a machine shows at `now`.
    ///
    /// `usual` and `alias` are the machine's provider ID in the cloud's spellings; `gone` is when the machine ended.
    pub fn nodes(&self, machine: &Machine<'_>, now: UnixMs) -> Vec<Node> {
        let Some((after, started)) = self.registers_after_ms.zip(machine.started) else { return vec![] };
        let since = started + Duration::from_millis(after);
        let until = machine.gone.map(|gone| gone + Duration::from_millis(self.outlives_ms));
        if now < since || until.is_some_and(|until| now >= until || machine.gone.is_some_and(|gone| gone <= since)) {
            return vec![];
        }
        let provider_id = match &self.provider_id {
            ProviderId::Usual => Some(machine.usual.clone()),
            ProviderId::Alias => Some(machine.alias.clone()),
            ProviderId::Missing => None,
            ProviderId::Text(text) => Some(text.clone()),
        };
        let name = |copy: u8| if copy == 0 { machine.name.clone() } else { format!("{}-{copy}", machine.name) };
        let node = |copy| Node {
            name: name(copy),
            provider_id: provider_id.clone(),
            machine: machine.id.to_owned(),
            group: machine.group.to_owned(),
            since,
        };
        (0..self.copies).map(node).collect()
    }
}

/// What a script needs to know of a machine.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    /// Identifier.
    pub id: &'a str,
    /// Group.
    pub group: &'a str,
    /// Name of its node.
    pub name: String,
    /// Provider ID in the usual spelling.
    pub usual: String,
    /// Provider ID in the other spelling.
    pub alias: String,
    /// When it started to run; none: not yet.
    pub started: Option<UnixMs>,
    /// When it ended; none: it lives.
    pub gone: Option<UnixMs>,
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Machine, ProviderId, Script};
    use crate::clock::UnixMs;

    fn machine() -> Machine<'static> {
        Machine {
            id: "i-1",
            group: "g",
            name: "r-10.0.0.1".to_owned(),
            usual: "r.i-1".to_owned(),
            alias: "x://r.i-1".to_owned(),
            started: Some(UnixMs(0)),
            gone: Some(UnixMs(100_000)),
        }
    }

    #[rstest]
    #[case::before_its_time(Script::default(), 29_999, &[])]
    #[case::registered(Script::default(), 30_000, &["r-10.0.0.1=r.i-1"])]
    #[case::gone_with_its_machine(Script::default(), 100_000, &[])]
    #[case::outlives(Script { outlives_ms: 5_000, ..Script::default() }, 104_999, &["r-10.0.0.1=r.i-1"])]
    #[case::never(Script { registers_after_ms: None, ..Script::default() }, 90_000, &[])]
    #[case::too_late(Script { registers_after_ms: Some(100_000), outlives_ms: 5_000, ..Script::default() }, 101_000, &[])]
    #[case::no_id(Script { provider_id: ProviderId::Missing, ..Script::default() }, 40_000, &["r-10.0.0.1="])]
    #[case::twice(
        Script { copies: 2, provider_id: ProviderId::Alias, ..Script::default() }, 40_000,
        &["r-10.0.0.1=x://r.i-1", "r-10.0.0.1-1=x://r.i-1"]
    )]
    fn nodes_come_and_go(#[case] script: Script, #[case] now: i64, #[case] expected: &[&str]) {
        let nodes = script.nodes(&machine(), UnixMs(now));
        let seen: Vec<String> =
            nodes.iter().map(|node| format!("{}={}", node.name, node.provider_id.as_deref().unwrap_or(""))).collect();
        assert_eq!(seen, expected);
    }
}
