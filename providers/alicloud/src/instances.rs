//! Machines of a scaling group.

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Deadline, Deletability, Instance, InstanceState, PluginError};
use serde_json::Value;

use crate::api::{Api, Call, Lenient, PAGE_SIZE, Pages, Product};
use crate::{ids, time};

/// Most ids in one question.
const IDS_PER_CALL: usize = 20;

/// A machine as ESS tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    pub(crate) id: String,
    pub(crate) state: State,
    pub(crate) healthy: bool,
    pub(crate) created_ms: Option<u64>,
    pub(crate) zone: Option<String>,
    pub(crate) spot: bool,
    /// Units of capacity that it counts in a weighted group.
    pub(crate) weight: u32,
    pub(crate) origin: Origin,
    /// The activity that brought it.
    pub(crate) activity: String,
}

/// Where ESS has a machine in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Coming,
    Serving,
    Protected,
    /// Kept without running, to be used again.
    Stopped,
    Going,
    Unknown,
}

/// How a machine came into its group; decides whether ESS releases it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// Made by ESS, and paid as it goes.
    Created,
    /// Put in by hand, and handed over to ESS.
    Entrusted,
    /// Put in by hand.
    Attached,
}

impl Member {
    fn read(value: &Value) -> Option<Self> {
        let id = value.member("InstanceId").map(|_| value.text("InstanceId"))?;
        let state = match value.text("LifecycleState").as_str() {
            "Pending" | "Pending:Wait" => State::Coming,
            "InService" | "Standby" => State::Serving,
            "Protected" => State::Protected,
            "Stopped" => State::Stopped,
            "Removing" | "Removing:Wait" => State::Going,
            _ => State::Unknown,
        };
        let entrusted = value.truth("Entrusted").unwrap_or(false);
        let origin = match (value.text("CreationType").as_str(), entrusted) {
            ("Attached" | "Managed", true) => Origin::Entrusted,
            ("Attached" | "Managed", false) => Origin::Attached,
            _ => Origin::Created,
        };
        // The one with seconds, if there are both.
        let created = ["CreatedTime", "CreationTime"].iter().find_map(|key| time::parse_ms(&value.text(key)));
        let spot = value.text("SpotStrategy");
        Some(Self {
            id,
            state,
            healthy: value.text("HealthStatus") != "Unhealthy",
            created_ms: created,
            zone: Some(value.text("ZoneId")).filter(|zone| !zone.is_empty()),
            spot: !spot.is_empty() && spot != "NoSpot",
            weight: value.count("WeightedCapacity").unwrap_or(1).max(1),
            origin,
            activity: value.text("ScalingActivityId"),
        })
    }

    /// Whether it is part of its group's size.
    pub(crate) fn counts(&self) -> bool {
        !matches!(self.state, State::Going | State::Stopped)
    }

    /// Why ESS would not release it; none if it would.
    pub(crate) fn held(&self, prepaid: Option<bool>) -> Option<&'static str> {
        match (self.state, self.origin, prepaid) {
            (State::Protected, ..) => Some("it is protected from scale-in; lift the protection in ESS first"),
            (_, Origin::Attached, _) => {
                Some("it was attached by hand, and ESS does not release what it was not entrusted with")
            }
            (_, Origin::Entrusted, Some(true)) => Some("it is a subscription (prepaid), which ESS never releases"),
            (_, Origin::Entrusted, None) => Some(
                "it was attached by hand and its charge type cannot be read; allow ecs:DescribeInstances in the RAM policy",
            ),
            _ => None,
        }
    }

    /// The contract's record; none for a machine that is only kept.
    pub(crate) fn instance(
        &self,
        region: &str,
        instance_type: Option<&str>,
        prepaid: Option<bool>,
    ) -> Option<Instance> {
        let state = match self.state {
            State::Coming => InstanceState::Creating,
            State::Serving | State::Protected => InstanceState::Running,
            State::Going => InstanceState::Deleting,
            State::Unknown => InstanceState::Unknown,
            State::Stopped => return None,
        };
        let deletable = self.held(prepaid).map_or(Deletability::Yes, |why| Deletability::No(why.to_owned()));
        Some(Instance {
            matches: ids::matches(region, &self.id),
            created_at: self.created_ms,
            zone: self.zone.clone(),
            instance_type: instance_type.map(str::to_owned),
            spot: self.spot,
            deletable,
            ..Instance::new(self.id.clone(), state)
        })
    }
}

