//! One loop from reading to remembering.

use plimsoll_core::observation::prepare;
use plimsoll_core::{Loop, Memory, Observation, Plan, Settings};
use plimsoll_model::Time;
use plimsoll_plugins::Library;

use crate::acting::{Acting, Api, Store};
use crate::clouds::Clouds;
use crate::steps;

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
}

impl Driver {
    /// Reads, decides and writes once. `look` sees the plan together with what it was made from.
    pub async fn turn<A: Api, S: Store, T>(
        &mut self,
        now: Time,
        api: &A,
        store: &mut S,
        look: impl FnOnce(&Plan, &Observation<'_>) -> T,
    ) -> Turned<T> {
        self.library.poll().await;
        let troubles = self.clouds.refresh(api).await;
        api.follow(self.clouds.view());
        let (prepared, cluster) = api.with(|cluster| {
            let view = self.clouds.view();
            (prepare(now, cluster, view, &self.settings, &mut self.memory.templates), cluster.clone())
        });
        let observation = Observation::new(prepared, &cluster, self.clouds.view(), &self.settings);
        let turn = Loop::new(&observation, &self.settings, &mut self.memory);
        let mut answers = Acting { api, store, clouds: &self.clouds, library: &self.library, cluster: &cluster };
        let plan = steps::run(turn, &mut answers).await;
        let seen = look(&plan, &observation);
        Turned { troubles, plan, seen }
    }
}
