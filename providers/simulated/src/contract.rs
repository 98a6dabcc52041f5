//! From the wire to the contract.

use std::collections::BTreeMap;

use plimsoll_guest as contract;
use plimsoll_guest::{Deletability, DeleteResult, ErrorClass, ErrorScope, NodeMatch, PluginError};

use crate::wire;

impl From<wire::Failure> for PluginError {
    fn from(failure: wire::Failure) -> Self {
        Self {
            class: class(failure.class),
            scope: scope(failure.scope),
            code: failure.code,
            message: failure.message,
            retry_after_ms: failure.retry_after_ms,
            outcome_unknown: failure.outcome_unknown,
            request_id: failure.request_id,
        }
    }
}

fn class(class: wire::Class) -> ErrorClass {
    match class {
        wire::Class::OutOfResources => ErrorClass::OutOfResources,
        wire::Class::Quota => ErrorClass::Quota,
        wire::Class::Billing => ErrorClass::Billing,
        wire::Class::Auth => ErrorClass::Auth,
        wire::Class::Config => ErrorClass::Config,
        wire::Class::Throttled => ErrorClass::Throttled,
        wire::Class::Conflict => ErrorClass::Conflict,
        wire::Class::Transient => ErrorClass::Transient,
        wire::Class::NotFound => ErrorClass::NotFound,
        wire::Class::Unsupported => ErrorClass::Unsupported,
        wire::Class::Bootstrap => ErrorClass::Bootstrap,
        wire::Class::Other => ErrorClass::Other,
    }
}

fn scope(scope: wire::Scope) -> ErrorScope {
    match scope {
        wire::Scope::Provider => ErrorScope::Provider,
        wire::Scope::Region(name) => ErrorScope::Region(name),
        wire::Scope::Zone(name) => ErrorScope::Zone(name),
        wire::Scope::InstanceType(name) => ErrorScope::InstanceType(name),
        wire::Scope::Group(id) => ErrorScope::Group(id),
        wire::Scope::Instance(id) => ErrorScope::Instance(id),
    }
}

fn key_values(map: BTreeMap<String, String>) -> Vec<contract::KeyValue> {
    map.into_iter().map(contract::KeyValue::from).collect()
}

fn quantities(map: BTreeMap<String, String>) -> Vec<contract::Quantity> {
    map.into_iter().map(|(name, amount)| contract::Quantity { name, amount }).collect()
}

/// A group as it was at some time.
pub(crate) fn node_group(group: wire::Group, observed_at: u64) -> contract::NodeGroup {
    contract::NodeGroup {
        name: if group.name.is_empty() { group.id.clone() } else { group.name },
        id: group.id,
        min_size: group.min,
        max_size: group.max,
        target_size: group.target,
        status: match group.status {
            wire::GroupStatus::Active => contract::GroupStatus::Active,
            wire::GroupStatus::Suspended => contract::GroupStatus::Suspended,
            wire::GroupStatus::Deleting => contract::GroupStatus::Deleting,
        },
        instances: group.instances.into_iter().map(instance).collect(),
        instances_complete: !group.instances_incomplete,
        template_version: group.template_version,
        template_choice: match group.template_choice {
            wire::TemplateChoice::Single => contract::TemplateChoice::Single,
            wire::TemplateChoice::AnyOf => contract::TemplateChoice::AnyOf,
            wire::TemplateChoice::OnePerZone => contract::TemplateChoice::OnePerZone,
        },
        options: options(group.options),
        atomic: group.atomic,
        autoprovisioned: false,
        activities: group.activities.into_iter().map(activity).collect(),
        failures: group.failures.into_iter().map(scale_failure).collect(),
        error: group.error.map(PluginError::from),
        observed_at,
        attributes: vec![],
    }
}

fn options(options: wire::GroupOptions) -> contract::GroupOptions {
    contract::GroupOptions {
        utilization_threshold_milli: options.utilization_threshold_milli,
        accelerator_utilization_threshold_milli: options.accelerator_utilization_threshold_milli,
        unneeded_ms: options.unneeded_ms,
        unready_ms: options.unready_ms,
        provision_ms: options.provision_ms,
        startup_ms: options.startup_ms,
        zero_or_max: options.zero_or_max,
        ignore_daemon_sets_utilization: options.ignore_daemon_sets_utilization,
        priority: options.priority,
        attributes: key_values(options.attributes),
    }
}

fn instance(instance: wire::Instance) -> contract::Instance {
    let by_provider_id = instance.provider_id.map(NodeMatch::ProviderId);
    let by_name = instance.node_name.map(NodeMatch::NodeName);
    contract::Instance {
        id: instance.id,
        matches: by_provider_id.into_iter().chain(by_name).collect(),
        state: match instance.state {
            wire::InstanceState::Creating => contract::InstanceState::Creating,
            wire::InstanceState::Running => contract::InstanceState::Running,
            wire::InstanceState::Deleting => contract::InstanceState::Deleting,
            wire::InstanceState::Failed => contract::InstanceState::Failed,
            wire::InstanceState::Unknown => contract::InstanceState::Unknown,
        },
        error: instance.error.map(PluginError::from),
        created_at: instance.created_at_ms,
        zone: instance.zone,
        instance_type: instance.instance_type,
        spot: instance.spot,
        deletable: instance.protected.map_or(Deletability::Yes, Deletability::No),
        placeholder: instance.placeholder,
        attributes: vec![],
    }
}

