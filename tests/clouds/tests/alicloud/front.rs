//! What a request must pass, and in which order it is refused.

use plimsoll_tests_clouds::Cloud;
use plimsoll_tests_clouds::alicloud::account::Key;
use plimsoll_tests_clouds::alicloud::{Group, Probes, Scenario};
use rstest::rstest;

use crate::client::{Client, Draft, ESS};

fn client() -> Client {
    let key = |id: &str, active, allow: &str| Key {
        id: id.to_owned(),
        secret: "testsecret".to_owned(),
        active,
        allow: vec![allow.to_owned()],
        session: None,
    };
    let keys = vec![key("testid", true, "*"), key("asleep", false, "*"), key("reader", true, "ess:Describe*")];
    Client::new(Scenario { keys, ..Scenario::with_groups(vec![Group::new("asg-1", 0, 5)]) })
}

fn describe(client: &mut Client) -> Draft {
    client.draft(ESS, "DescribeScalingGroups", &[("ScalingGroupId.1", "asg-1")])
}

type Change = fn(&mut Draft);

#[rstest]
#[case::method(|d: &mut Draft| d.method = "DELETE", 405, "UnsupportedHTTPMethod")]
#[case::action(|d: &mut Draft| d.set("Action", "DescribeNothing"), 404, "InvalidAction.NotFound")]
#[case::version(|d: &mut Draft| d.set("Version", "2013-01-01"), 404, "NoSuchVersion")]
#[case::no_key(|d: &mut Draft| d.remove("AccessKeyId"), 400, "MissingParameter")]
#[case::unknown_key(|d: &mut Draft| d.set("AccessKeyId", "nobody"), 404, "InvalidAccessKeyId.NotFound")]
#[case::inactive_key(|d: &mut Draft| d.set("AccessKeyId", "asleep"), 403, "InvalidAccessKeyId.Inactive")]
#[case::token_of_nobody(|d: &mut Draft| d.set("SecurityToken", "CAISxyz"), 400, "InvalidSecurityToken.Malformed")]
#[case::time_with_millis(|d: &mut Draft| d.set("Timestamp", "2024-06-01T08:30:00.000Z"), 400, "InvalidTimeStamp.Format")]
#[case::time_too_old(|d: &mut Draft| d.set("Timestamp", "2024-06-01T07:58:59Z"), 400, "InvalidTimeStamp.Expired")]
#[case::time_too_new(|d: &mut Draft| d.set("Timestamp", "2024-06-01T09:01:01Z"), 400, "InvalidTimeStamp.Expired")]
#[case::method_of_signature(|d: &mut Draft| d.set("SignatureMethod", "HMAC-SHA256"), 400, "IncompleteSignature")]
#[case::no_nonce(|d: &mut Draft| d.remove("SignatureNonce"), 400, "MissingParameter")]
#[case::permission(
    |d: &mut Draft| { d.set("AccessKeyId", "reader"); d.set("Action", "ScaleWithAdjustment") }, 403, "Forbidden.RAM"
)]
#[case::xml(|d: &mut Draft| d.remove("Format"), 400, "InvalidParameter.Format")]
#[case::other_region(|d: &mut Draft| d.set("RegionId", "cn-beijing"), 404, "InvalidRegionId.NotFound")]
#[case::unknown_parameter(|d: &mut Draft| d.set("InstanceType", "x"), 400, "InvalidParameter")]
#[case::numbered_from_zero(|d: &mut Draft| d.set("ScalingGroupId.0", "asg-1"), 400, "InvalidParameter")]
#[case::gap(|d: &mut Draft| d.set("ScalingGroupId.3", "asg-1"), 400, "InvalidParameter")]
#[case::leading_zero(|d: &mut Draft| d.set("ScalingGroupId.02", "asg-1"), 400, "InvalidParameter")]
#[case::list_without_number(|d: &mut Draft| d.set("ScalingGroupId", "asg-1"), 400, "InvalidParameter")]
#[case::page_too_long(|d: &mut Draft| d.set("PageSize", "51"), 400, "InvalidParameter.PageSize")]
#[case::page_no_number(|d: &mut Draft| d.set("PageNumber", "first"), 400, "InvalidParameter.PageNumber")]
fn a_wrong_request_is_refused(#[case] change: Change, #[case] status: u16, #[case] code: &str) {
    let mut client = client();
    let mut draft = describe(&mut client);
    change(&mut draft);
    let (seen, body) = client.send_draft(draft);
    assert_eq!((seen, body["Code"].as_str()), (status, Some(code)), "{body}");
    for field in ["RequestId", "HostId", "Message"] {
        assert!(body[field].as_str().is_some_and(|text| !text.is_empty()), "{field} in {body}");
    }
    let call = client.fake.journal().calls.last().unwrap();
    assert_eq!((call.status, call.code.as_deref()), (Some(status), Some(code)));
    assert!(call.changes.is_empty());
}

