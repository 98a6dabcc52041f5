//! Scaling groups as ESS tells them.

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Deadline, PluginError};
use serde_json::Value;

use crate::api::{Api, Call, Lenient, PAGE_SIZE, Pages, Product};
use crate::fingerprint::Fingerprint;
use crate::spec::TagRule;

/// Most ids in one question.
const IDS_PER_CALL: usize = 20;

/// A scaling group.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct ScalingGroup {
    pub(crate) id: String,
    pub(crate) name: String,
    /// ESS's own limits, in units of capacity.
    pub(crate) min: u32,
    pub(crate) max: u32,
    /// The stored wish, if the group has one.
    pub(crate) desired: Option<u32>,
    /// Sum of all capacities that are or will be machines: active, pending, waiting, starting, protected, standby.
    pub(crate) capacity: u32,
    /// Capacity that counts for ESS's own check of its least size.
    pub(crate) total_capacity: Option<u32>,
    /// Machines of any state, if it is told.
    pub(crate) instance_count: Option<u32>,
    /// Capacities are weights, not machines.
    pub(crate) weighted: bool,
    pub(crate) lifecycle: Lifecycle,
    /// ESS suspended it after too many failures.
    pub(crate) system_suspended: bool,
    /// Processes that someone suspended, such as `ScaleOut`.
    pub(crate) suspended: Vec<String>,
    pub(crate) configuration: String,
    /// Id and version of a launch template.
    pub(crate) launch_template: Option<(String, String)>,
    /// Machine types with their weights, in order of preference; from the launch template's overrides.
    pub(crate) overrides: Vec<(String, u32)>,
    pub(crate) vswitches: Vec<String>,
    /// Tags; none if the answer has no such field.
    pub(crate) tags: Option<Vec<(String, String)>>,
    pub(crate) modified: String,
}

/// Whether a group lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Lifecycle {
    #[default]
    Active,
    Inactive,
    Deleting,
}

impl ScalingGroup {
    /// # Errors
    /// A size is missing without which nothing may be computed.
    pub(crate) fn read(value: &Value) -> Result<Self, PluginError> {
        let id = value.text("ScalingGroupId");
        let lacks = |what: &str| {
            let message = format!("the answer about scaling group {id} has no {what}");
            PluginError::transient(message).with_code("undecodable").for_group(&id)
        };
        let capacities = ["Active", "Pending", "PendingWait", "Init", "Protected", "Standby"];
        let capacities: Vec<_> = capacities.iter().map(|kind| value.count(&format!("{kind}Capacity"))).collect();
        let wishes = value.truth("EnableDesiredCapacity").unwrap_or(value.count("DesiredCapacity").is_some());
        let desired = match (wishes, value.count("DesiredCapacity")) {
            (false, _) => None,
            (true, None) => return Err(lacks("DesiredCapacity")),
            (true, desired) => desired,
        };
        if desired.is_none() && capacities.iter().all(Option::is_none) {
            return Err(lacks("capacities"));
        }
        let template = (value.text("LaunchTemplateId"), value.text("LaunchTemplateVersion"));
        let overrides: Vec<_> =
            value.list("LaunchTemplateOverrides", "LaunchTemplateOverride").iter().map(override_of).collect();
        let mut vswitches = value.texts("VSwitchIds", "VSwitchId");
        if vswitches.is_empty() {
            vswitches.extend(Some(value.text("VSwitchId")).filter(|id| !id.is_empty()));
        }
        Ok(Self {
            name: Some(value.text("ScalingGroupName")).filter(|name| !name.is_empty()).unwrap_or_else(|| id.clone()),
            min: value.count("MinSize").ok_or_else(|| lacks("MinSize"))?,
            max: value.count("MaxSize").ok_or_else(|| lacks("MaxSize"))?,
            desired,
            capacity: capacities.into_iter().flatten().sum(),
            total_capacity: value.count("TotalCapacity"),
            instance_count: value.count("TotalInstanceCount"),
            weighted: value.truth("Weighted").unwrap_or(overrides.iter().any(|(_, weight)| *weight > 1)),
            lifecycle: match value.text("LifecycleState").as_str() {
                "Inactive" => Lifecycle::Inactive,
                "Deleting" => Lifecycle::Deleting,
                _ => Lifecycle::Active,
            },
            system_suspended: value.truth("SystemSuspended").unwrap_or(false),
            suspended: value.texts("SuspendedProcesses", "SuspendedProcess"),
            configuration: value.text("ActiveScalingConfigurationId"),
            launch_template: Some(template).filter(|(id, _)| !id.is_empty()),
            overrides: overrides.into_iter().filter(|(kind, _)| !kind.is_empty()).collect(),
            vswitches,
            tags: value.get("Tags").map(|_| tags(value)),
            modified: value.text("ModificationTime"),
            id,
        })
    }

