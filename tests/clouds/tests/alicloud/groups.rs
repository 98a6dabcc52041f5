//! Groups and machines over time.

use plimsoll_tests_clouds::alicloud::world::{MultiAz, Source, TypeChoice};
use plimsoll_tests_clouds::alicloud::{Group, Mark, Order, Probes, Scenario};
use plimsoll_tests_clouds::nodes::{ProviderId, Script};
use plimsoll_tests_clouds::{Cause, Cloud, Happening};
use rstest::rstest;

use crate::client::Client;

fn states(client: &mut Client, group: &str) -> Vec<String> {
    client.instances(group).into_iter().map(|(_, state)| state).collect()
}

#[test]
fn a_machine_is_accepted_made_started_and_registers() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 5)]);
    let (status, body) = client.grow("asg-1", "2");
    assert_eq!((status, body["ActivityType"].as_str()), (200, Some("ScaleOut")), "{body}");
    assert!(client.instances("asg-1").is_empty(), "accepted is not made");
    assert_eq!(client.activity("asg-1")["StatusCode"], "InProgress");
    client.advance(6);
    assert_eq!(states(&mut client, "asg-1"), ["Pending", "Pending"]);
    assert_eq!(client.group("asg-1")["PendingCapacity"], 2);
    assert!(client.fake.nodes().is_empty());
    client.advance(90);
    assert_eq!(states(&mut client, "asg-1"), ["InService", "InService"]);
    let activity = client.activity("asg-1");
    assert_eq!((&activity["StatusCode"], &activity["CreatedCapacity"]), (&"Successful".into(), &2.into()));
    assert_eq!(activity["TotalCapacity"], "2", "a text here");
    assert_eq!(activity["StartTime"], "2024-06-01T08:30Z", "minutes only");
    client.advance(30);
    let nodes = client.fake.nodes();
    let (id, _) = client.instances("asg-1")[0].clone();
    assert!(nodes.iter().any(|node| node.provider_id == Some(format!("cn-hangzhou.{id}"))), "{nodes:?}");
}

#[test]
fn a_hook_makes_new_machines_wait() {
    let mut client = Client::of(vec![Group { hook_ms: Some(300_000), ..Group::new("asg-1", 0, 5) }]);
    client.grow("asg-1", "1");
    client.advance(100);
    assert_eq!(states(&mut client, "asg-1"), ["Pending:Wait"]);
    client.advance(300);
    assert_eq!(states(&mut client, "asg-1"), ["InService"]);
}

#[rstest]
#[case::none(0, "Failed", 0)]
#[case::some(2, "Warning", 2)]
fn short_stock_shows_in_the_activity(#[case] stock: u32, #[case] status: &str, #[case] made: usize) {
    let mut scenario = Scenario::with_groups(vec![Group::new("asg-1", 0, 5)]);
    scenario.stock.insert("cn-hangzhou-a/ecs.g7.xlarge".to_owned(), stock);
    let mut client = Client::new(scenario);
    client.grow("asg-1", "3");
    client.advance(120);
    let activity = client.activity("asg-1");
    assert_eq!((&activity["StatusCode"], &activity["ErrorCode"]), (&status.into(), &"OperationDenied.NoStock".into()));
    assert!(activity["Detail"].as_str().unwrap().contains("code:\"OperationDenied.NoStock\""));
    assert_eq!(client.instances("asg-1").len(), made);
}

#[rstest]
#[case::quota(Order::Quota { instance_type: "ecs.g7.xlarge".to_owned(), most: Some(0) }, "QuotaExceed.ElasticQuota")]
#[case::addresses(Order::Addresses { vswitch: "vsw-a".to_owned(), free: 0 }, "InvalidVSwitchId.IpNotEnough")]
#[case::billing(Order::Billing { code: Some("Account.Arrearage".to_owned()) }, "Account.Arrearage")]
#[case::broken(
    Order::Break {
        group: "asg-1".to_owned(), failure: Some(("InvalidImage.NotSupported".to_owned(), "no".to_owned())),
    },
    "InvalidImage.NotSupported"
)]
fn what_keeps_machines_from_coming(#[case] order: Order, #[case] code: &str) {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 5)]);
    client.obey(&order);
    client.grow("asg-1", "1");
    client.advance(120);
    assert_eq!(client.activity("asg-1")["ErrorCode"], code);
}