/// The machines of a group, and whether these are all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) members: Vec<Member>,
    pub(crate) complete: bool,
}

impl Listing {
    /// How many are part of the group's size.
    pub(crate) fn live(&self) -> u32 {
        u32::try_from(self.members.iter().filter(|member| member.counts()).count()).unwrap_or(u32::MAX)
    }
}

fn question(group: &str, page: u32) -> Call {
    let call = Call::read(Product::Ess, "DescribeScalingInstances").group(group);
    call.with("PageNumber", page).with("PageSize", PAGE_SIZE)
}

/// All machines of some groups: the first page of each, then what is missing, then once more what did not add up.
pub(crate) fn list<T: Transport>(
    api: &mut Api<T>,
    groups: &[&str],
    deadline: Deadline,
) -> Vec<Result<Listing, PluginError>> {
    let mut listings = round(api, groups, deadline);
    let again: Vec<usize> = listings
        .iter()
        .enumerate()
        .filter(|(_, listing)| listing.as_ref().is_ok_and(|listing| !listing.complete))
        .map(|(index, _)| index)
        .collect();
    if !again.is_empty() {
        let names: Vec<&str> = again.iter().filter_map(|index| groups.get(*index).copied()).collect();
        for (index, second) in again.into_iter().zip(round(api, &names, deadline)) {
            if let (Some(first), Ok(second)) = (listings.get_mut(index), second) {
                *first = Ok(second);
            }
        }
    }
    listings
}

fn round<T: Transport>(api: &mut Api<T>, groups: &[&str], deadline: Deadline) -> Vec<Result<Listing, PluginError>> {
    let mut read: Vec<Result<Pages<Member>, PluginError>> = groups.iter().map(|_| Ok(Pages::new())).collect();
    let mut jobs: Vec<(usize, u32)> = (0..groups.len()).map(|group| (group, 1)).collect();
    while !jobs.is_empty() {
        let calls: Vec<_> =
            jobs.iter().filter_map(|(group, page)| Some(question(groups.get(*group)?, *page))).collect();
        api.ask_all(&calls, deadline, |job, answer| {
            let Some(pages) = jobs.get(job).and_then(|(group, _)| read.get_mut(*group)) else { return };
            match (answer.and_then(|value| page(&value)), &mut *pages) {
                (Ok((total, members)), Ok(pages)) => pages.add(total, members),
                (Err(error), Ok(_)) => *pages = Err(error),
                (_, Err(_)) => {}
            }
        });
        let more = |(group, pages): (usize, &Result<Pages<Member>, PluginError>)| {
            let missing = pages.as_ref().ok().map(Pages::missing);
            missing.into_iter().flatten().map(move |page| (group, page)).collect::<Vec<_>>()
        };
        jobs = read.iter().enumerate().flat_map(more).collect();
    }
    let listing = |pages: Pages<Member>| Listing { complete: pages.is_whole(), members: pages.into_entries() };
    read.into_iter().zip(groups).map(|(pages, group)| pages.map(listing).map_err(|error| about(error, group))).collect()
}

type Page = (Option<u32>, Vec<(String, Member)>);

fn page(value: &Value) -> Result<Page, PluginError> {
    if value.get("ScalingInstances").is_none() {
        return Err(
            PluginError::transient("the answer to ess:DescribeScalingInstances has no list").with_code("undecodable")
        );
    }
    let members = value.list("ScalingInstances", "ScalingInstance").iter().filter_map(Member::read);
    Ok((value.count("TotalCount"), members.map(|member| (member.id.clone(), member)).collect()))
}

fn about(error: PluginError, group: &str) -> PluginError {
    if matches!(error.scope, plimsoll_guest::ErrorScope::Provider) && !is_wide(&error) {
        error.for_group(group)
    } else {
        error
    }
}

