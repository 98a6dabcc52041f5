//! DeviceClass, ResourceSlice, ResourceClaim, ResourceClaimTemplate.

use std::collections::BTreeMap;

use k8s_openapi::api::resource::v1 as resource;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

use crate::devices::{
    AllocatedDevice, Allocation, Attribute, Capacity, Choice, ClaimRequest, ClaimSpec, Constraint, ConstraintRule,
    CounterSet, Device, DeviceClass, DeviceCount, DeviceName, DeviceRequest, DeviceSelector, DeviceTaint,
    DeviceTaintEffect, DeviceToleration, Reach, ResourceSlice, SharePolicy, ShareRange,
};
use crate::quantity::Quantity;
use crate::symbol::{Symbol, Symbols, known};

use super::Converter;
use super::error::{ConvertError, Flaw, Within};
use super::{metadata, selectors};

impl Converter<'_> {
    /// A DeviceClass.
    pub fn device_class(&mut self, class: &resource::DeviceClass) -> DeviceClass {
        let symbols = &mut *self.symbols;
        let spec = class.spec.as_ref();
        DeviceClass {
            selectors: device_selectors(spec.and_then(|spec| spec.selectors.as_deref()), symbols),
            extended_resource: filled(spec.and_then(|spec| spec.extended_resource_name.as_deref()), symbols),
            created_at: class.metadata.creation_timestamp.as_ref().map(metadata::time),
        }
    }

    /// What a claim asks for.
    ///
    /// # Errors
    ///
    /// If an amount cannot be read.
    pub fn claim_spec(&mut self, spec: Option<&resource::ResourceClaimSpec>) -> Result<ClaimSpec, ConvertError> {
        let symbols = &mut *self.symbols;
        let Some(devices) = spec.and_then(|spec| spec.devices.as_ref()) else { return Ok(ClaimSpec::default()) };
        let requests = devices.requests.iter().flatten().enumerate();
        let requests = requests.map(|(index, request)| claim_request(request, symbols).index(index).field("requests"));
        let requests = requests.collect::<Result<_, _>>().field("devices")?;
        let constraints = devices.constraints.iter().flatten().map(|constraint| Constraint {
            requests: constraint.requests.iter().flatten().map(|name| symbols.intern(name)).collect(),
            rule: match (&constraint.match_attribute, &constraint.distinct_attribute) {
                (Some(name), _) => ConstraintRule::Match(symbols.intern(name)),
                (None, Some(name)) => ConstraintRule::Distinct(symbols.intern(name)),
                (None, None) => ConstraintRule::Unknown,
            },
        });
        Ok(ClaimSpec { requests, constraints: constraints.collect() })
    }

    /// What a claim was given.
    ///
    /// # Errors
    ///
    /// If an amount cannot be read.
    pub fn allocation(&mut self, status: &resource::ResourceClaimStatus) -> Result<Option<Allocation>, ConvertError> {
        let symbols = &mut *self.symbols;
        let Some(allocation) = &status.allocation else { return Ok(None) };
        let results = allocation.devices.as_ref().and_then(|devices| devices.results.as_ref()).into_iter().flatten();
        let devices = results.enumerate().map(|(index, result)| {
            let consumed = amounts(result.consumed_capacity.as_ref(), symbols);
            Ok(AllocatedDevice {
                device: DeviceName {
                    driver: symbols.intern(&result.driver),
                    pool: symbols.intern(&result.pool),
                    device: symbols.intern(&result.device),
                },
                admin: result.admin_access.unwrap_or(false),
                shared: result.share_id.is_some(),
                consumed: consumed.field("consumedCapacity").index(index).field("results").field("devices")?,
                failed: has_failed(result, status),
            })
        });
        let devices = devices.collect::<Result<_, _>>().field("allocation")?;
        let nodes = allocation.node_selector.as_ref().map(|selector| selectors::node_selector(selector, symbols));
        Ok(Some(Allocation { nodes, devices }))
    }

    /// A ResourceSlice.
    ///
    /// # Errors
    ///
    /// If it has no name, or an amount cannot be read.
    pub fn resource_slice(&mut self, slice: &resource::ResourceSlice) -> Result<ResourceSlice, ConvertError> {
        let symbols = &mut *self.symbols;
        let spec = &slice.spec;
        let nodes = if spec.per_device_node_selection == Some(true) {
            Reach::EachDevice
        } else {
            reach(spec.node_name.as_deref(), spec.all_nodes, spec.node_selector.as_ref(), symbols)
        };
        let devices = spec.devices.iter().flatten().enumerate();
        let devices = devices.map(|(index, device)| self::device(device, symbols).index(index).field("devices"));
        let devices = devices.collect::<Result<_, _>>().field("spec")?;
        let counters =
            spec.shared_counters.iter().flatten().enumerate().map(|(index, set)| {
                counter_set(&set.name, &set.counters, symbols).index(index).field("sharedCounters")
            });
        let counters = counters.collect::<Result<_, _>>().field("spec")?;
        Ok(ResourceSlice {
            name: symbols.intern(metadata::name(&slice.metadata)?),
            driver: symbols.intern(&spec.driver),
            pool: symbols.intern(&spec.pool.name),
            generation: spec.pool.generation,
            slices_in_pool: spec.pool.resource_slice_count,
            nodes,
            devices,
            counters,
        })
    }
}

