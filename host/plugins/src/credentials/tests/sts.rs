use secrecy::ExposeSecret as _;

use super::services::{Mood, START, Services};
use crate::credentials::{AccessKey, CredentialError, Key, KeyConfig, KeyOrigin, Place, Role, Rrsa};

const ROLE: &str = "acs:ram::1234567890123456:role/autoscaler";
const PROVIDER: &str = "acs:ram::1234567890123456:oidc-provider/ack-rrsa-c0123";

pub(super) fn role() -> Role {
    Role { arn: ROLE.into(), session_name: None, duration_seconds: None, external_id: None }
}

pub(super) fn token_file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

pub(super) fn rrsa(file: &tempfile::NamedTempFile, role: Role) -> KeyConfig {
    let token_file = file.path().to_owned();
    KeyConfig::new(KeyOrigin::Rrsa(Rrsa { provider_arn: PROVIDER.into(), token_file, role }))
}

pub(super) fn shown(key: &Key) -> (String, String, Option<String>) {
    let token = key.token.as_ref().map(|token| token.expose_secret().to_owned());
    (key.id.clone(), key.secret.expose_secret().to_owned(), token)
}

#[tokio::test]
async fn a_service_account_token_becomes_a_key() {
    let services = Services::new();
    let file = token_file("eyJhbGciOiJSUzI1NiJ9\n");
    let role = Role { session_name: Some("ca".into()), duration_seconds: Some(900), ..role() };
    let key = services.broker().keys(&rrsa(&file, role)).key().await.unwrap();
    assert_eq!(shown(&key), ("STS.id1".into(), "secret1".into(), Some("token1".into())));
    let asked = &services.asked()[0];
    assert_eq!(asked.line, "POST sts.aliyuncs.com/");
    let query: Vec<_> = asked.query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        query,
        [
            ("Action", "AssumeRoleWithOIDC"),
            ("Format", "JSON"),
            ("RoleSessionName", "ca"),
            ("SignatureNonce", "00000000000000000000000000000000"),
            ("Timestamp", "2024-06-01T08:30:00Z"),
            ("Version", "2015-04-01"),
        ]
    );
    let form: Vec<_> = asked.form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        form,
        [
            ("DurationSeconds", "900"),
            ("OIDCProviderArn", PROVIDER),
            ("OIDCToken", "eyJhbGciOiJSUzI1NiJ9"),
            ("RoleArn", ROLE),
        ]
    );
    assert!(!asked.headers.contains_key("authorization"));
}

#[tokio::test]
async fn without_a_session_name_the_time_makes_one_and_a_rotated_token_is_read_anew() {
    let services = Services::new();
    let file = token_file("first");
    let keys = services.broker().keys(&rrsa(&file, role()));
    keys.key().await.unwrap();
    std::fs::write(file.path(), "second").unwrap();
    services.advance(3600);
    keys.key().await.unwrap();
    let asked = services.asked();
    assert_eq!(asked[0].query["RoleSessionName"], format!("cluster-autoscaler-{START}"));
    assert_eq!([&asked[0].form["OIDCToken"], &asked[1].form["OIDCToken"]], ["first", "second"]);
}

#[rstest::rstest]
#[case::empty("", "is empty or has characters that no header may have")]
#[case::blank(" \n", "is empty or has characters that no header may have")]
#[tokio::test]
async fn an_empty_token_is_not_sent(#[case] text: &str, #[case] expected: &str) {
    let services = Services::new();
    let file = token_file(text);
    let error = services.broker().keys(&rrsa(&file, role())).key().await.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(services.asked().is_empty());
}

