//! What the run loop calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_core::{Action, Memory, Observation, Outcome, Plan, Settings};
use plimsoll_driver::{Driver, Turned};
use plimsoll_model::Time;
use plimsoll_plugins::observer::Observer;
use tokio::sync::oneshot;

use crate::account::{self, Account, Bounds};
use crate::api::Journal;
use crate::decisions::Said;
use crate::health::{Health, HealthLimits, Sick};
use crate::metrics::{self, Counted, ErrorType, Metrics, PluginMetrics};
use crate::state::{Cloud, LoopState};

/// How the signals are set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// The settings of the loop.
    pub settings: Settings,
    /// `emit-per-nodegroup-metrics`.
    pub per_group_metrics: bool,
    /// Limits of `/health-check`.
    pub health: HealthLimits,
    /// Flags that decisions hang on, as on the command line.
    pub flags: Vec<String>,
    /// `debugging-snapshot-enabled`.
    pub snapshots: bool,
}

/// The signals of one process. Copies are the same signals.
#[derive(Clone)]
pub struct Signals(Arc<Shared>);

struct Shared {
    options: Options,
    metrics: Arc<Metrics>,
    /// The beginning of the clock that health is measured by.
    started: Instant,
    state: Mutex<State>,
}

struct State {
    health: Health,
    /// When the last loop ended.
    ended: Option<Instant>,
    /// What the running loop saw.
    counted: Counted,
    /// Its account, until it has ended.
    account: Option<Account>,
    journal: Journal,
    said: Said,
    /// Who wants the state of the next loop.
    wanting: Vec<Wish>,
    /// Who gets the state of the running loop, and the memory that it began with.
    promised: Option<(Memory, Vec<Wish>)>,
}

/// Somebody who wants the state of a loop.
type Wish = oneshot::Sender<Arc<LoopState>>;

/// Most who may want the state of a loop at a time.
const MOST_WISHES: usize = 4;

impl Signals {
    /// Signals of a process that has done nothing yet. Health is not monitored before [`Signals::monitor`].
    pub fn new(options: Options) -> Self {
        let metrics = Metrics::new(|flag| flag != "emit-per-nodegroup-metrics" || options.per_group_metrics);
        metrics.begin(&options.settings);
        let state = State {
            health: Health::new(options.health),
            ended: None,
            counted: Counted::default(),
            account: None,
            journal: Journal::default(),
            said: Said::default(),
            wanting: vec![],
            promised: None,
        };
        let (metrics, state) = (Arc::new(metrics), Mutex::new(state));
        Self(Arc::new(Shared { options, metrics, started: Instant::now(), state }))
    }

    /// Counts what plug-ins do, and hands everything on to another observer. For the host of the plug-ins.
    pub fn observing(&self, next: Arc<dyn Observer>) -> Arc<dyn Observer> {
        Arc::new(PluginMetrics { metrics: self.0.metrics.clone(), next })
    }

    /// From now on the loop must be alive, or `/health-check` fails. Call it when this replica begins to loop.
    pub fn monitor(&self) {
        let now = self.0.started.elapsed();
        self.state().health.begin(now);
    }

    /// A loop begins, at the time that it decides by.
    pub fn begins(&self, now: Time, driver: &Driver) {
        let (clock, instant) = (self.0.started.elapsed(), Instant::now());
        let mut state = self.state();
        state.health.active(clock);
        state.promised = match std::mem::take(&mut state.wanting) {
            wanting if wanting.is_empty() => None,
            wanting => Some((driver.memory.clone(), wanting)),
        };
        if let Some(ended) = state.ended.take() {
            self.0.metrics.function("loopWait", instant.saturating_duration_since(ended));
        }
        self.0.metrics.active("main", now);
        self.0.metrics.active("autoscaling", now);
    }

    /// A plan, while what it was made from is there. For the `look` of [`Driver::turn`].
    pub fn look(&self, plan: &Plan, observation: &Observation<'_>) {
        let counted = self.0.metrics.saw(plan, observation, &self.0.options.settings);
        let account = account::account(plan, observation, &[], Bounds::SERVED);
        let mut state = self.state();
        state.counted = counted;
        state.account = Some(account);
    }

