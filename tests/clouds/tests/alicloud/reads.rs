//! Lists, pages, shapes.

use plimsoll_tests_clouds::alicloud::{Group, Probes, Quirks, Scenario};
use rstest::rstest;

use crate::client::Client;

const ECS: &str = "ecs.cn-hangzhou.aliyuncs.com";

#[test]
fn fifteen_instances_are_two_pages() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 50).running(15)]);
    let mut seen = Vec::new();
    for (page, length) in [("1", 10), ("2", 5), ("3", 0)] {
        let body = client.ess("DescribeScalingInstances", &[("ScalingGroupId", "asg-1"), ("PageNumber", page)]);
        assert_eq!((&body["TotalCount"], &body["PageSize"]), (&15.into(), &10.into()));
        let list = body["ScalingInstances"]["ScalingInstance"].as_array().unwrap().clone();
        assert_eq!(list.len(), length);
        seen.extend(list.iter().map(|entry| entry["InstanceId"].as_str().unwrap().to_owned()));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 15);
}

#[rstest]
#[case::short(50, "100", 400)]
#[case::long(100, "100", 200)]
fn the_longest_page_is_open(#[case] longest: i64, #[case] asked: &str, #[case] status: u16) {
    let probes = Probes { instance_page: longest, ..Probes::default() };
    let mut client = Client::new(Scenario { probes, ..Scenario::default() });
    assert_eq!(client.ask(crate::client::ESS, "DescribeScalingInstances", &[("PageSize", asked)]).0, status);
}

#[test]
fn groups_are_found_by_tag_and_name() {
    let tags = |value: &str| [("k8s.io/cluster-autoscaler/enabled".to_owned(), value.to_owned())].into();
    let mut client = Client::of(vec![
        Group { tags: tags("true"), ..Group::new("asg-1", 0, 5) },
        Group { tags: tags("false"), ..Group::new("asg-2", 0, 5) },
        Group::new("asg-3", 0, 5),
    ]);
    let mut count = |parameters: &[(&str, &str)]| client.ess("DescribeScalingGroups", parameters)["TotalCount"].clone();
    let key = ("Tag.1.Key", "k8s.io/cluster-autoscaler/enabled");
    assert_eq!(count(&[key]), 2);
    assert_eq!(count(&[key, ("Tag.1.Value", "true")]), 1);
    assert_eq!(count(&[("ScalingGroupName", "asg-3")]), 1);
    assert_eq!(count(&[("ScalingGroupId.1", "asg-1"), ("ScalingGroupId.2", "asg-none")]), 1);
    assert_eq!(count(&[]), 3);
}

