//! Signatures that others have published or computed.

use bytes::Bytes;
use http::Request;
use plimsoll_tests_clouds::alicloud::signature::{canonical_request, sha256_hex, v1, v3};
use plimsoll_tests_clouds::alicloud::wire::Incoming;
use rstest::rstest;

const GROUP: &str = "asg-bp18p2yfxow2dloq****";

fn common<'a>(action: &'a str, nonce: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("AccessKeyId", "testid"),
        ("Action", action),
        ("Format", "JSON"),
        ("RegionId", "cn-hangzhou"),
        ("SignatureMethod", "HMAC-SHA1"),
        ("SignatureNonce", nonce),
        ("SignatureVersion", "1.0"),
        ("Timestamp", "2024-06-01T08:30:00Z"),
    ]
}

fn ess<'a>(action: &'a str, nonce: &'a str, own: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut all = common(action, nonce);
    all.extend([("Version", "2014-08-28"), ("ScalingGroupId", GROUP)]);
    all.extend(own);
    all
}

fn ecs<'a>(action: &'a str, format: &'a str, nonce: &'a str, time: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut all = common(action, nonce);
    all.retain(|(name, _)| !["RegionId", "Format", "Timestamp"].contains(name));
    all.extend([("Format", format), ("Timestamp", time), ("Version", "2014-05-26")]);
    all
}

const SCALE: &[(&str, &str)] = &[
    ("ActivityMetadata", r#"{"cluster-autoscaler/alicloud/managed":"true"}"#),
    ("AdjustmentType", "TotalCapacity"),
    ("AdjustmentValue", "5"),
    ("SyncActivity", "true"),
    ("SignatureType", ""),
];
const LIST: &[(&str, &str)] = &[("PageNumber", "1"), ("PageSize", "10"), ("SignatureType", "")];
const LIST_WITH_TOKEN: &[(&str, &str)] =
    &[("PageNumber", "1"), ("PageSize", "10"), ("SignatureType", ""), ("SecurityToken", "CAIS+/abc==*~tok")];
const REMOVE: &[(&str, &str)] = &[
    ("InstanceId.1", "i-bp1aaaaaaaaaaaaaaaaa"),
    ("InstanceId.2", "i-bp1bbbbbbbbbbbbbbbbb"),
    ("InstanceId.10", "i-bp1cccccccccccccccccc"),
    ("RemovePolicy", "release"),
    ("DecreaseDesiredCapacity", "true"),
    ("IgnoreInvalidInstance", "true"),
    ("ClientToken", "ca-7f3e"),
];
const FIRST: &str = "0123456789abcdef0123456789abcdef";
const SECOND: &str = "fedcba9876543210fedcba9876543210";

fn location() -> Vec<(&'static str, &'static str)> {
    let mut all = common("DescribeEndpoints", "00112233445566778899aabbccddeeff");
    let own = [("Id", "cn-hangzhou"), ("ServiceCode", "ess"), ("Type", "openAPI"), ("SignatureType", "")];
    all.extend(own);
    all.push(("Version", "2015-06-12"));
    all
}

fn odd_characters() -> Vec<(&'static str, &'static str)> {
    vec![("A", "a b*c~d+e/f=g&h"), ("B", "中文"), ("C", ""), ("a", "lower")]
}

#[rstest]
#[case::scale("POST", ess("ScaleWithAdjustment", FIRST, SCALE), "1ipL3POPayNxFjnGEMQn5nrOWWA=")]
#[case::list("POST", ess("DescribeScalingInstances", SECOND, LIST), "97NtNYwVjWPz6avVPhx7c+ib/PE=")]
#[case::list_by_get("GET", ess("DescribeScalingInstances", SECOND, LIST), "vuxbCxyXbHVFYxvmzFoKD/x2DxA=")]
#[case::with_token("POST", ess("DescribeScalingInstances", SECOND, LIST_WITH_TOKEN), "JTlW33Lx3DgNXRCeWsGWPpynMU8=")]
#[case::location("GET", location(), "jhcM/bQYRNkllmJHPnb1JGZ/LDM=")]
#[case::remove(
    "POST",
    ess("RemoveInstances", "a1b2c3d4e5f60718293a4b5c6d7e8f90", REMOVE),
    "3GUohCb53LswpCAIGK7ibvOcROo="
)]
#[case::encoding("GET", odd_characters(), "C/WJ+4MBXgZiDr0VBGqymdJDXtk=")]
#[case::vendor_regions(
    "GET",
    ecs("DescribeRegions", "XML", "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf", "2016-02-23T12:46:24Z"),
    "OLeaidS1JvxuMvnyHOwuJ+uX5qY="
)]
#[case::vendor_hosts(
    "GET",
    ecs("DescribeDedicatedHosts", "JSON", "edb2b34af0af9a6d14deaf7c1a5315eb", "2023-03-13T08:34:30Z"),
    "4nZtwnVc01JXU6YAbObyIuSjetI="
)]
fn version_1(#[case] method: &str, #[case] parameters: Vec<(&str, &str)>, #[case] expected: &str) {
    assert_eq!(v1(method, parameters.into_iter(), "testsecret").signature, expected);
}

