//! The task behind a provider: serves requests in order, replaces an instance that failed, gives up on one that keeps
//! failing.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use plimsoll_core::cloud::{
    Capabilities, DeleteOutcome, Diagnostic, GroupId, GroupTemplates, InstanceId, PriceBook, Refresh, SizeOutcome,
    WriteOptions,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant as Moment;
use tracing::{Instrument as _, Span};

use super::instance::Instance;
use super::pace::{self, Batches, LastRead};
use super::{RefreshRequest, ReplaceError, Role, Setup, State, Status, answers};
use crate::call::{Call, CallError, Failure};
use crate::engine::PluginHost;
use crate::observer::Event;
use crate::plugin::Plugin;
use crate::restart::{Consequence, Gate, Record, RestartPolicy};
use crate::store::Sandbox;

pub(super) type Answer<T> = Result<T, CallError>;
type Reply<T> = oneshot::Sender<Answer<T>>;

/// Time for the last call.
const FAREWELL: Duration = Duration::from_secs(2);

pub(super) struct Resize {
    pub(super) group: GroupId,
    pub(super) delta: u32,
    pub(super) expected_target: u32,
    pub(super) atomic: bool,
    pub(super) options: WriteOptions,
}

pub(super) struct Delete {
    pub(super) group: GroupId,
    pub(super) ids: Vec<InstanceId>,
    pub(super) expected_target: u32,
    pub(super) min_size: u32,
    pub(super) force: bool,
    pub(super) options: WriteOptions,
}

pub(super) enum Request {
    Capabilities(Reply<Capabilities>),
    Status(Reply<Status>),
    SelfTest(Reply<Vec<Diagnostic>>),
    Refresh(RefreshRequest, Reply<Refresh>),
    Templates(Vec<GroupId>, Reply<Vec<GroupTemplates>>),
    Prices(Reply<Option<PriceBook>>),
    IncreaseSize(Resize, Reply<SizeOutcome>),
    DecreaseTarget(Resize, Reply<SizeOutcome>),
    DeleteInstances(Delete, Reply<DeleteOutcome>),
    Replace(Box<Plugin>, oneshot::Sender<Result<Capabilities, ReplaceError>>),
    Shutdown(oneshot::Sender<()>),
}

pub(super) struct Keeper {
    host: PluginHost,
    role: Role,
    sandbox: Sandbox,
    setup: Setup,
    settings: BTreeMap<String, String>,
    instance: Option<Instance>,
    record: Record,
    starts: u32,
    last_read: LastRead,
    /// It failed, and has given no answer since.
    failing: bool,
}

impl Keeper {
    pub(super) fn new(
        host: PluginHost,
        role: Role,
        sandbox: Sandbox,
        setup: Setup,
        settings: BTreeMap<String, String>,
        restarts: RestartPolicy,
    ) -> Self {
        let (record, last_read) = (Record::new(restarts), LastRead::default());
        Self { host, role, sandbox, setup, settings, instance: None, record, starts: 0, last_read, failing: false }
    }

    pub(super) async fn serve(mut self, mut inbox: mpsc::Receiver<(Span, Request)>) {
        while let Some((span, request)) = inbox.recv().await {
            if let Request::Shutdown(done) = request {
                self.say_farewell().await;
                let _ = done.send(());
                return;
            }
            self.answer(request).instrument(span).await;
        }
        self.say_farewell().await;
    }

    /// A caller that went away is no error, so what `send` says is ignored.
    async fn answer(&mut self, request: Request) {
        let (read, write) = (self.sandbox.limits.read, self.sandbox.limits.write);
        match request {
            Request::Capabilities(reply) => {
                let answer = self.run(Call::Configure, async |instance| Ok(instance.capabilities.clone())).await;
                let _ = reply.send(answer);
            }
            Request::Status(reply) => {
                let _ = reply.send(Ok(self.status()));
            }
            Request::SelfTest(reply) => {
                let work = async |instance: &mut Instance| {
                    instance
                        .call(Call::SelfTest, read, async |guest, store| Ok(Ok(guest.self_test(store).await?)))
                        .await
                };
                let _ = reply.send(self.run(Call::SelfTest, work).await);
            }
            Request::Refresh(request, reply) => {
                let _ = reply.send(self.refresh(request, read).await);
            }
            Request::Templates(groups, reply) => {
                let work = async |instance: &mut Instance| {
                    let answer = instance
                        .call(Call::Templates, read, async |guest, store| guest.templates(store, &groups).await)
                        .await?;
                    Ok(answers::templates(answer, &groups))
                };
                let _ = reply.send(self.run(Call::Templates, work).await);
            }
            Request::Prices(reply) => {
                let work = async |instance: &mut Instance| {
                    instance.call(Call::Prices, read, async |guest, store| guest.prices(store).await).await
                };
                let _ = reply.send(self.run(Call::Prices, work).await);
            }
            Request::IncreaseSize(wish, reply) => {
                let _ = reply.send(self.resize(Call::IncreaseSize, wish, write).await);
            }
            Request::DecreaseTarget(wish, reply) => {
                let _ = reply.send(self.resize(Call::DecreaseTarget, wish, write).await);
            }
            Request::DeleteInstances(wish, reply) => {
                let _ = reply.send(self.delete(wish, write).await);
            }
            Request::Replace(plugin, reply) => {
                let _ = reply.send(self.replace(*plugin).await);
            }
            Request::Shutdown(done) => drop(done),
        }
    }

