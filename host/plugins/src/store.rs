//! A store: everything that one instance of a plug-in can see, and the bounds around it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::clock::{Clock, WasiClock};
use crate::egress::{Egress, Outgoing};
use crate::engine::Metering;
use crate::limits::{Gauge, Limits};
use crate::log::Log;
use crate::memory::PluginMemory;
use crate::observer::Level;
use crate::random::Randomness;
use crate::stdio::Printed;

/// What every store of one plug-in gets.
#[derive(Clone)]
pub(crate) struct Sandbox {
    pub(crate) plugin: Arc<str>,
    pub(crate) limits: Limits,
    pub(crate) settings: Arc<BTreeMap<String, String>>,
    pub(crate) memory: PluginMemory,
    pub(crate) log: Log,
    pub(crate) egress: Option<Egress>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) randomness: Randomness,
}

/// The data of a store.
pub(crate) struct PluginState {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    table: ResourceTable,
    gauge: Gauge,
    outgoing: Outgoing,
    log: Log,
    settings: Arc<BTreeMap<String, String>>,
    memory: PluginMemory,
    interrupt_at: Instant,
}

impl PluginState {
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }
    pub(crate) fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }
    pub(crate) fn memory(&self) -> &PluginMemory {
        &self.memory
    }
    pub(crate) fn gauge(&mut self) -> &mut Gauge {
        &mut self.gauge
    }
    pub(crate) fn outgoing(&mut self) -> &mut Outgoing {
        &mut self.outgoing
    }
    pub(crate) fn interrupt_at(&mut self, at: Instant) {
        self.interrupt_at = at;
    }
}

impl WasiView for PluginState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for PluginState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: &mut self.outgoing }
    }
}

impl Sandbox {
    /// A fresh store. `start` counts the stores of this plug-in.
    pub(crate) fn store(&self, engine: &Engine, metering: Metering, start: u32) -> Store<PluginState> {
        let limits = &self.limits;
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(limits.header_bytes);
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.host_objects);
        // No environment, arguments, files or sockets: that is what an untouched builder gives.
        let mut wasi = WasiCtx::builder();
        wasi.max_random_size(limits.random_bytes)
            .wall_clock(WasiClock(self.clock.clone()))
            .monotonic_clock(WasiClock(self.clock.clone()))
            .stdout(Printed::new(self.log.clone(), Level::Info, "stdout"))
            .stderr(Printed::new(self.log.clone(), Level::Warn, "stderr"));
        self.randomness.equip(&mut wasi, &self.plugin, start);
        let state = PluginState {
            wasi: wasi.build(),
            http,
            table,
            gauge: Gauge::new(limits),
            outgoing: Outgoing::new(self.egress.clone(), matches!(metering, Metering::Fuel { .. })),
            log: self.log.clone(),
            settings: self.settings.clone(),
            memory: self.memory.clone(),
            interrupt_at: Instant::now(),
        };
        let mut store = Store::new(engine, state);
        store.limiter(|state| &mut state.gauge);
        store.set_hostcall_fuel(limits.transfer_bytes);
        store.set_max_component_handles(limits.handles);
        if metering == Metering::Time {
            store.epoch_deadline_callback(|store| {
                // Until its time is up the guest gives way at each tick, so that timers of the host get their turn.
                let give_way = || UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now()));
                let in_time = Instant::now() < store.data().interrupt_at;
                Ok(if in_time { give_way() } else { UpdateDeadline::Interrupt })
            });
            // A new store has its deadline behind it and would trap at once.
            store.set_epoch_deadline(1);
        }
        store
    }
}
