//! `ScaleWithAdjustment` and `ModifyScalingGroup`.

use plimsoll_tests_clouds::Cloud;
use plimsoll_tests_clouds::alicloud::world::GroupState;
use plimsoll_tests_clouds::alicloud::{Group, Mark, Order, Probes, Scenario};
use rstest::rstest;
use serde_json::Value;

use crate::client::{Client, ESS};

fn scale(client: &mut Client, kind: &str, value: &str) -> Value {
    let parameters = [("ScalingGroupId", "asg-1"), ("AdjustmentType", kind), ("AdjustmentValue", value)];
    client.ask(ESS, "ScaleWithAdjustment", &parameters).1
}

/// Base is 3 running machines in a plain group from 1 to 10.
#[rstest]
#[case::up("QuantityChangeInCapacity", "2", 5)]
#[case::down("QuantityChangeInCapacity", "-1", 2)]
#[case::total("TotalCapacity", "4", 4)]
#[case::percent("PercentChangeInCapacity", "100", 6)]
#[case::cut_to_max("QuantityChangeInCapacity", "50", 10)]
#[case::cut_to_min("TotalCapacity", "0", 1)]
fn sizes_are_computed_and_cut(#[case] kind: &str, #[case] value: &str, #[case] after: usize) {
    let mut client = Client::of(vec![Group::new("asg-1", 1, 10).running(3)]);
    let body = scale(&mut client, kind, value);
    assert!(body["ScalingActivityId"].as_str().is_some_and(|id| id.starts_with("asa-")), "{body}");
    client.advance(200);
    assert_eq!(client.instances("asg-1").len(), after);
    assert_eq!(client.violations(), [""; 0]);
}

#[rstest]
#[case::same("TotalCapacity", "3", "IncorrectCapacity.NoChange")]
#[case::nothing("QuantityChangeInCapacity", "0", "IncorrectCapacity.NoChange")]
#[case::too_far("QuantityChangeInCapacity", "1001", "InvalidParameter.AdjustmentValue")]
#[case::far_too_far("TotalCapacity", "2001", "InvalidParameter.AdjustmentValue")]
#[case::negative_total("TotalCapacity", "-1", "InvalidParameter.AdjustmentValue")]
#[case::kind("Absolute", "1", "InvalidParameter.AdjustmentType")]
fn sizes_that_make_no_sense_are_refused(#[case] kind: &str, #[case] value: &str, #[case] code: &str) {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 10).running(3)]);
    assert_eq!(scale(&mut client, kind, value)["Code"], code);
    assert!(client.fake.journal().writes().next().is_none());
}

#[test]
fn at_its_max_a_group_does_not_change() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 3).running(3)]);
    assert_eq!(client.grow("asg-1", "1").1["Code"], "IncorrectCapacity.NoChange");
}

#[rstest]
#[case::above("5", "IncorrectCapacity.MaxSize")]
#[case::below("-5", "IncorrectCapacity.MinSize")]
fn bounds_may_be_walls(#[case] by: &str, #[case] code: &str) {
    let probes = Probes { beyond_bounds_is_refused: true, ..Probes::default() };
    let mut client =
        Client::new(Scenario { probes, ..Scenario::with_groups(vec![Group::new("asg-1", 1, 5).running(3)]) });
    assert_eq!(client.grow("asg-1", by).1["Code"], code);
}

/// A client that leaves protected machines out of its own sum and then sets the total: five in service, three
/// protected, one more wanted, so it sets six. The cloud counts eight, and removes two.
#[test]
fn an_absolute_size_from_a_wrong_sum_kills() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 20).running(8)]);
    let ids: Vec<String> = client.instances("asg-1").into_iter().map(|(id, _)| id).collect();
    for id in &ids[..3] {
        client.obey(&Order::Mark { machine: id.clone(), mark: Mark::Protected });
    }
    let group = client.group("asg-1");
    assert_eq!((&group["ActiveCapacity"], &group["TotalCapacity"]), (&5.into(), &8.into()));
    assert_eq!(scale(&mut client, "TotalCapacity", "6")["ActivityType"], "ScaleIn");
    let kills: Vec<&str> = client.fake.journal().random_kills().iter().map(|event| event.subject.as_str()).collect();
    assert_eq!(kills, [&ids[3], &ids[4]], "the oldest that are not protected");
    // The relative way makes exactly one and kills none.
    let mut client = Client::of(vec![Group::new("asg-1", 0, 20).running(8)]);
    assert_eq!(client.grow("asg-1", "1").1["ActivityType"], "ScaleOut");
    client.advance(200);
    assert_eq!(client.instances("asg-1").len(), 9);
    assert_eq!(client.fake.journal().random_kills().len(), 0);
}

