//! A live cluster: watch it, be its leader, and run the loop until told to stop.
//!
//! ```text
//!  watches begin ──► lease ──► memory ──► loop, pause, loop, … ──► told to stop: finish, give the lease back
//!   (warm stand-by)                          │
//!                                            └──► lease lost, or a part of the process broke: end at once
//! ```

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::ArgMatches;
use plimsoll_core::ledger::Ledger;
use plimsoll_core::{Memory, Observation, Plan, Settings, priorities};
use plimsoll_driver::{Clouds, Driver};
use plimsoll_kubernetes::{
    About, Candidate, Client, Document, Event, Fence, Live, LiveOptions, MemoryStore, Pace, Recorder, Reporter,
    Restored, StatusWriter, Tone, told,
};
use plimsoll_plugins::clock::SystemClock;
use plimsoll_signals::Signals;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::exit::Exit;
use crate::expanders::{self, Events};
use crate::slot::Slot;
use crate::{flags, providers, record, signals};
use options::Options;
use pauses::Pauses;
use stop::Stop;

mod leavers;
mod options;
mod pauses;
mod soft_taints;
mod stop;

/// After the sign to stop, a loop under way gets so long to end. Kubernetes kills after 30 s.
const LAST_LOOP: Duration = Duration::from_secs(20);
/// And events that wait get so long to leave.
const LAST_EVENTS: Duration = Duration::from_secs(2);
/// Pause between attempts to read the memory.
const RESTORE_PAUSE: Duration = Duration::from_secs(2);
/// How often it is said what is still waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs until told to stop.
pub(super) async fn run(matches: &ArgMatches, settings: Settings) -> Result<(), Exit> {
    let options = Options::new(matches, &settings)?;
    let config = plimsoll_kubernetes::configure(&options.endpoint).await;
    let config = config.map_err(|error| Exit::bad_input(error.to_string()))?;
    let connect = || plimsoll_kubernetes::connect(&config).map_err(|error| Exit::bad_input(error.to_string()));
    let client = connect()?;
    // The Lease has a connection of its own, so that nothing is in front of it.
    let candidate = match &options.lease {
        Some(lease) => Some(Candidate::new(connect()?, lease.clone())),
        None => None,
    };

    let events = Events::default();
    let clock = Arc::new(SystemClock::new());
    let signals = signals::open(matches, &settings)?;
    // Those who wait to be the leader answer too.
    let _serving = signals::serve(&signals, flags::text(matches, "address")).await?;
    let observer = signals.observing(Arc::new(events.clone()));
    let host = expanders::host_for(matches, None, &events, observer)?;
    let library = expanders::library(&host, &settings.expander, matches, &events).await?;
    let slot = providers::slot(matches, &host, clock)?;
    let stop = Stop::listen().context("cannot listen to signals").map_err(Exit::failed)?;

    let leadership = candidate.as_ref().map(Candidate::leadership);
    let may_remember: Fence = Arc::new(move || leadership.as_ref().map_or(Ok(()), |leadership| leadership.check()));
    let (ending, ends) = watch::channel(false);
    let may_write: Fence = {
        let may_remember = may_remember.clone();
        Arc::new(move || if *ends.borrow() { Err("this process is about to end".to_owned()) } else { may_remember() })
    };
    let pace = || Arc::new(Pace::new(options.qps, options.burst));
    let (recorder, sending) = Recorder::start(client.clone(), pace(), options.duplicated_events);
    let live_options = LiveOptions {
        namespace: settings.namespace.clone(),
        priorities: { settings.expander.iter() }.any(|name| name == "priority").then_some(priorities::CONFIG_MAP),
        pace: pace(),
        fence: may_write,
        recorder: recorder.clone(),
    };
    let live = Live::start(client.clone(), live_options);
    let memory_store = {
        let writer = options.lease.as_ref().map_or_else(plimsoll_kubernetes::identity, |lease| lease.identity.clone());
        MemoryStore::new(client.clone(), &settings.namespace, &options.memory_name, &writer, may_remember.clone())
    };
    let mut driver = Driver::new(settings, Clouds::new(vec![]), library);
    driver.recorder = record::recorder(matches)?;
    let process = Process {
        options,
        client,
        live,
        driver,
        slot,
        events,
        store: memory_store,
        recorder,
        ending,
        may_remember,
        signals,
    };
    let ended = process.lead(candidate, stop).await;
    // The last recorder is gone; what waits may still leave.
    let _ = timeout(LAST_EVENTS, sending).await;
    ended
}

