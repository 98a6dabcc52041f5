//! The provider: which part answers which call.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_guest::http::Transport;
use plimsoll_guest::{
    Capabilities, Credential, Deadline, Decrease, Delete, DeleteOutcome, Diagnostic, Features, GroupTemplates,
    Increase, Manifest, NodeGroup, PluginError, PriceBook, Pricing, Provider, RefreshAnswer, RefreshRequest, Setup,
    SizeOutcome, clock,
};

use crate::api::{Api, CREDENTIAL_SLOT};
use crate::memory::Memory;
use crate::settings::Settings;
use crate::spec::GroupSpec;
use crate::{ack, decrease, delete, ids, increase, prices, refresh, self_test, template};

/// Milliseconds since the Unix epoch, from wherever they come.
pub type Clock = Rc<dyn Fn() -> u64>;

/// Time for calls that come without a deadline, in milliseconds.
const OWN_DEADLINE_MS: u32 = 20_000;

/// The provider of Alibaba Cloud, over some transport.
pub struct AliCloud<T> {
    api: Api<T>,
    settings: Settings,
    memory: Memory,
    pools: BTreeMap<String, NodeGroup>,
}

impl<T: Transport> AliCloud<T> {
    /// A provider that reaches its cloud by this transport and reads this clock.
    ///
    /// # Errors
    /// Class `config`: a setting is missing or wrong.
    pub fn over(transport: T, clock: Clock, setup: &Setup) -> Result<Self, PluginError> {
        let settings = Settings::read(setup)?;
        let api = Api::new(transport, &settings, &setup.user_agent, clock);
        Ok(Self { api, settings, memory: Memory::default(), pools: BTreeMap::new() })
    }

    /// The sizes that the operator allows a group.
    fn spec(&mut self, id: &str, deadline: Deadline) -> Result<GroupSpec, PluginError> {
        let find = |this: &Self| {
            let named = this.settings.groups.iter().find(|spec| spec.id == id);
            named.or_else(|| this.memory.groups.get(id).map(|known| &known.spec)).cloned()
        };
        if find(self).is_none() && !self.settings.rules.is_empty() {
            // A fresh instance does not know yet what its rules find.
            let request = RefreshRequest { only_groups: vec![id.to_owned()], ..RefreshRequest::everything() };
            let left = u32::try_from(deadline.remaining().as_millis()).unwrap_or(u32::MAX);
            refresh::refresh(
                &mut self.api,
                &self.settings,
                &mut self.memory,
                &RefreshRequest { deadline_ms: left, ..request },
            )?;
        }
        find(self).ok_or_else(|| {
            let message = format!("group {id} is none of ours; it is neither named by --nodes nor found by a rule");
            PluginError::not_found(message).with_code("unknown-group").for_group(id)
        })
    }
}

impl<T: Transport + Default + 'static> Provider for AliCloud<T> {
    const MANIFEST: Manifest = Manifest::provider("alicloud", env!("CARGO_PKG_VERSION"))
        .hosts(&["https://*.aliyuncs.com"])
        .credentials(&[Credential::of_kind("alicloud-v3", CREDENTIAL_SLOT, &["*.aliyuncs.com"])])
        .memory_mib(64)
        .call_seconds(30)
        .settings_schema(r#"{"type":"object","properties":{"region":{"type":"string"}}}"#);

    fn configure(setup: Setup) -> Result<Self, PluginError> {
        Self::over(T::default(), Rc::new(clock::now_ms), &setup)
    }

    fn capabilities(&self) -> Capabilities {
        let mut features = Features::INCREASE
            | Features::DECREASE_TARGET
            | Features::DELETE
            | Features::SCALE_TO_ZERO
            | Features::SCALE_FROM_ZERO
            | Features::INSTANCE_ERRORS;
        if self.settings.ack_cluster.is_none() {
            features |= Features::DISCOVERY | Features::ACTIVITIES | Features::IDEMPOTENT_WRITES;
        }
        Capabilities {
            provider_id_prefixes: ids::prefixes(self.api.region()),
            max_delete_batch: u32::try_from(delete::BATCH).unwrap_or(u32::MAX),
            accelerator_label: Some(template::GPU_LABEL.to_owned()),
            ..Capabilities::new("alicloud", env!("CARGO_PKG_VERSION"), features)
        }
    }

    fn self_test(&mut self) -> Vec<Diagnostic> {
        self_test::run(&mut self.api, &self.settings)
    }

    fn refresh(&mut self, request: RefreshRequest) -> Result<RefreshAnswer, PluginError> {
        match &self.settings.ack_cluster {
            Some(cluster) => ack::refresh(&mut self.api, &self.settings, cluster, &mut self.pools, &request),
            None => refresh::refresh(&mut self.api, &self.settings, &mut self.memory, &request),
        }
    }

    fn templates(&mut self, groups: Vec<String>) -> Result<Vec<GroupTemplates>, PluginError> {
        let deadline = Deadline::after_ms(OWN_DEADLINE_MS);
        match &self.settings.ack_cluster {
            Some(cluster) => ack::templates(&mut self.api, &self.settings, &mut self.memory, cluster, groups, deadline),
            None => Ok(template::all(&mut self.api, &self.settings, &mut self.memory, groups, deadline)),
        }
    }

    fn increase_size(&mut self, call: Increase) -> Result<SizeOutcome, PluginError> {
        let spec = self.spec(&call.group, call.options.deadline())?;
        match &self.settings.ack_cluster {
            Some(cluster) => ack::increase(&mut self.api, cluster, &spec, &call),
            None => increase::increase(&mut self.api, &mut self.memory, &spec, &call),
        }
    }

    fn decrease_target(&mut self, call: Decrease) -> Result<SizeOutcome, PluginError> {
        self.spec(&call.group, call.options.deadline())?;
        match &self.settings.ack_cluster {
            Some(cluster) => ack::decrease(&mut self.api, cluster, &call),
            None => decrease::decrease(&mut self.api, &call),
        }
    }

    fn delete_instances(&mut self, call: Delete) -> Result<DeleteOutcome, PluginError> {
        let spec = self.spec(&call.group, call.options.deadline())?;
        match &self.settings.ack_cluster {
            Some(cluster) => ack::delete(&mut self.api, cluster, &spec, &call),
            None => delete::delete(&mut self.api, &mut self.memory, &spec, &call),
        }
    }
}

impl<T: Transport + Default + 'static> Pricing for AliCloud<T> {
    fn prices(&mut self) -> Result<PriceBook, PluginError> {
        if self.settings.ack_cluster.is_some() {
            return Err(PluginError::unsupported("asking for prices of node pools"));
        }
        prices::read(&mut self.api, &self.settings, &mut self.memory, Deadline::after_ms(OWN_DEADLINE_MS))
    }
}

#[cfg(test)]
#[path = "provider_tests.rs"]
pub(crate) mod tests;