#[rstest]
#[case::at_once(Some("true"), "ScaleOut")]
#[case::as_python_writes_it(Some("True"), "ScaleOut")]
#[case::later(Some("false"), "CapacityChange")]
#[case::later_by_default(None, "CapacityChange")]
fn a_desired_group_moves_its_wish(#[case] sync: Option<&str>, #[case] kind: &str) {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 9).desiring(1).running(1)]);
    let mut parameters =
        vec![("ScalingGroupId", "asg-1"), ("AdjustmentType", "QuantityChangeInCapacity"), ("AdjustmentValue", "2")];
    parameters.extend(sync.map(|sync| ("SyncActivity", sync)));
    let body = client.ess("ScaleWithAdjustment", &parameters);
    assert_eq!(body["ActivityType"], kind);
    assert_eq!(body["ScalingActivityId"] == "", kind == "CapacityChange");
    assert_eq!(client.group("asg-1")["DesiredCapacity"], 3);
    client.advance(300);
    assert_eq!(client.instances("asg-1").len(), 3);
}

#[test]
fn the_wish_may_stay_behind_a_relative_change() {
    let probes = Probes { quantity_moves_desired: false, ..Probes::default() };
    let group = Group::new("asg-1", 0, 9).desiring(1).running(1);
    let mut client = Client::new(Scenario { probes, ..Scenario::with_groups(vec![group]) });
    assert_eq!(client.grow_now("asg-1", "1").1["ActivityType"], "ScaleOut");
    assert_eq!(client.group("asg-1")["DesiredCapacity"], 1);
    client.advance(300);
    assert_eq!(client.fake.journal().random_kills().len(), 1, "the group goes back to its wish");
}

#[rstest]
#[case::inactive(GroupState::Inactive)]
#[case::deleting(GroupState::Deleting)]
fn only_an_active_group_scales(#[case] state: GroupState) {
    let mut client = Client::of(vec![Group { state, ..Group::new("asg-1", 0, 9) }]);
    assert_eq!(client.grow("asg-1", "1").1["Code"], "IncorrectScalingGroupStatus");
    let (status, body) = client.grow("asg-2", "1");
    assert_eq!((status, body["Code"].as_str()), (404, Some("InvalidScalingGroupId.NotFound")));
}

#[test]
fn one_activity_at_a_time_unless_parallel() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 9), Group { parallel: true, ..Group::new("asg-2", 0, 9) }]);
    client.grow("asg-1", "1");
    assert_eq!(client.grow("asg-1", "1").1["Code"], "ScalingActivityInProgress");
    client.advance(120);
    assert_eq!(client.grow("asg-1", "1").0, 200);
    client.grow("asg-2", "1");
    assert_eq!(client.grow("asg-2", "1").0, 200);
    client.advance(120);
    assert_eq!(client.instances("asg-2").len(), 2, "the second counts the first although none was made yet");
}

#[test]
fn an_activity_that_hangs_holds_the_group() {
    let mut client = Client::of(vec![Group { never_ends: true, ..Group::new("asg-1", 0, 9) }]);
    client.grow("asg-1", "1");
    client.advance(7200);
    assert_eq!(client.grow("asg-1", "1").1["Code"], "ScalingActivityInProgress");
}

#[test]
fn a_suspended_process_rejects() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 9)]);
    client.obey(&Order::Process { group: "asg-1".to_owned(), process: "ScaleOut".to_owned(), suspended: true });
    assert_eq!(client.grow("asg-1", "1").0, 200);
    assert_eq!(client.activity("asg-1")["StatusCode"], "Rejected");
    assert_eq!(client.group("asg-1")["SuspendedProcesses"]["SuspendedProcess"][0], "ScaleOut");
}

