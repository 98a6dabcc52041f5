//! The demo's stage: a simulated world, with the real loop and real components in front of it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::Context as _;
use clap::ArgMatches;
use plimsoll_core::{Memory, Observation, Plan, Settings};
use plimsoll_driver::{Clouds, Driver, lock, simulated};
use plimsoll_model::Time;
use plimsoll_plugins::clock::VirtualClock;
use plimsoll_plugins::egress::{NetworkGrants, Transport};
use plimsoll_plugins::limits::Limits;
use plimsoll_plugins::plugin::{Kind, Plugin};
use plimsoll_plugins::provider::{ProviderOptions, Setup};
use plimsoll_plugins::restart::RestartPolicy;
use plimsoll_plugins::{PluginHost, Provider};
use plimsoll_sim::World;
use plimsoll_sim::story::{self, Story};

use super::ledger::Figures;
use super::narrate::{self, Line, Voice};
use crate::exit::Exit;
use crate::expanders::{self, Events};
use crate::record;

/// Pause between loops, as `scan-interval` has it.
const INTERVAL: Duration = Duration::from_secs(10);

/// The demo, between two moments.
pub(crate) struct Stage {
    world: Arc<Mutex<World>>,
    story: Story,
    clock: Arc<VirtualClock>,
    begun: Time,
    /// The world's clock, so that it can be told while somebody looks at the world.
    now: Time,
    next_loop: Time,
    driver: Driver,
    events: Events,
    pub(crate) voice: Voice,
    pub(crate) figures: Figures,
}

impl Stage {
    pub(crate) async fn set_up(matches: &ArgMatches, mut settings: Settings) -> Result<Self, Exit> {
        // A story of a few minutes needs shorter waits than a night in production; flags still override them.
        let given = |flag: &str| matches.value_source(flag) == Some(clap::parser::ValueSource::CommandLine);
        for (flag, wait, value) in [
            ("scale-down-unneeded-time", &mut settings.scale_down_unneeded_time, 60),
            ("scale-down-delay-after-add", &mut settings.scale_down_delay_after_add, 60),
            ("scale-down-unready-time", &mut settings.scale_down_unready_time, 120),
        ] {
            if !given(flag) {
                *wait = Duration::from_secs(value);
            }
        }
        if !given("max-drain-parallelism") {
            settings.max_drain_parallelism = 3;
        }
        let (world, story) = story::shop().context("the story cannot be told").map_err(Exit::failed)?;
        let begun = world.now();
        let world = Arc::new(Mutex::new(world));
        let clock = Arc::new(VirtualClock::new(begun));
        let events = Events::default();
        let host = expanders::host(matches, Some(clock.clone()), &events)?;
        let library = expanders::library(&host, &settings.expander, matches, &events).await?;

        let transport = simulated::transport(world.clone());
        let mut providers = vec![of_the_story(&host, &transport).await?];
        providers.extend(others(matches, &host, &transport, &events).await?);
        let mut driver = Driver::new(settings, Clouds::new(providers), library);
        driver.recorder = record::recorder(matches)?;
        Ok(Self {
            world,
            story,
            clock,
            begun,
            now: begun,
            next_loop: begun,
            driver,
            events,
            voice: Voice::default(),
            figures: Figures::default(),
        })
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Time since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.now().since(self.begun)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.elapsed() >= self.story.length
    }

    /// Moves on, but not past `until`, a loop or a beat; runs the loop if its time has come.
    pub(crate) async fn advance(&mut self, until: Time) -> Vec<Line> {
        let stop = [Some(self.next_loop), self.story.next_at()].into_iter().flatten().fold(until, Time::min);
        let happened = {
            let mut world = lock(&self.world);
            let stop = stop.max(world.now());
            world.advance_to(stop);
            self.story.play(&mut world);
            world.settle();
            self.figures.look(&world);
            world.take_happened()
        };
        let now = self.world().now();
        self.now = now;
        self.clock.set(now);
        let mut lines: Vec<Line> = happened.iter().map(|happened| narrate::happened(happened, self.begun)).collect();
        if now >= self.next_loop {
            self.next_loop = now + INTERVAL;
            let told = self.turn(now).await;
            lines.extend(told);
        }
        lines
    }

    /// One loop.
    async fn turn(&mut self, now: Time) -> Vec<Line> {
        let at = now.since(self.begun);
        let look = |plan: &Plan, observation: &Observation<'_>, _: &Memory| self.voice.look(at, plan, observation);
        let turned = self.driver.turn(now, &*self.world, &mut (), look).await;
        let happened = self.world().take_happened();
        let happened = happened.iter().map(|happened| narrate::happened(happened, self.begun));
        self.voice.lines(at, happened, turned, &self.events)
    }
}

/// The provider of the simulated cloud, as an operator would grant it.
async fn of_the_story(host: &PluginHost, transport: &Arc<dyn Transport>) -> Result<Provider, Exit> {
    let provider = simulated::provider(host, plimsoll_bundled::SIMULATED_PROVIDER, transport.clone(), setup()).await;
    provider.context("the built-in provider cannot be used").map_err(Exit::failed)
}

fn setup() -> Setup {
    let config = serde_json::json!({"endpoint": simulated::ENDPOINT, "accelerator-label": "sim.plimsoll.dev/gpu"});
    Setup {
        cloud_config: Some(config.to_string()),
        cluster_name: "shop".to_owned(),
        user_agent: format!("plimsoll/{}", env!("CARGO_PKG_VERSION")),
        ..Setup::default()
    }
}

/// Providers in the plug-in folder. They run beside the simulated cloud's, with what their entry grants them.
async fn others(
    matches: &ArgMatches,
    host: &PluginHost,
    transport: &Arc<dyn Transport>,
    events: &Events,
) -> Result<Vec<Provider>, Exit> {
    let Some(folder) = matches.get_one::<std::path::PathBuf>("plugin-dir") else { return Ok(vec![]) };
    let config = expanders::config(matches)?;
    let loaded = host.load_folder(folder, &config).await;
    let loaded = loaded.map_err(|error| Exit::bad_input(format!("{}: cannot be read: {error}", folder.display())))?;
    let mut providers = Vec::new();
    for plugin in loaded {
        let plugin: Plugin = match plugin {
            Ok(plugin) if plugin.kind() == Kind::CloudProvider => plugin,
            Ok(_) => continue,
            Err(error) => {
                events.add(error.to_string());
                continue;
            }
        };
        let entry = config.entry(plugin.name());
        let mut options = ProviderOptions::new(setup(), transport.clone());
        options.limits = Limits::of(&entry);
        options.settings = entry.settings.clone();
        options.grants = NetworkGrants::of_this_machine(&entry, &config.file, vec![]).map_err(Exit::bad_input)?;
        options.restarts = RestartPolicy::default();
        match Provider::spawn(host, &plugin, options) {
            Ok(provider) => providers.push(provider),
            Err(error) => events.add(error.to_string()),
        }
    }
    Ok(providers)
}
