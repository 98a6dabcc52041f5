//! The engine and the linkers: made once, used by all plug-ins.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::cloud::CloudError;
use tracing::Instrument as _;
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Store, Trap};

use crate::abi;
use crate::cache::CompileCache;
use crate::call::{Busy, Call, CallError, Failure};
use crate::clock::{Clock, StoppedClock, SystemClock};
use crate::limits::{Limit, Limits};
use crate::log::Log;
use crate::memory::PluginMemory;
use crate::observer::{Called, Event, Level, Nobody, Observer, Outcome, announce};
use crate::random::Randomness;
use crate::store::{PluginState, Sandbox};

/// How often a guest that computes is asked whether its time is up.
const TICK: Duration = Duration::from_millis(10);
/// How much later than the guest's own end the host's timer ends a call. It gets that far only if the guest waits.
const GRACE: Duration = Duration::from_millis(50);
/// Stack of a guest, and of guest and host functions together.
const GUEST_STACK: usize = 512 << 10;
const STACK: usize = 2 << 20;
/// Least time that the host's timer gives a call of a deterministic run: it must never decide anything there.
const BACKSTOP: Duration = Duration::from_secs(60);
/// After so much fuel a guest lets others run.
const FUEL_SLICE: u64 = 10_000_000;

/// What ends a guest that computes for too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Metering {
    /// Real time.
    #[default]
    Time,
    /// A count of instructions, so that a run does not depend on the speed of the machine. A call may use so much for
    /// each millisecond of its budget.
    Fuel {
        /// Fuel for a millisecond.
        per_millisecond: u64,
    },
}

impl Metering {
    /// Fuel for deterministic runs, generous for any machine.
    pub const DETERMINISTIC: Self = Self::Fuel { per_millisecond: 1_000_000 };
}

/// What all plug-ins of a host share.
#[derive(Clone)]
pub struct HostOptions {
    /// What ends a guest that computes for too long.
    pub metering: Metering,
    /// The time that providers see. Expanders see none.
    pub clock: Arc<dyn Clock>,
    /// The random numbers that providers see. Expanders get the seed of the request.
    pub randomness: Randomness,
    /// Who wants to know what happens.
    pub observer: Arc<dyn Observer>,
    /// Where compiled plug-ins are kept; none: each is compiled at every start.
    pub cache: Option<CompileCache>,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            metering: Metering::Time,
            clock: Arc::new(SystemClock::new()),
            randomness: Randomness::System,
            observer: Arc::new(Nobody),
            cache: None,
        }
    }
}

impl HostOptions {
    /// For runs that must repeat exactly: everything that a plug-in sees comes from the driver.
    pub fn deterministic(clock: Arc<dyn Clock>, seed: u64, observer: Arc<dyn Observer>) -> Self {
        Self { metering: Metering::DETERMINISTIC, clock, randomness: Randomness::Seeded(seed), observer, cache: None }
    }
}

/// The engine could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("the WebAssembly engine cannot be set up: {0}")]
pub struct EngineError(String);

/// Loads, bounds and calls plug-ins. Clones are the same host.
#[derive(Clone)]
pub struct PluginHost(Arc<Shared>);

struct Shared {
    engine: Engine,
    providers: Linker<PluginState>,
    expanders: Linker<PluginState>,
    options: HostOptions,
}

impl PluginHost {
    /// Sets up engine and linkers; about a millisecond. With [`Metering::Time`] a thread ticks until the host is
    /// dropped.
    ///
    /// # Errors
    /// If the machine cannot run the engine.
    pub fn new(options: HostOptions) -> Result<Self, EngineError> {
        Self::set_up(options).map_err(|error| EngineError(format!("{error:#}")))
    }

