//! `RemoveInstances`, `DetachInstances`, `SetInstancesProtection`.

use plimsoll_tests_clouds::alicloud::{Group, Mark, Order, Probes, Scenario};
use plimsoll_tests_clouds::{Cause, Cloud, Happening};
use rstest::rstest;

use crate::client::{Client, ESS};

fn ids(client: &mut Client, group: &str) -> Vec<String> {
    client.instances(group).into_iter().map(|(id, _)| id).collect()
}

fn remove(client: &mut Client, ids: &[&str], more: &[(&str, &str)]) -> (u16, String) {
    let names: Vec<String> = (1..=ids.len()).map(|number| format!("InstanceId.{number}")).collect();
    let mut parameters = vec![("ScalingGroupId", "asg-1")];
    parameters.extend(names.iter().map(String::as_str).zip(ids.iter().copied()));
    parameters.extend(more);
    let (status, body) = client.ask(ESS, "RemoveInstances", &parameters);
    (status, body["Code"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_named_machine_goes_and_the_wish_with_it() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 9).desiring(3).running(3)]);
    let all = ids(&mut client, "asg-1");
    assert_eq!(remove(&mut client, &[&all[1]], &[]), (200, String::new()));
    let group = client.group("asg-1");
    assert_eq!((&group["DesiredCapacity"], &group["RemovingCapacity"]), (&2.into(), &1.into()));
    client.advance(300);
    assert_eq!(ids(&mut client, "asg-1"), [all[0].clone(), all[2].clone()]);
    let leaving = client.fake.journal().events.iter().find(|event| event.what == Happening::Leaving).unwrap();
    assert_eq!((leaving.subject.as_str(), leaving.cause), (all[1].as_str(), Cause::Asked));
    assert!(client.fake.journal().random_kills().is_empty());
}

#[test]
fn without_a_lower_wish_it_is_replaced() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 9).desiring(3).running(3)]);
    let all = ids(&mut client, "asg-1");
    remove(&mut client, &[&all[0]], &[("DecreaseDesiredCapacity", "false")]);
    client.advance(400);
    let after = ids(&mut client, "asg-1");
    assert_eq!((after.len(), after.contains(&all[0])), (3, false));
}

#[rstest]
#[case::unknown("i-nobody", "false", 404, "InvalidInstanceId.NotFound")]
#[case::unknown_ignored("i-nobody", "true", 200, "")]
#[case::foreign("FOREIGN", "false", 404, "InvalidInstanceId.NotFound")]
#[case::foreign_ignored("FOREIGN", "true", 200, "")]
fn machines_that_are_not_the_groups(
    #[case] other: &str,
    #[case] ignore: &str,
    #[case] status: u16,
    #[case] code: &str,
) {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 9).running(2), Group::new("asg-2", 0, 9).running(1)]);
    let foreign = ids(&mut client, "asg-2")[0].clone();
    let other = if other == "FOREIGN" { foreign.as_str() } else { other };
    let own = ids(&mut client, "asg-1")[0].clone();
    let outcome = remove(&mut client, &[&own, other], &[("IgnoreInvalidInstance", ignore)]);
    assert_eq!(outcome, (status, code.to_owned()));
    client.advance(120);
    let expected = if status == 200 { 1 } else { 2 };
    assert_eq!(ids(&mut client, "asg-1").len(), expected);
    assert_eq!(ids(&mut client, "asg-2").len(), 1);
    if status == 200 {
        assert_eq!(client.activity("asg-1")["StatusCode"], "Warning");
    }
}

#[rstest]
#[case::to_the_min(2, 200, "")]
#[case::below_the_min(3, 400, "IncorrectCapacity.MinSize")]
fn the_groups_own_min_is_kept(#[case] count: usize, #[case] status: u16, #[case] code: &str) {
    let mut client = Client::of(vec![Group::new("asg-1", 2, 9).running(4)]);
    let all = ids(&mut client, "asg-1");
    let some: Vec<&str> = all.iter().take(count).map(String::as_str).collect();
    assert_eq!(remove(&mut client, &some, &[]), (status, code.to_owned()));
}

#[test]
fn at_most_twenty_at_once() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 50).running(21)]);
    let all = ids(&mut client, "asg-1");
    let some: Vec<&str> = all.iter().map(String::as_str).collect();
    assert_eq!(remove(&mut client, &some, &[]).1, "InvalidParameter.InstanceId");
    assert_eq!(client.violations().len(), 1);
    assert_eq!(remove(&mut client, &some[..20], &[]).0, 200);
    assert_eq!(remove(&mut client, &some[20..], &[]).1, "ScalingActivityInProgress");
    client.advance(120);
    assert_eq!(remove(&mut client, &some[20..], &[]).0, 200);
}