    /// Value of a tag.
    pub(crate) fn tag(&self, key: &str) -> Option<&str> {
        self.tags.iter().flatten().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Whether the processes hold scale-out back.
    pub(crate) fn scale_out_suspended(&self) -> bool {
        self.system_suspended || self.suspended.iter().any(|process| process.eq_ignore_ascii_case("ScaleOut"))
    }

    /// Name of everything here that templates are made of.
    pub(crate) fn template_fingerprint(&self) -> Fingerprint {
        let (template, version) = self.launch_template.clone().unwrap_or_default();
        let mut print =
            Fingerprint::new().with(&self.modified).with(&self.configuration).with(&template).with(&version);
        for (kind, weight) in &self.overrides {
            print = print.with(kind).with_number((*weight).into());
        }
        for vswitch in &self.vswitches {
            print = print.with(vswitch);
        }
        for (key, value) in self.tags.iter().flatten() {
            print = print.with(key).with(value);
        }
        print
    }
}

fn override_of(value: &Value) -> (String, u32) {
    (value.text("InstanceType"), value.count("WeightedCapacity").unwrap_or(1).max(1))
}

/// Tags in any of the spellings met.
pub(crate) fn tags(value: &Value) -> Vec<(String, String)> {
    let one = |tag: &Value| {
        let either = |one: &str, other: &str| if tag.member(one).is_some() { tag.text(one) } else { tag.text(other) };
        (either("TagKey", "Key"), either("TagValue", "Value"))
    };
    let listed = value.list("Tags", "Tag").iter().map(one);
    listed.filter(|(key, _)| !key.is_empty()).collect()
}

/// What was found out about groups.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// Groups, or why one of them cannot be used.
    pub(crate) groups: Vec<(String, Result<ScalingGroup, PluginError>)>,
    /// Why something is missing: the ids that were asked for, and the failure.
    pub(crate) failures: Vec<(Vec<String>, PluginError)>,
}

impl Read {
    fn add(&mut self, value: &Value) {
        let id = value.text("ScalingGroupId");
        if !id.is_empty() && self.groups.iter().all(|(known, _)| *known != id) {
            self.groups.push((id, ScalingGroup::read(value)));
        }
    }
}

/// Groups by id. An id that does not exist is left out by the cloud, and no failure.
pub(crate) fn by_ids<T: Transport>(api: &mut Api<T>, ids: &[String], deadline: Deadline) -> Read {
    let call = |ids: &[String]| {
        Call::read(Product::Ess, "DescribeScalingGroups").each("ScalingGroupId", ids).with("PageSize", PAGE_SIZE)
    };
    let calls: Vec<_> = ids.chunks(IDS_PER_CALL).map(call).collect();
    let mut read = Read::default();
    let mut asked = ids.chunks(IDS_PER_CALL);
    api.ask_all(&calls, deadline, |_, answer| {
        let ids = asked.next().unwrap_or_default();
        match answer {
            // Some gateways leave the list out when something is wrong behind them: not the same as an empty list.
            Ok(value) if value.get("ScalingGroups").is_none() => {
                let error = PluginError::transient("the answer to ess:DescribeScalingGroups has no list")
                    .with_code("undecodable");
                read.failures.push((ids.to_vec(), error));
            }
            Ok(value) => value.list("ScalingGroups", "ScalingGroup").iter().for_each(|group| read.add(group)),
            Err(error) => read.failures.push((ids.to_vec(), error)),
        }
    });
    read
}

/// Groups by their tags, all pages.
///
/// # Errors
/// A page could not be read: nothing can be said about what exists.
pub(crate) fn by_tags<T: Transport>(api: &mut Api<T>, rule: &TagRule, deadline: Deadline) -> Result<Read, PluginError> {
    let question = |page: u32| {
        let base =
            Call::read(Product::Ess, "DescribeScalingGroups").with("PageNumber", page).with("PageSize", PAGE_SIZE);
        rule.tags.iter().enumerate().fold(base, |call, (index, (key, value))| {
            call.with(&format!("Tag.{}.Key", index + 1), key)
                .with(&format!("Tag.{}.Value", index + 1), value.as_deref().unwrap_or_default())
        })
    };
    let mut pages = Pages::new();
    let mut next = Some(1);
    while let Some(number) = next {
        let value = api.ask(&question(number), deadline)?;
        let found = value.list("ScalingGroups", "ScalingGroup").iter();
        pages.add(value.count("TotalCount"), found.map(|group| (group.text("ScalingGroupId"), group.clone())));
        next = pages.missing().next();
    }
    let mut read = Read::default();
    pages.into_entries().iter().for_each(|group| read.add(group));
    read.groups.retain(|(_, group)| group.as_ref().map_or(true, |group| carries(group, rule)));
    Ok(read)
}

