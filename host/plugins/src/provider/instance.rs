//! One instance of a provider that has been configured, and its store.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::cloud::{Capabilities, CloudError};
use wasmtime::Store;

use super::{Role, Setup};
use crate::abi::v0::ProviderInstance;
use crate::call::{Call, CallError};
use crate::engine::PluginHost;
use crate::store::{PluginState, Sandbox};

/// A configured instance.
pub(super) struct Instance {
    host: PluginHost,
    sandbox: Sandbox,
    store: Store<PluginState>,
    bindings: ProviderInstance,
    pub(super) capabilities: Capabilities,
}

impl Instance {
    /// Makes and configures an instance.
    pub(super) async fn start(
        host: &PluginHost,
        role: &Role,
        sandbox: &Sandbox,
        setup: &Setup,
        start: u32,
    ) -> Result<Self, CallError> {
        let sandbox = Sandbox { settings: role.settings.clone(), ..sandbox.clone() };
        let mut store = host.store(&sandbox, start);
        let budget = sandbox.limits.read;
        let linked = &role.linked;
        let bindings = host
            .bounded(&sandbox, &mut store, Call::Start, budget, async |store| linked.instantiate(store).await)
            .await?;
        let mut instance = Self { host: host.clone(), sandbox, store, bindings, capabilities: Capabilities::default() };
        let configured = instance
            .call(Call::Configure, budget, async |bindings, store| bindings.configure(store, setup).await)
            .await?;
        instance.capabilities = configured;
        Ok(instance)
    }

    pub(super) fn plugin(&self) -> Arc<str> {
        self.sandbox.plugin.clone()
    }

    /// A span of the machine's time in the time that the plug-in sees.
    pub(super) fn as_seen(&self, span: Duration) -> Duration {
        span.saturating_mul(self.sandbox.clock.pace())
    }

    pub(super) fn memory_bytes(&mut self) -> usize {
        self.store.data_mut().gauge().memory_bytes()
    }

    /// One call that may report a failure.
    pub(super) async fn call<T>(
        &mut self,
        call: Call,
        budget: Duration,
        work: impl AsyncFnOnce(&ProviderInstance, &mut Store<PluginState>) -> wasmtime::Result<Result<T, CloudError>>,
    ) -> Result<T, CallError> {
        let Self { host, sandbox, store, bindings, .. } = self;
        host.call(sandbox, store, call, budget, async |store| work(bindings, store).await).await
    }
}
