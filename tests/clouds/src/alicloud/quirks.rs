//! Variations in answers that real clouds show. A provider must read all of them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chance::Chance;

/// Which variations are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// Capacities of activities are numbers; else texts.
    pub capacities_as_numbers: bool,
    /// Sizes of groups are texts; else numbers.
    pub sizes_as_texts: bool,
    /// Flags are texts.
    pub flags_as_texts: bool,
    /// Optional fields without content are left out.
    pub omits_empty: bool,
    /// Empty lists are null.
    pub null_lists: bool,
    /// `Protocols` is a plain list.
    pub plain_protocols: bool,
    /// Activities have no `ErrorCode`; the code stands in `Detail` alone.
    pub code_in_detail_only: bool,
    /// There are fields that nobody has told of.
    pub unknown_fields: bool,
}

const SIZES: &[&str] = &[
    "MinSize",
    "MaxSize",
    "DesiredCapacity",
    "TotalCapacity",
    "ActiveCapacity",
    "PendingCapacity",
    "InitCapacity",
    "PendingWaitCapacity",
    "ProtectedCapacity",
    "StandbyCapacity",
    "StoppedCapacity",
    "RemovingCapacity",
    "RemovingWaitCapacity",
    "TotalInstanceCount",
    "TotalCount",
    "CpuCoreCount",
    "SystemDiskSize",
];

impl Quirks {
    /// Some of them, by chance.
    pub fn by_chance(chance: &mut Chance) -> Self {
        let mut some = || chance.percent(50);
        Self {
            capacities_as_numbers: some(),
            sizes_as_texts: some(),
            flags_as_texts: some(),
            omits_empty: some(),
            null_lists: some(),
            plain_protocols: some(),
            code_in_detail_only: some(),
            unknown_fields: some(),
        }
    }

    /// Vary an answer.
    pub fn vary(self, value: &mut Value) {
        match value {
            Value::Array(entries) => entries.iter_mut().for_each(|entry| self.vary(entry)),
            Value::Object(fields) => {
                if self.omits_empty {
                    fields.retain(|name, value| name == "NextToken" || value.as_str() != Some(""));
                }
                for (name, value) in fields.iter_mut() {
                    self.vary_field(name, value);
                }
                if self.unknown_fields && fields.contains_key("RequestId") {
                    fields.insert("TraceContext".to_owned(), Value::Object(serde_json::Map::new()));
                }
            }
            _ => {}
        }
    }

    fn vary_field(self, name: &str, value: &mut Value) {
        match value {
            Value::Array(entries) if entries.is_empty() && self.null_lists => *value = Value::Null,
            Value::Number(number) if self.sizes_as_texts && SIZES.contains(&name) => {
                *value = Value::String(number.to_string());
            }
            Value::Bool(flag) if self.flags_as_texts && name != "Success" => *value = Value::String(flag.to_string()),
            value => self.vary(value),
        }
    }
}

/// Lists that the older API and ECS wrap in an object, and the name inside.
const WRAPPED: &[(&str, &str)] = &[
    ("ScalingGroups", "ScalingGroup"),
    ("ScalingInstances", "ScalingInstance"),
    ("ScalingActivities", "ScalingActivity"),
    ("ScalingConfigurations", "ScalingConfiguration"),
    ("VSwitchIds", "VSwitchId"),
    ("SuspendedProcesses", "SuspendedProcess"),
    ("LaunchTemplateOverrides", "LaunchTemplateOverride"),
    ("RemovalPolicies", "RemovalPolicy"),
    ("InstanceTypes", "InstanceType"),
    ("InstancePatternInfos", "InstancePatternInfo"),
    ("WeightedCapacities", "WeightedCapacity"),
    ("DataDisks", "DataDisk"),
    ("SpotPriceLimits", "SpotPriceModel"),
    ("Tags", "Tag"),
    ("ErrorMessages", "ErrorMessage"),
    ("CreatedInstances", "CreatedInstance"),
    ("DestroyedInstances", "DestroyedInstance"),
    ("Instances", "Instance"),
    ("VSwitches", "VSwitch"),
    ("Endpoints", "Endpoint"),
    ("LaunchTemplateVersionSets", "LaunchTemplateVersionSet"),
    ("ResourceAllocations", "ResourceAllocation"),
];

/// Wrap plain lists as the older API has them: `"VSwitchIds":["a"]` becomes `"VSwitchIds":{"VSwitchId":["a"]}`.
pub(super) fn wrap_lists(value: &mut Value) {
    match value {
        Value::Array(entries) => entries.iter_mut().for_each(wrap_lists),
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                wrap_lists(value);
                if let (true, Some((_, inner))) = (value.is_array(), WRAPPED.iter().find(|(outer, _)| outer == name)) {
                    let list = value.take();
                    *value = serde_json::json!({ *inner: list });
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Quirks, wrap_lists};

    #[test]
    fn lists_are_wrapped_at_every_depth() {
        let mut value = json!({"ScalingGroups": [{"VSwitchIds": ["a"], "Other": [1]}]});
        wrap_lists(&mut value);
        let expected = json!({"ScalingGroups": {"ScalingGroup": [{"VSwitchIds": {"VSwitchId": ["a"]}, "Other": [1]}]}});
        assert_eq!(value, expected);
    }

    #[test]
    fn variations_change_the_shape_and_not_the_content() {
        let quirks = Quirks {
            sizes_as_texts: true,
            flags_as_texts: true,
            omits_empty: true,
            null_lists: true,
            ..Quirks::default()
        };
        let mut value =
            json!({"MinSize": 3, "Entrusted": false, "LaunchTemplateId": "", "Tags": {"Tag": []}, "Name": "n"});
        quirks.vary(&mut value);
        assert_eq!(value, json!({"MinSize": "3", "Entrusted": "false", "Tags": {"Tag": null}, "Name": "n"}));
    }
}