#[test]
fn a_plan_changes_nothing() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 9)]);
    let parameters = [
        ("ScalingGroupId", "asg-1"),
        ("AdjustmentType", "QuantityChangeInCapacity"),
        ("AdjustmentValue", "2"),
        ("ExecutionMode", "PlanOnly"),
    ];
    let body = client.ess("ScaleWithAdjustment", &parameters);
    let plan = &body["PlanResult"]["ResourceAllocations"]["ResourceAllocation"][0];
    assert_eq!((&plan["Amount"], &plan["ZoneId"]), (&2.into(), &"cn-hangzhou-a".into()));
    client.advance(120);
    assert!(client.instances("asg-1").is_empty());
    assert!(client.fake.journal().writes().next().is_none());
}

#[test]
fn a_client_token_serves_once() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 9)]);
    let mut parameters = vec![
        ("ScalingGroupId", "asg-1"),
        ("AdjustmentType", "QuantityChangeInCapacity"),
        ("AdjustmentValue", "1"),
        ("ClientToken", "ca-1"),
    ];
    let first = client.ess("ScaleWithAdjustment", &parameters);
    let second = client.ess("ScaleWithAdjustment", &parameters);
    assert_eq!(first, second);
    client.advance(120);
    assert_eq!(client.ess("ScaleWithAdjustment", &parameters), first);
    assert_eq!(client.instances("asg-1").len(), 1);
    assert_eq!(client.fake.journal().writes().count(), 1);
    parameters[2].1 = "2";
    assert_eq!(client.refused("ScaleWithAdjustment", &parameters), "IDEMPOTENCE_SIGNATURE_MISMATCH");
    client.advance(24 * 3600);
    assert_ne!(client.ess("ScaleWithAdjustment", &parameters), first, "forgotten after a day");
    let long = "x".repeat(65);
    parameters[3].1 = &long;
    assert_eq!(client.refused("ScaleWithAdjustment", &parameters), "InvalidParameter.ClientToken");
}

#[rstest]
#[case::inside("4", Ok(4))]
#[case::above("6", Err("InvalidParameter.Conflict"))]
#[case::below("0", Err("InvalidParameter.Conflict"))]
fn a_wish_lies_within_the_bounds(#[case] desired: &str, #[case] outcome: Result<u64, &str>) {
    let mut client = Client::of(vec![Group::new("asg-1", 1, 5).desiring(2).running(2)]);
    let parameters = [("ScalingGroupId", "asg-1"), ("DesiredCapacity", desired)];
    match outcome {
        Ok(desired) => {
            client.ess("ModifyScalingGroup", &parameters);
            assert_eq!(client.group("asg-1")["DesiredCapacity"], desired);
        }
        Err(code) => assert_eq!(client.refused("ModifyScalingGroup", &parameters), code),
    }
}

#[test]
fn a_lower_max_removes_the_surplus() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 5).running(4)]);
    client.ess("ModifyScalingGroup", &[("ScalingGroupId", "asg-1"), ("MaxSize", "2")]);
    client.advance(200);
    assert_eq!(client.instances("asg-1").len(), 2);
    assert_eq!(client.fake.journal().random_kills().len(), 2);
    let code = client.refused("ModifyScalingGroup", &[("ScalingGroupId", "asg-1"), ("DesiredCapacity", "1")]);
    assert_eq!(code, "UnsupportedOperation", "the group has no wish");
}

#[test]
fn a_human_between_read_and_write_is_seen() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 9).desiring(2).running(2)]);
    assert_eq!(client.group("asg-1")["DesiredCapacity"], 2);
    client.obey(&Order::Resize { group: "asg-1".to_owned(), min: None, max: None, desired: Some(7) });
    assert_eq!(client.group("asg-1")["DesiredCapacity"], 7);
    client.obey(&Order::DeleteGroup { group: "asg-1".to_owned() });
    assert_eq!(client.group("asg-1"), Value::Null, "no error, an empty list");
}