    fn set_up(options: HostOptions) -> wasmtime::Result<Self> {
        let mut config = Config::new();
        config
            .concurrency_support(false)
            .max_wasm_stack(GUEST_STACK)
            .async_stack_size(STACK)
            // The same bits on every machine.
            .cranelift_nan_canonicalization(true)
            .relaxed_simd_deterministic(true);
        match options.metering {
            Metering::Time => config.epoch_interruption(true),
            Metering::Fuel { .. } => config.consume_fuel(true),
        };
        let engine = Engine::new(&config)?;
        if options.metering == Metering::Time {
            tick(&engine)?;
        }
        let mut providers = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut providers)?;
        crate::abi::wasi_http::add_to_linker(&mut providers)?;
        abi::v0::add_provider_imports(&mut providers)?;
        // Runtimes of some languages import much of WASI; it is there, and gives nothing. There is no HTTP.
        let mut expanders = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut expanders)?;
        abi::v0::add_expander_imports(&mut expanders)?;
        Ok(Self(Arc::new(Shared { engine, providers, expanders, options })))
    }

    pub(crate) fn provider_linker(&self) -> &Linker<PluginState> {
        &self.0.providers
    }
    pub(crate) fn expander_linker(&self) -> &Linker<PluginState> {
        &self.0.expanders
    }
    pub(crate) fn options(&self) -> &HostOptions {
        &self.0.options
    }
    pub(crate) fn announce(&self, event: Event) {
        announce(self.0.options.observer.as_ref(), event);
    }

    /// Compiles to machine code, a tenth of a second for a typical provider, or finds what was compiled before.
    pub(crate) fn compile(&self, wasm: &[u8]) -> wasmtime::Result<Component> {
        let engine = &self.0.engine;
        let Some(cache) = &self.0.options.cache else { return Component::from_binary(engine, wasm) };
        if let Some(component) = cache.get(engine, wasm) {
            return Ok(component);
        }
        let component = Component::from_binary(engine, wasm)?;
        cache.put(engine, wasm, &component);
        Ok(component)
    }

    pub(crate) fn store(&self, sandbox: &Sandbox, start: u32) -> Store<PluginState> {
        sandbox.store(&self.0.engine, self.0.options.metering, start)
    }

    /// The log of a plug-in, with the observer behind it.
    pub(crate) fn log(&self, plugin: &Arc<str>, least: Level) -> Log {
        let options = self.options();
        Log::new(plugin.clone(), least, options.clock.clone(), options.observer.clone())
    }

    /// A sandbox that reaches nothing and knows no time.
    pub(crate) fn inert(&self, plugin: &Arc<str>, limits: Limits) -> Sandbox {
        Sandbox {
            plugin: plugin.clone(),
            limits,
            settings: Arc::default(),
            memory: PluginMemory::default(),
            log: self.log(plugin, Level::Info),
            egress: None,
            clock: Arc::new(StoppedClock),
            randomness: Randomness::Seeded(0),
        }
    }

    /// Makes one call within its budget: the guest is ended if it computes for too long, the host's timer ends it if it
    /// waits for too long, and what it sent to the network ends early enough that it can still report that.
    pub(crate) async fn bounded<T>(
        &self,
        sandbox: &Sandbox,
        store: &mut Store<PluginState>,
        call: Call,
        budget: Duration,
        work: impl AsyncFnOnce(&mut Store<PluginState>) -> wasmtime::Result<T>,
    ) -> Result<T, CallError> {
        let metering = self.0.options.metering;
        let fail = |failure| CallError { plugin: sandbox.plugin.clone(), call, failure };
        let patience = match metering {
            Metering::Time => budget + GRACE,
            Metering::Fuel { .. } => budget.max(BACKSTOP),
        };
        if let Metering::Fuel { per_millisecond } = metering {
            let millis = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
            let fuelled = store.set_fuel(millis.saturating_mul(per_millisecond));
            fuelled
                .and_then(|()| store.fuel_async_yield_interval(Some(FUEL_SLICE)))
                .map_err(|error| fail(Failure::Host { what: format!("{error:#}") }))?;
        }
        let data = store.data_mut();
        data.interrupt_at(std::time::Instant::now() + budget);
        data.outgoing().set_deadline(tokio::time::Instant::now() + patience - patience / 8);
        data.gauge().take_refused();
        match tokio::time::timeout(patience, work(store)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(fail(explain(&error, call, sandbox, store, budget))),
            Err(_) => Err(fail(Failure::Timeout { budget, busy: Busy::Waiting })),
        }
    }

    /// Makes one call that may report a failure, within its budget, and counts it.
    pub(crate) async fn call<T>(
        &self,
        sandbox: &Sandbox,
        store: &mut Store<PluginState>,
        call: Call,
        budget: Duration,
        work: impl AsyncFnOnce(&mut Store<PluginState>) -> wasmtime::Result<Result<T, CloudError>>,
    ) -> Result<T, CallError> {
        let begun = std::time::Instant::now();
        let plugin = &sandbox.plugin;
        let span = tracing::debug_span!("plugin call", %plugin, %call);
        let (answer, inside) = timed(self.bounded(sandbox, store, call, budget, work).instrument(span)).await;
        let answer = answer.and_then(|answer| {
            answer.map_err(|error| {
                let failure = Failure::Plugin(Box::new(error));
                CallError { plugin: plugin.clone(), call, failure }
            })
        });
        let outcome = answer.as_ref().map_or_else(|error| error.failure.outcome(), |_| Outcome::Ok);
        let plugin = plugin.to_string();
        self.0.options.observer.called(Called { plugin, call, outcome, took: begun.elapsed(), inside });
        answer
    }
}

