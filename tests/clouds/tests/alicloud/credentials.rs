//! STS, the metadata service, and temporary keys. ACK node pools.

use bytes::Bytes;
use http::Request;
use plimsoll_tests_clouds::alicloud::account::Role;
use plimsoll_tests_clouds::alicloud::signature::sha256_hex;
use plimsoll_tests_clouds::alicloud::wire::encode;
use plimsoll_tests_clouds::alicloud::{Group, Metadata, Mode, Scenario, oidc_token};
use plimsoll_tests_clouds::{Cloud, UnixMs};
use rstest::rstest;
use serde_json::Value;

use crate::client::Client;

const STS: &str = "sts.aliyuncs.com";
const ROLE: &str = "acs:ram::1234567890123456:role/autoscaler";
const PROVIDER: &str = "acs:ram::1234567890123456:oidc-provider/ack-rrsa-c1";

fn client() -> Client {
    let role = Role {
        arn: ROLE.to_owned(),
        allow: vec!["ess:Describe*".to_owned()],
        max_session_s: 3600,
        oidc_provider: Some(PROVIDER.to_owned()),
    };
    Client::new(Scenario { roles: vec![role], ..Scenario::with_groups(vec![Group::new("asg-1", 0, 5)]) })
}

fn assume(client: &mut Client, change: &[(&str, &str)]) -> (u16, Value) {
    let token = oidc_token("oidc-test-secret", "sts.aliyuncs.com", UnixMs(client.fake.now().0 + 7_200_000));
    let mut form = vec![("RoleArn", ROLE), ("OIDCProviderArn", PROVIDER), ("OIDCToken", &token)];
    let mut query = vec![
        ("Action", "AssumeRoleWithOIDC"),
        ("Format", "JSON"),
        ("RoleSessionName", "ca"),
        ("SignatureNonce", "n"),
        ("Timestamp", "2024-06-01T08:30:00Z"),
        ("Version", "2015-04-01"),
    ];
    for (name, value) in change {
        let place = if form.iter().any(|(known, _)| known == name) { &mut form } else { &mut query };
        place.retain(|(known, _)| known != name);
        place.push((name, value));
    }
    let text = |pairs: &[(&str, &str)]| {
        let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        pairs.join("&")
    };
    let request = Request::builder()
        .method("POST")
        .uri(format!("https://{STS}/?{}", text(&query)))
        .header("host", STS)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Bytes::from(text(&form)))
        .unwrap();
    client.send(request)
}

fn become_(client: &mut Client, credentials: &Value) {
    let text = |name: &str| credentials[name].as_str().unwrap().to_owned();
    (client.key, client.secret) = (text("AccessKeyId"), text("AccessKeySecret"));
    client.token = Some(text("SecurityToken"));
}

#[test]
fn a_token_of_the_cluster_gives_a_key_for_its_time() {
    let mut client = client();
    let (status, body) = assume(&mut client, &[("DurationSeconds", "900")]);
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["Credentials"]["Expiration"], "2024-06-01T08:45:00Z");
    become_(&mut client, &body["Credentials"]);
    client.group("asg-1");
    assert_eq!(client.grow("asg-1", "1").1["Code"], "Forbidden.RAM", "the role may only look");
    let (_, identity) = client.ask(STS, "GetCallerIdentity", &[]);
    assert_eq!(identity["Code"], "Forbidden.RAM");
    client.advance(899);
    client.group("asg-1");
    client.advance(1);
    assert_eq!(client.refused("DescribeScalingGroups", &[]), "InvalidSecurityToken.Expired");
    client.token = None;
    assert_eq!(client.refused("DescribeScalingGroups", &[]), "InvalidAccessKeyId.NotFound");
}

#[test]
fn a_token_goes_with_its_key() {
    let mut client = client();
    let (_, one) = assume(&mut client, &[]);
    let (_, other) = assume(&mut client, &[]);
    become_(&mut client, &one["Credentials"]);
    client.token = other["Credentials"]["SecurityToken"].as_str().map(str::to_owned);
    assert_eq!(client.refused("DescribeScalingGroups", &[]), "InvalidSecurityToken.MismatchWithAccessKey");
}

fn token(secret: &str, audience: &str, seconds: i64) -> String {
    oidc_token(secret, audience, UnixMs(UnixMs::parse("2024-06-01T08:30:00Z").unwrap().0 + seconds * 1000))
}