struct Acs3 {
    host: &'static str,
    action: &'static str,
    version: &'static str,
    date: &'static str,
    nonce: &'static str,
    token: Option<&'static str>,
    query: &'static str,
    body: &'static str,
    secret: &'static str,
}

const ACS3_SCALE: Acs3 = Acs3 {
    host: "ess.aliyuncs.com",
    action: "ScaleWithAdjustment",
    version: "2014-08-28",
    date: "2024-06-01T08:30:00Z",
    nonce: FIRST,
    token: None,
    query: "SyncActivity=true&ActivityMetadata=%7B%22cluster-autoscaler%2Falicloud%2Fmanaged%22%3A%22true%22%7D\
            &AdjustmentType=TotalCapacity&AdjustmentValue=5&RegionId=cn-hangzhou\
            &ScalingGroupId=asg-bp18p2yfxow2dloq%2A%2A%2A%2A",
    body: "",
    secret: "testsecret",
};

#[rstest]
#[case::scale(
    ACS3_SCALE,
    "5baffccc92eac32b35f81eb68f31cd7dbc9a71bdd7587bca5893efeeb230c9b7",
    "00729b562bae2d1eb900fdf20681f5bcd8e2cfed21efc5e63c28aa25585972a3"
)]
#[case::with_token(
    Acs3 { token: Some("CAIS+/abc==*~tok"), ..ACS3_SCALE },
    "38119d5cbcded965547eade6c7e583cf3176034a8cd48ed665c0a663ada2e615",
    "ac58f2999fa7457d30000875fbe4866e1f28949b52d611939e13b63fc14d95be"
)]
#[case::form_body(
    Acs3 {
        action: "DescribeScalingInstances", nonce: SECOND, query: "",
        body: "ScalingGroupId=asg-bp18p2yfxow2dloq%2A%2A%2A%2A&PageNumber=1&PageSize=50", ..ACS3_SCALE
    },
    "297e403fb65d9b5cb27d33e90b966bd563407e7e726bc54a23662314282d8ccf",
    "0d2d265d3275e3ad9fc8c3d1b06f65684f6001a8c928679a0fb65275dd88cf6c"
)]
#[case::vendor(
    Acs3 {
        host: "ecs.cn-shanghai.aliyuncs.com", action: "RunInstances", version: "2014-05-26",
        date: "2023-10-26T10:22:32Z", nonce: "3156853299f313e23d1673dc12e1703d", token: None, body: "",
        query: "ImageId=win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd&RegionId=cn-shanghai",
        secret: "YourAccessKeySecret",
    },
    "7ea06492da5221eba5297e897ce16e55f964061054b7695beedaac1145b1e259",
    "06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"
)]
fn acs3(#[case] given: Acs3, #[case] hash: &str, #[case] signature: &str) {
    let mut request = Request::builder()
        .method("POST")
        .uri(format!("https://{}/?{}", given.host, given.query))
        .header("host", given.host)
        .header("x-acs-action", given.action)
        .header("x-acs-version", given.version)
        .header("x-acs-date", given.date)
        .header("x-acs-signature-nonce", given.nonce)
        .header("x-acs-content-sha256", sha256_hex(given.body.as_bytes()));
    if let Some(token) = given.token {
        request = request.header("x-acs-security-token", token);
    }
    if !given.body.is_empty() {
        request = request.header("content-type", "application/x-www-form-urlencoded");
    }
    let request = request.body(Bytes::from_static(given.body.as_bytes())).unwrap();
    let names: Vec<&str> = request.headers().keys().map(http::HeaderName::as_str).collect();
    let canonical = canonical_request(&Incoming::read(&request), &names.join(";"));
    assert_eq!(sha256_hex(canonical.as_bytes()), hash, "{canonical}");
    assert_eq!(v3(&canonical, given.secret).signature, signature);
}
