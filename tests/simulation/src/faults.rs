//! The faults that are on, and what was counted and found while they were.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_model::Time;
use tokio::sync::Notify;

use crate::books::Books;
use crate::scenario::{ApiFault, Moment, ReadFault, WriteFault};
use crate::violation::{Invariant, Violation};

/// A fault with its end.
#[derive(Clone, Copy, Debug)]
struct Until<T>(T, Time);

/// What is wrong at the moment, shared by everybody who may fail.
#[derive(Debug, Default)]
pub(crate) struct State {
    begun: Time,
    now: Time,
    reads: Option<Until<ReadFault>>,
    writes: Option<Until<WriteFault>>,
    api: Option<Until<ApiFault>>,
    evictions: Option<Until<()>>,
    lease: Option<Until<()>>,
    /// Steps until the process is killed, of any kind or of one.
    kill_in: Option<(Option<Moment>, u32)>,
    /// Writes to the API server so far.
    api_writes: u32,
    /// A pod that is bound to a marked node: workload, when.
    pub(crate) squeeze: Option<(usize, Moment)>,
    /// Whether the process's clock is not the world's.
    pub(crate) clock_is_off: bool,
    /// What the cloud was asked for, and what it told.
    pub(crate) books: Books,
    /// Pods that come just before the next mark: workload, how many more.
    pub(crate) meanwhile: Option<(usize, u32)>,
    /// The last good answer to a read, by path.
    pub(crate) answers: std::collections::BTreeMap<String, bytes::Bytes>,
    /// Calls of the present loop.
    pub(crate) calls: Calls,
    /// Orders since the last look.
    pub(crate) orders: Vec<Order>,
    found: Option<Violation>,
}

/// Calls of one loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) reads: u32,
    pub(crate) orders: u32,
    pub(crate) api: u32,
    /// Those of `orders` that the cloud took and that make machines go.
    pub(crate) deletions: u32,
    /// Those of `api` that mark a node or take a mark off.
    pub(crate) marks: u32,
}

/// An order that took effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Increase,
    Decrease,
    Delete,
}

/// A handle on the state; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    state: Arc<Mutex<State>>,
    killed: Arc<Notify>,
}

fn on<T: Copy>(fault: Option<Until<T>>, now: Time) -> Option<T> {
    fault.filter(|Until(_, end)| now < *end).map(|Until(fault, _)| fault)
}

impl Faults {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the process is killed.
    pub(crate) async fn killed(&self) {
        self.killed.notified().await;
    }

    /// A step of the process. If it is the one at which it is killed, nothing of it goes on.
    pub(crate) async fn step(&self, moment: Moment) {
        let dies = {
            let mut state = self.lock();
            match &mut state.kill_in {
                Some((at, _)) if at.is_some_and(|at| at != moment) => false,
                Some((_, 0)) => {
                    state.kill_in = None;
                    true
                }
                Some((_, left)) => {
                    *left -= 1;
                    false
                }
                None => false,
            }
        };
        if dies {
            self.killed.notify_one();
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn found(&self, invariant: Invariant, seen: String) {
        self.lock().found(invariant, seen);
    }
}

impl State {
    pub(crate) fn begin(&mut self, now: Time) {
        self.begun = now;
        self.now = now;
    }
    pub(crate) fn at(&mut self, now: Time) {
        self.now = now;
    }
    pub(crate) fn read(&self) -> Option<ReadFault> {
        on(self.reads, self.now)
    }
    pub(crate) fn write(&self) -> Option<WriteFault> {
        on(self.writes, self.now)
    }
    /// What is wrong with this write to the API server.
    pub(crate) fn api(&mut self) -> Option<ApiFault> {
        self.api_writes += 1;
        let even = self.api_writes.is_multiple_of(2);
        on(self.api, self.now).filter(|fault| *fault != ApiFault::Flickers || even)
    }
    /// Whether nothing is wrong at the moment.
    pub(crate) fn none(&self) -> bool {
        self.read().is_none()
            && self.write().is_none()
            && on(self.api, self.now).is_none()
            && !self.evictions()
            && !self.lease_lost()
            && self.kill_in.is_none()
            && self.squeeze.is_none()
            && self.meanwhile.is_none()
            && !self.clock_is_off
    }
    pub(crate) fn now(&self) -> Time {
        self.now
    }
    pub(crate) fn evictions(&self) -> bool {
        on(self.evictions, self.now).is_some()
    }
    pub(crate) fn lease_lost(&self) -> bool {
        on(self.lease, self.now).is_some()
    }
    pub(crate) fn set_reads(&mut self, fault: ReadFault, lasts: Duration) {
        self.reads = Some(Until(fault, self.now + lasts));
    }
    pub(crate) fn set_writes(&mut self, fault: WriteFault, lasts: Duration) {
        self.writes = Some(Until(fault, self.now + lasts));
    }
    pub(crate) fn set_api(&mut self, fault: ApiFault, lasts: Duration) {
        self.api = Some(Until(fault, self.now + lasts));
    }
    pub(crate) fn set_evictions(&mut self, lasts: Duration) {
        self.evictions = Some(Until((), self.now + lasts));
    }
    pub(crate) fn set_lease(&mut self, lasts: Duration) {
        self.lease = Some(Until((), self.now + lasts));
    }
    pub(crate) fn kill_in(&mut self, moment: Option<Moment>, steps: u32) {
        self.kill_in = Some((moment, steps));
    }
    /// Every fault ends.
    pub(crate) fn calm(&mut self) {
        self.reads = None;
        self.writes = None;
        self.api = None;
        self.evictions = None;
        self.lease = None;
        self.kill_in = None;
        self.meanwhile = None;
        self.squeeze = None;
        self.clock_is_off = false;
    }
    /// Writes down what was broken; the first one counts.
    pub(crate) fn found(&mut self, invariant: Invariant, seen: String) {
        let at = self.now.since(self.begun);
        self.found.get_or_insert(Violation { invariant, at, seen });
    }
    pub(crate) fn violation(&self) -> Option<Violation> {
        self.found.clone()
    }
}