/// A template's slice is one of its node.
pub(super) fn is_on_node(slice: &ResourceSlice) -> Result<(), ConvertError> {
    match slice.nodes {
        Reach::Node(_) => Ok(()),
        _ => Err(ConvertError::from(Flaw::SliceWithoutNode)).field("nodeName").field("spec"),
    }
}

fn filled(text: Option<&str>, symbols: &mut Symbols) -> Option<Symbol> {
    text.filter(|text| !text.is_empty()).map(|text| symbols.intern(text))
}

fn quantity(text: &Text) -> Result<Quantity, ConvertError> {
    Ok(text.0.parse::<Quantity>()?)
}

fn amounts(
    list: Option<&BTreeMap<String, Text>>,
    symbols: &mut Symbols,
) -> Result<Box<[(Symbol, Quantity)]>, ConvertError> {
    list.into_iter().flatten().map(|(name, text)| Ok((symbols.intern(name), quantity(text).key(name)?))).collect()
}

fn device_selectors(selectors: Option<&[resource::DeviceSelector]>, symbols: &mut Symbols) -> Box<[DeviceSelector]> {
    let selector = |selector: &resource::DeviceSelector| match &selector.cel {
        Some(cel) => DeviceSelector::Cel(symbols.intern(&cel.expression)),
        None => DeviceSelector::Unknown,
    };
    selectors.into_iter().flatten().map(selector).collect()
}

fn claim_request(request: &resource::DeviceRequest, symbols: &mut Symbols) -> Result<ClaimRequest, ConvertError> {
    let name = symbols.intern(&request.name);
    let choice = if let Some(exactly) = &request.exactly {
        let parts = RequestParts {
            name: &request.name,
            class: &exactly.device_class_name,
            selectors: exactly.selectors.as_deref(),
            mode: exactly.allocation_mode.as_deref(),
            count: exactly.count,
            admin: exactly.admin_access.unwrap_or(false),
            tolerations: exactly.tolerations.as_deref(),
            capacity: exactly.capacity.as_ref(),
            derives_attributes: exactly.derived_attributes.as_ref().is_some_and(|derived| !derived.is_empty()),
        };
        Choice::Exactly(device_request(&parts, symbols).field("exactly")?)
    } else if let Some(alternatives) = &request.first_available {
        let alternatives = alternatives.iter().enumerate().map(|(index, sub)| {
            let parts = RequestParts {
                name: &sub.name,
                class: &sub.device_class_name,
                selectors: sub.selectors.as_deref(),
                mode: sub.allocation_mode.as_deref(),
                count: sub.count,
                admin: false,
                tolerations: sub.tolerations.as_deref(),
                capacity: sub.capacity.as_ref(),
                derives_attributes: sub.derived_attributes.as_ref().is_some_and(|derived| !derived.is_empty()),
            };
            device_request(&parts, symbols).index(index).field("firstAvailable")
        });
        Choice::FirstAvailable(alternatives.collect::<Result<_, _>>()?)
    } else {
        Choice::Unknown
    };
    Ok(ClaimRequest { name, choice })
}

/// What requests and sub-requests have in common.
struct RequestParts<'a> {
    name: &'a str,
    class: &'a str,
    selectors: Option<&'a [resource::DeviceSelector]>,
    mode: Option<&'a str>,
    count: Option<i64>,
    admin: bool,
    tolerations: Option<&'a [resource::DeviceToleration]>,
    capacity: Option<&'a resource::CapacityRequirements>,
    derives_attributes: bool,
}

fn device_request(parts: &RequestParts<'_>, symbols: &mut Symbols) -> Result<DeviceRequest, ConvertError> {
    let capacity = amounts(parts.capacity.and_then(|capacity| capacity.requests.as_ref()), symbols);
    Ok(DeviceRequest {
        name: symbols.intern(parts.name),
        class: symbols.intern(parts.class),
        selectors: device_selectors(parts.selectors, symbols),
        // The API server's defaults.
        count: match parts.mode {
            None | Some("" | "ExactCount") => DeviceCount::Exactly(parts.count.unwrap_or(1)),
            Some("All") => DeviceCount::All,
            Some(other) => DeviceCount::Unknown(symbols.intern(other)),
        },
        admin: parts.admin,
        tolerations: parts.tolerations.into_iter().flatten().map(|found| toleration(found, symbols)).collect(),
        capacity: capacity.field("requests").field("capacity")?,
        derives_attributes: parts.derives_attributes,
    })
}

fn toleration(toleration: &resource::DeviceToleration, symbols: &mut Symbols) -> DeviceToleration {
    let mut text = |text: &Option<String>| symbols.intern(text.as_deref().unwrap_or(""));
    let operator = toleration.operator.as_deref().unwrap_or("");
    DeviceToleration {
        key: text(&toleration.key),
        value: (operator != "Exists").then(|| text(&toleration.value)),
        effect: text(&toleration.effect),
        known: matches!(operator, "" | "Equal" | "Exists"),
    }
}

