//! The story of the demo with the loop in front of it, and signals beside.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_core::{Memory, Observation, Plan, Settings};
use plimsoll_driver::{Clouds, Driver, lock, simulated};
use plimsoll_model::Time;
use plimsoll_plugins::clock::VirtualClock;
use plimsoll_plugins::egress::Transport;
use plimsoll_plugins::library::LibraryOptions;
use plimsoll_plugins::observer::Nobody;
use plimsoll_plugins::provider::Setup;
use plimsoll_plugins::{HostOptions, Library, PluginConfig, PluginHost, Provider};
use plimsoll_signals::{HealthLimits, Options, Signals};
use plimsoll_sim::World;
use plimsoll_sim::story::{self, Story};

const INTERVAL: Duration = Duration::from_secs(10);

pub(crate) struct Stage {
    pub(crate) signals: Signals,
    world: Arc<Mutex<World>>,
    story: Story,
    clock: Arc<VirtualClock>,
    begun: Time,
    driver: Driver,
}

pub(crate) fn settings() -> Settings {
    Settings {
        scale_down_unneeded_time: Duration::from_secs(60),
        scale_down_delay_after_add: Duration::from_secs(60),
        max_drain_parallelism: 3,
        ..Settings::default()
    }
}

pub(crate) fn signals() -> Signals {
    let minutes = |count: u64| Duration::from_secs(60 * count);
    Signals::new(Options {
        settings: settings(),
        per_group_metrics: true,
        health: HealthLimits::new(minutes(10), minutes(15), minutes(20)),
        flags: vec!["--scale-down-unneeded-time=1m".to_owned()],
        snapshots: true,
    })
}

impl Stage {
    pub(crate) async fn set_up() -> Self {
        let signals = signals();
        let (world, story) = story::shop().unwrap();
        let begun = world.now();
        let world = Arc::new(Mutex::new(world));
        let clock = Arc::new(VirtualClock::new(begun));
        let observer = signals.observing(Arc::new(Nobody));
        let options = HostOptions { observer, clock: clock.clone(), ..HostOptions::default() };
        let host = PluginHost::new(options).unwrap();
        let embedded = plimsoll_bundled::EXPANDERS.to_vec();
        let chain = ["least-waste".to_owned()];
        let options = LibraryOptions { embedded, folder: None, config: PluginConfig::default(), in_background: false };
        let library = Library::open(&host, &chain, options).await;
        let provider = provider(&host, simulated::transport(world.clone())).await;
        let driver = Driver::new(settings(), Clouds::new(vec![provider]), library);
        Self { signals, world, story, clock, begun, driver }
    }

    /// Plays until so long after the beginning; gives the number of loops.
    pub(crate) async fn play(&mut self, until: Duration) -> u64 {
        let mut loops = 0;
        loop {
            let now = {
                let mut world = lock(&self.world);
                if world.now().since(self.begun) >= until {
                    return loops;
                }
                let next = world.now() + INTERVAL;
                while let Some(beat) = self.story.next_at().filter(|beat| *beat <= next) {
                    world.advance_to(beat);
                    self.story.play(&mut world);
                }
                world.advance_to(next);
                world.settle();
                world.now()
            };
            self.clock.set(now);
            self.signals.begins(now, &self.driver);
            let signals = self.signals.clone();
            let look = |plan: &Plan, observation: &Observation<'_>, _: &Memory| signals.look(plan, observation);
            let turned = self.driver.turn(now, &*self.world, &mut (), look).await;
            self.signals.ended(now, &self.driver, &turned).await;
            loops += 1;
        }
    }
}

async fn provider(host: &PluginHost, network: Arc<dyn Transport>) -> Provider {
    let config = serde_json::json!({"endpoint": simulated::ENDPOINT, "accelerator-label": "sim.plimsoll.dev/gpu"});
    let setup = Setup { cloud_config: Some(config.to_string()), cluster_name: "shop".to_owned(), ..Setup::default() };
    simulated::provider(host, plimsoll_bundled::SIMULATED_PROVIDER, network, setup).await.unwrap()
}
