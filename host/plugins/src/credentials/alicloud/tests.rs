use std::time::Duration;

use super::call::Call;
use super::*;
use crate::credentials::Life;

const SECRET: &str = "testsecret";
const TOKEN: &str = "CAIS+/abc==*~tok";
const GROUP: &str = "asg-bp18p2yfxow2dloq%2A%2A%2A%2A";

fn key(token: Option<&str>) -> Key {
    let token = token.map(|token| token.to_owned().into());
    Key { id: "testid".into(), secret: SECRET.to_owned().into(), token, life: None }
}

fn stamp(nonce: &str) -> Stamp {
    Stamp { date: date(Duration::from_secs(1_717_230_600)).unwrap(), nonce: nonce.into() }
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Parameters that the Go autoscaler sends, empty `SignatureType` included.
fn common<'a>(nonce: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(String, String)> {
    let mut all = vec![
        ("AccessKeyId", "testid"),
        ("Format", "JSON"),
        ("RegionId", "cn-hangzhou"),
        ("SignatureMethod", "HMAC-SHA1"),
        ("SignatureNonce", nonce),
        ("SignatureType", ""),
        ("SignatureVersion", "1.0"),
        ("Timestamp", "2024-06-01T08:30:00Z"),
    ];
    all.extend(more);
    owned(&all)
}

const LISTING: [(&str, &str); 5] = [
    ("Action", "DescribeScalingInstances"),
    ("PageNumber", "1"),
    ("PageSize", "10"),
    ("ScalingGroupId", "asg-bp18p2yfxow2dloq****"),
    ("Version", "2014-08-28"),
];

#[rstest::rstest]
#[case::scale("POST", common("0123456789abcdef0123456789abcdef", &[
    ("Action", "ScaleWithAdjustment"), ("AdjustmentType", "TotalCapacity"), ("AdjustmentValue", "5"),
    ("ActivityMetadata", "{\"cluster-autoscaler/alicloud/managed\":\"true\"}"),
    ("ScalingGroupId", "asg-bp18p2yfxow2dloq****"), ("SyncActivity", "true"), ("Version", "2014-08-28"),
]), "1ipL3POPayNxFjnGEMQn5nrOWWA=")]
#[case::list("POST", common("fedcba9876543210fedcba9876543210", &LISTING), "97NtNYwVjWPz6avVPhx7c+ib/PE=")]
#[case::list_by_get("GET", common("fedcba9876543210fedcba9876543210", &LISTING), "vuxbCxyXbHVFYxvmzFoKD/x2DxA=")]
#[case::with_token(
    "POST",
    [common("fedcba9876543210fedcba9876543210", &LISTING), owned(&[("SecurityToken", TOKEN)])].concat(),
    "JTlW33Lx3DgNXRCeWsGWPpynMU8="
)]
#[case::endpoints("GET", common("00112233445566778899aabbccddeeff", &[
    ("Action", "DescribeEndpoints"), ("Id", "cn-hangzhou"), ("ServiceCode", "ess"), ("Type", "openAPI"),
    ("Version", "2015-06-12"),
]), "jhcM/bQYRNkllmJHPnb1JGZ/LDM=")]
#[case::encoding(
    "GET",
    owned(&[("A", "a b*c~d+e/f=g&h"), ("B", "中文"), ("C", ""), ("a", "lower")]),
    "C/WJ+4MBXgZiDr0VBGqymdJDXtk="
)]
#[case::published("GET", owned(&[
    ("AccessKeyId", "testid"), ("Action", "DescribeRegions"), ("Format", "XML"), ("SignatureMethod", "HMAC-SHA1"),
    ("SignatureNonce", "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf"), ("SignatureVersion", "1.0"),
    ("Timestamp", "2016-02-23T12:46:24Z"), ("Version", "2014-05-26"),
]), "OLeaidS1JvxuMvnyHOwuJ+uX5qY=")]
#[case::published_inputs("GET", owned(&[
    ("AccessKeyId", "testid"), ("Action", "DescribeDedicatedHosts"), ("Format", "JSON"),
    ("SignatureMethod", "HMAC-SHA1"), ("SignatureNonce", "edb2b34af0af9a6d14deaf7c1a5315eb"),
    ("SignatureVersion", "1.0"), ("Timestamp", "2023-03-13T08:34:30Z"), ("Version", "2014-05-26"),
]), "4nZtwnVc01JXU6YAbObyIuSjetI=")]
fn signatures_v1(#[case] method: &str, #[case] parameters: Vec<(String, String)>, #[case] expected: &str) {
    assert_eq!(v1::signature(method, &parameters, SECRET).unwrap(), expected);
}

