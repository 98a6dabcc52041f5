//! Devices and claims to them. Words that a newer API server may know (allocation modes, effects of device taints) are kept:
//! the rules refuse pods that would need them, and say so.

use k8s_openapi::api::resource::v1 as resource;

use super::super::error::Within;
use super::amounts::{amount, amounts};
use super::selectors::node_selector;
use super::{Admit, Checked, at_least, each_of, filled};

impl Admit for resource::DeviceClass {
    fn admit(&mut self) -> Checked {
        Ok(())
    }
}

impl Admit for resource::ResourceSlice {
    fn admit(&mut self) -> Checked {
        slice(&self.spec).field("spec")
    }
}

fn slice(spec: &resource::ResourceSliceSpec) -> Checked {
    filled(&spec.driver).field("driver")?;
    filled(&spec.pool.name).field("name").field("pool")?;
    at_least(0, Some(spec.pool.generation)).field("generation").field("pool")?;
    at_least(1, Some(spec.pool.resource_slice_count)).field("resourceSliceCount").field("pool")?;
    node_selector(spec.node_selector.as_ref()).field("nodeSelector")?;
    each_of(spec.devices.as_ref(), device).field("devices")?;
    each_of(spec.shared_counters.as_ref(), |set| counters(&set.counters)).field("sharedCounters")
}

fn device(device: &resource::Device) -> Checked {
    filled(&device.name).field("name")?;
    for (name, capacity) in device.capacity.iter().flatten() {
        amount(&capacity.value).field("value").key(name).field("capacity")?;
    }
    node_selector(device.node_selector.as_ref()).field("nodeSelector")?;
    each_of(device.consumes_counters.as_ref(), |set| counters(&set.counters)).field("consumesCounters")
}

fn counters(counters: &std::collections::BTreeMap<String, resource::Counter>) -> Checked {
    let counter = |(name, counter): (&String, &resource::Counter)| amount(&counter.value).field("value").key(name);
    counters.iter().try_for_each(counter).field("counters")
}

impl Admit for resource::ResourceClaim {
    fn admit(&mut self) -> Checked {
        self.spec.as_ref().map_or(Ok(()), claim_spec).field("spec")?;
        let allocation = self.status.as_ref().and_then(|status| status.allocation.as_ref());
        let selector = allocation.and_then(|allocation| allocation.node_selector.as_ref());
        node_selector(selector).field("nodeSelector").field("allocation").field("status")?;
        let results = allocation.and_then(|allocation| allocation.devices.as_ref()?.results.as_ref());
        let result = |result: &resource::DeviceRequestAllocationResult| {
            amounts(result.consumed_capacity.as_ref()).field("consumedCapacity")
        };
        each_of(results, result).field("results").field("devices").field("allocation").field("status")
    }
}

impl Admit for resource::ResourceClaimTemplate {
    fn admit(&mut self) -> Checked {
        let spec = self.spec.as_ref().and_then(|spec| spec.spec.as_ref());
        spec.map_or(Ok(()), claim_spec).field("spec").field("spec")
    }
}

fn claim_spec(spec: &resource::ResourceClaimSpec) -> Checked {
    let capacity = |capacity: Option<&resource::CapacityRequirements>| {
        amounts(capacity.and_then(|capacity| capacity.requests.as_ref())).field("requests").field("capacity")
    };
    let request = |request: &resource::DeviceRequest| {
        filled(&request.name).field("name")?;
        if let Some(exactly) = &request.exactly {
            at_least(1, exactly.count).field("count").field("exactly")?;
            capacity(exactly.capacity.as_ref()).field("exactly")?;
        }
        let alternative = |alternative: &resource::DeviceSubRequest| {
            at_least(1, alternative.count).field("count")?;
            capacity(alternative.capacity.as_ref())
        };
        each_of(request.first_available.as_ref(), alternative).field("firstAvailable")
    };
    let requests = spec.devices.as_ref().and_then(|devices| devices.requests.as_ref());
    each_of(requests, request).field("requests").field("devices")
}