/// How long a call keeps its thread, without what it waits for: that runs elsewhere.
async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let mut work = std::pin::pin!(work);
    let mut inside = Duration::ZERO;
    let value = std::future::poll_fn(|context| {
        let begun = std::time::Instant::now();
        let polled = work.as_mut().poll(context);
        inside += begun.elapsed();
        polled
    });
    (value.await, inside)
}

/// Moves the engine's epoch until the engine is gone.
fn tick(engine: &Engine) -> wasmtime::Result<()> {
    let engine = engine.weak();
    let ticker = std::thread::Builder::new().name("plugin-epoch".to_owned()).spawn(move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    });
    ticker.map(drop).map_err(Into::into)
}

/// What an error of the engine means.
fn explain(
    error: &wasmtime::Error,
    call: Call,
    sandbox: &Sandbox,
    store: &mut Store<PluginState>,
    budget: Duration,
) -> Failure {
    let trap = error.downcast_ref::<Trap>().copied();
    if matches!(trap, Some(Trap::Interrupt | Trap::OutOfFuel)) {
        return Failure::Timeout { budget, busy: Busy::Computing };
    }
    // A guest that is refused memory usually breaks off; that it was refused says more than how it broke off.
    if let Some(limit) = store.data_mut().gauge().take_refused().or_else(|| limit(error, trap, sandbox)) {
        return Failure::Limit(limit);
    }
    match trap {
        Some(trap) => Failure::Trap { what: trap.to_string().trim_start_matches("wasm trap: ").to_owned() },
        // Instances are made by the host; in a call, what is no trap is a guest that broke the rules of the boundary.
        None if call == Call::Start => Failure::Host { what: format!("{error:#}") },
        None => Failure::Trap { what: format!("{error:#}") },
    }
}

/// Limits that the engine keeps itself. Some of its errors have no public type and are known by their words; a test with
/// a guest for each tells if an update of the engine changes them.
fn limit(error: &wasmtime::Error, trap: Option<Trap>, sandbox: &Sandbox) -> Option<Limit> {
    let limits = &sandbox.limits;
    if trap == Some(Trap::StackOverflow) {
        return Some(Limit::Stack);
    }
    if let Some(wasmtime::component::ResourceTableError::Full) = error.downcast_ref() {
        return Some(Limit::HostObjects { limit: limits.host_objects });
    }
    let words = error.root_cause().to_string();
    if words.contains("fuel allocated for hostcalls has been exhausted") {
        return Some(Limit::Transfer { limit_bytes: limits.transfer_bytes });
    }
    if words.contains("handle limit exceeded") {
        return Some(Limit::Handles { limit: limits.handles });
    }
    words.strip_prefix("resource limit exceeded: ").map(|detail| Limit::Parts { detail: detail.to_owned() })
}
