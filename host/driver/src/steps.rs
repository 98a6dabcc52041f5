//! Runs a loop of the core: puts its questions and carries out its actions.

use std::future::Future;

use plimsoll_core::ranking::{RankRequest, Ranking};
use plimsoll_core::{Action, Loop, Memory, Outcome, Plan, Step};

/// Who answers the core.
pub trait Answers {
    /// What the expander of this name says.
    fn rank(&mut self, expander: &str, request: &RankRequest) -> impl Future<Output = Ranking> + Send;
    /// What became of an action.
    fn act(&mut self, action: &Action) -> impl Future<Output = Outcome> + Send;
    /// What must not be forgotten if the process ends now. Called before every action, which the memory names already, and
    /// after the last one.
    fn remember(&mut self, memory: &Memory) -> impl Future<Output = ()> + Send;
}

/// Runs one loop to its end.
pub async fn run(mut turn: Loop<'_>, answers: &mut impl Answers) -> Plan {
    loop {
        match turn.next() {
            Step::Rank { expander, request } => {
                let ranking = answers.rank(&expander, &request).await;
                turn.ranked(ranking);
            }
            Step::Act(action) => {
                answers.remember(turn.memory()).await;
                let outcome = answers.act(&action).await;
                turn.acted(outcome);
            }
            Step::Done => {
                answers.remember(turn.memory()).await;
                return turn.into_plan();
            }
        }
    }
}
