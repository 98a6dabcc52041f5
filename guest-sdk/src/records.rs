//! Short ways to make the contract's long records.
//!
//! Each starts with what must be said and leaves the rest empty; say more with struct update syntax:
//!
//! ```
//! use plimsoll_guest::{Instance, InstanceState, NodeGroup};
//!
//! let machine = Instance { zone: Some("b".into()), ..Instance::with_provider_id("m-1", InstanceState::Running, "sim://m-1") };
//! let group = NodeGroup { instances: vec![machine], ..NodeGroup::sized("workers", 0, 10, 1) };
//! assert_eq!(group.name, "workers");
//! ```

use serde::de::DeserializeOwned;

use crate::bindings::contract::types::{
    CallOptions, Deletability, Diagnostic, ErrorScope, GroupOptions, GroupStatus, Instance, InstanceState, KeyValue,
    NodeGroup, NodeMatch, NodeTemplate, PluginError, Quantity, Severity, Taint, TaintEffect, TemplateChoice,
};
use crate::bindings::pricing::interface::{PriceBook, TemplatePrice, UnitPrice};
use crate::bindings::provider::interface::{
    Capabilities, DeleteOutcome, DeleteResult, DeleteStatus, Features, GroupTemplates, RefreshAnswer, RefreshRequest,
    Setup, SizeOutcome, Snapshot,
};

impl KeyValue {
    /// One key with its value.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.into() }
    }
}

impl<K: Into<String>, V: Into<String>> From<(K, V)> for KeyValue {
    fn from((key, value): (K, V)) -> Self {
        Self::new(key, value)
    }
}

impl Quantity {
    /// An amount as Kubernetes writes it, such as `("memory", "30Gi")`.
    pub fn new(name: impl Into<String>, amount: impl Into<String>) -> Self {
        Self { name: name.into(), amount: amount.into() }
    }
}

impl Taint {
    /// A taint.
    pub fn new(key: impl Into<String>, value: impl Into<String>, effect: TaintEffect) -> Self {
        Self { key: key.into(), value: value.into(), effect }
    }
}

impl Diagnostic {
    /// A finding about the whole provider.
    pub fn new(severity: Severity, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity, code: code.into(), message: message.into(), scope: ErrorScope::Provider }
    }
}

/// A failure as a finding, for [`Provider::self_test`](crate::Provider::self_test).
impl From<PluginError> for Diagnostic {
    fn from(error: PluginError) -> Self {
        Self { severity: Severity::Error, code: error.code, message: error.message, scope: error.scope }
    }
}

impl Default for GroupOptions {
    /// Nothing is set: the host's own settings hold.
    fn default() -> Self {
        Self {
            utilization_threshold_milli: None,
            accelerator_utilization_threshold_milli: None,
            unneeded_ms: None,
            unready_ms: None,
            provision_ms: None,
            startup_ms: None,
            zero_or_max: None,
            ignore_daemon_sets_utilization: None,
            priority: None,
            attributes: vec![],
        }
    }
}

impl NodeGroup {
    /// An active group with sizes, without machines, read now.
    pub fn sized(id: impl Into<String>, min_size: u32, max_size: u32, target_size: u32) -> Self {
        let id = id.into();
        Self {
            name: id.clone(),
            id,
            min_size,
            max_size,
            target_size,
            status: GroupStatus::Active,
            instances: vec![],
            instances_complete: true,
            template_version: String::new(),
            template_choice: TemplateChoice::Single,
            options: GroupOptions::default(),
            atomic: false,
            autoprovisioned: false,
            activities: vec![],
            failures: vec![],
            error: None,
            observed_at: crate::clock::now_ms(),
            attributes: vec![],
        }
    }
}

impl Instance {
    /// A machine that may be deleted and whose node cannot be recognised yet.
    pub fn new(id: impl Into<String>, state: InstanceState) -> Self {
        Self {
            id: id.into(),
            matches: vec![],
            state,
            error: None,
            created_at: None,
            zone: None,
            instance_type: None,
            spot: false,
            deletable: Deletability::Yes,
            placeholder: false,
            attributes: vec![],
        }
    }

    /// A machine whose node is recognised by its `spec.providerID`.
    pub fn with_provider_id(id: impl Into<String>, state: InstanceState, provider_id: impl Into<String>) -> Self {
        Self { matches: vec![NodeMatch::ProviderId(provider_id.into())], ..Self::new(id, state) }
    }
}

impl NodeTemplate {
    /// A Linux node on amd64 with a capacity, of weight 1. As long as `allocatable` is empty, pods may use all of it.
    pub fn new(key: impl Into<String>, instance_type: impl Into<String>, capacity: Vec<Quantity>) -> Self {
        Self {
            key: key.into(),
            weight: 1,
            instance_type: instance_type.into(),
            arch: "amd64".to_owned(),
            os: "linux".to_owned(),
            region: String::new(),
            zone: None,
            capacity,
            allocatable: vec![],
            labels: vec![],
            annotations: vec![],
            taints: vec![],
            startup_taints: vec![],
            accelerator: None,
            csi_limits: vec![],
            resource_slices: vec![],
            spot: false,
            attributes: vec![],
        }
    }
}

impl Capabilities {
    /// A provider that deletes any number of machines in one call and may be read at any time.
    pub fn new(provider_name: impl Into<String>, plugin_version: impl Into<String>, features: Features) -> Self {
        Self {
            provider_name: provider_name.into(),
            plugin_version: plugin_version.into(),
            features,
            provider_id_prefixes: vec![],
            wanted_node_labels: vec![],
            max_delete_batch: u32::MAX,
            min_refresh_interval_ms: 0,
            accelerator_label: None,
            accelerator_models: vec![],
            attributes: vec![],
        }
    }
}

