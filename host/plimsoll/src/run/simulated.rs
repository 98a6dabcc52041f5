//! An in-memory cluster in front of the operator's provider: nodes are the machines that the provider lists.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use clap::ArgMatches;
use plimsoll_core::{Memory, Observation, Plan, Settings};
use plimsoll_driver::{Clouds, Driver, Joining, lock};
use plimsoll_model::Time;
use plimsoll_signals::Signals;
use plimsoll_sim::World;
use plimsoll_sim::joins::Joins;
use plimsoll_sim::scenario::Scenario;

use super::clock::FastClock;
use crate::demo::narrate::{self, Line, Voice};
use crate::exit::Exit;
use crate::expanders::{self, Events};
use crate::slot::Slot;
use crate::{flags, providers, record, signals, terminal};

/// Plays the scenario to its end.
pub(crate) async fn run(matches: &ArgMatches, settings: Settings) -> Result<(), Exit> {
    let scenario = scenario(matches)?;
    let interval = flags::duration(matches, "scan-interval").map_err(Exit::flag)?;
    let clock = FastClock::starting_now(matches.get_one::<u32>("speed").copied().unwrap_or(1));
    let events = Events::default();
    let signals = signals::open(matches, &settings)?;
    let _serving = match flags::texts(matches, "address").last() {
        Some(address) => Some(signals::serve(&signals, address).await?),
        None => None,
    };
    let observer = signals.observing(Arc::new(events.clone()));
    let host = expanders::host_for(matches, Some(Arc::new(clock)), &events, observer)?;
    let library = expanders::library(&host, &settings.expander, matches, &events).await?;
    let slot = providers::slot(matches, &host, Arc::new(clock))?;
    let mut world = World::new(clock.begun());
    scenario.set_up(&mut world).map_err(Exit::bad_input)?;
    let length = scenario.length;
    let mut driver = Driver::new(settings, Clouds::new(vec![]), library);
    driver.recorder = record::recorder(matches)?;
    let mut stage = Stage {
        cluster: Joining { joins: Mutex::new(Joins::new(scenario.manner)), world: Mutex::new(world) },
        scenario,
        begun: clock.begun(),
        driver,
        slot,
        events,
        voice: Voice::default(),
        signals,
    };
    stage.signals.monitor();
    while clock.now().since(clock.begun()) < length {
        let lines = stage.turn(clock.now()).await;
        for line in lines {
            terminal::print(&line.to_string()).context("cannot write").map_err(Exit::failed)?;
        }
        tokio::time::sleep(clock.real(interval)).await;
    }
    terminal::print(&stage.summary()).context("cannot write").map_err(Exit::failed)
}

fn scenario(matches: &ArgMatches) -> Result<Scenario, Exit> {
    let path = matches.get_one::<PathBuf>("scenario").ok_or_else(|| {
        Exit::bad_input("--cluster=simulated needs --scenario FILE, which says what pods there are".to_owned())
    })?;
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|error| Exit::bad_input(format!("{name}: cannot be read: {error}")))?;
    Scenario::parse(&name, &text).map_err(Exit::bad_input)
}

struct Stage {
    cluster: Joining,
    scenario: Scenario,
    begun: Time,
    driver: Driver,
    slot: Slot,
    events: Events,
    voice: Voice,
    signals: Signals,
}

impl Stage {
    /// One loop, and what happened since the last.
    async fn turn(&mut self, now: Time) -> Vec<Line> {
        {
            let mut world = lock(&self.cluster.world);
            world.advance_to(now);
            self.scenario.play(self.begun, &mut world);
            world.settle();
        }
        match self.slot.poll().await {
            Ok(Some(arrival)) => {
                self.driver.clouds.replace(arrival.provider);
                arrival.words.into_iter().for_each(|words| self.events.turn(words));
            }
            Ok(None) => {}
            Err(why) => self.events.add(why),
        }
        let at = now.since(self.begun);
        self.signals.begins(now, &self.driver);
        let look = |plan: &Plan, observation: &Observation<'_>, _: &Memory| {
            self.signals.look(plan, observation);
            self.voice.look(at, plan, observation)
        };
        let turned = self.driver.turn(now, &self.cluster, &mut (), look).await;
        self.signals.ended(now, &self.driver, &turned).await;
        let happened = lock(&self.cluster.world).take_happened();
        let happened = happened.iter().map(|happened| narrate::happened(happened, self.begun));
        self.voice.lines(at, happened, turned, &self.events)
    }

    fn summary(&self) -> String {
        let world = lock(&self.cluster.world);
        let (nodes, waiting) = (world.cluster.nodes.len(), world.cluster.pods.iter().filter(|pod| pod.node.is_none()));
        let sizes: Vec<String> = self
            .driver
            .clouds
            .view()
            .snapshot
            .groups
            .iter()
            .map(|group| format!("{} {}", group.id, group.target_size))
            .collect();
        let requests = self.events.requests().read();
        let requests = requests
            .iter()
            .map(|(kind, count)| format!("requests of {} to {}: {count} {kind}\n", kind.plugin, kind.host));
        format!(
            "{}at the end: {}, {} waiting; {}\n",
            requests.collect::<String>(),
            terminal::plural(nodes, "node"),
            terminal::plural(waiting.count(), "pod"),
            sizes.join(", ")
        )
    }
}
