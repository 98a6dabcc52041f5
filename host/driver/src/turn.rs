//! One loop from reading to remembering.

use std::time::Instant;

use plimsoll_core::observation::prepare;
use plimsoll_core::{Loop, Memory, Observation, Plan, Settings};
use plimsoll_model::Time;
use plimsoll_plugins::Library;
use plimsoll_recording::{Recorder, Seen};
use tracing::Instrument as _;

use crate::acting::{Acting, Api, Store};
use crate::clouds::Clouds;
use crate::measured::{Timings, Write};
use crate::steps::{self, Recorded};

/// What one autoscaler has: its settings, its clouds, its expanders, and what it remembers.
pub struct Driver {
    /// The operator's settings.
    pub settings: Settings,
    /// What the loops before left.
    pub memory: Memory,
    /// The providers.
    pub clouds: Clouds,
    /// The expanders.
    pub library: Library,
    /// Writes down what the loops see and hear, if that is wished.
    pub recorder: Option<Recorder>,
}

/// What a loop leaves.
#[derive(Clone, PartialEq, Debug)]
pub struct Turned<T> {
    /// What the providers complained about.
    pub troubles: Vec<String>,
    /// What was decided and done.
    pub plan: Plan,
    /// What the caller made of it while the observation was there.
    pub seen: T,
    /// What was written, in order.
    pub writes: Vec<Write>,
    /// How long its parts took.
    pub timings: Timings,
}

impl Driver {
    /// An autoscaler that remembers nothing and is not recorded.
    pub fn new(settings: Settings, clouds: Clouds, library: Library) -> Self {
        Self { settings, memory: Memory::default(), clouds, library, recorder: None }
    }

    /// Reads, decides and writes once. `look` sees the plan together with what it was made from and what is remembered of
    /// it.
    pub async fn turn<A: Api, S: Store, T>(
        &mut self,
        now: Time,
        api: &A,
        store: &mut S,
        look: impl FnOnce(&Plan, &Observation<'_>, &Memory) -> T,
    ) -> Turned<T> {
        self.turn_within(now, api, store, look).instrument(tracing::info_span!("loop", at = %now)).await
    }

    async fn turn_within<A: Api, S: Store, T>(
        &mut self,
        now: Time,
        api: &A,
        store: &mut S,
        look: impl FnOnce(&Plan, &Observation<'_>, &Memory) -> T,
    ) -> Turned<T> {
        let begun = Instant::now();
        self.library.poll().await;
        let mut timings = Timings::default();
        let before = Instant::now();
        let mut troubles = self.clouds.refresh(api).instrument(tracing::info_span!("refresh")).await;
        timings.refresh = before.elapsed();
        let before = Instant::now();
        api.follow(self.clouds.view());
        // Preparing adds to the templates in the memory.
        let remembered = self.recorder.is_some().then(|| self.memory.clone());
        let (prepared, cluster) = api
            .observe(|cluster| prepare(now, cluster, self.clouds.view(), &self.settings, &mut self.memory.templates));
        if let (Some(recorder), Some(memory)) = (&mut self.recorder, &remembered) {
            let (settings, clouds) = (&self.settings, self.clouds.view());
            recorder.begins(&Seen { at: now, settings, cluster: &cluster, clouds, memory });
        }
        let observation = Observation::new(prepared, &cluster, self.clouds.view(), &self.settings);
        timings.observe = before.elapsed();
        let turn = Loop::new(&observation, &self.settings, &mut self.memory);
        let (clouds, library) = (&self.clouds, &self.library);
        let answers = Acting { api, store, clouds, library, cluster: &cluster, writes: vec![], unsaved: None };
        let mut answers = Recorded { answers, recorder: self.recorder.as_mut() };
        let plan = steps::run_measured(turn, &mut answers, &mut timings).await;
        let Acting { writes, unsaved, .. } = answers.answers;
        troubles.extend(unsaved.map(|why| format!("the memory of the loop could not be kept: {why}")));
        if let Some(recorder) = &mut self.recorder {
            recorder.ends(&plan, &observation);
            troubles.extend(recorder.take_trouble().map(|trouble| format!("the recording ends here: {trouble}")));
        }
        let seen = look(&plan, &observation, &self.memory);
        timings.whole = begun.elapsed();
        Turned { troubles, plan, seen, writes, timings }
    }
}
