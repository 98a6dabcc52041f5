//! The contract's records of a cloud, to and from the host's.

use std::time::Duration;

use plimsoll_core::cloud as core;
use plimsoll_model::{TaintEffect, Time};

use super::bindings::{cloud, prices, types};
use crate::log::line;
use crate::provider::{RefreshRequest, Setup};

pub(super) fn attributes(given: types::Attributes) -> core::Attributes {
    given.into_iter().map(|pair| (pair.key, pair.value)).collect()
}

pub(super) fn to_attributes(given: &[(String, String)]) -> types::Attributes {
    given.iter().map(|(key, value)| types::KeyValue { key: key.clone(), value: value.clone() }).collect()
}

fn quantities(given: Vec<types::Quantity>) -> core::Attributes {
    given.into_iter().map(|quantity| (quantity.name, quantity.amount)).collect()
}

fn time(millis: u64) -> Time {
    Time::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

pub(super) fn millis(span: Duration) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX)
}

fn thousandths(given: u32) -> f64 {
    f64::from(given) / 1000.0
}

impl From<types::ErrorClass> for core::ErrorClass {
    fn from(class: types::ErrorClass) -> Self {
        match class {
            types::ErrorClass::OutOfResources => Self::OutOfResources,
            types::ErrorClass::Quota => Self::Quota,
            types::ErrorClass::Billing => Self::Billing,
            types::ErrorClass::Auth => Self::Auth,
            types::ErrorClass::Config => Self::Config,
            types::ErrorClass::Throttled => Self::Throttled,
            types::ErrorClass::Conflict => Self::Conflict,
            types::ErrorClass::Transient => Self::Transient,
            types::ErrorClass::NotFound => Self::NotFound,
            types::ErrorClass::Unsupported => Self::Unsupported,
            types::ErrorClass::Bootstrap => Self::Bootstrap,
            types::ErrorClass::Other => Self::Other,
        }
    }
}

impl From<types::ErrorScope> for core::ErrorScope {
    fn from(scope: types::ErrorScope) -> Self {
        match scope {
            types::ErrorScope::Provider => Self::Provider,
            types::ErrorScope::Region(region) => Self::Region(region),
            types::ErrorScope::Zone(zone) => Self::Zone(zone),
            types::ErrorScope::InstanceType(machine) => Self::InstanceType(machine),
            types::ErrorScope::Group(group) => Self::Group(group.into()),
            types::ErrorScope::Instance(instance) => Self::Instance(instance.into()),
        }
    }
}

impl From<types::PluginError> for core::CloudError {
    fn from(error: types::PluginError) -> Self {
        Self {
            class: error.class.into(),
            scope: error.scope.into(),
            code: line(&error.code),
            message: line(&error.message),
            retry_after: error.retry_after_ms.map(|ms| Duration::from_millis(ms.into())),
            outcome_unknown: error.outcome_unknown,
            request_id: error.request_id.as_deref().map(line),
        }
    }
}

impl From<types::Diagnostic> for core::Diagnostic {
    fn from(finding: types::Diagnostic) -> Self {
        Self {
            severity: match finding.severity {
                types::Severity::Debug => core::Severity::Debug,
                types::Severity::Info => core::Severity::Info,
                types::Severity::Warning => core::Severity::Warning,
                types::Severity::Error => core::Severity::Error,
            },
            code: line(&finding.code),
            message: line(&finding.message),
            scope: finding.scope.into(),
        }
    }
}

pub(super) fn diagnostics(findings: Vec<types::Diagnostic>) -> Vec<core::Diagnostic> {
    findings.into_iter().map(Into::into).collect()
}

impl From<&Setup> for cloud::Setup {
    fn from(setup: &Setup) -> Self {
        Self {
            config: setup.cloud_config.clone(),
            node_groups: setup.node_groups.clone(),
            discovery: setup.discovery.clone(),
            cluster_name: setup.cluster_name.clone(),
            user_agent: setup.user_agent.clone(),
            attributes: setup
                .attributes
                .iter()
                .map(|(key, value)| types::KeyValue { key: key.clone(), value: value.clone() })
                .collect(),
        }
    }
}