/// Whether a failure says nothing about the one group.
fn is_wide(error: &PluginError) -> bool {
    use plimsoll_guest::ErrorClass::{Auth, Billing, Throttled};
    matches!(error.class, Auth | Billing | Throttled)
}

/// Some machines of a group by id; those that are not there any more are left out.
///
/// # Errors
/// They could not be read.
pub(crate) fn by_ids<T: Transport>(
    api: &mut Api<T>,
    group: &str,
    ids: &[String],
    deadline: Deadline,
) -> Result<Vec<Member>, PluginError> {
    let call = |ids: &[String]| question(group, 1).each("InstanceId", ids);
    let calls: Vec<_> = ids.chunks(IDS_PER_CALL).map(call).collect();
    let mut read = Ok(vec![]);
    api.ask_all(&calls, deadline, |_, answer| match (answer.and_then(|value| page(&value)), &mut read) {
        (Ok((_, members)), Ok(all)) => all.extend(members.into_iter().map(|(_, member)| member)),
        (Err(error), Ok(_)) => read = Err(error),
        (_, Err(_)) => {}
    });
    // An API that does not know the filter gives others too.
    read.map(|mut all: Vec<Member>| {
        all.retain(|member| ids.contains(&member.id));
        all
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    /// A machine in some state.
    pub(crate) fn member(id: &str, state: &str) -> Member {
        Member::read(&json!({"InstanceId": id, "LifecycleState": state})).unwrap()
    }

    #[rstest]
    #[case("Pending", Some(InstanceState::Creating), true)]
    #[case("Pending:Wait", Some(InstanceState::Creating), true)]
    #[case("InService", Some(InstanceState::Running), true)]
    #[case("Standby", Some(InstanceState::Running), true)]
    #[case("Protected", Some(InstanceState::Running), true)]
    #[case("Stopped", None, false)]
    #[case("Removing", Some(InstanceState::Deleting), false)]
    #[case("Removing:Wait", Some(InstanceState::Deleting), false)]
    #[case("Dreaming", Some(InstanceState::Unknown), true)]
    fn states(#[case] state: &str, #[case] expected: Option<InstanceState>, #[case] counts: bool) {
        let member = member("i-1", state);
        let instance = member.instance("cn-hangzhou", None, None);
        assert_eq!((instance.map(|instance| instance.state), member.counts()), (expected, counts));
    }

    #[rstest]
    #[case::made_by_ess(json!({}), None, None)]
    #[case::protected(json!({"LifecycleState": "Protected"}), None, Some("protected"))]
    #[case::attached(json!({"CreationType": "Attached"}), None, Some("attached"))]
    #[case::attached_null(json!({"CreationType": "Attached", "Entrusted": null}), None, Some("attached"))]
    #[case::managed(json!({"CreationType": "Managed"}), None, Some("attached"))]
    #[case::entrusted(json!({"CreationType": "Attached", "Entrusted": true}), Some(false), None)]
    #[case::prepaid(json!({"CreationType": "Attached", "Entrusted": "true"}), Some(true), Some("prepaid"))]
    #[case::unknown_charge(json!({"CreationType": "Attached", "Entrusted": true}), None, Some("ecs:DescribeInstances"))]
    fn what_ess_does_not_release(#[case] more: Value, #[case] prepaid: Option<bool>, #[case] why: Option<&str>) {
        let mut value = json!({"InstanceId": "i-1", "LifecycleState": "InService"});
        if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
            all.extend(more);
        }
        let instance = Member::read(&value).unwrap().instance("cn-hangzhou", None, prepaid).unwrap();
        match (instance.deletable, why) {
            (Deletability::Yes, None) => {}
            (Deletability::No(found), Some(part)) => assert!(found.contains(part), "{found}"),
            (found, expected) => panic!("{found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn the_time_with_seconds_is_taken() {
        let value =
            json!({"InstanceId": "i-1", "CreationTime": "2024-06-01T08:31Z", "CreatedTime": "2024-06-01T08:31:15Z"});
        assert_eq!(Member::read(&value).unwrap().created_ms, Some(1_717_230_675_000));
    }
}