fn activity(activity: wire::Activity) -> contract::Activity {
    contract::Activity {
        id: activity.id,
        state: match activity.state {
            wire::ActivityState::Running => contract::ActivityState::Running,
            wire::ActivityState::Succeeded => contract::ActivityState::Succeeded,
            wire::ActivityState::Partial => contract::ActivityState::Partial,
            wire::ActivityState::Failed => contract::ActivityState::Failed,
            wire::ActivityState::Rejected => contract::ActivityState::Rejected,
        },
        started_at: activity.started_at_ms,
        idempotency_key: activity.key,
    }
}

fn scale_failure(failure: wire::ScaleFailure) -> contract::ScaleFailure {
    contract::ScaleFailure {
        id: failure.id,
        at: failure.at_ms,
        missing: failure.missing,
        error: failure.error.into(),
        zone: failure.zone,
        instance_type: failure.instance_type,
    }
}

/// The templates of one group.
pub(crate) fn group_templates(templates: wire::GroupTemplates) -> contract::GroupTemplates {
    contract::GroupTemplates {
        group: templates.group,
        version: templates.version,
        templates: templates.templates.into_iter().map(template).collect(),
        error: templates.error.map(PluginError::from),
    }
}

fn template(template: wire::Template) -> contract::NodeTemplate {
    contract::NodeTemplate {
        key: template.key,
        weight: template.weight,
        instance_type: template.instance_type,
        arch: template.arch,
        os: template.os,
        region: template.region,
        zone: template.zone,
        capacity: quantities(template.capacity),
        allocatable: quantities(template.allocatable),
        labels: key_values(template.labels),
        annotations: key_values(template.annotations),
        taints: template.taints.into_iter().map(taint).collect(),
        startup_taints: template.startup_taints.into_iter().map(taint).collect(),
        accelerator: template.accelerator.map(|accelerator| contract::Accelerator {
            model: accelerator.model,
            resource_name: accelerator.resource_name,
            count: accelerator.count,
            dra_driver: accelerator.dra_driver,
        }),
        csi_limits: quantities(template.csi_limits),
        resource_slices: template.resource_slices,
        spot: template.spot,
        attributes: key_values(template.attributes),
    }
}

fn taint(taint: wire::Taint) -> contract::Taint {
    let effect = match taint.effect {
        wire::TaintEffect::NoSchedule => contract::TaintEffect::NoSchedule,
        wire::TaintEffect::PreferNoSchedule => contract::TaintEffect::PreferNoSchedule,
        wire::TaintEffect::NoExecute => contract::TaintEffect::NoExecute,
    };
    contract::Taint { key: taint.key, value: taint.value, effect }
}

/// All prices.
pub(crate) fn price_book(prices: wire::Prices) -> contract::PriceBook {
    contract::PriceBook {
        currency: prices.currency,
        valid_until: prices.valid_until_ms,
        templates: prices
            .templates
            .into_iter()
            .map(|price| contract::TemplatePrice {
                group: price.group,
                template_key: price.template_key,
                micros_per_hour: price.micros_per_hour,
            })
            .collect(),
        units: prices
            .units
            .into_iter()
            .map(|price| contract::UnitPrice {
                resource_name: price.resource_name,
                micros_per_hour: price.micros_per_hour,
                selector: key_values(price.selector),
            })
            .collect(),
    }
}

/// What a change of size did. The cloud cannot have accepted more than it was asked for.
pub(crate) fn size_outcome(answer: wire::SizeAnswer, delta: u32) -> contract::SizeOutcome {
    contract::SizeOutcome {
        target_size: answer.target,
        accepted: answer.accepted.min(delta),
        activity: answer.activity,
        confirmed: !answer.unconfirmed,
        shortfall: answer.shortfall.map(PluginError::from),
        attributes: vec![],
    }
}

/// What a delete did: one result for each id that was asked for, in that order, whatever the cloud answered.
pub(crate) fn delete_outcome(answer: wire::DeleteAnswer, ids: &[String]) -> contract::DeleteOutcome {
    let mut told: BTreeMap<_, _> = answer.results.into_iter().map(|result| (result.id, result.status)).collect();
    let result_of = |id: &String| match told.remove(id) {
        Some(wire::DeleteStatus::Accepted) => DeleteResult::accepted(id),
        Some(wire::DeleteStatus::AlreadyGone) => DeleteResult::already_gone(id),
        Some(wire::DeleteStatus::Failed(failure)) => DeleteResult::failed(id, failure.into()),
        Some(wire::DeleteStatus::Skipped(reason)) => DeleteResult::skipped(id, reason),
        None => {
            let error = PluginError::transient("the cloud told nothing about this machine").with_code("no-result");
            DeleteResult::failed(id, error.for_instance(id).with_unknown_outcome())
        }
    };
    let results = ids.iter().map(result_of).collect();
    contract::DeleteOutcome { target_size: answer.target, results, activity: answer.activity, attributes: vec![] }
}
