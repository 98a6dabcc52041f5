//! What a loop did and how long its parts took. Real time: it differs between runs that are otherwise the same, and no
//! decision hangs on it.

use std::time::{Duration, Instant};

use plimsoll_core::{Action, Outcome, Phase};

/// One write of a loop, with what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Write {
    /// What was to be written.
    pub action: Action,
    /// Name of the node that it is about; empty for writes to the cloud.
    pub node: String,
    /// What became of it.
    pub outcome: Outcome,
    /// Of [`Action::Evict`]: what became of each pod.
    pub evicted: Vec<Evicted>,
    /// How long it took.
    pub took: Duration,
}

/// One eviction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Evicted {
    /// The pod, as `namespace/name`.
    pub pod: String,
    /// Whether the API server took it, or why not.
    pub result: Result<(), String>,
}

/// How long a loop took.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Timings {
    /// Reading the clouds.
    pub refresh: Duration,
    /// Joining cluster and clouds, templates included.
    pub observe: Duration,
    /// The parts of the core, in the order in which they were entered first, with the questions and writes in them.
    pub phases: Vec<(Phase, Duration)>,
    /// Of all parts together: waiting for expanders.
    pub rank: Duration,
    /// Of all parts together: waiting for clouds and API server.
    pub act: Duration,
    /// Everything.
    pub whole: Duration,
}

/// Measures the parts of the core.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    phases: Vec<(Phase, Duration)>,
    now: Option<(Phase, Instant)>,
}

impl Stopwatch {
    pub(crate) fn new() -> Self {
        Self { phases: vec![], now: None }
    }

    /// A part begins, or goes on.
    pub(crate) fn enter(&mut self, phase: Phase) {
        if self.now.is_none_or(|(running, _)| running != phase) {
            self.stop();
            self.now = Some((phase, Instant::now()));
        }
    }

    fn stop(&mut self) {
        let Some((phase, begun)) = self.now.take() else { return };
        match self.phases.iter_mut().find(|(known, _)| *known == phase) {
            Some((_, spent)) => *spent += begun.elapsed(),
            None => self.phases.push((phase, begun.elapsed())),
        }
    }

    pub(crate) fn finish(mut self) -> Vec<(Phase, Duration)> {
        self.stop();
        self.phases.retain(|(phase, _)| *phase != Phase::Done);
        self.phases
    }
}