#[test]
fn a_desired_group_tries_again_until_stock_returns() {
    let mut scenario = Scenario::with_groups(vec![Group::new("asg-1", 0, 5).desiring(0)]);
    scenario.stock.insert("cn-hangzhou-a/ecs.g7.xlarge".to_owned(), 0);
    let mut client = Client::new(scenario);
    client.grow_now("asg-1", "1");
    client.advance(600);
    let body = client.ess("DescribeScalingActivities", &[("ScalingGroupId", "asg-1"), ("StatusCode", "Failed")]);
    let tries = body["TotalCount"].as_u64().unwrap();
    assert!((8..=21).contains(&tries), "one each 30 to 60 seconds, saw {tries}");
    let stock =
        Order::Stock { zone: "cn-hangzhou-a".to_owned(), instance_type: "ecs.g7.xlarge".to_owned(), left: None };
    client.obey(&stock);
    client.advance(200);
    assert_eq!(states(&mut client, "asg-1"), ["InService"]);
    assert_eq!(client.fake.journal().random_kills().len(), 0);
}

#[test]
fn many_failures_suspend_a_group() {
    let mut scenario =
        Scenario::with_groups(vec![Group { suspends_after: Some(3), ..Group::new("asg-1", 0, 5).desiring(1) }]);
    scenario.stock.insert("cn-hangzhou-a/ecs.g7.xlarge".to_owned(), 0);
    let mut client = Client::new(scenario);
    client.advance(600);
    assert_eq!(client.group("asg-1")["SystemSuspended"], true);
    let body = client.ess("DescribeScalingActivities", &[("ScalingGroupId", "asg-1")]);
    assert_eq!(body["TotalCount"], 3);
}

#[rstest]
#[case::desired(Group::new("asg-1", 0, 5).desiring(2).running(2), 2)]
#[case::plain(Group::new("asg-1", 0, 5).running(2), 1)]
#[case::plain_at_its_min(Group::new("asg-1", 2, 5).running(2), 2)]
fn a_lost_machine_is_replaced_where_the_group_wants_it(#[case] group: Group, #[case] after: usize) {
    let mut client = Client::of(vec![group]);
    let lost = client.instances("asg-1")[0].0.clone();
    client.obey(&Order::Release { machine: lost.clone() });
    client.advance(300);
    let instances = client.instances("asg-1");
    assert_eq!(instances.len(), after);
    assert!(instances.iter().all(|(id, _)| *id != lost));
}

#[test]
fn a_reclaimed_spot_machine_is_the_clouds_doing() {
    let mut client = Client::of(vec![Group { spot: true, ..Group::new("asg-1", 0, 5).running(1) }]);
    let lost = client.instances("asg-1")[0].0.clone();
    client.obey(&Order::Reclaim { machine: lost.clone() });
    let gone = client.fake.journal().events.iter().find(|event| event.what == Happening::Gone).unwrap();
    assert_eq!((gone.subject.as_str(), gone.cause), (lost.as_str(), Cause::Cloud));
}

#[test]
fn zones_are_balanced_when_the_group_says_so() {
    let vswitches = ["vsw-a", "vsw-b", "vsw-c"].map(str::to_owned).to_vec();
    let group = Group { multi_az: MultiAz::Balance, vswitches, ..Group::new("asg-1", 0, 9).running(6) };
    let mut client = Client::of(vec![group]);
    let body = client.ess("DescribeScalingInstances", &[("ScalingGroupId", "asg-1")]);
    let list = body["ScalingInstances"]["ScalingInstance"].as_array().unwrap();
    for zone in ["a", "b", "c"] {
        let here = list.iter().filter(|entry| entry["ZoneId"] == format!("cn-hangzhou-{zone}")).count();
        assert_eq!(here, 2);
    }
}