/// Whether a group really carries the tags: an API that does not know the filter gives everything. An answer without
/// tags is believed.
fn carries(group: &ScalingGroup, rule: &TagRule) -> bool {
    group.tags.is_none()
        || rule
            .tags
            .iter()
            .all(|(key, value)| group.tag(key).is_some_and(|found| value.as_deref().is_none_or(|value| value == found)))
}

/// One group, now.
///
/// # Errors
/// It could not be read, or does not exist.
pub(crate) fn one<T: Transport>(api: &mut Api<T>, id: &str, deadline: Deadline) -> Result<ScalingGroup, PluginError> {
    let read = by_ids(api, &[id.to_owned()], deadline);
    if let Some((_, error)) = read.failures.into_iter().next() {
        return Err(error);
    }
    match read.groups.into_iter().find(|(found, _)| found == id) {
        Some((_, group)) => group,
        None => Err(gone(id)),
    }
}

/// The group does not exist.
pub(crate) fn gone(id: &str) -> PluginError {
    PluginError::not_found(format!("scaling group {id} does not exist in this region; it may have been deleted"))
        .with_code("InvalidScalingGroupId.NotFound")
        .for_group(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn group(more: &Value) -> Value {
        let mut value = json!({"ScalingGroupId": "asg-1", "MinSize": 0, "MaxSize": 10, "ActiveCapacity": 3});
        if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
            all.extend(more.clone());
        }
        value
    }

    #[rstest]
    #[case::plain(json!({}), None, 3)]
    #[case::switched_off(json!({"EnableDesiredCapacity": false, "DesiredCapacity": 7}), None, 3)]
    #[case::wish(json!({"EnableDesiredCapacity": true, "DesiredCapacity": 7}), Some(7), 3)]
    #[case::as_text(json!({"EnableDesiredCapacity": "true", "DesiredCapacity": "7"}), Some(7), 3)]
    #[case::switch_left_out(json!({"DesiredCapacity": 7}), Some(7), 3)]
    #[case::all_that_counts(
        json!({"PendingCapacity": 1, "PendingWaitCapacity": 1, "InitCapacity": 1, "ProtectedCapacity": 3, "StandbyCapacity": 1,
               "StoppedCapacity": 9, "RemovingCapacity": 9, "RemovingWaitCapacity": 9}), None, 10
    )]
    fn sizes(#[case] more: Value, #[case] desired: Option<u32>, #[case] capacity: u32) {
        let group = ScalingGroup::read(&group(&more)).unwrap();
        assert_eq!((group.desired, group.capacity), (desired, capacity));
    }

    #[rstest]
    #[case::wish(json!({"EnableDesiredCapacity": true, "DesiredCapacity": null}))]
    #[case::capacities(json!({"ActiveCapacity": null}))]
    #[case::limits(json!({"MaxSize": null}))]
    fn what_may_not_be_missing(#[case] more: Value) {
        let error = ScalingGroup::read(&group(&more)).unwrap_err();
        assert_eq!(error.code, "undecodable");
    }

    #[rstest]
    #[case(json!({"Tags": {"Tag": [{"TagKey": "a", "TagValue": "b"}]}}))]
    #[case(json!({"Tags": {"Tag": [{"Key": "a", "Value": "b"}]}}))]
    #[case(json!({"Tags": [{"Key": "a", "Value": "b"}]}))]
    fn tags_in_any_shape(#[case] more: Value) {
        let group = ScalingGroup::read(&group(&more)).unwrap();
        assert_eq!(group.tag("a"), Some("b"));
        let rule = |value: Option<&str>| TagRule { tags: vec![("a".into(), value.map(str::to_owned))] };
        assert!(
            carries(&group, &rule(None)) && carries(&group, &rule(Some("b"))) && !carries(&group, &rule(Some("c")))
        );
    }

    #[test]
    fn templates_change_with_what_they_are_made_of() {
        let print = |more: Value| ScalingGroup::read(&group(&more)).unwrap().template_fingerprint().name();
        let base = print(json!({}));
        assert_eq!(base, print(json!({"DesiredCapacity": 5, "ActiveCapacity": 9})));
        assert_ne!(base, print(json!({"ActiveScalingConfigurationId": "asc-2"})));
        assert_ne!(base, print(json!({"ModificationTime": "2024-06-01T08:00Z"})));
        assert_ne!(
            base,
            print(json!({"LaunchTemplateOverrides": {"LaunchTemplateOverride": [{"InstanceType": "ecs.g7.large"}]}}))
        );
    }
}
