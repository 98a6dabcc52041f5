//! Devices that are given in parts (consumable capacity), and what a request takes of a device's capacities.

use plimsoll_model::devices::{Capacity, Device, DeviceRequest};
use plimsoll_model::{Quantity, Symbol, Symbols};

/// Whether two names of a driver's capacities or attributes mean the same: the driver's own domain may be left away.
pub(crate) fn same_name(one: Symbol, other: Symbol, driver: &str, symbols: &Symbols) -> bool {
    one == other || own_name(symbols.text(one), driver) == own_name(symbols.text(other), driver)
}

/// A name without the driver's own domain.
fn own_name<'a>(name: &'a str, driver: &str) -> &'a str {
    name.strip_prefix(driver).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name)
}

/// What a request takes of each capacity of a device, in its order. None if the device does not have what is asked for,
/// or not in such amounts.
pub(crate) fn taken(
    request: &DeviceRequest,
    device: &Device,
    driver: &str,
    symbols: &Symbols,
) -> Option<Box<[Quantity]>> {
    let is_known = |name: Symbol| device.capacity.iter().any(|(own, _)| same_name(*own, name, driver, symbols));
    if !request.capacity.iter().all(|(name, _)| is_known(*name)) {
        return None;
    }
    let amounts = device.capacity.iter().map(|(name, capacity)| {
        let asked = request.capacity.iter().find(|(asked, _)| same_name(*name, *asked, driver, symbols));
        let amount = rounded(asked.map(|(_, amount)| *amount), capacity);
        (is_allowed(amount, capacity) && amount <= capacity.value && !amount.is_negative()).then_some(amount)
    });
    amounts.collect()
}

/// An amount as the policy makes it: up to the next that is allowed; where nothing is asked for, the default or all.
fn rounded(asked: Option<Quantity>, capacity: &Capacity) -> Quantity {
    let policy = capacity.policy.as_ref();
    let Some(asked) = asked else {
        return policy.and_then(|policy| policy.default).unwrap_or(capacity.value);
    };
    let Some(policy) = policy else { return asked };
    if let Some(range) = policy.range {
        range.step.map_or(asked.max(range.least), |step| asked.rounded_up(range.least, step))
    } else {
        policy.values.iter().copied().find(|value| asked <= *value).unwrap_or(asked)
    }
}

fn is_allowed(amount: Quantity, capacity: &Capacity) -> bool {
    let Some(policy) = &capacity.policy else { return true };
    if policy.default == Some(amount) {
        return true;
    }
    if let Some(range) = policy.range {
        range.most.is_none_or(|most| amount <= most)
            && range.step.is_none_or(|step| amount.rounded_up(range.least, step) == amount)
    } else {
        policy.values.is_empty() || policy.values.contains(&amount)
    }
}

/// Adds what was taken, by name, to amounts in the order of a device's capacities.
pub(crate) fn add_named(
    sums: &mut [Quantity],
    share: &[(Symbol, Quantity)],
    device: &Device,
    driver: &str,
    symbols: &Symbols,
) {
    for (sum, (name, _)) in sums.iter_mut().zip(&device.capacity) {
        for (_, amount) in share.iter().filter(|(taken, _)| same_name(*name, *taken, driver, symbols)) {
            *sum = sum.plus(*amount);
        }
    }
}