#[test]
fn weights_count_in_a_weighted_group() {
    let mut scenario = Scenario::with_groups(vec![Group { weighted: true, ..Group::new("asg-1", 0, 20) }]);
    scenario.configurations[0].types = vec![TypeChoice { instance_type: "ecs.g7.xlarge".to_owned(), weight: 4 }];
    let mut client = Client::new(scenario);
    client.grow("asg-1", "10");
    client.advance(120);
    let group = client.group("asg-1");
    assert_eq!((&group["TotalCapacity"], &group["TotalInstanceCount"]), (&12.into(), &3.into()));
}

#[test]
fn a_launch_template_makes_machines_too() {
    let mut scenario = Scenario::with_groups(vec![Group {
        source: Some(Source::LaunchTemplate {
            id: "lt-1".to_owned(),
            version: "Default".to_owned(),
            overrides: vec![],
        }),
        ..Group::new("asg-1", 0, 5)
    }]);
    let template = serde_json::json!({"id": "lt-1", "version": 2, "default": true, "instance_type": "ecs.g6.xlarge", "system_disk_gib": 40});
    scenario.launch_templates = vec![serde_json::from_value(template).unwrap()];
    let mut client = Client::new(scenario);
    client.grow("asg-1", "1");
    client.advance(120);
    assert_eq!(client.instances("asg-1").len(), 1);
    assert_eq!(client.group("asg-1")["LaunchTemplateId"], "lt-1");
    let (_, body) = client.ask(
        "ecs.cn-hangzhou.aliyuncs.com",
        "DescribeLaunchTemplateVersions",
        &[("LaunchTemplateId", "lt-1"), ("DefaultVersion", "true")],
    );
    let set = &body["LaunchTemplateVersionSets"]["LaunchTemplateVersionSet"][0];
    assert_eq!(set["LaunchTemplateData"]["InstanceType"], "ecs.g6.xlarge", "{body}");
}

#[test]
fn node_scripts_tell_what_registers() {
    let script = |provider_id| Script { provider_id, ..Script::default() };
    let mut client = Client::of(vec![
        Group { script: script(ProviderId::Alias), ..Group::new("asg-alias", 0, 5).running(1) },
        Group { script: script(ProviderId::Missing), ..Group::new("asg-none", 0, 5).running(1) },
        Group {
            script: Script { registers_after_ms: None, ..Script::default() },
            ..Group::new("asg-never", 0, 5).running(1)
        },
    ]);
    let id = client.instances("asg-alias")[0].0.clone();
    let of = |client: &Client, group: &str| -> Vec<Option<String>> {
        client.fake.nodes().into_iter().filter(|node| node.group == group).map(|node| node.provider_id).collect()
    };
    assert_eq!(of(&client, "asg-alias"), [Some(format!("alicloud://cn-hangzhou.{id}"))]);
    assert_eq!(of(&client, "asg-none"), [None]);
    assert!(of(&client, "asg-never").is_empty());
}

#[rstest]
#[case::counted(true, 3)]
#[case::apart(false, 1)]
fn protected_and_standby_may_count(#[case] counted: bool, #[case] total: u64) {
    let probes = Probes { protected_and_standby_count: counted, ..Probes::default() };
    let mut client =
        Client::new(Scenario { probes, ..Scenario::with_groups(vec![Group::new("asg-1", 0, 9).running(3)]) });
    let ids: Vec<String> = client.instances("asg-1").into_iter().map(|(id, _)| id).collect();
    client.obey(&Order::Mark { machine: ids[0].clone(), mark: Mark::Protected });
    client.obey(&Order::Mark { machine: ids[1].clone(), mark: Mark::Standby });
    let group = client.group("asg-1");
    let seen = ["TotalCapacity", "ActiveCapacity", "ProtectedCapacity", "StandbyCapacity"].map(|name| &group[name]);
    assert_eq!(seen.map(|value| value.as_u64().unwrap()), [total, 1, 1, 1]);
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let history = |seed| {
        let mut client = Client::new(Scenario { seed, ..Scenario::with_groups(vec![Group::new("asg-1", 0, 9)]) });
        client.grow("asg-1", "3");
        client.advance(200);
        serde_json::to_string(&client.fake.journal().events).unwrap()
    };
    assert_eq!(history(5), history(5));
    assert_ne!(history(5), history(6));
}