    async fn resize(&mut self, call: Call, wish: Resize, write: Duration) -> Answer<SizeOutcome> {
        let budget = wish.options.deadline.min(write);
        let work = async |instance: &mut Instance| {
            let told = instance.as_seen(budget);
            let Resize { group, delta, expected_target, atomic, options } = &wish;
            let answer = instance
                .call(call, budget, async |guest, store| match call {
                    Call::DecreaseTarget => {
                        guest.decrease_target(store, group, *delta, *expected_target, options, told).await
                    }
                    _ => guest.increase_size(store, group, *delta, *expected_target, *atomic, options, told).await,
                })
                .await?;
            answers::resize(&answer, *delta).map_err(|what| instance.nonsense(call, what))?;
            Ok(answer)
        };
        self.run(call, work).await
    }

    /// Not more often than the provider wishes.
    async fn refresh(&mut self, request: RefreshRequest, read: Duration) -> Answer<Refresh> {
        let now = self.host.options().clock.monotonic();
        if let Some(again) = self.last_read.again(&request, now, self.least_interval()) {
            return Ok(again);
        }
        let work = async |instance: &mut Instance| {
            let told = instance.as_seen(read);
            let answer = instance
                .call(Call::Refresh, read, async |guest, store| guest.refresh(store, &request, told).await)
                .await?;
            answers::refresh(&answer, request.previous_revision.is_some())
                .map_err(|what| instance.nonsense(Call::Refresh, what))?;
            Ok(answer)
        };
        let answer = self.run(Call::Refresh, work).await?;
        let interval = self.least_interval();
        self.last_read.note(&request, &answer, now, interval);
        Ok(answer)
    }

    fn least_interval(&self) -> Duration {
        self.instance.as_ref().map_or(Duration::ZERO, |instance| instance.capabilities.min_refresh_interval)
    }

    /// Not more at once than the provider wishes.
    async fn delete(&mut self, wish: Delete, write: Duration) -> Answer<DeleteOutcome> {
        let budget = wish.options.deadline.min(write);
        let work = async |instance: &mut Instance| {
            let begun = Moment::now();
            let most = match instance.capabilities.max_delete_batch {
                0 => wish.ids.len(),
                most => usize::try_from(most).unwrap_or(usize::MAX),
            };
            let mut batches = Batches::new(wish.expected_target);
            let mut done = 0;
            for (number, ids) in wish.ids.chunks(most.max(1)).enumerate() {
                let left = if number == 0 { budget } else { budget.saturating_sub(begun.elapsed()) };
                let answer = match left {
                    Duration::ZERO if number > 0 => Err(pace::too_late()),
                    left => match instance.delete(&wish, ids, number, batches.target(), left).await {
                        Ok(answer) => Ok(answers::delete(answer, ids)),
                        // What was done before stays done, so only a broken instance makes the whole an error.
                        Err(error) if number > 0 && error.is_report() => Err(error.into_cloud_error()),
                        Err(error) => return Err(error),
                    },
                };
                match answer {
                    Ok(answer) => batches.add(answer),
                    Err(error) => {
                        batches.refuse(wish.ids.get(done..).unwrap_or_default(), &error);
                        break;
                    }
                }
                done += ids.len();
            }
            Ok(batches.finish())
        };
        self.run(Call::DeleteInstances, work).await
    }

    /// Serves from the instance, or from a new one if the last failed.
    async fn run<T>(&mut self, call: Call, work: impl AsyncFnOnce(&mut Instance) -> Answer<T>) -> Answer<T> {
        let mut instance = match self.instance.take() {
            Some(instance) => instance,
            None => self.start(call).await?,
        };
        let plugin = self.sandbox.plugin.clone();
        // A panic inside the engine must not take the provider's task along.
        let answer = AssertUnwindSafe(work(&mut instance)).catch_unwind().await.unwrap_or_else(|panic| {
            let failure = Failure::Host { what: panic_text(panic.as_ref()) };
            Err(CallError { plugin, call, failure })
        });
        match &answer {
            Ok(_) => {
                self.instance = Some(instance);
                self.served(call);
            }
            Err(error) if error.failure.keeps_instance() => {
                if !error.is_report() {
                    self.tell(error);
                }
                self.instance = Some(instance);
            }
            Err(error) => self.failed(error),
        }
        answer
    }

    /// A call got its answer. That it was started and configured again is no sign yet that it works.
    fn served(&mut self, call: Call) {
        if call != Call::Configure && std::mem::take(&mut self.failing) {
            let (plugin, failures) = (self.sandbox.plugin.to_string(), self.record.failures().0);
            self.host.announce(Event::Recovered { plugin, failures });
        }
    }

