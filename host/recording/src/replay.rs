//! Runs a recorded loop again.

use std::collections::VecDeque;
use std::io::Read;

use plimsoll_core::observation::{CloudView, prepare};
use plimsoll_core::{Loop, Memory, Observation, Step};
use plimsoll_model::Time;

use crate::decisions::decisions;
use crate::format::{Heard, RecordingError};
use crate::recording::{Recorded, Recording};

/// A loop that was run again.
#[derive(Clone, PartialEq, Debug)]
pub struct Replayed {
    /// Which loop, counted from 1.
    pub number: usize,
    /// Its time.
    pub at: Time,
    /// What it saw: nodes, pods, groups.
    pub saw: (usize, usize, usize),
    /// Its questions and writes with their answers, in words.
    pub steps: Vec<String>,
    /// What it decided now, in words.
    pub decided: Vec<String>,
    /// What differs from the recording. Empty: it is the same.
    pub differences: Vec<Difference>,
    /// Whether the recording ends in the middle of it.
    pub unfinished: bool,
}

/// Something that differs from the recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// The loop did something else than it did then, and the recording has no answer to that.
    Step {
        /// What was done then; none: nothing more.
        recorded: Option<String>,
        /// What is done now; none: nothing more.
        now: Option<String>,
    },
    /// It decided this then, and not now.
    Missing(String),
    /// It decides this now, and did not then.
    Added(String),
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let or_nothing = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing more".to_owned());
        match self {
            Self::Step { recorded, now } => {
                write!(f, "then: {}; now: {}", or_nothing(recorded), or_nothing(now))
            }
            Self::Missing(line) => write!(f, "then only: {line}"),
            Self::Added(line) => write!(f, "now only: {line}"),
        }
    }
}

fn step_text(step: &Step) -> Option<String> {
    match step {
        Step::Rank { expander, .. } => Some(format!("asks {expander}")),
        Step::Act(action) => Some(format!("{action:?}")),
        Step::Done => None,
    }
}

fn heard_text(heard: &Heard) -> String {
    match heard {
        Heard::Ranking { expander, .. } => format!("asks {expander}"),
        Heard::Outcome { action, .. } => format!("{action:?}"),
    }
}

/// Reads the next loop and runs it again through the core, with the answers that it got. None at the end.
///
/// # Errors
///
/// If the recording cannot be read.
pub fn again<R: Read>(recording: &mut Recording<R>) -> Result<Option<Replayed>, RecordingError> {
    let Some(Recorded { number, heard, decided: recorded }) = recording.next_loop()? else { return Ok(None) };
    let state = &recording.state;
    let text = state.memory.concat();
    let mut memory: Memory = serde_json::from_str(&text).map_err(|error| RecordingError::BadRecord {
        number,
        problem: format!("the memory of loop {number}: {error}"),
    })?;
    memory.templates.clone_from(&state.remembered);
    let view = CloudView {
        snapshot: &state.snapshot,
        capabilities: &state.capabilities,
        templates: &state.templates,
        fixed_templates: &state.fixed,
        prices: state.prices.as_ref(),
    };
    let mut cluster = state.cluster.clone();
    let prepared = prepare(state.at, &mut cluster, view, &state.settings, &mut memory.templates);
    let observation = Observation::new(prepared, &cluster, view, &state.settings);
    let mut turn = Loop::new(&observation, &state.settings, &mut memory);
    let mut answers: VecDeque<Heard> = heard.into();
    let (mut steps, mut differences) = (Vec::new(), Vec::new());
    let unfinished = recorded.is_none();
    loop {
        let step = turn.next();
        let answer = answers.pop_front();
        match (&step, answer) {
            (Step::Done, None) => break,
            (Step::Rank { expander, .. }, Some(Heard::Ranking { expander: asked, ranking })) if *expander == asked => {
                steps.push(format!("asks {expander}: {}", words(&ranking)));
                turn.ranked(ranking);
            }
            (Step::Act(action), Some(Heard::Outcome { action: carried_out, outcome })) if *action == carried_out => {
                steps.push(format!("{action:?}: {outcome:?}"));
                turn.acted(outcome);
            }
            // The process ended before it got an answer.
            (Step::Rank { .. } | Step::Act(_), None) if unfinished => {
                steps.extend(step_text(&step).map(|step| format!("{step}: no answer is recorded")));
                break;
            }
            (step, answer) => {
                let recorded = answer.as_ref().map(heard_text);
                differences.push(Difference::Step { recorded, now: step_text(step) });
                break;
            }
        }
    }
    let plan = turn.into_plan();
    let decided = decisions(&plan, &observation);
    // After a step that differs, or without an end, the rest says nothing.
    if let (true, Some(recorded)) = (differences.is_empty(), recorded) {
        differences.extend(compare(&recorded, &decided));
    }
    let saw = (cluster.nodes.len(), cluster.pods.len(), observation.groups.len());
    Ok(Some(Replayed { number, at: state.at, saw, steps, decided, differences, unfinished }))
}

fn words(ranking: &plimsoll_core::ranking::Ranking) -> String {
    match ranking {
        Ok(verdicts) => {
            let verdicts: Vec<String> = verdicts.iter().map(|it| format!("#{} {}", it.index, it.score)).collect();
            verdicts.join(", ")
        }
        Err(failure) => failure.to_string(),
    }
}

fn compare(recorded: &[String], now: &[String]) -> Vec<Difference> {
    let count = |lines: &[String]| {
        let mut counts = std::collections::BTreeMap::<String, i64>::new();
        for line in lines {
            *counts.entry(line.clone()).or_default() += 1;
        }
        counts
    };
    let (then, now) = (count(recorded), count(now));
    let of = |counts: &std::collections::BTreeMap<String, i64>, line: &str| counts.get(line).copied().unwrap_or(0);
    let missing = then.iter().filter(|(line, times)| of(&now, line) < **times);
    let added = now.iter().filter(|(line, times)| of(&then, line) < **times);
    let missing = missing.map(|(line, _)| Difference::Missing(line.clone()));
    missing.chain(added.map(|(line, _)| Difference::Added(line.clone()))).collect()
}