    /// A loop is over. It succeeded unless no cloud could be read.
    pub async fn ended<T>(&self, now: Time, driver: &Driver, turned: &Turned<T>) {
        let providers = driver.clouds.status().await;
        let metrics = &self.0.metrics;
        metrics.providers(&providers);
        metrics.took(&turned.timings);
        metrics.remembers(&driver.memory, now);
        let counted = std::mem::take(&mut self.state().counted);
        metrics.wrote(&turned.writes, &driver.memory, &counted);
        let mut errors: Vec<ErrorType> =
            turned.writes.iter().filter_map(metrics::failure).map(|(kind, _)| kind).collect();
        let read = driver.clouds.readings().filter(|(_, trouble)| trouble.is_none()).count();
        let unread = driver.clouds.readings().count() - read;
        errors.extend((unread > 0).then_some(ErrorType::CloudProvider));
        errors.sort_unstable();
        errors.dedup();
        errors.into_iter().for_each(|kind| metrics.error(kind));
        let did = |wanted: fn(&Action, &Outcome) -> bool| {
            turned.writes.iter().any(|write| wanted(&write.action, &write.outcome))
        };
        if did(|action, outcome| matches!((action, outcome), (Action::Increase { .. }, Outcome::Size(Ok(_))))) {
            metrics.active("scaleUp", now);
        }
        if did(|action, outcome| matches!((action, outcome), (Action::Delete { .. }, Outcome::Delete(Ok(_))))) {
            metrics.active("scaleDown", now);
        }
        let clock = self.0.started.elapsed();
        let mut state = self.state();
        if let Some((memory, wanting)) = state.promised.take() {
            let cloud = Cloud::of(driver.clouds.view());
            let told = Arc::new(LoopState::new(now.to_string(), self.0.options.flags.clone(), memory, cloud));
            // Who went away does not want it any more.
            wanting.into_iter().for_each(|wish| drop(wish.send(told.clone())));
        }
        state.ended = Some(Instant::now());
        if let Some(mut account) = state.account.take() {
            account.warnings.splice(0..0, turned.troubles.iter().cloned());
            state.said.tell(&account, &turned.plan.warnings, &turned.writes);
            state.journal.add(account);
        }
        if read > 0 || unread == 0 {
            state.health.succeeded(clock);
            metrics.active("mainSuccessful", now);
        }
    }

    /// A loop that could not begin or end, because the API server could not be read or written.
    pub fn failed(&self) {
        self.0.metrics.error(ErrorType::ApiCall);
        self.state().ended = Some(Instant::now());
    }

    /// Whether the loop is alive.
    ///
    /// # Errors
    ///
    /// If it is not, with the ages of its last signs of life.
    pub fn health(&self) -> Result<(), Sick> {
        let now: Duration = self.0.started.elapsed();
        self.state().health.check(now)
    }

    /// All metrics in the Prometheus text format.
    pub fn metrics_text(&self) -> String {
        self.0.metrics.text()
    }

    /// The account of the last loop that ended.
    pub fn latest(&self) -> Option<Arc<Account>> {
        self.state().journal.latest()
    }

    /// The state of the next loop that begins; none if too many want it already, or the process ends before.
    pub(crate) fn next_state(&self) -> Option<oneshot::Receiver<Arc<LoopState>>> {
        let mut state = self.state();
        state.wanting.retain(|wish| !wish.is_closed());
        if state.wanting.len() >= MOST_WISHES {
            return None;
        }
        let (wish, told) = oneshot::channel();
        state.wanting.push(wish);
        Some(told)
    }

    /// Whether `/snapshotz` is served.
    pub(crate) fn has_snapshots(&self) -> bool {
        self.0.options.snapshots
    }

    /// Looks at what is kept of the loops.
    pub(crate) fn journal<T>(&self, look: impl FnOnce(&Journal) -> T) -> T {
        look(&self.state().journal)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
