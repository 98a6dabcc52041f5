//! Runs a loop of the core: puts its questions and carries out its actions.

use plimsoll_core::ranking::{RankRequest, Ranking};
use plimsoll_core::{Action, Loop, Outcome, Plan, Step};

/// Who answers the core.
pub(crate) trait Answers {
    /// What the expander of this name says.
    async fn rank(&mut self, expander: &str, request: &RankRequest) -> Ranking;
    /// What became of an action.
    async fn act(&mut self, action: &Action) -> Outcome;
}

/// Runs one loop to its end.
pub(crate) async fn run(mut turn: Loop<'_>, answers: &mut impl Answers) -> Plan {
    loop {
        match turn.next() {
            Step::Rank { expander, request } => {
                let ranking = answers.rank(&expander, &request).await;
                turn.ranked(ranking);
            }
            Step::Act(action) => {
                let outcome = answers.act(&action).await;
                turn.acted(outcome);
            }
            Step::Done => return turn.into_plan(),
        }
    }
}