impl From<cloud::Features> for core::Features {
    fn from(features: cloud::Features) -> Self {
        use cloud::Features as F;
        Self {
            increase: features.contains(F::INCREASE),
            atomic_increase: features.contains(F::ATOMIC_INCREASE),
            decrease_target: features.contains(F::DECREASE_TARGET),
            delete: features.contains(F::DELETE),
            force_delete: features.contains(F::FORCE_DELETE),
            scale_to_zero: features.contains(F::SCALE_TO_ZERO),
            scale_from_zero: features.contains(F::SCALE_FROM_ZERO),
            discovery: features.contains(F::DISCOVERY),
            instance_errors: features.contains(F::INSTANCE_ERRORS),
            activities: features.contains(F::ACTIVITIES),
            conditional_size: features.contains(F::CONDITIONAL_SIZE),
            idempotent_writes: features.contains(F::IDEMPOTENT_WRITES),
            needs_node_hints: features.contains(F::NEEDS_NODE_HINTS),
        }
    }
}

impl From<cloud::Capabilities> for core::Capabilities {
    fn from(given: cloud::Capabilities) -> Self {
        Self {
            provider_name: given.provider_name,
            plugin_version: given.plugin_version,
            features: given.features.into(),
            provider_id_prefixes: given.provider_id_prefixes,
            wanted_node_labels: given.wanted_node_labels,
            max_delete_batch: given.max_delete_batch,
            min_refresh_interval: Duration::from_millis(given.min_refresh_interval_ms.into()),
            accelerator_label: given.accelerator_label,
            accelerator_models: given.accelerator_models,
            attributes: attributes(given.attributes),
        }
    }
}

/// The request, and how long the host waits for the answer.
pub(super) fn refresh_request(request: &RefreshRequest, deadline: Duration) -> cloud::RefreshRequest {
    let hint = |node: &core::NodeHint| cloud::NodeHint {
        name: node.name.clone(),
        provider_id: node.provider_id.clone(),
        internal_ip: node.internal_ip.clone(),
        labels: to_attributes(&node.labels),
    };
    cloud::RefreshRequest {
        previous_revision: request.previous_revision.clone(),
        only_groups: request.only_groups.iter().map(ToString::to_string).collect(),
        nodes: request.nodes.iter().map(hint).collect(),
        deadline_ms: millis(deadline),
        attributes: vec![],
    }
}

impl From<cloud::RefreshAnswer> for core::Refresh {
    fn from(answer: cloud::RefreshAnswer) -> Self {
        Self {
            revision: answer.revision,
            observed_at: time(answer.observed_at),
            snapshot: answer.snapshot.map(|snapshot| core::Snapshot {
                groups: snapshot.groups.into_iter().map(Into::into).collect(),
                complete: snapshot.complete,
            }),
            diagnostics: diagnostics(answer.diagnostics),
            next_refresh: answer.next_refresh_ms.map(|ms| Duration::from_millis(ms.into())),
        }
    }
}

impl From<types::NodeMatch> for core::NodeMatch {
    fn from(entry: types::NodeMatch) -> Self {
        match entry {
            types::NodeMatch::ProviderId(id) => Self::ProviderId(id),
            types::NodeMatch::NodeName(name) => Self::NodeName(name),
            types::NodeMatch::Label(pair) => Self::Label(pair.key, pair.value),
            types::NodeMatch::InternalIp(address) => Self::InternalIp(address),
        }
    }
}

impl From<types::Instance> for core::Instance {
    fn from(given: types::Instance) -> Self {
        Self {
            id: given.id.into(),
            matches: given.matches.into_iter().map(Into::into).collect(),
            state: match given.state {
                types::InstanceState::Creating => core::InstanceState::Creating,
                types::InstanceState::Running => core::InstanceState::Running,
                types::InstanceState::Deleting => core::InstanceState::Deleting,
                types::InstanceState::Failed => core::InstanceState::Failed,
                types::InstanceState::Unknown => core::InstanceState::Unknown,
            },
            error: given.error.map(Into::into),
            created_at: given.created_at.map(time),
            zone: given.zone,
            instance_type: given.instance_type,
            spot: given.spot,
            protected: match given.deletable {
                types::Deletability::Yes => None,
                types::Deletability::No(reason) => Some(reason),
            },
            placeholder: given.placeholder,
            attributes: attributes(given.attributes),
        }
    }
}

impl From<types::GroupOptions> for core::GroupOptions {
    fn from(given: types::GroupOptions) -> Self {
        let span = |ms: Option<u64>| ms.map(Duration::from_millis);
        Self {
            utilization_threshold: given.utilization_threshold_milli.map(thousandths),
            gpu_utilization_threshold: given.accelerator_utilization_threshold_milli.map(thousandths),
            unneeded_time: span(given.unneeded_ms),
            unready_time: span(given.unready_ms),
            provision_time: span(given.provision_ms),
            startup_time: span(given.startup_ms),
            zero_or_max: given.zero_or_max,
            ignore_daemon_sets_utilization: given.ignore_daemon_sets_utilization,
            priority: given.priority,
            attributes: attributes(given.attributes),
        }
    }
}