/// Whether the device's status has a condition that the allocation calls a failure.
fn has_failed(result: &resource::DeviceRequestAllocationResult, status: &resource::ResourceClaimStatus) -> bool {
    let is_it = |device: &&resource::AllocatedDeviceStatus| {
        (&device.driver, &device.pool, &device.device, &device.share_id)
            == (&result.driver, &result.pool, &result.device, &result.share_id)
    };
    let conditions =
        status.devices.iter().flatten().filter(is_it).flat_map(|device| device.conditions.iter().flatten());
    let failures = || result.binding_failure_conditions.iter().flatten();
    { conditions }.any(|condition| condition.status == "True" && failures().any(|name| *name == condition.type_))
}

fn reach(
    node: Option<&str>,
    all: Option<bool>,
    selector: Option<&k8s_openapi::api::core::v1::NodeSelector>,
    symbols: &mut Symbols,
) -> Reach {
    match (filled(node, symbols), all, selector) {
        (Some(node), _, _) => Reach::Node(node),
        (None, Some(true), _) => Reach::All,
        (None, _, Some(selector)) => Reach::Selector(selectors::node_selector(selector, symbols)),
        (None, _, None) => Reach::Unknown,
    }
}

fn device(device: &resource::Device, symbols: &mut Symbols) -> Result<Device, ConvertError> {
    let attributes = device.attributes.iter().flatten();
    let attributes = attributes.map(|(name, value)| (symbols.intern(name), attribute(value, symbols))).collect();
    let capacity = device.capacity.iter().flatten();
    let capacity = capacity
        .map(|(name, found)| Ok((symbols.intern(name), self::capacity(found).key(name)?)))
        .collect::<Result<_, _>>()
        .field("capacity")?;
    let consumes = device.consumes_counters.iter().flatten().enumerate().map(|(index, set)| {
        counter_set(&set.counter_set, &set.counters, symbols).index(index).field("consumesCounters")
    });
    let consumes = consumes.collect::<Result<_, _>>()?;
    let taints = device.taints.iter().flatten().map(|taint| DeviceTaint {
        key: symbols.intern(&taint.key),
        value: taint.value.as_deref().map_or(known::EMPTY, |value| symbols.intern(value)),
        effect: match taint.effect.as_str() {
            "NoSchedule" => DeviceTaintEffect::NoSchedule,
            "NoExecute" => DeviceTaintEffect::NoExecute,
            other => DeviceTaintEffect::Other(symbols.intern(other)),
        },
    });
    let taints = taints.collect();
    Ok(Device {
        name: symbols.intern(&device.name),
        attributes,
        capacity,
        nodes: reach(device.node_name.as_deref(), device.all_nodes, device.node_selector.as_ref(), symbols),
        consumes,
        taints,
        shareable: device.allow_multiple_allocations.unwrap_or(false),
        binds_to_node: device.binds_to_node.unwrap_or(false),
        binding_conditions: device.binding_conditions.is_some(),
    })
}

fn attribute(value: &resource::DeviceAttribute, symbols: &mut Symbols) -> Attribute {
    if let Some(number) = value.int {
        Attribute::Int(number)
    } else if let Some(yes) = value.bool {
        Attribute::Bool(yes)
    } else if let Some(text) = &value.string {
        Attribute::Text(symbols.intern(text))
    } else if let Some(version) = &value.version {
        Attribute::Version(symbols.intern(version))
    } else {
        Attribute::Other
    }
}

fn capacity(found: &resource::DeviceCapacity) -> Result<Capacity, ConvertError> {
    let optional = |text: &Option<Text>, name| text.as_ref().map(quantity).transpose().field(name);
    let policy = |policy: &resource::CapacityRequestPolicy| {
        let values = policy.valid_values.iter().flatten().enumerate();
        let range = |range: &resource::CapacityRequestPolicyRange| {
            Ok(ShareRange {
                least: quantity(&range.min).field("min")?,
                most: optional(&range.max, "max")?,
                step: optional(&range.step, "step")?,
            })
        };
        Ok(SharePolicy {
            default: optional(&policy.default, "default")?,
            values: values
                .map(|(index, text)| quantity(text).index(index).field("validValues"))
                .collect::<Result<_, _>>()?,
            range: policy.valid_range.as_ref().map(range).transpose().field("validRange")?,
        })
    };
    Ok(Capacity {
        value: quantity(&found.value).field("value")?,
        policy: found.request_policy.as_ref().map(policy).transpose().field("requestPolicy")?,
    })
}

fn counter_set(
    name: &str,
    counters: &BTreeMap<String, resource::Counter>,
    symbols: &mut Symbols,
) -> Result<CounterSet, ConvertError> {
    let counters = counters.iter().map(|(name, counter)| {
        Ok((symbols.intern(name), quantity(&counter.value).field("value").key(name).field("counters")?))
    });
    Ok(CounterSet { counters: counters.collect::<Result<_, ConvertError>>()?, name: symbols.intern(name) })
}
