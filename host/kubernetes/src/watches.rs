//! All watches of one observation, and what they see.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::mirror::Mirror;
use crate::reflector::Reflector;
use crate::resources::{Need, Resource};

/// What one watch sees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sight {
    /// Nothing yet.
    Starting,
    /// Everything, as it happens.
    Clear,
    /// What it saw before, if anything.
    Failing {
        /// Since when.
        since: Instant,
        /// Why.
        why: String,
    },
    /// The loop goes on without.
    Absent {
        /// Why, and what that means.
        why: String,
    },
}

/// One kind, and how well it is seen.
#[derive(Debug)]
struct Seen {
    name: &'static str,
    need: Need,
    sight: Sight,
    /// Whether it was ever seen as a whole.
    known: bool,
}

/// What the watches share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) mirror: Mutex<Mirror>,
    seen: Mutex<Vec<Seen>>,
    /// What is wrong with what was seen, until it is taken.
    complaints: Mutex<BTreeSet<String>>,
    /// Something changed in the mirror, or in how well a watch sees.
    pub(crate) changed: Notify,
    /// A pod turned unschedulable; holds one signal.
    pub(crate) unschedulable: Notify,
    /// A watch ended, which it does only by a panic; holds one signal.
    pub(crate) broken: Notify,
}

/// Tells when a watch ends, however it does.
struct Loud(Arc<Shared>);

impl Drop for Loud {
    fn drop(&mut self) {
        self.0.broken.notify_one();
    }
}

impl Shared {
    fn new(resources: &[Resource]) -> Self {
        let seen = |resource: &Resource| Seen {
            name: resource.name,
            need: resource.need,
            sight: Sight::Starting,
            known: false,
        };
        Self {
            mirror: Mutex::default(),
            seen: Mutex::new(resources.iter().map(seen).collect()),
            complaints: Mutex::default(),
            changed: Notify::new(),
            unschedulable: Notify::new(),
            broken: Notify::new(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how well a watch sees. A failure that goes on began when it began.
    pub(crate) fn sees(&self, number: usize, sight: Sight) {
        {
            let mut seen = self.seen();
            let Some(seen) = seen.get_mut(number) else { return };
            match (&seen.sight, &sight) {
                (Sight::Failing { .. }, Sight::Clear) => tracing::info!(kind = seen.name, "watching again"),
                (before, Sight::Failing { why, .. }) if !matches!(before, Sight::Failing { .. }) => {
                    tracing::warn!(kind = seen.name, "cannot be read: {why}");
                }
                (before, Sight::Absent { why }) if *before != sight => tracing::warn!("{} {why}", seen.name),
                _ => {}
            }
            seen.known |= matches!(sight, Sight::Clear | Sight::Absent { .. });
            seen.sight = match (&seen.sight, sight) {
                (Sight::Failing { since, .. }, Sight::Failing { why, .. }) => Sight::Failing { since: *since, why },
                (_, sight) => sight,
            };
        }
        self.changed.notify_waiters();
    }

    /// Notes that an object is odd.
    pub(crate) fn complain(&self, text: String) {
        tracing::warn!("{text}");
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).insert(text);
    }
}

/// The watches; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Watches {
    pub(crate) shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

impl Watches {
    /// Begins to watch.
    pub(crate) fn start(client: &Client, resources: &[Resource]) -> Self {
        let shared = Arc::new(Shared::new(resources));
        let mut tasks = JoinSet::new();
        for (number, resource) in resources.iter().enumerate() {
            let (resource, shared) = (resource.clone(), shared.clone());
            let loud = Loud(shared.clone());
            let reflector = Reflector { client: client.clone(), resource, number, shared, age: 0 };
            tasks.spawn(async move {
                let _loud = loud;
                reflector.run().await;
            });
        }
        Self { shared, _tasks: tasks }
    }
}

impl Shared {
    /// The mirror.
    pub(crate) fn mirror(&self) -> MutexGuard<'_, Mirror> {
        self.mirror.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether each kind was seen as a whole, or is known not to be there.
    pub(crate) fn is_ready(&self) -> bool {
        self.seen().iter().all(|seen| seen.known)
    }

    /// Waits until it is so.
    pub(crate) async fn ready(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_ready() {
                return;
            }
            changed.await;
        }
    }

    /// Kinds that are not seen yet, with the reason if there is one.
    pub(crate) fn waiting_for(&self) -> Vec<String> {
        let seen = self.seen();
        let waiting = seen.iter().filter(|seen| !seen.known).map(|seen| match &seen.sight {
            Sight::Failing { why, .. } => format!("{}: {why}", seen.name),
            _ => seen.name.to_owned(),
        });
        waiting.collect()
    }

    /// What is wrong with what is seen, for people; oddities of objects are told once.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let complaints = std::mem::take(&mut *self.complaints.lock().unwrap_or_else(PoisonError::into_inner));
        let mut troubles: Vec<String> = complaints.into_iter().collect();
        for seen in self.seen().iter() {
            match &seen.sight {
                Sight::Failing { why, .. } => {
                    troubles.push(format!("{} are seen as they were before: {why}", seen.name))
                }
                Sight::Absent { why } => troubles.push(format!("{} {why}", seen.name)),
                Sight::Starting | Sight::Clear => {}
            }
        }
        troubles
    }

    /// What cannot be done without and was not seen for longer than this, if anything.
    pub(crate) fn stale(&self, limit: Duration) -> Option<String> {
        self.seen().iter().find_map(|seen| match &seen.sight {
            Sight::Failing { since, why } if seen.need == Need::Required && since.elapsed() > limit => {
                Some(format!("{} were last seen {}s ago: {why}", seen.name, since.elapsed().as_secs()))
            }
            _ => None,
        })
    }
}