impl From<types::Activity> for core::Activity {
    fn from(given: types::Activity) -> Self {
        Self {
            id: given.id,
            state: match given.state {
                types::ActivityState::Running => core::ActivityState::Running,
                types::ActivityState::Succeeded => core::ActivityState::Succeeded,
                types::ActivityState::Partial => core::ActivityState::Partial,
                types::ActivityState::Failed => core::ActivityState::Failed,
                types::ActivityState::Rejected => core::ActivityState::Rejected,
            },
            started_at: given.started_at.map(time),
            idempotency_key: given.idempotency_key,
        }
    }
}

impl From<types::ScaleFailure> for core::ScaleFailure {
    fn from(given: types::ScaleFailure) -> Self {
        Self {
            id: given.id,
            at: time(given.at),
            missing: given.missing,
            error: given.error.into(),
            zone: given.zone,
            instance_type: given.instance_type,
        }
    }
}

impl From<types::NodeGroup> for core::Group {
    fn from(given: types::NodeGroup) -> Self {
        Self {
            id: given.id.into(),
            name: given.name,
            min_size: given.min_size,
            max_size: given.max_size,
            target_size: given.target_size,
            status: match given.status {
                types::GroupStatus::Active => core::GroupStatus::Active,
                types::GroupStatus::Suspended => core::GroupStatus::Suspended,
                types::GroupStatus::Deleting => core::GroupStatus::Deleting,
            },
            instances: given.instances.into_iter().map(Into::into).collect(),
            instances_complete: given.instances_complete,
            template_version: given.template_version,
            template_choice: match given.template_choice {
                types::TemplateChoice::Single => core::TemplateChoice::Single,
                types::TemplateChoice::AnyOf => core::TemplateChoice::AnyOf,
                types::TemplateChoice::OnePerZone => core::TemplateChoice::OnePerZone,
            },
            options: given.options.into(),
            atomic: given.atomic,
            autoprovisioned: given.autoprovisioned,
            activities: given.activities.into_iter().map(Into::into).collect(),
            failures: given.failures.into_iter().map(Into::into).collect(),
            error: given.error.map(Into::into),
            observed_at: time(given.observed_at),
            attributes: attributes(given.attributes),
        }
    }
}

impl From<types::Taint> for core::TaintText {
    fn from(given: types::Taint) -> Self {
        Self {
            key: given.key,
            value: given.value,
            effect: match given.effect {
                types::TaintEffect::NoSchedule => TaintEffect::NoSchedule,
                types::TaintEffect::PreferNoSchedule => TaintEffect::PreferNoSchedule,
                types::TaintEffect::NoExecute => TaintEffect::NoExecute,
            },
        }
    }
}

impl From<types::NodeTemplate> for core::NodeTemplate {
    fn from(given: types::NodeTemplate) -> Self {
        Self {
            key: given.key,
            weight: given.weight,
            instance_type: given.instance_type,
            arch: given.arch,
            os: given.os,
            region: given.region,
            zone: given.zone,
            capacity: quantities(given.capacity),
            allocatable: quantities(given.allocatable),
            labels: attributes(given.labels),
            annotations: attributes(given.annotations),
            taints: given.taints.into_iter().map(Into::into).collect(),
            startup_taints: given.startup_taints.into_iter().map(Into::into).collect(),
            accelerator: given.accelerator.map(|accelerator| core::Accelerator {
                model: accelerator.model,
                resource_name: accelerator.resource_name,
                count: accelerator.count,
                dra_driver: accelerator.dra_driver,
            }),
            csi_limits: quantities(given.csi_limits),
            resource_slices: given.resource_slices,
            spot: given.spot,
            attributes: attributes(given.attributes),
        }
    }
}

impl From<cloud::GroupTemplates> for core::GroupTemplates {
    fn from(given: cloud::GroupTemplates) -> Self {
        Self {
            group: given.group.into(),
            version: given.version,
            templates: match given.error {
                Some(error) => Err(error.into()),
                None => Ok(given.templates.into_iter().map(Into::into).collect()),
            },
        }
    }
}

impl From<prices::PriceBook> for core::PriceBook {
    fn from(given: prices::PriceBook) -> Self {
        let template = |price: prices::TemplatePrice| core::TemplatePrice {
            group: price.group.into(),
            template_key: price.template_key,
            micros_per_hour: price.micros_per_hour,
        };
        let unit = |price: prices::UnitPrice| core::UnitPrice {
            resource_name: price.resource_name,
            micros_per_hour: price.micros_per_hour,
            selector: attributes(price.selector),
        };
        Self {
            currency: given.currency,
            valid_until: given.valid_until.map(time),
            templates: given.templates.into_iter().map(template).collect(),
            units: given.units.into_iter().map(unit).collect(),
        }
    }
}

