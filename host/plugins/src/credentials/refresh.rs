//! Keys that end: renewed ahead of time, by one fetch at a time, and the old one serves while it is valid.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::watch;

use super::Exposed;
use super::alicloud::date;
use super::error::CredentialError;
use super::key::{Key, KeySource, Life};
use crate::Pending;
use crate::clock::Clock;

/// First pause after a fetch that failed; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A key is not thrown away sooner than this after the last one was: where the cloud refuses each new key, another one
/// helps as little.
const BETWEEN_REFUSALS: Duration = Duration::from_secs(60);

/// Asks a service for a key.
pub(super) trait Fetch: Send + Sync {
    /// Address of the service, for messages.
    fn service(&self) -> String;
    /// A key that was made now.
    fn fetch(&self) -> Pending<'_, Result<Key, CredentialError>>;
}

/// Keeps a key of a service at hand. Clones share it.
#[derive(Clone)]
pub(super) struct Refreshing(Arc<Inner>);

type Flight = watch::Receiver<Option<Result<Arc<Key>, CredentialError>>>;

struct Inner {
    fetch: Box<dyn Fetch>,
    clock: Arc<dyn Clock>,
    current: ArcSwapOption<Key>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    flight: Option<Flight>,
    failures: u32,
    /// No fetch before this time of the monotonic clock, because of this error.
    pause: Option<(Duration, CredentialError)>,
    /// When a key was thrown away because the cloud refused it, by the monotonic clock.
    refused: Option<Duration>,
}

/// What to do about a key that should be renewed.
enum Step {
    Wait(Flight),
    /// The last fetch failed a moment ago.
    Failed(CredentialError),
}

impl Refreshing {
    pub(super) fn new(fetch: impl Fetch + 'static, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            fetch: Box::new(fetch),
            clock,
            current: ArcSwapOption::empty(),
            state: Mutex::default(),
        }))
    }

    async fn get(&self) -> Result<Arc<Key>, CredentialError> {
        let now = self.0.clock.wall();
        let valid = self.0.current.load_full().filter(|key| key.life.is_none_or(|life| now < life.until));
        if let Some(key) = &valid
            && key.life.is_none_or(|life| now < life.renew_at())
        {
            return Ok(key.clone());
        }
        let step = self.step();
        if let Some(key) = valid {
            // The fetch goes on by itself.
            return Ok(key);
        }
        match step {
            Step::Failed(error) => Err(error),
            Step::Wait(mut flight) => match flight.wait_for(Option::is_some).await {
                Ok(landed) => landed.clone().unwrap_or_else(|| Err(broken_off())),
                Err(_) => Err(broken_off()),
            },
        }
    }

    /// Throws the key away that the cloud refused, unless that was done a moment ago or another one is there already.
    fn throw_away(&self, shown: &Exposed) -> bool {
        let mut state = self.0.lock();
        let current = self.0.current.load_full();
        if current.is_none_or(|key| !shown.shows(&key.id)) {
            return true;
        }
        let now = self.0.clock.monotonic();
        if state.refused.is_some_and(|last| now < last + BETWEEN_REFUSALS) {
            return false;
        }
        state.refused = Some(now);
        self.0.current.store(None);
        tracing::warn!(service = %self.0.fetch.service(), "the cloud refuses a key before its end; it is renewed");
        true
    }

    /// Joins the fetch that is on its way, or starts one.
    fn step(&self) -> Step {
        let mut state = self.0.lock();
        if let Some(flight) = &state.flight
            && flight.has_changed().is_ok()
        {
            return Step::Wait(flight.clone());
        }
        if let Some((until, error)) = &state.pause
            && self.0.clock.monotonic() < *until
        {
            return Step::Failed(error.clone());
        }
        let (landing, flight) = watch::channel(None);
        state.flight = Some(flight.clone());
        drop(state);
        let inner = self.0.clone();
        // A task of its own: a caller that gives up must not break off what others wait for.
        tokio::spawn(async move {
            let result = inner.fetched().await;
            inner.land(&result);
            let _ = landing.send(Some(result));
        });
        Step::Wait(flight)
    }
}

fn broken_off() -> CredentialError {
    CredentialError::Other("the fetch of the key was broken off".to_owned())
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetched(&self) -> Result<Arc<Key>, CredentialError> {
        let mut key = self.fetch.fetch().await?;
        let now = self.clock.wall();
        if let Some(life) = key.life {
            if life.until <= now {
                let (expired, now) = (date(life.until)?, date(now)?);
                return Err(CredentialError::Stale { service: self.fetch.service(), expired, now });
            }
            key.life = Some(Life { since: now, until: life.until });
        }
        Ok(Arc::new(key))
    }

    fn land(&self, result: &Result<Arc<Key>, CredentialError>) {
        let mut state = self.lock();
        state.flight = None;
        match result {
            Ok(key) => {
                self.current.store(Some(key.clone()));
                (state.failures, state.pause) = (0, None);
                tracing::debug!(service = %self.fetch.service(), ?key, "got a key");
            }
            Err(error) => {
                let pause = (FIRST_PAUSE * 2_u32.saturating_pow(state.failures.min(16))).min(LONGEST_PAUSE);
                state.failures = state.failures.saturating_add(1);
                state.pause = Some((self.clock.monotonic() + pause, error.clone()));
                tracing::warn!(failures = state.failures, ?pause, "a key cannot be renewed: {error}");
            }
        }
    }
}

impl KeySource for Refreshing {
    fn key(&self) -> Pending<'_, Result<Arc<Key>, CredentialError>> {
        Box::pin(self.get())
    }
    fn refused(&self, shown: &Exposed) -> bool {
        self.throw_away(shown)
    }
}
