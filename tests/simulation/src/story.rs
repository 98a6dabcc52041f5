//! What a seed plays: the simulated cloud, or the fake of a real one.

use std::fmt;

use plimsoll_recording::Recorder;

use crate::clouds;
use crate::scenario::Scenario;
use crate::stage::{self, Components, Report};
use crate::violation::Violation;

/// The run of a seed.
#[derive(Clone, Debug)]
pub enum Story {
    /// In front of the simulated cloud.
    Simulated(Box<Scenario>),
    /// In front of the fake of a real cloud.
    Cloud(Box<clouds::Scenario>),
}

impl Story {
    /// The run of a seed: one in five is in front of the fake of a real cloud.
    pub fn draw(seed: u64, hours: u64) -> Self {
        match clouds::Scenario::draw(seed, hours) {
            Some(scenario) => Self::Cloud(Box::new(scenario)),
            None => Self::Simulated(Box::new(Scenario::draw(seed, hours))),
        }
    }

    /// Numbers of what happens in this run.
    pub fn numbers(&self) -> Vec<usize> {
        match self {
            Self::Simulated(scenario) => scenario.numbers(),
            Self::Cloud(scenario) => scenario.numbers(),
        }
    }

    /// The same run with only these happenings.
    #[must_use]
    pub fn only(&self, numbers: &[usize]) -> Self {
        match self {
            Self::Simulated(scenario) => Self::Simulated(Box::new(scenario.only(numbers))),
            Self::Cloud(scenario) => Self::Cloud(Box::new(scenario.only(numbers))),
        }
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulated(scenario) => scenario.fmt(f),
            Self::Cloud(scenario) => scenario.fmt(f),
        }
    }
}

/// Plays to the end, or to the first invariant that is broken. `tell` gets every line of what happens.
///
/// # Errors
///
/// If the components cannot be set up, which is no finding.
pub fn play(
    components: &Components,
    story: &Story,
    tell: Option<fn(&str)>,
) -> anyhow::Result<Result<Report, Violation>> {
    play_recorded(components, story, tell, None)
}

/// The same, with every loop written down.
///
/// # Errors
///
/// If the components cannot be set up, which is no finding.
pub fn play_recorded(
    components: &Components,
    story: &Story,
    tell: Option<fn(&str)>,
    recorder: Option<Recorder>,
) -> anyhow::Result<Result<Report, Violation>> {
    match story {
        Story::Simulated(scenario) => stage::play(components, scenario, tell, recorder),
        Story::Cloud(scenario) => clouds::play(components, scenario, tell, recorder),
    }
}