/// The options, with a deadline that is not longer than the host waits.
pub(super) fn call_options(options: &core::WriteOptions, deadline: Duration) -> types::CallOptions {
    types::CallOptions {
        idempotency_key: options.idempotency_key.clone(),
        deadline_ms: millis(deadline),
        dry_run: options.dry_run,
        reason: options.reason.clone(),
        attributes: vec![],
    }
}

impl From<cloud::SizeOutcome> for core::SizeOutcome {
    fn from(given: cloud::SizeOutcome) -> Self {
        Self {
            target_size: given.target_size,
            accepted: given.accepted,
            activity: given.activity,
            confirmed: given.confirmed,
            shortfall: given.shortfall.map(Into::into),
        }
    }
}

impl From<cloud::DeleteOutcome> for core::DeleteOutcome {
    fn from(given: cloud::DeleteOutcome) -> Self {
        let status = |status: cloud::DeleteStatus| match status {
            cloud::DeleteStatus::Accepted => core::DeleteStatus::Accepted,
            cloud::DeleteStatus::AlreadyGone => core::DeleteStatus::AlreadyGone,
            cloud::DeleteStatus::Failed(error) => core::DeleteStatus::Failed(error.into()),
            cloud::DeleteStatus::Skipped(reason) => core::DeleteStatus::Skipped(reason),
        };
        Self {
            target_size: given.target_size,
            results: given.results.into_iter().map(|result| (result.id.into(), status(result.status))).collect(),
            activity: given.activity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: &str, value: &str) -> types::KeyValue {
        types::KeyValue { key: key.into(), value: value.into() }
    }

    fn error() -> types::PluginError {
        types::PluginError {
            class: types::ErrorClass::OutOfResources,
            scope: types::ErrorScope::Zone("b".into()),
            code: "NoStock".into(),
            message: "none left".into(),
            retry_after_ms: Some(1500),
            outcome_unknown: true,
            request_id: Some("r1".into()),
        }
    }

    fn core_error() -> core::CloudError {
        core::CloudError {
            class: core::ErrorClass::OutOfResources,
            scope: core::ErrorScope::Zone("b".into()),
            code: "NoStock".into(),
            message: "none left".into(),
            retry_after: Some(Duration::from_millis(1500)),
            outcome_unknown: true,
            request_id: Some("r1".into()),
        }
    }

    #[test]
    fn a_machine_keeps_everything() {
        let given = types::Instance {
            id: "i".into(),
            matches: vec![types::NodeMatch::Label(pair("k", "v")), types::NodeMatch::InternalIp("10.0.0.1".into())],
            state: types::InstanceState::Failed,
            error: Some(error()),
            created_at: Some(u64::MAX),
            zone: Some("b".into()),
            instance_type: Some("m".into()),
            spot: true,
            deletable: types::Deletability::No("protected".into()),
            placeholder: true,
            attributes: vec![pair("x", "y")],
        };
        let expected = core::Instance {
            id: "i".into(),
            matches: vec![
                core::NodeMatch::Label("k".into(), "v".into()),
                core::NodeMatch::InternalIp("10.0.0.1".into()),
            ],
            state: core::InstanceState::Failed,
            error: Some(core_error()),
            created_at: Some(Time::from_millis(i64::MAX)),
            zone: Some("b".into()),
            instance_type: Some("m".into()),
            spot: true,
            protected: Some("protected".into()),
            placeholder: true,
            attributes: vec![("x".into(), "y".into())],
        };
        assert_eq!(core::Instance::from(given), expected);
    }

    #[test]
    fn a_group_keeps_everything() {
        let given = types::NodeGroup {
            id: "a".into(),
            name: "workers".into(),
            min_size: 1,
            max_size: 9,
            target_size: 4,
            status: types::GroupStatus::Suspended,
            instances: vec![],
            instances_complete: false,
            template_version: "t1".into(),
            template_choice: types::TemplateChoice::OnePerZone,
            options: types::GroupOptions {
                utilization_threshold_milli: Some(650),
                accelerator_utilization_threshold_milli: Some(10),
                unneeded_ms: Some(1),
                unready_ms: Some(2),
                provision_ms: Some(3),
                startup_ms: Some(4),
                zero_or_max: Some(true),
                ignore_daemon_sets_utilization: Some(false),
                priority: Some(-5),
                attributes: vec![],
            },
            atomic: true,
            autoprovisioned: true,
            activities: vec![types::Activity {
                id: "act".into(),
                state: types::ActivityState::Partial,
                started_at: Some(8),
                idempotency_key: Some("key".into()),
            }],
            failures: vec![types::ScaleFailure {
                id: "f".into(),
                at: 9,
                missing: 2,
                error: error(),
                zone: None,
                instance_type: None,
            }],
            error: Some(error()),
            observed_at: 10,
            attributes: vec![pair("p", "q")],
        };
        let millis = |count| Some(Duration::from_millis(count));
        let expected = core::Group {
            name: "workers".into(),
            status: core::GroupStatus::Suspended,
            instances_complete: false,
            template_version: "t1".into(),
            template_choice: core::TemplateChoice::OnePerZone,
            options: core::GroupOptions {
                utilization_threshold: Some(0.65),
                gpu_utilization_threshold: Some(0.01),
                unneeded_time: millis(1),
                unready_time: millis(2),
                provision_time: millis(3),
                startup_time: millis(4),
                zero_or_max: Some(true),
                ignore_daemon_sets_utilization: Some(false),
                priority: Some(-5),
                attributes: vec![],
            },
            atomic: true,
            autoprovisioned: true,
            activities: vec![core::Activity {
                id: "act".into(),
                state: core::ActivityState::Partial,
                started_at: Some(Time::from_millis(8)),
                idempotency_key: Some("key".into()),
            }],
            failures: vec![core::ScaleFailure {
                id: "f".into(),
                at: Time::from_millis(9),
                missing: 2,
                error: core_error(),
                zone: None,
                instance_type: None,
            }],
            error: Some(core_error()),
            observed_at: Time::from_millis(10),
            attributes: vec![("p".into(), "q".into())],
            ..core::Group::sized("a", 1, 9, 4)
        };
        assert_eq!(core::Group::from(given), expected);
    }

    #[test]
    fn a_template_keeps_everything() {
        let quantity = |name: &str, amount: &str| vec![types::Quantity { name: name.into(), amount: amount.into() }];
        let taint = |effect| vec![types::Taint { key: "k".into(), value: "v".into(), effect }];
        let given = types::NodeTemplate {
            key: "t".into(),
            weight: 2,
            instance_type: "m".into(),
            arch: "arm64".into(),
            os: "linux".into(),
            region: "north".into(),
            zone: Some("a".into()),
            capacity: quantity("cpu", "4"),
            allocatable: quantity("cpu", "3920m"),
            labels: vec![pair("l", "1")],
            annotations: vec![pair("a", "1")],
            taints: taint(types::TaintEffect::NoExecute),
            startup_taints: taint(types::TaintEffect::PreferNoSchedule),
            accelerator: Some(types::Accelerator {
                model: "nvidia-l4".into(),
                resource_name: "nvidia.com/gpu".into(),
                count: 1,
                dra_driver: Some("gpu.nvidia.com".into()),
            }),
            csi_limits: quantity("disk.csi", "24"),
            resource_slices: vec!["{}".into()],
            spot: true,
            attributes: vec![pair("x", "y")],
        };
        let text = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
        let taint = |effect| vec![core::TaintText { key: "k".into(), value: "v".into(), effect }];
        let expected = core::NodeTemplate {
            key: "t".into(),
            weight: 2,
            instance_type: "m".into(),
            arch: "arm64".into(),
            os: "linux".into(),
            region: "north".into(),
            zone: Some("a".into()),
            capacity: text("cpu", "4"),
            allocatable: text("cpu", "3920m"),
            labels: text("l", "1"),
            annotations: text("a", "1"),
            taints: taint(TaintEffect::NoExecute),
            startup_taints: taint(TaintEffect::PreferNoSchedule),
            accelerator: Some(core::Accelerator {
                model: "nvidia-l4".into(),
                resource_name: "nvidia.com/gpu".into(),
                count: 1,
                dra_driver: Some("gpu.nvidia.com".into()),
            }),
            csi_limits: text("disk.csi", "24"),
            resource_slices: vec!["{}".into()],
            spot: true,
            attributes: text("x", "y"),
        };
        assert_eq!(core::NodeTemplate::from(given), expected);
    }

    #[test]
    fn templates_with_an_error_are_no_templates() {
        let given =
            cloud::GroupTemplates { group: "a".into(), version: "1".into(), templates: vec![], error: Some(error()) };
        assert_eq!(core::GroupTemplates::from(given).templates, Err(core_error()));
    }
}
