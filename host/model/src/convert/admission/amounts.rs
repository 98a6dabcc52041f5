//! Amounts: none is negative, or more than can be counted.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

use super::super::amounts::{ResourceList, is_counted_in_whole};
use super::super::error::{ConvertError, Flaw, Within};
use super::Checked;
use crate::quantity::Quantity;

/// An amount that is counted in whole units.
pub(super) fn amount(text: &Text) -> Checked {
    read(text, Quantity::units).map(drop)
}

/// Amounts by the name of their resource.
pub(super) fn amounts(list: Option<&ResourceList>) -> Checked {
    list.into_iter().flatten().try_for_each(|(name, text)| of_resource(name, text).map(drop).key(name))
}

/// What a container or a pod asks for, and the most that it may take.
pub(super) fn requirements(requests: Option<&ResourceList>, limits: Option<&ResourceList>) -> Checked {
    amounts(limits).field("limits")?;
    let of_requests = |(name, text): (&String, &Text)| {
        let request = of_resource(name, text)?;
        let Some(limit) = limits.and_then(|limits| limits.get(name)) else { return Ok(()) };
        match request > limit.0.parse()? {
            true => Err(Flaw::AboveLimit { request: text.0.clone(), limit: limit.0.clone() }.into()),
            false => Ok(()),
        }
    };
    requests.into_iter().flatten().try_for_each(|entry| of_requests(entry).key(entry.0)).field("requests")
}

fn of_resource(name: &str, text: &Text) -> Result<Quantity, ConvertError> {
    let amount = read(text, if name == "cpu" { Quantity::milli } else { Quantity::units })?;
    if is_counted_in_whole(name) && amount != Quantity::from_units(amount.units()) {
        return Err(Flaw::Fraction(text.0.clone()).into());
    }
    Ok(amount)
}

fn read(text: &Text, counted: fn(Quantity) -> i64) -> Result<Quantity, ConvertError> {
    let amount: Quantity = text.0.parse()?;
    if amount.is_negative() {
        return Err(Flaw::Negative(text.0.clone()).into());
    }
    if counted(amount) == i64::MAX {
        return Err(Flaw::TooMuch(text.0.clone()).into());
    }
    Ok(amount)
}
