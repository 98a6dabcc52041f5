//! ECS: what a machine costs.

use serde_json::{Value, json};

use crate::alicloud::action::{Action, Work};
use crate::alicloud::error::ApiError;
use crate::alicloud::parameters::{Bound, Kind, optional};
use crate::alicloud::world::InstanceType;

/// Hours of the units that a price can be asked for.
const UNITS: &[(&str, f64)] = &[("Hour", 1.0), ("Day", 24.0), ("Week", 168.0), ("Month", 720.0), ("Year", 8_640.0)];
/// Share of the usual price that a spot machine costs.
const SPOT_SHARE: f64 = 0.3;
/// A GiB of a system disk for an hour.
const DISK_GIB: f64 = 0.002;
/// Size of a system disk that is not named, in GiB.
const DISK_GIB_UNNAMED: i64 = 40;

pub(super) const PRICE: Action = Action {
    name: "DescribePrice",
    permission: "ecs:DescribePrice",
    signed: true,
    host_is_ess: false,
    writes: false,
    parameters: &[
        optional("ResourceType", Kind::OneOf(&["instance"])),
        optional("InstanceType", Kind::Text),
        optional("PriceUnit", Kind::OneOf(&["Hour", "Day", "Week", "Month", "Year"])),
        optional("SpotStrategy", Kind::OneOf(&["NoSpot", "SpotWithPriceLimit", "SpotAsPriceGo"])),
        optional("ZoneId", Kind::Text),
        optional("SystemDisk.Category", Kind::Text),
        optional("SystemDisk.Size", Kind::Number(20, Bound::Is(32_768))),
        optional("Amount", Kind::Number(1, Bound::Is(1000))),
    ],
    handler: price,
};

fn price(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let Some(name) = work.parameters.text("InstanceType") else {
        return Err(ApiError::bad("MissingParameter", "The input parameter InstanceType is missing."));
    };
    let Some(kind) = work.cloud.kept.world.types.get(name) else {
        let text = format!("The specified InstanceType {name} does not exist.");
        return Err(ApiError::missing("InvalidInstanceType.ValueNotSupported", text));
    };
    let spot = work.parameters.text("SpotStrategy").is_some_and(|strategy| strategy != "NoSpot");
    let machine = kind.hourly() * if spot { SPOT_SHARE } else { 1.0 };
    let disk = DISK_GIB * work.parameters.number("SystemDisk.Size").unwrap_or(DISK_GIB_UNNAMED) as f64;
    let unit = work.parameters.text("PriceUnit").unwrap_or("Hour");
    let hours = UNITS.iter().find(|(name, _)| *name == unit).map_or(1.0, |(_, hours)| *hours);
    let amount = work.parameters.number("Amount").unwrap_or(1) as f64;
    // The cloud tells six places.
    let rounded = |price: f64| (price * hours * amount * 1e6).round() / 1e6;
    let detail = |resource: &str, price: f64| {
        let price = rounded(price);
        json!({"Resource": resource, "OriginalPrice": price, "DiscountPrice": 0.0, "TradePrice": price})
    };
    Ok(json!({"PriceInfo": {
        "Price": {
            "OriginalPrice": rounded(kind.hourly() + disk),
            "DiscountPrice": rounded(kind.hourly() - machine),
            "TradePrice": rounded(machine + disk),
            "Currency": "CNY",
            "DetailInfos": {"DetailInfo": [detail("instanceType", machine), detail("systemDisk", disk)]},
        },
        "Rules": {"Rule": []},
    }}))
}

impl InstanceType {
    /// Price of a machine without its disks, for an hour.
    fn hourly(&self) -> f64 {
        let parts = f64::from(self.cpu) * 0.15 + self.memory_gib * 0.02 + f64::from(self.gpu) * 9.0;
        self.price_per_hour.unwrap_or(parts)
    }
}