#[rstest]
#[case::expired(
    "OIDCToken",
    token("oidc-test-secret", "sts.aliyuncs.com", 0),
    401,
    "AuthenticationFail.OIDCToken.Expired"
)]
#[case::audience(
    "OIDCToken",
    token("oidc-test-secret", "kubernetes", 60),
    401,
    "AuthenticationFail.OIDCToken.AudienceNotMatch"
)]
#[case::signature(
    "OIDCToken",
    token("other", "sts.aliyuncs.com", 60),
    401,
    "AuthenticationFail.OIDCToken.InvalidSignature"
)]
#[case::no_token("OIDCToken", "nonsense".to_owned(), 401, "AuthenticationFail.OIDCToken.Invalid")]
#[case::empty("OIDCToken", String::new(), 400, "InvalidParameter.OIDCToken")]
#[case::role("RoleArn", "acs:ram::1:role/none".to_owned(), 404, "EntityNotExist.Role")]
#[case::provider("OIDCProviderArn", "acs:ram::1:oidc-provider/x".to_owned(), 401, "AuthenticationFail.NoPermission")]
#[case::session("RoleSessionName", "a b".to_owned(), 400, "InvalidParameter.RoleSessionName")]
#[case::too_short("DurationSeconds", "899".to_owned(), 400, "InvalidParameter.DurationSeconds")]
#[case::too_long("DurationSeconds", "3601".to_owned(), 400, "InvalidParameter.DurationSeconds")]
fn a_role_is_not_for_everyone(#[case] name: &str, #[case] value: String, #[case] status: u16, #[case] code: &str) {
    let mut client = client();
    let (seen, body) = assume(&mut client, &[(name, &value)]);
    assert_eq!((seen, body["Code"].as_str()), (status, Some(code)), "{body}");
    assert!(body.get("Credentials").is_none());
}

#[test]
fn a_key_can_assume_a_role_and_ask_who_it_is() {
    let mut client = client();
    let (_, identity) = client.ask(STS, "GetCallerIdentity", &[]);
    assert_eq!(identity["IdentityType"], "RAMUser", "{identity}");
    let (status, body) = client.ask(STS, "AssumeRole", &[("RoleArn", ROLE), ("RoleSessionName", "ca")]);
    assert_eq!(status, 200, "{body}");
    become_(&mut client, &body["Credentials"]);
    client.group("asg-1");
    let request = client.acs3("ess.aliyuncs.com", "DescribeScalingGroups", "2014-08-28", "");
    assert_eq!(client.send(request).0, 200);
}

#[test]
fn the_journal_holds_no_secret() {
    let mut client = client();
    let (_, body) = assume(&mut client, &[]);
    become_(&mut client, &body["Credentials"]);
    client.group("asg-1");
    let journal = serde_json::to_string(client.fake.journal()).unwrap() + &client.fake.dump().to_string();
    for secret in [client.token.as_deref().unwrap(), client.secret.as_str(), "testsecret", "oidc-test-secret"] {
        assert!(!journal.contains(secret), "{secret}");
    }
}