#[rstest]
#[case::in_time(0)]
#[case::ten_minutes_slow(-600)]
#[case::ten_minutes_fast(600)]
fn a_right_request_passes(#[case] skew_s: i64) {
    let mut client = client();
    client.skew_s = skew_s;
    assert_eq!(client.group("asg-1")["MaxSize"], 5);
    assert_eq!(client.violations(), [""; 0]);
}

#[test]
fn checks_come_in_the_clouds_order() {
    // Everything is wrong; each repair shows the next complaint.
    let mut client = client();
    let mut draft = describe(&mut client);
    for (name, value) in [
        ("Action", "Nothing"),
        ("AccessKeyId", "nobody"),
        ("SecurityToken", "x"),
        ("Timestamp", "now"),
        ("Signature", "wrong"),
        ("PageSize", "1000"),
    ] {
        draft.set(name, value);
    }
    let repairs: [(Change, &str); 5] = [
        (|d| d.set("Action", "DescribeScalingGroups"), "InvalidAccessKeyId.NotFound"),
        (|d| d.set("AccessKeyId", "testid"), "InvalidSecurityToken.Malformed"),
        (|d| d.remove("SecurityToken"), "InvalidTimeStamp.Format"),
        (|d| d.set("Timestamp", "2024-06-01T08:30:00Z"), "SignatureDoesNotMatch"),
        (|d| d.set("SignatureNonce", "another"), "SignatureDoesNotMatch"),
    ];
    assert_eq!(client.send(draft.request()).1["Code"], "InvalidAction.NotFound");
    for (repair, code) in repairs {
        repair(&mut draft);
        assert_eq!(client.send(draft.request()).1["Code"], code);
    }
    draft.set("SignatureNonce", "a third");
    assert_eq!(client.send_draft(draft).1["Code"], "InvalidParameter.PageSize");
}

#[test]
fn a_nonce_serves_once() {
    let mut client = client();
    let mut draft = describe(&mut client);
    draft.sign("testsecret");
    assert_eq!(client.send(draft.request()).0, 200);
    assert_eq!(client.send(draft.request()).1["Code"], "SignatureNonceUsed");
}

#[test]
fn a_wrong_signature_is_answered_with_the_text_to_sign() {
    let mut client = client();
    let mut draft = describe(&mut client);
    draft.sign("another secret");
    let (status, body) = client.send(draft.request());
    let text = body["Message"].as_str().unwrap();
    assert_eq!(status, 400);
    let begin = "Specified signature is not matched with our calculation. server string to sign is:POST&%2F&AccessKeyId%3Dtestid%26";
    assert!(text.starts_with(begin), "{text}");
}

#[test]
fn a_missing_permission_names_the_operation() {
    let mut client = client();
    client.key = "reader".to_owned();
    let (_, body) = client.grow("asg-1", "1");
    assert!(body["Message"].as_str().unwrap().contains("ess:ScaleWithAdjustment"), "{body}");
    assert_eq!(body["AccessDeniedDetail"]["AuthAction"], "ess:ScaleWithAdjustment");
    assert_eq!(client.fake.journal().random_kills().len(), 0);
}

