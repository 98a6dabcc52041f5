//! VPC: subnets.

use serde_json::{Value, json};

use crate::alicloud::action::{Action, Work};
use crate::alicloud::error::ApiError;
use crate::alicloud::parameters::{Bound, Kind, optional};

/// Its operations.
pub const ACTIONS: &[Action] = &[Action {
    name: "DescribeVSwitches",
    permission: "vpc:DescribeVSwitches",
    signed: true,
    host_is_ess: false,
    writes: false,
    parameters: &[
        optional("VSwitchId", Kind::Text),
        optional("VpcId", Kind::Text),
        optional("ZoneId", Kind::Text),
        optional("PageNumber", Kind::Number(1, Bound::Is(i64::MAX))),
        optional("PageSize", Kind::Number(1, Bound::Is(50))),
    ],
    handler: vswitches,
}];

fn vswitches(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let wanted: Option<Vec<&str>> = work.parameters.text("VSwitchId").map(|text| text.split(',').collect());
    let world = &work.cloud.kept.world;
    let fits = world.vswitches.values().filter(|vswitch| {
        wanted.as_ref().is_none_or(|wanted| wanted.contains(&vswitch.id.as_str()))
            && work.parameters.text("ZoneId").is_none_or(|zone| zone == vswitch.zone)
            && work.parameters.text("VpcId").is_none_or(|vpc| vpc == "vpc-bp1fake")
    });
    let show = |vswitch: &crate::alicloud::world::VSwitch| {
        json!({
            "VSwitchId": vswitch.id, "ZoneId": vswitch.zone, "VpcId": "vpc-bp1fake", "Status": "Available",
            "AvailableIpAddressCount": vswitch.free, "CidrBlock": "10.0.0.0/16", "IsDefault": false,
        })
    };
    Ok(work.page("VSwitches", fits.map(show).collect()))
}
