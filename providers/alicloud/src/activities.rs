//! What ESS did lately to a group, and which machines did not come.

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Activity, ActivityState, Deadline, PluginError, ScaleFailure};
use serde_json::Value;

use crate::api::{Api, Call, Lenient, PAGE_SIZE, Product};
use crate::instances::Member;
use crate::{errors, time};

/// What our own activities carry, so that they are known again.
const MARK: &str = "cluster-autoscaler/alicloud/managed";
/// Where the idempotency key is.
const KEY: &str = "plimsoll/key";
/// How long an activity that has ended is told.
const TOLD_FOR_MS: u64 = 15 * 60_000;

/// The text that an activity of ours carries.
pub(crate) fn metadata(key: &str) -> String {
    serde_json::json!({MARK: "true", KEY: key}).to_string()
}

/// An activity of ESS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Deed {
    pub(crate) id: String,
    pub(crate) state: ActivityState,
    pub(crate) started_ms: Option<u64>,
    pub(crate) ended_ms: Option<u64>,
    /// Whether we asked for it.
    pub(crate) ours: bool,
    /// The key with which we asked.
    pub(crate) key: Option<String>,
    code: String,
    message: String,
    /// Machines that it was to make, if it says so.
    wanted: Option<u32>,
    created: u32,
    /// Machines that it made and that failed.
    pub(crate) failed_instances: Vec<String>,
}

impl Deed {
    fn read(value: &Value) -> Option<Self> {
        let state = match value.text("StatusCode").as_str() {
            "InProgress" => ActivityState::Running,
            "Successful" => ActivityState::Succeeded,
            "Warning" => ActivityState::Partial,
            "Failed" => ActivityState::Failed,
            "Rejected" => ActivityState::Rejected,
            _ => return None,
        };
        let metadata: Option<Value> = serde_json::from_str(&value.text("ActivityMetadata")).ok();
        let mark = |key: &str| metadata.as_ref().map(|metadata| metadata.text(key)).filter(|text| !text.is_empty());
        let messages = value.list("ErrorMessages", "ErrorMessage");
        let detail = format!("{} {}", value.text("Detail"), value.text("StatusMessage"));
        let first = messages.first();
        let code = [value.text("ErrorCode"), first.map(|one| one.text("Code")).unwrap_or_default()];
        let code = code.into_iter().find(|code| !code.is_empty()).or_else(|| quoted(&detail, "code:\""));
        let message = [value.text("ErrorMessage"), first.map(|one| one.text("Message")).unwrap_or_default()];
        let message = message.into_iter().find(|text| !text.is_empty()).or_else(|| quoted(&detail, "msg:\""));
        let listed = u32::try_from(value.texts("CreatedInstances", "CreatedInstance").len()).unwrap_or(u32::MAX);
        Some(Self {
            id: value.text("ScalingActivityId"),
            state,
            started_ms: time::parse_ms(&value.text("StartTime")),
            ended_ms: time::parse_ms(&value.text("EndTime")),
            ours: mark(MARK).is_some(),
            key: mark(KEY),
            code: code.unwrap_or_default(),
            message: message.unwrap_or_else(|| detail.trim().to_owned()),
            wanted: added(&value.text("Description")).or_else(|| value.count("ScalingInstanceNumber")),
            created: value.count("CreatedCapacity").unwrap_or(listed).max(listed),
            failed_instances: messages
                .iter()
                .flat_map(|one| one.texts("FailedInstanceIds", "FailedInstanceId"))
                .collect(),
        })
    }

    /// Whether it still runs.
    pub(crate) fn runs(&self) -> bool {
        self.state == ActivityState::Running
    }

    /// Whether it is recent enough to be told.
    pub(crate) fn is_recent(&self, now_ms: u64) -> bool {
        let at = self.ended_ms.or(self.started_ms).unwrap_or(now_ms);
        self.runs() || now_ms.saturating_sub(at) <= TOLD_FOR_MS
    }

    /// Machines that it still has to make, as long as it runs. `asked` and `unit` as for [`failure`](Self::failure).
    pub(crate) fn outstanding(&self, members: &[Member], asked: Option<u32>, unit: u32) -> u32 {
        let wanted = asked.or(self.wanted.map(|units| units.div_ceil(unit.max(1)))).unwrap_or(0);
        let made = members.iter().filter(|member| member.activity == self.id).count();
        if self.runs() { wanted.saturating_sub(u32::try_from(made).unwrap_or(u32::MAX)) } else { 0 }
    }

    /// The contract's record.
    pub(crate) fn activity(&self) -> Activity {
        Activity {
            id: self.id.clone(),
            state: self.state,
            started_at: self.started_ms,
            idempotency_key: self.key.clone(),
        }
    }

    /// Why it brought fewer machines than wished; none if it did not.
    pub(crate) fn error<T: Transport>(&self, api: &Api<T>, group: &str) -> Option<PluginError> {
        let failed = matches!(self.state, ActivityState::Partial | ActivityState::Failed | ActivityState::Rejected);
        failed.then(|| {
            // Refused before it began: something else was running.
            let rejected = self.state == ActivityState::Rejected && self.code.is_empty();
            let code = if rejected { "ScalingActivityInProgress" } else { &self.code };
            api.failure(code, &self.message, group)
        })
    }