fn request(uri: &str, action: &str, version: &str) -> Request<Bytes> {
    Request::post(uri).header("x-acs-action", action).header("x-acs-version", version).body(Bytes::new()).unwrap()
}

#[test]
fn a_request_v1_carries_everything_in_its_query() {
    let uri = format!(
        "https://ess.aliyuncs.com/?ClientToken=ca-7f3e&DecreaseDesiredCapacity=true&IgnoreInvalidInstance=true\
         &InstanceId.1=i-bp1aaaaaaaaaaaaaaaaa&InstanceId.2=i-bp1bbbbbbbbbbbbbbbbb&InstanceId.10=i-bp1cccccccccccccccccc\
         &RegionId=cn-hangzhou&RemovePolicy=release&ScalingGroupId={GROUP}"
    );
    let mut request = request(&uri, "RemoveInstances", "2014-08-28");
    let call = Call::take(&mut request).unwrap();
    let stamp = stamp("a1b2c3d4e5f60718293a4b5c6d7e8f90");
    sign(Generation::V1, &mut request, call, &key(None), &stamp).unwrap();
    let expected = "AccessKeyId=testid&Action=RemoveInstances&ClientToken=ca-7f3e&DecreaseDesiredCapacity=true\
        &Format=JSON&IgnoreInvalidInstance=true&InstanceId.1=i-bp1aaaaaaaaaaaaaaaaa\
        &InstanceId.10=i-bp1cccccccccccccccccc&InstanceId.2=i-bp1bbbbbbbbbbbbbbbbb&RegionId=cn-hangzhou\
        &RemovePolicy=release&ScalingGroupId=asg-bp18p2yfxow2dloq%2A%2A%2A%2A&SignatureMethod=HMAC-SHA1\
        &SignatureNonce=a1b2c3d4e5f60718293a4b5c6d7e8f90&SignatureVersion=1.0&Timestamp=2024-06-01T08%3A30%3A00Z\
        &Version=2014-08-28&Signature=3GUohCb53LswpCAIGK7ibvOcROo%3D";
    assert_eq!(request.uri().query(), Some(expected));
    assert!(request.headers().is_empty(), "{:?}", request.headers());
}

#[test]
fn a_form_is_signed_with_v1_and_stays_in_the_body() {
    let mut request = request("https://ess.aliyuncs.com/?Format=XML", "DescribeScalingGroups", "2014-08-28");
    *request.body_mut() = Bytes::from_static(b"PageSize=50");
    let call = Call::take(&mut request).unwrap();
    sign(Generation::V1, &mut request, call, &key(Some(TOKEN)), &stamp("0")).unwrap();
    let mut sent: Vec<_> =
        url::form_urlencoded::parse(request.uri().query().unwrap().as_bytes()).into_owned().collect();
    let (_, signature) = sent.pop().unwrap();
    assert!(sent.contains(&("SecurityToken".into(), TOKEN.into())) && sent.contains(&("Format".into(), "XML".into())));
    assert!(!sent.iter().any(|(name, _)| name == "PageSize"));
    sent.push(("PageSize".into(), "50".into()));
    assert_eq!(v1::signature("POST", &sent, SECRET).unwrap(), signature);
    assert_eq!(request.body(), "PageSize=50");
}

const SCALE: &str = "https://ess.aliyuncs.com/?SyncActivity=true&RegionId=cn-hangzhou&AdjustmentType=TotalCapacity\
    &AdjustmentValue=5&ScalingGroupId=asg-bp18p2yfxow2dloq****\
    &ActivityMetadata=%7b%22cluster-autoscaler/alicloud/managed%22:%22true%22%7d";

#[rstest::rstest]
#[case::plain(None, "00729b562bae2d1eb900fdf20681f5bcd8e2cfed21efc5e63c28aa25585972a3", "x-acs-signature-nonce")]
#[case::temporary(
    Some(TOKEN),
    "ac58f2999fa7457d30000875fbe4866e1f28949b52d611939e13b63fc14d95be",
    "x-acs-security-token;x-acs-signature-nonce"
)]
fn a_request_v3_without_a_body(#[case] token: Option<&str>, #[case] signature: &str, #[case] names: &str) {
    let mut request = request(SCALE, "ScaleWithAdjustment", "2014-08-28");
    let call = Call::take(&mut request).unwrap();
    sign(Generation::V3, &mut request, call, &key(token), &stamp("0123456789abcdef0123456789abcdef")).unwrap();
    let expected = format!(
        "ACS3-HMAC-SHA256 Credential=testid,SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;{names};\
         x-acs-version,Signature={signature}"
    );
    assert_eq!(request.headers()["authorization"], expected);
    assert_eq!(
        request.uri().query(),
        Some(
            "ActivityMetadata=%7B%22cluster-autoscaler%2Falicloud%2Fmanaged%22%3A%22true%22%7D\
             &AdjustmentType=TotalCapacity&AdjustmentValue=5&RegionId=cn-hangzhou\
             &ScalingGroupId=asg-bp18p2yfxow2dloq%2A%2A%2A%2A&SyncActivity=true"
        )
    );
}