fn metadata(client: &mut Client, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let mut request = Request::builder().method(method).uri(format!("http://100.100.100.200{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = client.fake.handle(request.body(Bytes::new()).unwrap());
    let response = answer.within(std::time::Duration::from_secs(1)).unwrap();
    (response.status().as_u16(), String::from_utf8(response.body().to_vec()).unwrap())
}

const CREDENTIALS: &str = "/latest/meta-data/ram/security-credentials/";
const TTL: &str = "X-aliyun-ecs-metadata-token-ttl-seconds";
const TOKEN: &str = "X-aliyun-ecs-metadata-token";

fn with_metadata(mode: Mode, role: Option<&str>) -> Client {
    let metadata = Metadata { mode, role: role.map(str::to_owned), lifetime_s: 3600, ..Metadata::default() };
    Client::new(Scenario { metadata, ..Scenario::with_groups(vec![Group::new("asg-1", 0, 5)]) })
}

#[rstest]
#[case::both_plain(Mode::Both, false, 200)]
#[case::both_token(Mode::Both, true, 200)]
#[case::token_only_plain(Mode::TokenOnly, false, 403)]
#[case::token_only(Mode::TokenOnly, true, 200)]
#[case::plain_only(Mode::PlainOnly, false, 200)]
fn the_machines_role_is_told_in_each_mode(#[case] mode: Mode, #[case] with_token: bool, #[case] status: u16) {
    let mut client = with_metadata(mode, Some("worker"));
    let mut headers = vec![];
    let (_, token) = metadata(&mut client, "PUT", "/latest/api/token", &[(TTL, "60")]);
    if with_token {
        headers.push((TOKEN, token.as_str()));
    }
    let (seen, role) = metadata(&mut client, "GET", CREDENTIALS, &headers);
    assert_eq!(seen, status);
    if status != 200 {
        return;
    }
    assert_eq!(role, "worker");
    let path = format!("{CREDENTIALS}worker");
    let (_, body) = metadata(&mut client, "GET", &path, &headers);
    become_(&mut client, &serde_json::from_str(&body).unwrap());
    client.group("asg-1");
    assert_eq!(metadata(&mut client, "GET", &path, &headers).1, body, "the same key while it is fresh");
    if with_token {
        client.advance(60);
        assert_eq!(metadata(&mut client, "GET", CREDENTIALS, &headers).0, 401, "the token's time is over");
    }
}

#[test]
fn what_the_metadata_service_does_not_have() {
    let mut client = with_metadata(Mode::PlainOnly, None);
    assert_eq!(metadata(&mut client, "GET", CREDENTIALS, &[]).0, 404, "no role");
    assert_eq!(metadata(&mut client, "PUT", "/latest/api/token", &[(TTL, "60")]).0, 405);
    assert_eq!(metadata(&mut client, "GET", "/latest/meta-data/region-id", &[]).1, "cn-hangzhou");
    let mut client = with_metadata(Mode::Both, Some("worker"));
    assert_eq!(metadata(&mut client, "PUT", "/latest/api/token", &[(TTL, "21601")]).0, 400);
    assert_eq!(metadata(&mut client, "GET", &format!("{CREDENTIALS}other"), &[]).0, 404);
}

#[test]
fn an_old_key_is_replaced_before_its_end() {
    let mut client = with_metadata(Mode::Both, Some("worker"));
    let path = format!("{CREDENTIALS}worker");
    let (_, first) = metadata(&mut client, "GET", &path, &[]);
    client.advance(3300);
    assert_ne!(metadata(&mut client, "GET", &path, &[]).1, first);
}

#[test]
fn a_node_pool_is_resized_by_its_wish() {
    let tags = [("ack.aliyun.com".to_owned(), "c1".to_owned())].into();
    let mut client = Client::of(vec![Group { tags, ..Group::new("asg-1", 0, 5).desiring(1).running(1) }]);
    let mut call = |method: &str, action: &str, path: &str, body: &'static str| {
        let host = "cs.cn-hangzhou.aliyuncs.com";
        let mut request = client.acs3(host, action, "2015-12-15", "");
        *request.method_mut() = method.parse().unwrap();
        *request.uri_mut() = format!("https://{host}{path}").parse().unwrap();
        request.headers_mut().insert("x-acs-content-sha256", sha256_hex(body.as_bytes()).parse().unwrap());
        request.headers_mut().insert("content-type", "application/json".parse().unwrap());
        *request.body_mut() = Bytes::from_static(body.as_bytes());
        let request = client.sign_acs3(request);
        let answer = client.send(request);
        client.advance(300);
        answer
    };
    let (_, list) = call("GET", "DescribeClusterNodePools", "/clusters/c1/nodepools", "");
    assert_eq!(list["nodepools"][0]["nodepool_info"]["nodepool_id"], "np-asg-1", "{list}");
    let pool = "/clusters/c1/nodepools/np-asg-1";
    let (status, _) = call("PUT", "ModifyClusterNodePool", pool, r#"{"scaling_group":{"desired_size":3}}"#);
    assert_eq!(status, 200);
    let (_, detail) = call("GET", "DescribeClusterNodePoolDetail", pool, "");
    assert_eq!(detail["status"]["healthy_nodes"], 3, "{detail}");
    let (_, body) = call("PUT", "ModifyClusterNodePool", pool, r#"{"scaling_group":{"desired_size":6}}"#);
    assert_eq!(body["Code"], "InvalidParameter.DesiredSize");
    assert_eq!(call("GET", "DescribeClusterNodePoolDetail", "/clusters/c2/nodepools/np-asg-1", "").0, 404);
}
