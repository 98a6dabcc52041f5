//! An in-memory cluster in front of the operator's provider: nodes are the machines that the provider lists.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use clap::ArgMatches;
use plimsoll_core::observation::prepare;
use plimsoll_core::{Loop, Memory, Observation, Settings};
use plimsoll_model::Time;
use plimsoll_plugins::Library;
use plimsoll_sim::World;
use plimsoll_sim::joins::Joins;
use plimsoll_sim::scenario::Scenario;

use super::clock::FastClock;
use crate::acting::{Acting, lock};
use crate::clouds::Clouds;
use crate::demo::narrate::{self, Line, Voice};
use crate::exit::Exit;
use crate::expanders::{self, Events};
use crate::providers::{self, Slot};
use crate::{drive, flags, terminal};

/// Plays the scenario to its end.
pub(crate) async fn run(matches: &ArgMatches, settings: Settings) -> Result<(), Exit> {
    let scenario = scenario(matches)?;
    let interval = flags::duration(matches, "scan-interval").map_err(Exit::flag)?;
    let clock = FastClock::starting_now(matches.get_one::<u32>("speed").copied().unwrap_or(1));
    let events = Events::default();
    let host = expanders::host(matches, Some(Arc::new(clock)), &events)?;
    let library = expanders::library(&host, &settings.expander, matches, &events).await?;
    let slot = providers::Slot::new(matches, &host, Arc::new(clock))?;
    let mut world = World::new(clock.begun());
    scenario.set_up(&mut world).map_err(Exit::bad_input)?;
    let length = scenario.length;
    let mut stage = Stage {
        joins: Joins::new(scenario.manner),
        world: Mutex::new(world),
        scenario,
        begun: clock.begun(),
        settings,
        memory: Memory::default(),
        clouds: Clouds::new(vec![]),
        slot,
        library,
        events,
        voice: Voice::default(),
    };
    while clock.now().since(clock.begun()) < length {
        let lines = stage.turn(clock.now()).await;
        for line in lines {
            let text = format!("{}  {}  {}\n", narrate::clock(line.at), line.tone.mark(), line.text);
            terminal::print(&text).context("cannot write").map_err(Exit::failed)?;
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
    world: Mutex<World>,
    joins: Joins,
    scenario: Scenario,
    begun: Time,
    settings: Settings,
    memory: Memory,
    clouds: Clouds,
    slot: Slot,
    library: Library,
    events: Events,
    voice: Voice,
}

impl Stage {
    /// One loop, and what happened since the last.
    async fn turn(&mut self, now: Time) -> Vec<Line> {
        let seen = {
            let mut world = lock(&self.world);
            world.advance_to(now);
            self.scenario.play(self.begun, &mut world);
            world.settle();
            world.cluster.clone()
        };
        self.library.poll().await;
        match self.slot.poll().await {
            Ok(Some(provider)) => self.clouds.replace(provider),
            Ok(None) => {}
            Err(why) => self.events.add(why),
        }
        let mut troubles = self.clouds.refresh(&seen).await;
        let (prepared, cluster, happened) = {
            let mut world = lock(&self.world);
            let view = self.clouds.view();
            self.joins.follow(&mut world, &view.snapshot.groups, view.templates);
            world.settle();
            let happened = world.take_happened();
            let prepared = prepare(now, &mut world.cluster, view, &self.settings, &mut self.memory.templates);
            (prepared, world.cluster.clone(), happened)
        };
        let observation = Observation::new(prepared, &cluster, self.clouds.view(), &self.settings);
        let turn = Loop::new(&observation, &self.settings, &mut self.memory);
        let mut answers = Acting { api: &self.world, clouds: &self.clouds, library: &self.library, cluster: &cluster };
        let plan = drive::run(turn, &mut answers).await;

        let at = now.since(self.begun);
        let mut lines: Vec<Line> = happened.iter().map(|happened| narrate::happened(happened, self.begun)).collect();
        lines.extend(narrate::plan(&plan, &observation).into_iter().map(|(tone, text)| Line { at, tone, text }));
        troubles.extend(self.events.take());
        troubles.extend(plan.warnings.iter().map(ToString::to_string));
        lines.extend(self.voice.news(at, troubles));
        lines.extend(self.voice.judgements(at, &plan, &observation));
        lines
    }

    fn summary(&self) -> String {
        let world = lock(&self.world);
        let (nodes, waiting) = (world.cluster.nodes.len(), world.cluster.pods.iter().filter(|pod| pod.node.is_none()));
        let sizes: Vec<String> = self
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