#[test]
fn a_request_v3_with_a_form() {
    let mut request = request("https://ess.aliyuncs.com/", "DescribeScalingInstances", "2014-08-28");
    *request.body_mut() = format!("ScalingGroupId={GROUP}&PageNumber=1&PageSize=50").into();
    let call = Call::take(&mut request).unwrap();
    sign(Generation::V3, &mut request, call, &key(None), &stamp("fedcba9876543210fedcba9876543210")).unwrap();
    let authorization = request.headers()["authorization"].to_str().unwrap();
    assert!(authorization.contains("SignedHeaders=content-type;host;x-acs-action;"), "{authorization}");
    assert!(authorization.ends_with("0d2d265d3275e3ad9fc8c3d1b06f65684f6001a8c928679a0fb65275dd88cf6c"));
    assert_eq!(
        request.headers()["x-acs-content-sha256"],
        "ecc50d02c27ef18cbfbad7ef7bdcedee5b60fa725452fed96fc839650eaf2247"
    );
}

#[test]
fn the_published_request_v3() {
    let uri = "https://ecs.cn-shanghai.aliyuncs.com/?ImageId=win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd\
        &RegionId=cn-shanghai";
    let mut request = request(uri, "RunInstances", "2014-05-26");
    let call = Call::take(&mut request).unwrap();
    let key =
        Key { id: "YourAccessKeyId".into(), secret: "YourAccessKeySecret".to_owned().into(), token: None, life: None };
    let stamp = Stamp { date: "2023-10-26T10:22:32Z".into(), nonce: "3156853299f313e23d1673dc12e1703d".into() };
    let exposed = sign(Generation::V3, &mut request, call, &key, &stamp).unwrap();
    let authorization = request.headers()["authorization"].to_str().unwrap();
    assert!(authorization.ends_with("06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"));
    let shown: Vec<_> = exposed.texts().iter().map(|text| text.expose_secret().to_owned()).collect();
    for secret in [authorization, "YourAccessKeyId", "YourAccessKeySecret"] {
        assert!(shown.iter().any(|text| text == secret), "{secret} must be taken out of responses");
    }
}

#[rstest::rstest]
#[case::example_6(
    &[("host", "ess.aliyuncs.com"), ("x-acs-action", "ScaleWithAdjustment"),
      ("x-acs-content-sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("x-acs-date", "2024-06-01T08:30:00Z"), ("x-acs-signature-nonce", "0123456789abcdef0123456789abcdef"),
      ("x-acs-version", "2014-08-28")],
    "5baffccc92eac32b35f81eb68f31cd7dbc9a71bdd7587bca5893efeeb230c9b7"
)]
#[case::with_token(
    &[("host", "ess.aliyuncs.com"), ("x-acs-action", "ScaleWithAdjustment"),
      ("x-acs-content-sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("x-acs-date", "2024-06-01T08:30:00Z"), ("x-acs-security-token", TOKEN),
      ("x-acs-signature-nonce", "0123456789abcdef0123456789abcdef"), ("x-acs-version", "2014-08-28")],
    "38119d5cbcded965547eade6c7e583cf3176034a8cd48ed665c0a663ada2e615"
)]
fn canonical_requests(#[case] headers: &[(&str, &str)], #[case] hash: &str) {
    let query = "ActivityMetadata=%7B%22cluster-autoscaler%2Falicloud%2Fmanaged%22%3A%22true%22%7D\
        &AdjustmentType=TotalCapacity&AdjustmentValue=5&RegionId=cn-hangzhou\
        &ScalingGroupId=asg-bp18p2yfxow2dloq%2A%2A%2A%2A&SyncActivity=true";
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(v3::Canonical::new("POST", "/", query, &owned(headers), empty).hash, hash);
}

