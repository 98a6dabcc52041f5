//! Faults on demand, as a client of this cloud sees them.

use std::time::Duration;

use plimsoll_tests_clouds::alicloud::{Group, Probes, Scenario};
use plimsoll_tests_clouds::{Answer, Cloud, Fault, Lost, Rule, Twist};
use rstest::rstest;

use crate::client::Client;

const GROW: [(&str, &str); 3] =
    [("ScalingGroupId", "asg-1"), ("AdjustmentType", "QuantityChangeInCapacity"), ("AdjustmentValue", "1")];

fn client() -> Client {
    Client::of(vec![Group::new("asg-1", 0, 9)])
}

fn lost(client: &mut Client, rule: Rule) -> Result<u16, Lost> {
    client.fake.faults().add(rule);
    let answer = client.answer("ScaleWithAdjustment", &GROW);
    answer.within(Duration::from_secs(10)).map(|response| response.status().as_u16())
}

#[rstest]
#[case::refused(Rule::new("f", Fault::Refused), Err(Lost::Refused), 0)]
#[case::no_address(Rule::new("f", Fault::NoAddress), Err(Lost::NoAddress), 0)]
#[case::wrong_name(Rule::new("f", Fault::WrongName), Err(Lost::WrongName), 0)]
#[case::reset_before(Rule::new("f", Fault::Reset), Err(Lost::Reset), 0)]
#[case::reset_after(Rule::new("f", Fault::Reset).after_handling(), Err(Lost::Reset), 1)]
#[case::late(Rule::new("f", Fault::SlowHead { ms: 11_000 }), Err(Lost::Timeout), 1)]
#[case::slow(Rule::new("f", Fault::SlowBody { ms: 9_000 }), Ok(200), 1)]
#[case::half(Rule::new("f", Fault::HalfBody), Err(Lost::Truncated), 1)]
#[case::bytes(Rule::new("f", Fault::ByteByByte), Ok(200), 1)]
#[case::gateway(Rule::new("f", Fault::Html { status: 502 }), Ok(502), 0)]
#[case::gateway_after(Rule::new("f", Fault::Html { status: 504 }).after_handling(), Ok(504), 1)]
#[case::empty(Rule::new("f", Fault::EmptyBody { status: 200 }).after_handling(), Ok(200), 1)]
#[case::throttled(Rule::new("f", Fault::Throttled { retry_after_s: None }), Ok(400), 0)]
#[case::error(
    Rule::new("f", Fault::Error { status: 500, code: "InternalError".to_owned(), message: "no".to_owned() }), Ok(500), 0
)]
fn a_fault_hides_what_happened(#[case] rule: Rule, #[case] seen: Result<u16, Lost>, #[case] writes: usize) {
    let mut client = client();
    assert_eq!(lost(&mut client, rule), seen);
    assert_eq!(client.fake.journal().writes().count(), writes);
    assert_eq!(client.fake.journal().calls[0].faults, ["f"]);
}

#[test]
fn a_redirect_and_a_long_body() {
    let mut client = client();
    client.fake.faults().add(Rule::new("r", Fault::Redirect { to: "https://evil.example/".to_owned() }).times(1));
    client.fake.faults().add(Rule::new("o", Fault::Oversized { bytes: 1 << 20 }).times(1));
    let Answer::Reply(reply) = client.answer("DescribeScalingGroups", &[]) else { panic!("an answer") };
    assert_eq!(
        (reply.response.status().as_u16(), &reply.response.headers()["location"]),
        (302, &"https://evil.example/".parse().unwrap())
    );
    let Answer::Reply(reply) = client.answer("DescribeScalingGroups", &[]) else { panic!("an answer") };
    assert_eq!(reply.response.body().len(), 1 << 20);
}

#[test]
fn after_a_lost_answer_the_client_token_gives_it_again() {
    let mut client = client();
    client.fake.faults().add(Rule::new("f", Fault::Reset).on("ScaleWithAdjustment").times(1).after_handling());
    let mut parameters = GROW.to_vec();
    parameters.push(("ClientToken", "ca-1"));
    assert!(matches!(client.answer("ScaleWithAdjustment", &parameters), Answer::Reset));
    assert_eq!(client.ess("ScaleWithAdjustment", &parameters)["ActivityType"], "ScaleOut");
    client.advance(120);
    assert_eq!(client.instances("asg-1").len(), 1);
}

#[rstest]
#[case::usual(400, None)]
#[case::modern(429, Some(7))]
fn a_throttled_minute_says_so_in_its_own_way(#[case] status: u16, #[case] retry_after: Option<u32>) {
    let probes = Probes { throttled_status: status, throttled_retry_after_s: retry_after, ..Probes::default() };
    let mut client = Client::new(Scenario { probes, ..Scenario::with_groups(vec![Group::new("asg-1", 0, 9)]) });
    client.fake.faults().add(Rule::new("t", Fault::ThrottledMinute).on("DescribeScalingGroups").times(1));
    let Answer::Reply(reply) = client.answer("DescribeScalingGroups", &[]) else { panic!("an answer") };
    assert_eq!(reply.response.status().as_u16(), status);
    let header = reply.response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(header, retry_after.map(|seconds| seconds.to_string()));
    client.advance(59);
    assert_eq!(client.refused("DescribeScalingGroups", &[]), "Throttling.User");
    client.advance(1);
    client.group("asg-1");
}

#[test]
fn reads_are_stale_for_a_while_after_a_write() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 9).desiring(1).running(1)]);
    client.fake.faults().add(Rule::new("s", Fault::Twist { twist: Twist::StaleReads(10_000) }));
    client.grow_now("asg-1", "2");
    assert_eq!(client.group("asg-1")["DesiredCapacity"], 1);
    client.advance(9);
    assert_eq!(client.instances("asg-1").len(), 1);
    client.advance(1);
    assert_eq!(client.group("asg-1")["DesiredCapacity"], 3);
    assert_eq!(client.instances("asg-1").len(), 3);
}

#[test]
fn pages_may_overlap() {
    let mut client = Client::of(vec![Group::new("asg-1", 0, 50).running(15)]);
    client.fake.faults().add(Rule::new("d", Fault::Twist { twist: Twist::DuplicateAcrossPages }));
    let mut page = |number: &str| {
        let body = client.ess("DescribeScalingInstances", &[("ScalingGroupId", "asg-1"), ("PageNumber", number)]);
        body["ScalingInstances"]["ScalingInstance"].as_array().unwrap().clone()
    };
    let (first, second) = (page("1"), page("2"));
    assert_eq!(first.last(), second.first());
    assert_eq!(second.len(), 6);
}