#[test]
fn types_come_by_name_and_by_token() {
    let mut scenario = Scenario::default();
    for number in 0..230 {
        let mut kind = scenario.types[0].clone();
        kind.name = format!("ecs.x{number}.large");
        scenario.types.push(kind);
    }
    let mut client = Client::new(scenario);
    let mut token = String::new();
    let mut lengths = vec![];
    loop {
        let mut parameters = vec![];
        if !token.is_empty() {
            parameters.push(("NextToken", token.as_str()));
        }
        let (_, body) = client.ask(ECS, "DescribeInstanceTypes", &parameters);
        lengths.push(body["InstanceTypes"]["InstanceType"].as_array().unwrap().len());
        token = body["NextToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(lengths, [100, 100, 35], "never all at once");
    let (_, body) = client.ask(ECS, "DescribeInstanceTypes", &[("InstanceTypes.1", "ecs.t6-c4m1.large")]);
    assert_eq!(body["InstanceTypes"]["InstanceType"][0]["MemorySize"], 0.5);
    let eleven: Vec<(String, &str)> =
        (1..=11).map(|number| (format!("InstanceTypes.{number}"), "ecs.x1.large")).collect();
    let eleven: Vec<(&str, &str)> = eleven.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(client.ask(ECS, "DescribeInstanceTypes", &eleven).0, 400);
}

#[test]
fn subnets_tell_their_zones() {
    let mut client = Client::new(Scenario::default());
    let (_, body) = client.ask("vpc.cn-hangzhou.aliyuncs.com", "DescribeVSwitches", &[("VSwitchId", "vsw-b,vsw-c")]);
    let list = body["VSwitches"]["VSwitch"].as_array().unwrap();
    let zones: Vec<&str> = list.iter().map(|entry| entry["ZoneId"].as_str().unwrap()).collect();
    assert_eq!(zones, ["cn-hangzhou-b", "cn-hangzhou-c"]);
}

#[rstest]
#[case::nested(false)]
#[case::plain(true)]
fn location_misspells_and_varies(#[case] plain: bool) {
    let quirks = Some(Quirks { plain_protocols: plain, ..Quirks::default() });
    let mut client = Client::new(Scenario { quirks, ..Scenario::default() });
    let parameters = [("Id", "cn-hangzhou"), ("ServiceCode", "ess"), ("Type", "openAPI")];
    let (_, body) = client.ask("location.aliyuncs.com", "DescribeEndpoints", &parameters);
    let entry = &body["Endpoints"]["Endpoint"][0];
    assert_eq!((&entry["Endpoint"], &entry["SerivceCode"]), (&"ess.aliyuncs.com".into(), &"ess".into()));
    assert_eq!(entry["Protocols"].is_array(), plain);
    let (_, body) =
        client.ask("location.aliyuncs.com", "DescribeEndpoints", &[("Id", "cn-nowhere"), ("ServiceCode", "ess")]);
    assert_eq!(body["Endpoints"]["Endpoint"].as_array().unwrap().len(), 0);
}

#[test]
fn quirks_by_chance_differ_between_seeds_only() {
    let shape = |seed| {
        let scenario =
            Scenario { seed, quirks: None, ..Scenario::with_groups(vec![Group::new("asg-1", 0, 5).running(1)]) };
        Client::new(scenario).group("asg-1")
    };
    let first = shape(1);
    assert_eq!(first, shape(1));
    assert!((2..20).any(|seed| shape(seed) != first));
}

#[test]
fn configurations_belong_to_their_groups() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 5)]);
    let body = client.ess("DescribeScalingConfigurations", &[("ScalingGroupId", "asg-1")]);
    let shown = &body["ScalingConfigurations"]["ScalingConfiguration"][0];
    assert_eq!(shown["InstanceTypes"]["InstanceType"][0], "ecs.g7.xlarge");
    let body = client.ess("DescribeScalingConfigurations", &[("ScalingGroupId", "asg-2")]);
    assert_eq!(body["TotalCount"], 0);
}

#[rstest]
#[case::by_the_hour(&[], 1.08, 1.08)]
#[case::by_the_day(&[("PriceUnit", "Day"), ("Amount", "2")], 51.84, 51.84)]
#[case::spot(&[("SpotStrategy", "SpotAsPriceGo")], 1.08, 0.38)]
#[case::a_large_disk(&[("SystemDisk.Category", "cloud_essd"), ("SystemDisk.Size", "500")], 2.0, 2.0)]
fn prices_depend_on_what_is_asked(#[case] more: &[(&str, &str)], #[case] original: f64, #[case] trade: f64) {
    let mut scenario = Scenario::default();
    scenario.types[0].price_per_hour = Some(1.0);
    let mut client = Client::new(scenario);
    let mut parameters = vec![("ResourceType", "instance"), ("InstanceType", "ecs.g7.xlarge")];
    parameters.extend(more);
    let (status, body) = client.ask(ECS, "DescribePrice", &parameters);
    let price = &body["PriceInfo"]["Price"];
    assert_eq!((status, &price["Currency"]), (200, &"CNY".into()), "{body}");
    assert_eq!((&price["OriginalPrice"], &price["TradePrice"]), (&original.into(), &trade.into()));
}

#[rstest]
#[case::of_nothing(&[], 400, "MissingParameter")]
#[case::of_no_type(&[("InstanceType", "ecs.none.large")], 404, "InvalidInstanceType.ValueNotSupported")]
#[case::by_the_second(&[("InstanceType", "ecs.g7.xlarge"), ("PriceUnit", "Second")], 400, "InvalidParameter")]
fn a_price_of_what_does_not_exist_is_refused(
    #[case] parameters: &[(&str, &str)],
    #[case] status: u16,
    #[case] code: &str,
) {
    let (found, body) = Client::new(Scenario::default()).ask(ECS, "DescribePrice", parameters);
    assert_eq!(found, status, "{body}");
    assert!(body["Code"].as_str().unwrap().starts_with(code), "{body}");
}

#[test]
fn prices_need_their_permission() {
    let mut scenario = Scenario::default();
    scenario.keys[0].allow = vec!["ecs:DescribeInstanceTypes".to_owned()];
    let (status, body) = Client::new(scenario).ask(ECS, "DescribePrice", &[("InstanceType", "ecs.g7.xlarge")]);
    assert_eq!((status, &body["Code"]), (403, &"Forbidden.RAM".into()), "{body}");
    assert!(body.to_string().contains("ecs:DescribePrice"), "{body}");
}
