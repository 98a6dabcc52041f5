//! Calls of a provider. The outer result is the engine's, the inner one the plug-in's.

use std::time::Duration;

use plimsoll_core::cloud::{
    Capabilities, CloudError, DeleteOutcome, Diagnostic, GroupId, GroupTemplates, InstanceId, PriceBook, Refresh,
    SizeOutcome, WriteOptions,
};
use wasmtime::Store;
use wasmtime::component::{Component, InstancePre, Linker};

use super::bindings::cloud::Guest;
use super::bindings::pricing::{PricingMixin, PricingMixinIndices};
use super::bindings::provider::{CloudProviderHost, CloudProviderHostPre};
use super::bindings::provisioning::ProvisioningMixinIndices;
use super::cloud;
use crate::provider::{RefreshRequest, Setup};
use crate::store::PluginState;

type Answer<T> = wasmtime::Result<Result<T, CloudError>>;

/// A provider with its imports resolved and its optional abilities probed; makes instances quickly.
#[derive(Clone)]
pub(crate) struct LinkedProvider {
    pre: CloudProviderHostPre<PluginState>,
    pricing: Option<PricingMixinIndices>,
    provisioning: bool,
}

impl LinkedProvider {
    /// # Errors
    /// The engine's words if imports or exports do not fit. Records are only compared when an instance is made.
    pub(crate) fn link(linker: &Linker<PluginState>, component: &Component) -> wasmtime::Result<Self> {
        let pre: InstancePre<PluginState> = linker.instantiate_pre(component)?;
        let pricing = PricingMixinIndices::new(&pre).ok();
        let provisioning = ProvisioningMixinIndices::new(&pre).is_ok();
        Ok(Self { pre: CloudProviderHostPre::new(pre)?, pricing, provisioning })
    }

    /// Whether it knows prices.
    pub(crate) fn has_pricing(&self) -> bool {
        self.pricing.is_some()
    }

    /// Whether it can make node groups.
    pub(crate) fn has_provisioning(&self) -> bool {
        self.provisioning
    }

    /// Makes an instance. Its first call must be `configure`.
    pub(crate) async fn instantiate(&self, store: &mut Store<PluginState>) -> wasmtime::Result<ProviderInstance> {
        let instance = self.pre.instance_pre().instantiate_async(&mut *store).await?;
        let bindings = CloudProviderHost::new(&mut *store, &instance)?;
        // The same instance, seen through another world.
        let pricing = self.pricing.as_ref().map(|indices| indices.load(&mut *store, &instance)).transpose()?;
        Ok(ProviderInstance { bindings, pricing })
    }
}

/// An instance of a provider; belongs to one store.
pub(crate) struct ProviderInstance {
    bindings: CloudProviderHost,
    pricing: Option<PricingMixin>,
}

impl ProviderInstance {
    fn guest(&self) -> &Guest {
        self.bindings.autoscaler_plugin_provider()
    }

    pub(crate) async fn configure(&self, store: &mut Store<PluginState>, setup: &Setup) -> Answer<Capabilities> {
        let answer = self.guest().call_configure(store, &setup.into()).await?;
        Ok(answer.map(Into::into).map_err(Into::into))
    }

    pub(crate) async fn self_test(&self, store: &mut Store<PluginState>) -> wasmtime::Result<Vec<Diagnostic>> {
        Ok(cloud::diagnostics(self.guest().call_self_test(store).await?))
    }

    pub(crate) async fn refresh(
        &self,
        store: &mut Store<PluginState>,
        request: &RefreshRequest,
        deadline: Duration,
    ) -> Answer<Refresh> {
        let request = cloud::refresh_request(request, deadline);
        let answer = self.guest().call_refresh(store, &request).await?;
        Ok(answer.map(Into::into).map_err(Into::into))
    }

    pub(crate) async fn templates(
        &self,
        store: &mut Store<PluginState>,
        groups: &[GroupId],
    ) -> Answer<Vec<GroupTemplates>> {
        let groups: Vec<_> = groups.iter().map(ToString::to_string).collect();
        let answer = self.guest().call_templates(store, &groups).await?;
        Ok(answer.map(|groups| groups.into_iter().map(Into::into).collect()).map_err(Into::into))
    }

    #[expect(clippy::too_many_arguments, reason = "the contract's own arguments")]
    pub(crate) async fn increase_size(
        &self,
        store: &mut Store<PluginState>,
        group: &GroupId,
        delta: u32,
        expected_target: u32,
        atomic: bool,
        options: &WriteOptions,
        deadline: Duration,
    ) -> Answer<SizeOutcome> {
        let options = cloud::call_options(options, deadline);
        let group = group.to_string();
        let call = self.guest().call_increase_size(store, &group, delta, expected_target, atomic, &options).await?;
        Ok(call.map(Into::into).map_err(Into::into))
    }

    pub(crate) async fn decrease_target(
        &self,
        store: &mut Store<PluginState>,
        group: &GroupId,
        delta: u32,
        expected_target: u32,
        options: &WriteOptions,
        deadline: Duration,
    ) -> Answer<SizeOutcome> {
        let options = cloud::call_options(options, deadline);
        let group = group.to_string();
        let call = self.guest().call_decrease_target(store, &group, delta, expected_target, &options).await?;
        Ok(call.map(Into::into).map_err(Into::into))
    }

    #[expect(clippy::too_many_arguments, reason = "the contract's own arguments")]
    pub(crate) async fn delete_instances(
        &self,
        store: &mut Store<PluginState>,
        group: &GroupId,
        ids: &[InstanceId],
        expected_target: u32,
        min_size: u32,
        force: bool,
        options: &WriteOptions,
        deadline: Duration,
    ) -> Answer<DeleteOutcome> {
        let options = cloud::call_options(options, deadline);
        let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
        let (guest, group) = (self.guest(), group.to_string());
        let call = guest.call_delete_instances(store, &group, &ids, expected_target, min_size, force, &options).await?;
        Ok(call.map(Into::into).map_err(Into::into))
    }

    /// None if it knows no prices.
    pub(crate) async fn prices(&self, store: &mut Store<PluginState>) -> Answer<Option<PriceBook>> {
        let Some(pricing) = &self.pricing else { return Ok(Ok(None)) };
        let answer = pricing.autoscaler_plugin_pricing().call_prices(store).await?;
        Ok(answer.map(|book| Some(book.into())).map_err(Into::into))
    }

    pub(crate) async fn shutdown(&self, store: &mut Store<PluginState>) -> wasmtime::Result<()> {
        self.guest().call_shutdown(store).await
    }
}