/// One replica.
struct Process {
    options: Options,
    client: Client,
    live: Live,
    driver: Driver,
    slot: Slot,
    events: Events,
    store: MemoryStore,
    recorder: Recorder,
    ending: watch::Sender<bool>,
    may_remember: Fence,
    signals: Signals,
}

impl Process {
    /// Waits to be the leader, and is it until the end.
    async fn lead(self, candidate: Option<Candidate>, mut stop: Stop) -> Result<(), Exit> {
        let Some(mut candidate) = candidate else {
            let ended = self.serve(&mut stop, std::future::pending()).await;
            return ended.map(drop);
        };
        tokio::select! {
            () = candidate.acquire() => {}
            () = stop.wanted() => return Ok(()),
            () = self.live.broken() => return Err(broken("a watch")),
        }
        if let Some(lease) = &self.options.lease {
            tracing::info!("{} became leader", lease.identity);
            let about = About::lease(&lease.namespace, &lease.name, candidate.uid());
            let message = format!("{} became leader", lease.identity);
            self.recorder.tell(about, Tone::Normal, "LeaderElection", message);
        }
        let (give_back, given) = tokio::sync::oneshot::channel::<()>();
        let mut holding = tokio::spawn(async move {
            tokio::select! {
                why = candidate.hold() => Some(why),
                given = given => {
                    // Without a word it just runs out.
                    if given.is_ok() {
                        candidate.release().await;
                    }
                    None
                }
            }
        });
        let lost = async {
            match (&mut holding).await {
                Ok(why) => why.unwrap_or_default(),
                Err(error) => error.to_string(),
            }
        };
        let finished = self.serve(&mut stop, lost).await?;
        // While a write may be on its way, nobody else may begin.
        if finished && give_back.send(()).is_ok() {
            let _ = holding.await;
        }
        Ok(())
    }

    /// Runs the loop until told to stop; says whether everything that was begun is finished. Ends at once when the lease is
    /// lost, or when a part of the process broke.
    async fn serve(mut self, stop: &mut Stop, lost: impl Future<Output = String>) -> Result<bool, Exit> {
        let mut lost = std::pin::pin!(lost);
        let status = self.options.status_name.clone().map(|name| {
            let namespace = &self.driver.settings.namespace;
            let writer = StatusWriter::start(self.client.clone(), namespace, &name, self.may_remember.clone());
            writer.write(Reporter::initializing(crate::now(), ""));
            writer
        });
        let end = |why: String| -> Result<bool, Exit> { Err(Exit::failed(anyhow!("leader election lost: {why}"))) };
        let ending = self.ending.clone();
        let finished = {
            let mut looping = std::pin::pin!(self.run_loops(status.as_ref()));
            tokio::select! {
                biased;
                why = &mut lost => return end(why),
                ended = &mut looping => return ended.map(|()| true),
                () = stop.wanted() => {}
            }
            tracing::info!("told to stop");
            ending.send_replace(true);
            tokio::select! {
                biased;
                why = &mut lost => return end(why),
                finished = timeout(LAST_LOOP, &mut looping) => finished.ok().transpose()?.is_some(),
            }
        };
        if !finished {
            tracing::warn!("a loop did not end in time; the lease runs out by itself");
            return Ok(false);
        }
        if let Some(status) = status {
            status.delete().await;
        }
        Ok(true)
    }