    /// The machines that did not come. `asked` is what we remember to have asked for, in machines of `unit` each.
    pub(crate) fn failure<T: Transport>(
        &self,
        api: &Api<T>,
        group: &str,
        asked: Option<u32>,
        unit: u32,
    ) -> Option<ScaleFailure> {
        let error = self.error(api, group)?;
        let unit = unit.max(1);
        let wanted = asked.or(self.wanted.map(|units| units.div_ceil(unit)));
        let missing = wanted.unwrap_or(1).saturating_sub(self.created / unit);
        (missing > 0).then(|| ScaleFailure {
            id: self.id.clone(),
            at: self.ended_ms.or(self.started_ms).unwrap_or_else(|| api.now_ms()),
            missing,
            zone: errors::zone_in(&self.message, api.region()),
            instance_type: errors::instance_type_in(&self.message),
            error,
        })
    }
}

/// The text behind a mark, up to the next quotation mark.
fn quoted(text: &str, mark: &str) -> Option<String> {
    let (_, rest) = text.split_once(mark)?;
    Some(rest.split('"').next().unwrap_or_default().to_owned()).filter(|text| !text.is_empty())
}

/// The number in `Add "2" ECS instance`.
fn added(description: &str) -> Option<u32> {
    let (_, rest) = description.split_once("Add \"")?;
    rest.split('"').next()?.parse().ok()
}

fn question(group: &str) -> Call {
    Call::read(Product::Ess, "DescribeScalingActivities").group(group).with("PageNumber", 1).with("PageSize", PAGE_SIZE)
}

/// The newest activities of some groups, newest first.
pub(crate) fn newest<T: Transport>(
    api: &mut Api<T>,
    groups: &[&str],
    deadline: Deadline,
) -> Vec<Result<Vec<Deed>, PluginError>> {
    let calls: Vec<_> = groups.iter().map(|group| question(group)).collect();
    let mut read = Vec::with_capacity(calls.len());
    api.ask_all(&calls, deadline, |_, answer| read.push(answer.map(|value| deeds(&value))));
    read
}

/// The newest activities of one group.
///
/// # Errors
/// They could not be read.
pub(crate) fn of<T: Transport>(api: &mut Api<T>, group: &str, deadline: Deadline) -> Result<Vec<Deed>, PluginError> {
    Ok(deeds(&api.ask(&question(group), deadline)?))
}

/// Whether something runs in a group now.
///
/// # Errors
/// It could not be read.
pub(crate) fn any_runs<T: Transport>(api: &mut Api<T>, group: &str, deadline: Deadline) -> Result<bool, PluginError> {
    let value = api.ask(&question(group).with("StatusCode", "InProgress"), deadline)?;
    Ok(deeds(&value).iter().any(Deed::runs))
}

fn deeds(value: &Value) -> Vec<Deed> {
    let mut deeds: Vec<_> = value.list("ScalingActivities", "ScalingActivity").iter().filter_map(Deed::read).collect();
    // The order of the cloud is not promised.
    deeds.sort_by_key(|deed| std::cmp::Reverse(deed.started_ms));
    deeds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::tests::api;
    use plimsoll_guest::ErrorClass;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::by_code(json!({"ErrorCode": "OperationDenied.NoStock", "ErrorMessage": "sold out"}))]
    #[case::by_list(json!({"ErrorMessages": {"ErrorMessage": [{"Code": "OperationDenied.NoStock", "Message": "sold out"}]}}))]
    #[case::by_detail(json!({"Detail": "[Fail to create Instances(code:\"OperationDenied.NoStock\",msg:\"sold out\")]"}))]
    #[case::by_status(json!({"StatusMessage": "Fail(code:\"OperationDenied.NoStock\",msg:\"sold out\")"}))]
    fn the_code_is_found_wherever_it_is(#[case] more: Value) {
        let mut value = json!({"ScalingActivityId": "asa-1", "StatusCode": "Failed", "Description": "Add \"3\" ECS instance", "CreatedCapacity": 0});
        if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
            all.extend(more);
        }
        let failure = Deed::read(&value).unwrap().failure(&api(), "asg-1", None, 1).unwrap();
        assert_eq!((failure.error.class, failure.missing), (ErrorClass::OutOfResources, 3));
        assert_eq!(failure.error.message, "sold out");
    }

    #[rstest]
    #[case::nothing_came("Failed", 0, Some(3))]
    #[case::some_came("Warning", 2, Some(1))]
    #[case::all_came("Warning", 3, None)]
    #[case::never_began("Rejected", 0, Some(3))]
    #[case::well("Successful", 3, None)]
    #[case::not_yet("InProgress", 0, None)]
    fn missing_machines_are_counted(#[case] status: &str, #[case] created: u32, #[case] missing: Option<u32>) {
        let value = json!({"ScalingActivityId": "asa-1", "StatusCode": status, "CreatedCapacity": created, "ScalingInstanceNumber": 2});
        let failure = Deed::read(&value).unwrap().failure(&api(), "asg-1", Some(3), 1);
        assert_eq!(failure.map(|failure| failure.missing), missing);
    }

    #[test]
    fn ours_are_known_again_by_their_key() {
        let value =
            json!({"ScalingActivityId": "asa-1", "StatusCode": "InProgress", "ActivityMetadata": metadata("k 1")});
        let deed = Deed::read(&value).unwrap();
        assert_eq!((deed.ours, deed.key.as_deref()), (true, Some("k 1")));
        let other = json!({"ScalingActivityId": "asa-1", "StatusCode": "InProgress", "ActivityMetadata": "words"});
        assert!(!Deed::read(&other).unwrap().ours);
    }
}