impl Setup {
    /// A set-up for tests: a configuration and nothing else.
    pub fn with_config(config: impl Into<String>) -> Self {
        Self {
            config: Some(config.into()),
            node_groups: vec![],
            discovery: vec![],
            cluster_name: String::new(),
            user_agent: "plimsoll-test".to_owned(),
            attributes: vec![],
        }
    }

    /// The cloud configuration file, read as JSON.
    ///
    /// # Errors
    /// Class `config`, code `bad-config`: the file is missing, or not what it should be; the message names the place.
    pub fn json_config<T: DeserializeOwned>(&self) -> Result<T, PluginError> {
        let bad = |why: String| PluginError::config(why).with_code("bad-config");
        let text =
            self.config.as_deref().ok_or_else(|| bad("there is no cloud configuration; give one as JSON".into()))?;
        serde_json::from_str(text).map_err(|error| bad(format!("cannot read the cloud configuration: {error}")))
    }
}

impl RefreshRequest {
    /// A request for everything, with a minute to answer; for tests.
    pub fn everything() -> Self {
        Self { previous_revision: None, only_groups: vec![], nodes: vec![], deadline_ms: 60_000, attributes: vec![] }
    }

    /// Whether a group is asked for.
    pub fn wants(&self, group: &str) -> bool {
        self.only_groups.is_empty() || self.only_groups.iter().any(|wanted| wanted == group)
    }
}

impl RefreshAnswer {
    /// All groups that were asked for. `complete` if the list holds every group that there is: a group missing from it is
    /// then gone.
    pub fn read(revision: impl Into<String>, groups: Vec<NodeGroup>, complete: bool) -> Self {
        Self { snapshot: Some(Snapshot { groups, complete }), ..Self::unchanged(revision) }
    }

    /// Nothing changed since this revision, which the host holds.
    pub fn unchanged(revision: impl Into<String>) -> Self {
        Self {
            revision: revision.into(),
            observed_at: crate::clock::now_ms(),
            snapshot: None,
            diagnostics: vec![],
            next_refresh_ms: None,
            attributes: vec![],
        }
    }
}

impl GroupTemplates {
    /// The templates of a group.
    pub fn of(group: impl Into<String>, version: impl Into<String>, templates: Vec<NodeTemplate>) -> Self {
        Self { group: group.into(), version: version.into(), templates, error: None }
    }

    /// Why there are none.
    pub fn failed(group: impl Into<String>, error: PluginError) -> Self {
        Self { group: group.into(), version: String::new(), templates: vec![], error: Some(error) }
    }
}

impl CallOptions {
    /// Options for tests: a key, and a minute to answer.
    pub fn with_key(idempotency_key: impl Into<String>) -> Self {
        Self {
            idempotency_key: idempotency_key.into(),
            deadline_ms: 60_000,
            dry_run: false,
            reason: String::new(),
            attributes: vec![],
        }
    }
}

impl SizeOutcome {
    /// So much of the change was accepted, and the target is this now.
    pub fn accepted(accepted: u32, target_size: u32) -> Self {
        Self { target_size, accepted, activity: None, confirmed: true, shortfall: None, attributes: vec![] }
    }
}

impl DeleteResult {
    /// It will go.
    pub fn accepted(id: impl Into<String>) -> Self {
        Self { id: id.into(), status: DeleteStatus::Accepted }
    }

    /// It was gone before.
    pub fn already_gone(id: impl Into<String>) -> Self {
        Self { id: id.into(), status: DeleteStatus::AlreadyGone }
    }

    /// It stays, because of this failure.
    pub fn failed(id: impl Into<String>, error: PluginError) -> Self {
        Self { id: id.into(), status: DeleteStatus::Failed(error) }
    }

    /// It was not tried, for this reason.
    pub fn skipped(id: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { id: id.into(), status: DeleteStatus::Skipped(reason.into()) }
    }
}

impl DeleteOutcome {
    /// Results, and what the target is now.
    pub fn new(target_size: u32, results: Vec<DeleteResult>) -> Self {
        Self { target_size, results, activity: None, attributes: vec![] }
    }
}

impl PriceBook {
    /// Prices in a currency (ISO 4217), valid until further notice.
    pub fn new(currency: impl Into<String>, templates: Vec<TemplatePrice>, units: Vec<UnitPrice>) -> Self {
        Self { currency: currency.into(), valid_until: None, templates, units }
    }
}

impl UnitPrice {
    /// Price of a core, a GiB or a device, on any node.
    pub fn new(resource_name: impl Into<String>, micros_per_hour: u64) -> Self {
        Self { resource_name: resource_name.into(), micros_per_hour, selector: vec![] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorClass;

    #[test]
    fn a_missing_and_a_broken_configuration_are_told_apart() {
        let missing = Setup { config: None, ..Setup::with_config("") }.json_config::<u8>().unwrap_err();
        assert_eq!(missing.class, ErrorClass::Config);
        assert!(missing.message.contains("there is no cloud configuration"), "{}", missing.message);

        let broken = Setup::with_config("{\n\"a\": }").json_config::<serde_json::Value>().unwrap_err();
        assert!(broken.message.contains("line 2"), "{}", broken.message);
        assert_eq!(Setup::with_config("7").json_config::<u8>().unwrap(), 7);
    }

    #[test]
    fn an_empty_list_asks_for_every_group() {
        let mut request = RefreshRequest::everything();
        assert!(request.wants("a"));
        request.only_groups.push("b".into());
        assert!(!request.wants("a") && request.wants("b"));
    }
}