#[test]
fn what_is_not_encrypted_is_refused() {
    let mut client = client();
    let mut draft = describe(&mut client);
    draft.sign("testsecret");
    let mut request = draft.request();
    *request.uri_mut() = request.uri().to_string().replace("https:", "http:").parse().unwrap();
    assert_eq!(client.send(request).1["Code"], "InvalidProtocol.NeedSsl");
    assert_eq!(client.violations().len(), 1);
}

#[test]
fn a_plus_is_read_and_noted() {
    let mut client = client();
    let mut draft = client.draft(ESS, "DescribeScalingGroups", &[("ScalingGroupName", "a b")]);
    draft.sign("testsecret");
    let mut request = draft.request();
    *request.uri_mut() = request.uri().to_string().replace("a%20b", "a+b").parse().unwrap();
    assert_eq!(client.send(request).0, 200);
    assert!(client.violations()[0].contains("expected %20"));
}

#[test]
fn a_spent_minute_is_refused_to_its_end() {
    let mut scenario = Scenario::with_groups(vec![Group::new("asg-1", 0, 5)]);
    scenario.budgets.insert("DescribeScalingGroups".to_owned(), 2);
    let mut client = Client::new(scenario);
    client.group("asg-1");
    client.group("asg-1");
    assert_eq!(client.refused("DescribeScalingGroups", &[]), "Throttling.User");
    client.advance(59);
    assert_eq!(client.refused("DescribeScalingGroups", &[]), "Throttling.User");
    client.instances("asg-1");
    client.advance(1);
    client.group("asg-1");
}

#[test]
fn acs3_passes_in_both_versions_of_ess() {
    let mut client = client();
    let request =
        client.acs3(ESS, "DescribeScalingGroups", "2014-08-28", "ScalingGroupId.1=asg-1&RegionId=cn-hangzhou");
    let (status, body) = client.send(request);
    assert_eq!((status, &body["ScalingGroups"]["ScalingGroup"][0]["MaxSize"]), (200, &5.into()), "{body}");
    let request = client.acs3(ESS, "DescribeScalingGroups", "2022-02-22", "ScalingGroupIds.1=asg-1");
    let (status, body) = client.send(request);
    assert_eq!((status, &body["ScalingGroups"][0]["VSwitchIds"][0]), (200, &"vsw-a".into()), "{body}");
    assert_eq!(client.violations(), [""; 0]);
}

#[rstest]
#[case::action("x-acs-action", "DescribeScalingInstances", "SignatureDoesNotMatch")]
#[case::body_hash("x-acs-content-sha256", "00", "SignatureDoesNotMatch")]
#[case::host("host", "ess-vpc.cn-hangzhou.aliyuncs.com", "SignatureDoesNotMatch")]
#[case::more("x-acs-extra", "1", "IncompleteSignature")]
#[case::date("x-acs-date", "2024-06-01T10:30:00Z", "InvalidTimeStamp.Expired")]
#[case::gibberish("authorization", "ACS3-HMAC-SHA256 Credential", "IncompleteSignature")]
fn acs3_covers_its_headers(#[case] header: &'static str, #[case] value: &str, #[case] code: &str) {
    let mut client = client();
    let mut request = client.acs3(ESS, "DescribeScalingGroups", "2014-08-28", "ScalingGroupId.1=asg-1");
    request.headers_mut().insert(header, value.parse().unwrap());
    assert_eq!(client.send(request).1["Code"], code);
}

#[test]
fn ess_may_know_the_old_signature_only() {
    let probes = Probes { acs3_on_ess: false, unknown_key_status: 400, ..Probes::default() };
    let mut client = Client::new(Scenario { probes, ..Scenario::default() });
    let request = client.acs3(ESS, "DescribeScalingGroups", "2014-08-28", "");
    assert_eq!(client.send(request).1["Code"], "MissingParameter");
    client.key = "nobody".to_owned();
    assert_eq!(client.ask(ESS, "DescribeScalingGroups", &[]).0, 400);
}