#[rstest::rstest]
#[case::audience(
    Mood::Says(401, r#"{"Code":"AuthenticationFail.OIDCToken.AudienceNotMatch","Message":"no: eyJtoken","RequestId":"r"}"#.into()),
    "https://sts.aliyuncs.com refused with AuthenticationFail.OIDCToken.AudienceNotMatch (HTTP 401): no: …; the projected \
     service account token needs the audience sts.aliyuncs.com"
)]
#[case::page(
    Mood::Says(502, "<html>\nbusy".into()),
    "https://sts.aliyuncs.com refused with no code (HTTP 502): <html>\\nbusy"
)]
#[case::down(Mood::Down, "https://sts.aliyuncs.com does not answer: the connection was refused")]
#[case::rubbish(
    Mood::Says(200, "{}".into()),
    "https://sts.aliyuncs.com answers what is no credential: expected JSON with Credentials; line 1, column 2"
)]
#[case::half(
    Mood::Says(200, r#"{"Credentials":{"AccessKeyId":"a","AccessKeySecret":"b","SecurityToken":"","Expiration":"2024-06-01T09:30:00Z"}}"#.into()),
    "https://sts.aliyuncs.com answers what is no credential: its key, secret or token is empty"
)]
#[case::no_time(
    Mood::Says(200, r#"{"Credentials":{"AccessKeyId":"a","AccessKeySecret":"b","SecurityToken":"c","Expiration":"soon"}}"#.into()),
    "https://sts.aliyuncs.com answers what is no credential: its expiration is \"soon\"; expected a time such as \
     2024-06-01T09:30:00Z"
)]
#[case::stale(
    Mood::Says(200, r#"{"Credentials":{"AccessKeyId":"a","AccessKeySecret":"b","SecurityToken":"c","Expiration":"2024-06-01T08:00:00Z"}}"#.into()),
    "https://sts.aliyuncs.com gave a credential that expired at 2024-06-01T08:00:00Z, and it is 2024-06-01T08:30:00Z; is \
     the clock of this machine right?"
)]
#[tokio::test]
async fn failures_say_what_to_do(#[case] mood: Mood, #[case] expected: &str) {
    let services = Services::new();
    services.set(|state| state.sts = mood);
    let file = token_file("eyJtoken");
    let error = services.broker().keys(&rrsa(&file, role())).key().await.unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_key_assumes_a_role_with_a_signed_call() {
    let services = Services::new();
    services.environment.set("ID", "testid");
    services.environment.set("SECRET", "testsecret");
    let variable = |name: &str| Place::Variable(name.into());
    let access = AccessKey { id: variable("ID"), secret: variable("SECRET"), token: None };
    let mut config = KeyConfig::new(KeyOrigin::AccessKey(access));
    config.assume = Some(Role { external_id: Some("x".into()), ..role() });
    config.sts = "https://sts-vpc.cn-hangzhou.aliyuncs.com".into();
    let key = services.broker().keys(&config).key().await.unwrap();
    assert_eq!(key.id, "STS.id1");
    let asked = &services.asked()[0];
    assert_eq!(asked.line, "POST sts-vpc.cn-hangzhou.aliyuncs.com/");
    assert_eq!((asked.query["RoleArn"].as_str(), asked.query["ExternalId"].as_str()), (ROLE, "x"));
    assert_eq!(asked.headers["x-acs-action"], "AssumeRole");
    let authorization = asked.headers["authorization"].to_str().unwrap();
    assert!(
        authorization.starts_with("ACS3-HMAC-SHA256 Credential=testid,SignedHeaders=host;x-acs-"),
        "{authorization}"
    );
}

#[tokio::test]
async fn a_chain_starts_with_the_service_account() {
    let services = Services::new();
    let file = token_file("t");
    let mut config = rrsa(&file, role());
    config.assume = Some(Role { arn: "acs:ram::2:role/other".into(), ..role() });
    let key = services.broker().keys(&config).key().await.unwrap();
    assert_eq!(shown(&key).0, "STS.id2");
    let asked = services.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1].headers["x-acs-security-token"], "token1");
}

#[tokio::test]
async fn a_pair_of_files_follows_a_swapped_secret_volume() {
    // As the kubelet does it: files are links through `..data`, which is swapped at once.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for generation in ["1", "2"] {
        std::fs::create_dir(at(generation)).unwrap();
        std::fs::write(at(generation).join("access-key-id"), format!("id{generation}\n")).unwrap();
        std::fs::write(at(generation).join("access-key-secret"), format!("secret{generation}\n")).unwrap();
    }
    let point = |generation: &str| {
        std::os::unix::fs::symlink(generation, at("..tmp")).unwrap();
        std::fs::rename(at("..tmp"), at("..data")).unwrap();
    };
    point("1");
    for name in ["access-key-id", "access-key-secret"] {
        std::os::unix::fs::symlink(format!("..data/{name}"), at(name)).unwrap();
    }
    let file = |name: &str| Place::File(at(name));
    let access =
        AccessKey { id: file("access-key-id"), secret: file("access-key-secret"), token: Some(file("security-token")) };
    let keys = Services::new().broker().keys(&KeyConfig::new(KeyOrigin::AccessKey(access)));
    assert_eq!(shown(&keys.key().await.unwrap()), ("id1".into(), "secret1".into(), None));
    point("2");
    assert_eq!(shown(&keys.key().await.unwrap()), ("id2".into(), "secret2".into(), None));
    std::fs::remove_file(at("..data")).unwrap();
    assert!(matches!(keys.key().await, Err(CredentialError::Unreadable { .. })));
}