    /// A new instance, if the record allows one.
    async fn start(&mut self, call: Call) -> Answer<Instance> {
        let plugin = self.sandbox.plugin.clone();
        let refuse = |failure| Err(CallError { plugin, call, failure });
        let (failures, last) = self.record.failures();
        match self.record.gate(Moment::now()) {
            Gate::Open => {}
            Gate::Waiting(wait) => return refuse(Failure::BackingOff { failures, wait, last }),
            Gate::Quarantined => return refuse(Failure::Quarantined { failures, last }),
        }
        self.starts = self.starts.saturating_add(1);
        let started = self.try_start(self.starts).await;
        match &started {
            Ok(_) => self.record.started(Moment::now()),
            // It works, but says that it cannot serve now: no reason to hold back the next attempt.
            Err(error) if error.failure.keeps_instance() => {}
            Err(error) => self.failed(error),
        }
        started
    }

    async fn try_start(&mut self, start: u32) -> Answer<Instance> {
        let begun = std::time::Instant::now();
        let work = Instance::start(&self.host, &self.role, &self.sandbox, &self.setup, start);
        let plugin = self.sandbox.plugin.clone();
        let started = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| {
            let failure = Failure::Host { what: panic_text(panic.as_ref()) };
            Err(CallError { plugin, call: Call::Start, failure })
        });
        if started.is_ok() {
            let plugin = self.sandbox.plugin.to_string();
            self.host.announce(Event::Started { plugin, start, took: begun.elapsed() });
        }
        started
    }

    fn status(&mut self) -> Status {
        let (plugin, linked) = (&self.role.plugin, &self.role.linked);
        let state = match self.record.gate(Moment::now()) {
            Gate::Open if self.instance.is_some() => State::Serving,
            Gate::Open => State::Idle,
            Gate::Waiting(_) => State::BackingOff,
            Gate::Quarantined => State::Quarantined,
        };
        Status {
            origin: plugin.origin().to_string(),
            version: plugin.manifest().version.clone(),
            sha256: plugin.sha256().to_owned(),
            state,
            starts: self.starts,
            failures: self.record.failures().0,
            memory_bytes: self.instance.as_mut().map_or(0, Instance::memory_bytes),
            pricing: linked.has_pricing(),
            provisioning: linked.has_provisioning(),
        }
    }

    fn tell(&self, error: &CallError) {
        let (plugin, call, reason) = (self.sandbox.plugin.to_string(), error.call, error.to_string());
        self.host.announce(Event::CallFailed { plugin, call, reason });
    }

    fn failed(&mut self, error: &CallError) {
        self.failing = true;
        self.tell(error);
        let plugin = self.sandbox.plugin.to_string();
        let consequence = self.record.failed(Moment::now(), error.to_string());
        let (failures, reason) = self.record.failures();
        match consequence {
            Consequence::Pause(pause) if pause.is_zero() => {}
            Consequence::Pause(pause) => self.host.announce(Event::BackingOff { plugin, failures, pause }),
            Consequence::Quarantine => self.host.announce(Event::Quarantined { plugin, failures, reason }),
        }
    }

    async fn replace(&mut self, plugin: Plugin) -> Result<Capabilities, ReplaceError> {
        let role = Role::new(&plugin, &self.settings)?;
        let old = std::mem::replace(&mut self.role, role);
        self.starts = self.starts.saturating_add(1);
        match self.try_start(self.starts).await {
            Ok(instance) => {
                let capabilities = instance.capabilities.clone();
                self.say_farewell().await;
                self.record.clear();
                self.failing = false;
                self.last_read.forget();
                self.record.started(Moment::now());
                self.instance = Some(instance);
                let (origin, sha256) = (plugin.origin().to_string(), plugin.sha256().to_owned());
                self.host.announce(Event::Loaded { plugin: self.sandbox.plugin.to_string(), origin, sha256 });
                Ok(capabilities)
            }
            Err(error) => {
                self.role = old;
                let (origin, reason) = (plugin.origin().to_string(), error.to_string());
                self.host.announce(Event::Rejected { plugin: self.sandbox.plugin.to_string(), origin, reason });
                Err(error.into())
            }
        }
    }

    /// The last call of an instance. How it ends does not matter any more.
    async fn say_farewell(&mut self) {
        if let Some(mut instance) = self.instance.take() {
            let work =
                instance.call(Call::Shutdown, FAREWELL, async |guest, store| Ok(Ok(guest.shutdown(store).await?)));
            let _ = AssertUnwindSafe(work).catch_unwind().await;
        }
    }
}

impl Instance {
    /// One batch of a delete.
    async fn delete(
        &mut self,
        wish: &Delete,
        ids: &[InstanceId],
        number: usize,
        target: u32,
        budget: Duration,
    ) -> Answer<DeleteOutcome> {
        let Delete { group, min_size, force, options, .. } = wish;
        let options = pace::options(options, number);
        let told = self.as_seen(budget);
        self.call(Call::DeleteInstances, budget, async |guest, store| {
            guest.delete_instances(store, group, ids, target, *min_size, *force, &options, told).await
        })
        .await
    }

    fn nonsense(&self, call: Call, what: String) -> CallError {
        CallError { plugin: self.plugin(), call, failure: Failure::Nonsense { what } }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("no message"))
}
