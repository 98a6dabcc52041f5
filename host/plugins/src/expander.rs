//! An expander: linked once, a fresh store for each decision, no clock, no network, no memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::ranking::{RankRequest, Ranking, RankingFailure, Verdict};

use crate::abi::v0::LinkedExpander;
use crate::call::{Call, CallError};
use crate::engine::PluginHost;
use crate::limits::Limits;
use crate::observer::{Event, Level};
use crate::plugin::{Kind, Linked, Plugin};
use crate::random::Randomness;
use crate::settings;
use crate::store::Sandbox;

/// What an expander gets besides the question.
#[derive(Clone, Debug)]
pub struct ExpanderOptions {
    /// What it may take. The time of a decision is the shorter one of `read` and the deadline of the question.
    pub limits: Limits,
    /// Its settings.
    pub settings: BTreeMap<String, String>,
    /// Least important log level that is kept.
    pub log_level: Level,
}

impl Default for ExpanderOptions {
    fn default() -> Self {
        let limits = Limits { transfer_bytes: 8 << 20, read: Duration::from_secs(2), ..Limits::default() };
        Self { limits, settings: BTreeMap::new(), log_level: Level::Info }
    }
}

/// Why a plug-in cannot serve in a role.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RoleError {
    /// It is something else.
    #[error("plugin {plugin:?} is {}, not {}", found.with_article(), wanted.with_article())]
    WrongKind {
        /// Its name.
        plugin: String,
        /// What it is.
        found: Kind,
        /// What it should be.
        wanted: Kind,
    },
    /// Its settings are wrong.
    #[error("plugin {plugin:?} cannot be used: {}", problems.join("; "))]
    Settings {
        /// Its name.
        plugin: String,
        /// What is wrong.
        problems: Vec<String>,
    },
}

/// An expander that is ready to be asked. Clones are cheap.
#[derive(Clone)]
pub struct Expander {
    host: PluginHost,
    plugin: Plugin,
    linked: LinkedExpander,
    sandbox: Sandbox,
}

impl Expander {
    /// Takes a loaded plug-in into service.
    ///
    /// # Errors
    /// If it is no expander, or its settings are wrong.
    pub fn new(host: &PluginHost, plugin: &Plugin, options: ExpanderOptions) -> Result<Self, RoleError> {
        let name = plugin.name().to_owned();
        let Linked::Expander(linked) = &plugin.linked else {
            return Err(RoleError::WrongKind { plugin: name, found: plugin.kind(), wanted: Kind::Expander });
        };
        let settings = settings::resolve(plugin.manifest.settings_schema.as_ref(), &options.settings)
            .map_err(|problems| RoleError::Settings { plugin: name, problems })?;
        let sandbox = Sandbox {
            settings: Arc::new(settings),
            log: host.log(&plugin.name, options.log_level),
            ..host.inert(&plugin.name, options.limits)
        };
        Ok(Self { host: host.clone(), linked: linked.clone(), plugin: plugin.clone(), sandbox })
    }

    /// What serves.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// One decision. The same question gets the same answer.
    ///
    /// # Errors
    /// If the expander failed, or gave an answer that cannot be used: the next in the chain decides.
    pub async fn rank(&self, request: &RankRequest) -> Ranking {
        let name = || self.plugin.name().to_owned();
        let verdicts = self.ask(request).await.map_err(|error| {
            if !error.is_report() {
                let (plugin, call, reason) = (name(), error.call, error.to_string());
                self.host.announce(Event::CallFailed { plugin, call, reason });
            }
            RankingFailure::Failed { name: name(), reason: reason(&error) }
        })?;
        check(&verdicts, request.options.len()).map_err(|reason| {
            let event = Event::CallFailed {
                plugin: name(),
                call: Call::Rank,
                reason: format!("plugin {:?}: rank gave an answer that cannot be used: {reason}", self.plugin.name()),
            };
            self.host.announce(event);
            RankingFailure::Unusable { name: name(), reason }
        })?;
        Ok(verdicts)
    }

    async fn ask(&self, request: &RankRequest) -> Result<Vec<Verdict>, CallError> {
        let budget = request.deadline.min(self.sandbox.limits.read);
        let sandbox = Sandbox { randomness: Randomness::Seeded(request.seed), ..self.sandbox.clone() };
        let mut store = self.host.store(&sandbox, 0);
        let wanted_labels = &self.plugin.manifest.labels;
        self.host
            .call(&sandbox, &mut store, Call::Rank, budget, async |store| {
                self.linked.rank(store, request, wanted_labels, budget).await
            })
            .await
    }
}

/// The part of a message behind the name, which the failure's own text puts in front.
fn reason(error: &CallError) -> String {
    let text = error.to_string();
    text.strip_prefix(&format!("plugin {:?}: ", error.plugin)).unwrap_or(&text).to_owned()
}

/// An answer is used whole or not at all.
fn check(verdicts: &[Verdict], options: usize) -> Result<(), String> {
    let mut seen = vec![false; options];
    for Verdict { index, score, .. } in verdicts {
        let seen = usize::try_from(*index).ok().and_then(|index| seen.get_mut(index));
        match seen {
            None => return Err(format!("it scores option {index}, but there are only {options}")),
            Some(true) => return Err(format!("it scores option {index} twice")),
            Some(seen) => *seen = true,
        }
        if !score.is_finite() {
            return Err(format!("its score of option {index} is {score}, not a finite number"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case::all(&[(0, 1.0), (1, -2.5)], None)]
    #[case::some(&[(1, 0.0)], None)]
    #[case::none(&[], None)]
    #[case::twice(&[(1, 0.0), (1, 0.0)], Some("it scores option 1 twice"))]
    #[case::beyond(&[(2, 0.0)], Some("it scores option 2, but there are only 2"))]
    #[case::largest(&[(u32::MAX, 0.0)], Some("it scores option 4294967295, but there are only 2"))]
    #[case::nan(&[(0, f64::NAN)], Some("its score of option 0 is NaN, not a finite number"))]
    #[case::infinite(&[(0, f64::INFINITY)], Some("its score of option 0 is inf, not a finite number"))]
    fn an_answer_is_used_whole_or_not_at_all(#[case] verdicts: &[(u32, f64)], #[case] problem: Option<&str>) {
        let verdicts: Vec<_> = verdicts.iter().map(|&(index, score)| Verdict { index, score, reason: None }).collect();
        assert_eq!(check(&verdicts, 2).err().as_deref(), problem);
    }
}