#[rstest::rstest]
#[case::port("https://ess.example:8443/", "ess.example:8443")]
#[case::own_port("https://ess.example:443/", "ess.example")]
#[case::plain("http://127.0.0.1:80/", "127.0.0.1")]
fn the_host_is_signed_as_it_is_sent(#[case] uri: &str, #[case] host: &str) {
    let mut request = request(uri, "A", "1");
    let call = Call::take(&mut request).unwrap();
    sign(Generation::V3, &mut request, call, &key(None), &stamp("0")).unwrap();
    let headers = request.headers();
    let value = |name: &str| headers[name].to_str().unwrap().to_owned();
    let mut signed = owned(&[("host", host)]);
    let names = ["x-acs-action", "x-acs-content-sha256", "x-acs-date", "x-acs-signature-nonce", "x-acs-version"];
    signed.extend(names.map(|name| (name.to_owned(), value(name))));
    let expected =
        v3::Canonical::new("POST", "/", "", &signed, &value("x-acs-content-sha256")).signature(SECRET).unwrap();
    assert!(value("authorization").ends_with(&expected));
}

#[rstest::rstest]
#[case::no_action("https://a.example/", &[("x-acs-version", "1")], "", "needs the header x-acs-action once")]
#[case::no_version("https://a.example/", &[("x-acs-action", "A")], "", "needs the header x-acs-version once")]
#[case::two_actions(
    "https://a.example/", &[("x-acs-action", "A"), ("x-acs-action", "B"), ("x-acs-version", "1")], "",
    "needs the header x-acs-action once"
)]
#[case::action_with_more(
    "https://a.example/", &[("x-acs-action", "A&Action=B"), ("x-acs-version", "1")], "",
    "needs the header x-acs-action once"
)]
#[case::action_in_query(
    "https://a.example/?Action=DeleteInstance", &[("x-acs-action", "A"), ("x-acs-version", "1")], "",
    "the parameter Action must not be given; the header x-acs-action says it"
)]
#[case::encoded_action_in_query(
    "https://a.example/?%41ction=DeleteInstance", &[("x-acs-action", "A"), ("x-acs-version", "1")], "",
    "the parameter Action must not be given"
)]
#[case::action_in_form(
    "https://a.example/", &[("x-acs-action", "A"), ("x-acs-version", "1")], "x=1&Action=DeleteInstance",
    "the parameter Action must not be given"
)]
#[case::action_in_another_case(
    "https://a.example/?action=B", &[("x-acs-action", "A"), ("x-acs-version", "1")], "",
    "the parameter action must not be given"
)]
#[case::own_key(
    "https://a.example/?AccessKeyId=mine", &[("x-acs-action", "A"), ("x-acs-version", "1")], "",
    "the parameter AccessKeyId is added by the host; leave it out"
)]
#[case::own_signature(
    "https://a.example/?Signature=x", &[("x-acs-action", "A"), ("x-acs-version", "1")], "",
    "the parameter Signature is added by the host; leave it out"
)]
#[case::own_token(
    "https://a.example/", &[("x-acs-action", "A"), ("x-acs-version", "1"), ("x-acs-security-token", "t")], "",
    "the header x-acs-security-token is added by the host; leave it out"
)]
#[case::disguised_form(
    "https://a.example/", &[("x-acs-action", "A"), ("x-acs-version", "1"), ("content-type", "text/plain")],
    "Action=DeleteInstance", "a body of type \"text/plain\" cannot be signed"
)]
#[case::two_types(
    "https://a.example/",
    &[("x-acs-action", "A"), ("x-acs-version", "1"), ("content-type", "application/json"),
      ("content-type", "application/x-www-form-urlencoded")],
    "Action=DeleteInstance", "it has two content types"
)]
fn what_is_not_signed(
    #[case] uri: &str,
    #[case] headers: &[(&str, &str)],
    #[case] body: &'static str,
    #[case] expected: &str,
) {
    let mut request = Request::post(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let error = Call::take(&mut request.body(Bytes::from_static(body.as_bytes())).unwrap()).unwrap_err();
    assert!(matches!(&error, CredentialError::Request(text) if text.contains(expected)), "{error}");
}

#[test]
fn keys_show_no_secret() {
    let life = Some(Life { since: Duration::ZERO, until: Duration::from_secs(60) });
    let shown = format!("{:?}", Key { life, ..key(Some(TOKEN)) });
    assert!(!shown.contains(SECRET) && !shown.contains(TOKEN) && shown.contains("test…"), "{shown}");
}

#[test]
fn nonces_differ() {
    let (a, b) = (RandomNonces.next().unwrap(), RandomNonces.next().unwrap());
    assert_eq!((a.len(), b.len()), (32, 32));
    assert_ne!(a, b);
}