#[rstest]
#[case::no(false, "ScalingActivityInProgress")]
#[case::yes(true, "")]
fn removal_may_work_during_an_activity(#[case] allowed: bool, #[case] code: &str) {
    let probes = Probes { remove_during_activity: allowed, ..Probes::default() };
    let group = Group::new("asg-1", 0, 9).desiring(2).running(2);
    let mut client = Client::new(Scenario { probes, ..Scenario::with_groups(vec![group]) });
    let all = ids(&mut client, "asg-1");
    client.grow_now("asg-1", "1");
    assert_eq!(remove(&mut client, &[&all[0]], &[]).1, code);
}

#[rstest]
#[case::attached(false, false, true)]
#[case::entrusted(true, false, false)]
#[case::prepaid(true, true, true)]
fn what_may_not_be_released_runs_on(#[case] entrusted: bool, #[case] prepaid: bool, #[case] runs_on: bool) {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 9)]);
    client.obey(&Order::Attach { group: "asg-1".to_owned(), entrusted, prepaid });
    let id = ids(&mut client, "asg-1")[0].clone();
    remove(&mut client, &[&id], &[]);
    client.advance(120);
    assert!(ids(&mut client, "asg-1").is_empty());
    let named = format!("[\"{id}\"]");
    let (_, body) = client.ask("ecs.cn-hangzhou.aliyuncs.com", "DescribeInstances", &[("InstanceIds", &named)]);
    assert_eq!(body["Instances"]["Instance"].as_array().unwrap().len(), usize::from(runs_on));
    assert_eq!(client.fake.nodes().len(), usize::from(runs_on), "its kubelet runs on too");
}

#[test]
fn recycled_machines_are_stopped_and_used_again() {
    let mut client = Client::of(vec![Group { recycles: true, ..Group::new("asg-1", 0, 9).running(1) }]);
    let id = ids(&mut client, "asg-1")[0].clone();
    remove(&mut client, &[&id], &[("RemovePolicy", "recycle")]);
    client.advance(120);
    assert_eq!(client.instances("asg-1"), [(id.clone(), "Stopped".to_owned())]);
    assert!(client.fake.nodes().is_empty());
    client.grow("asg-1", "1");
    client.advance(120);
    assert_eq!(client.instances("asg-1"), [(id, "InService".to_owned())]);
}

#[rstest]
#[case::can(true, "")]
#[case::cannot(false, "InvalidInstanceId.NotFound")]
fn protected_machines_may_be_removable(#[case] can: bool, #[case] code: &str) {
    let probes = Probes { protected_can_be_removed: can, ..Probes::default() };
    let mut client =
        Client::new(Scenario { probes, ..Scenario::with_groups(vec![Group::new("asg-1", 0, 9).running(1)]) });
    let id = ids(&mut client, "asg-1")[0].clone();
    client.obey(&Order::Mark { machine: id.clone(), mark: Mark::Protected });
    assert_eq!(remove(&mut client, &[&id], &[]).1, code);
}

#[test]
fn a_machine_named_twice_or_already_leaving() {
    let mut client = Client::of(vec![Group { parallel: true, ..Group::new("asg-1", 0, 9).running(2) }]);
    let id = ids(&mut client, "asg-1")[0].clone();
    assert_eq!(remove(&mut client, &[&id, &id], &[]).1, "InvalidParameter.InstanceId");
    assert_eq!(remove(&mut client, &[&id], &[]).0, 200);
    assert_eq!(remove(&mut client, &[&id], &[]).1, "InvalidInstanceId.NotFound");
}

#[test]
fn detached_machines_run_on_and_protection_is_set() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 9).desiring(2).running(2)]);
    let all = ids(&mut client, "asg-1");
    client.ess(
        "SetInstancesProtection",
        &[("ScalingGroupId", "asg-1"), ("InstanceId.1", &all[0]), ("ProtectedFromScaleIn", "true")],
    );
    assert_eq!(client.instances("asg-1")[0].1, "Protected");
    client.ess("DetachInstances", &[("ScalingGroupId", "asg-1"), ("InstanceId.1", &all[1])]);
    client.advance(300);
    assert_eq!(ids(&mut client, "asg-1"), [all[0].clone()]);
    assert_eq!(client.fake.nodes().len(), 2);
    assert_eq!(client.activity("asg-1")["StatusCode"], "Successful");
}
