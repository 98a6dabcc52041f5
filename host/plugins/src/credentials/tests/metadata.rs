use super::services::{Mood, Services};
use super::sts::shown;
use crate::credentials::{KeyConfig, KeyOrigin, RamRole};

const HOST: &str = "100.100.100.200";

fn config(role: RamRole) -> KeyConfig {
    KeyConfig::new(KeyOrigin::RamRole(role))
}

fn line(method: &str, path: &str) -> String {
    format!("{method} {HOST}{path}")
}

#[tokio::test]
async fn the_role_is_asked_with_a_session_token() {
    let services = Services::new();
    services.set(|state| state.only_v2 = true);
    let key = services.broker().keys(&config(RamRole::default())).key().await.unwrap();
    assert_eq!(shown(&key), ("STS.id1".into(), "secret1".into(), Some("token1".into())));
    let roles = "/latest/meta-data/ram/security-credentials/";
    let expected = [line("PUT", "/latest/api/token"), line("GET", roles), line("GET", &format!("{roles}autoscaler"))];
    assert_eq!(services.lines(), expected);
}

#[tokio::test]
async fn a_named_role_is_not_asked_for() {
    let services = Services::new();
    let role = RamRole { name: Some("autoscaler".into()), ..RamRole::default() };
    services.broker().keys(&config(role)).key().await.unwrap();
    assert_eq!(services.lines().len(), 2);
}

#[rstest::rstest]
#[case::unknown(Mood::Says(404, String::new()))]
#[case::forbidden(Mood::Says(403, String::new()))]
#[case::silent(Mood::Down)]
#[tokio::test]
async fn a_service_without_session_tokens_is_asked_without(#[case] session: Mood) {
    let services = Services::new();
    services.set(|state| state.session = session);
    let key = services.broker().keys(&config(RamRole::default())).key().await.unwrap();
    assert_eq!(key.id, "STS.id1");
    assert!(services.asked().iter().all(|asked| !asked.headers.contains_key("x-aliyun-ecs-metadata-token")));
}

#[rstest::rstest]
#[case::insists(
    true,
    Mood::Says(404, String::new()),
    Some("autoscaler"),
    false,
    "http://100.100.100.200 refused with NoToken (HTTP 404): it gives no session token"
)]
#[case::no_role(
    false,
    Mood::Fine,
    None,
    false,
    "http://100.100.100.200 refused with NoRole (HTTP 404): this instance has no RAM role; attach one to it, or grant a key \
     in another way"
)]
#[case::token_needed(
    false,
    Mood::Says(404, String::new()),
    Some("autoscaler"),
    true,
    "http://100.100.100.200 refused with TokenNeeded (HTTP 403): it wants a session token and gives none; the answer to PUT \
     may not reach a pod that is more than one hop away"
)]
#[case::page_instead_of_role(
    false,
    Mood::Fine,
    Some("<html>"),
    false,
    "http://100.100.100.200 answers what is no credential: expected the name of a role, one line of text"
)]
#[tokio::test]
async fn failures_say_what_to_do(
    #[case] only_v2: bool,
    #[case] session: Mood,
    #[case] role: Option<&'static str>,
    #[case] service_insists: bool,
    #[case] expected: &str,
) {
    let services = Services::new();
    services.set(|state| {
        state.session = session;
        state.role = role;
        state.only_v2 = service_insists;
    });
    let role = RamRole { only_v2, ..RamRole::default() };
    let error = services.broker().keys(&config(role)).key().await.unwrap_err();
    assert_eq!(error.to_string(), expected);
}