    /// Loop after loop; ends when told to, or when a part of the process broke.
    async fn run_loops(&mut self, status: Option<&StatusWriter>) -> Result<(), Exit> {
        let mut ends = self.ending.subscribe();
        tokio::select! {
            () = self.live.broken() => return Err(broken("a watch")),
            _ = ends.wait_for(|ends| *ends) => return Ok(()),
            () = see_everything(&self.live) => {}
        }
        let restored = tokio::select! {
            _ = ends.wait_for(|ends| *ends) => return Ok(()),
            memory = restore(&mut self.store) => memory,
        };
        self.driver.memory = restored;
        let settings = &self.driver.settings;
        self.signals.monitor();
        let settling = settings.node_delete_delay_after_taint;
        let mut pauses = Pauses::new(self.options.scan_interval, self.options.frequent_loops, settling);
        let mut reporter = Reporter::default();
        loop {
            pauses.begin(crate::now());
            self.turn(&mut reporter, status).await;
            if status.is_some_and(StatusWriter::is_broken) {
                return Err(broken("the writer of the status"));
            }
            if let Some(why) = self.store.displaced() {
                return Err(Exit::failed(anyhow!("{why}; ending, to begin anew from what it says")));
            }
            let pause = pauses.next(&self.driver.memory);
            let ended = Instant::now();
            let pods = async {
                sleep_until(ended + pause.least).await;
                match pause.by_pods {
                    true => self.live.unschedulable().await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.live.broken() => return Err(broken("a watch")),
                _ = ends.wait_for(|ends| *ends) => return Ok(()),
                () = sleep_until(ended + pause.longest) => {}
                () = pods => {}
            }
        }
    }

    /// One loop.
    async fn turn(&mut self, reporter: &mut Reporter, status: Option<&StatusWriter>) {
        if self.live.renew() {
            // Templates that are remembered name things by the numbers of the old tables.
            self.driver.memory.templates.clear();
        }
        if let Some(why) = self.live.stale() {
            tracing::warn!("nothing is done on what is known of the cluster: {why}");
            self.signals.failed();
            return;
        }
        match self.slot.poll().await {
            Ok(Some(arrival)) => {
                self.driver.clouds.replace(arrival.provider);
                arrival.words.into_iter().for_each(|words| self.events.turn(words));
            }
            Ok(None) => {}
            Err(why) => self.events.add(why),
        }
        let settings = self.driver.settings.clone();
        let before = told::Before::of(&self.driver.memory);
        let about = self.about_status(status);
        let now = crate::now();
        self.signals.begins(now, &self.driver);
        let look = |plan: &Plan, observation: &Observation<'_>, memory: &Memory| {
            self.signals.look(plan, observation);
            Seen {
                events: told::events(plan, observation, &before, memory, about.as_ref()),
                document: status.map(|_| reporter.running(plan, observation, memory, &settings)),
                wishes: soft_taints::wishes(plan, observation),
                leavers: leavers::without_machine(observation, memory),
            }
        };
        let mut turned = self.driver.turn(now, &self.live, &mut self.store, look).await;
        turned.troubles.extend(self.live.troubles().into_iter().chain(self.events.take()));
        self.events.take_turns().iter().for_each(|text| tracing::info!("{text}"));
        self.signals.ended(now, &self.driver, &turned).await;
        let Seen { events, document, wishes, leavers } = turned.seen;
        events.into_iter().for_each(|event| self.recorder.record(event));
        if let (Some(status), Some(document)) = (status, document) {
            status.write(document);
        }
        soft_taints::mark(&self.live, &wishes, self.options.soft_taints).await;
        if self.options.delete_node_objects {
            leavers::delete(&self.live, &leavers).await;
        }
    }

    fn about_status(&self, status: Option<&StatusWriter>) -> Option<About> {
        let name = self.options.status_name.as_ref()?;
        Some(About::config_map(&self.driver.settings.namespace, name, &status?.uid()))
    }
}

/// What is made of a loop while its observation is there.
struct Seen {
    events: Vec<Event>,
    document: Option<Document>,
    wishes: soft_taints::Wishes,
    leavers: Vec<String>,
}

/// Waits until the watches have seen everything, and says what is missing if that takes long.
async fn see_everything(live: &Live) {
    while timeout(PATIENCE, live.ready()).await.is_err() {
        tracing::warn!("still waiting for {}", live.waiting_for().join("; "));
    }
}

/// What the process before left. Without an answer nothing is begun.
async fn restore(store: &mut MemoryStore) -> Memory {
    let restored = loop {
        match store.restore().await {
            Ok(restored) => break restored,
            Err(error) => tracing::warn!("{error}"),
        }
        sleep(RESTORE_PAUSE).await;
    };
    match restored {
        Restored::Memory(memory) => *memory,
        Restored::Nothing => fresh(),
        Restored::Unreadable(why) => {
            tracing::warn!("what the process before remembered cannot be read, every wait begins anew: {why}");
            fresh()
        }
        Restored::Forbidden(why) => {
            tracing::warn!(
                "nothing is remembered beyond this process, so every wait begins anew at a restart; the role needs get and \
                 update of this ConfigMap: {why}"
            );
            fresh()
        }
    }
}

/// A memory of nothing, whose orders are told from those of any before.
fn fresh() -> Memory {
    let number = u64::try_from(crate::now().millis()).unwrap_or(0);
    Memory { ledger: Ledger::numbered_above(number), ..Memory::default() }
}

fn broken(part: &str) -> Exit {
    Exit::failed(anyhow!("{part} of this process ended by an error of the program; see above"))
}
