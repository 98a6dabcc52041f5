//! Runs a loop of the core: puts its questions and carries out its actions.

use std::future::Future;
use std::time::Instant;

use plimsoll_core::ranking::{RankRequest, Ranking};
use plimsoll_core::{Action, Loop, Memory, Outcome, Plan, Step};
use plimsoll_recording::Recorder;
use tracing::Instrument as _;

use crate::measured::{Stopwatch, Timings};

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

/// Answers that are written down, if anybody does so.
pub struct Recorded<'r, A> {
    /// Who answers.
    pub answers: A,
    /// Who writes it down.
    pub recorder: Option<&'r mut Recorder>,
}

impl<A: Answers + Send> Answers for Recorded<'_, A> {
    async fn rank(&mut self, expander: &str, request: &RankRequest) -> Ranking {
        let ranking = self.answers.rank(expander, request).await;
        if let Some(recorder) = &mut self.recorder {
            recorder.ranked(expander, &ranking);
        }
        ranking
    }

    async fn act(&mut self, action: &Action) -> Outcome {
        let outcome = self.answers.act(action).await;
        if let Some(recorder) = &mut self.recorder {
            recorder.acted(action, &outcome);
        }
        outcome
    }

    async fn remember(&mut self, memory: &Memory) {
        self.answers.remember(memory).await;
    }
}

/// Runs one loop to its end.
pub async fn run(turn: Loop<'_>, answers: &mut impl Answers) -> Plan {
    run_measured(turn, answers, &mut Timings::default()).await
}

/// Runs one loop to its end, and adds how long its parts took.
pub async fn run_measured(mut turn: Loop<'_>, answers: &mut impl Answers, timings: &mut Timings) -> Plan {
    let mut watch = Stopwatch::new();
    loop {
        match turn.next_told(&mut |phase| watch.enter(phase)) {
            Step::Rank { expander, request } => {
                let begun = Instant::now();
                let span = tracing::info_span!("rank", %expander, options = request.options.len());
                let ranking = answers.rank(&expander, &request).instrument(span).await;
                timings.rank += begun.elapsed();
                turn.ranked(ranking);
            }
            Step::Act(action) => {
                let begun = Instant::now();
                answers.remember(turn.memory()).await;
                let span = tracing::info_span!("write", write = action.name(), group = action.group());
                let outcome = answers.act(&action).instrument(span).await;
                timings.act += begun.elapsed();
                turn.acted(outcome);
            }
            Step::Done => {
                answers.remember(turn.memory()).await;
                timings.phases = watch.finish();
                return turn.into_plan();
            }
        }
    }
}
