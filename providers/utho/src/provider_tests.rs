use plimsoll_guest::http::{Answer, Outgoing, SendError};
use plimsoll_guest::testing::FakeCloud;
use plimsoll_guest::{CallOptions, DeleteStatus, ErrorClass, state};
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

type Cloud = Rc<FakeCloud>;

fn reaching(config: Value, answer: impl Fn(&Outgoing) -> Result<Answer, SendError> + 'static) -> (Utho<Cloud>, Cloud) {
    state::remove("cluster/1111");
    let cloud = Rc::new(FakeCloud::new(answer));
    (Utho::over(cloud.clone(), &Setup::with_config(config.to_string())).unwrap(), cloud)
}

/// A cloud with one pool, which takes every write.
fn with_pool(config: Value, pool: Value) -> (Utho<Cloud>, Cloud) {
    let body = json!({
        "info": {"cluster": {"id": "1111", "dcslug": "z"}}, "nodepools": {"p/1": pool}, "status": "success",
    });
    reaching(config, move |request| match request.method.as_str() {
        "GET" => Ok(Answer::json(200, &body)),
        _ => Ok(Answer::json(200, &json!({"status": "success", "message": "done", "id": "1111"}))),
    })
}

fn plain() -> Value {
    json!({"cluster_id": "1111"})
}

fn pool() -> Value {
    let workers = json!([{"cloudid": "a/../b", "status": "Active"}, {"cloudid": "2", "status": "Active"}]);
    json!({"planid": "10045", "label": "blue", "count": "2", "auto_scale": "1", "min_size": 1, "max_size": "5",
        "workers": workers})
}

fn increase(expected_target: u32) -> Increase {
    Increase { group: "p/1".into(), delta: 1, expected_target, atomic: false, options: CallOptions::with_key("k") }
}

fn delete(id: &str) -> Delete {
    let options = CallOptions::with_key("k");
    let (group, ids) = ("p/1".into(), vec![id.to_owned()]);
    Delete { group, ids, expected_target: 2, min_size: 1, force: false, options }
}

fn written(cloud: &Cloud) -> Vec<Outgoing> {
    cloud.requests().into_iter().filter(|request| request.method.as_str() != "GET").collect()
}

#[test]
fn requests_are_as_documented_and_ids_stay_one_segment() {
    let (mut provider, cloud) = with_pool(plain(), pool());
    provider.increase_size(increase(2)).unwrap();
    provider.delete_instances(delete("a/../b")).unwrap();
    let [update, removal] = &written(&cloud)[..] else { panic!("two writes") };
    assert_eq!(update.path_and_query, "/v2/kubernetes/1111/nodepool/p%2F1/update");
    assert_eq!(update.body.as_deref(), Some(&br#"{"count":"3"}"#[..]));
    assert_eq!(removal.path_and_query, "/v2/kubernetes/1111/nodepool/p%2F1/a%2F..%2Fb/delete");
    assert_eq!(removal.body, None);
    for (name, value) in [
        ("x-autoscaler-credential", "api"),
        ("accept", "application/json"),
        ("accept-encoding", "identity"),
        ("user-agent", "plimsoll-test"),
    ] {
        assert!(cloud.requests().iter().all(|request| request.header(name) == Some(value)), "{name}");
    }
}

#[rstest]
#[case::with_label(pool(), r#"{"label":"blue","size":"10045","count":"3"}"#)]
#[case::without_label(json!({"size": 10045, "count": 2, "auto_scale": true, "max_size": 5, "workers": []}),
    r#"{"label":"p/1","size":"10045","count":"3"}"#)]
fn the_documented_update_names_the_pools_own_label_and_plan(#[case] pool: Value, #[case] body: &str) {
    let config = json!({"cluster_id": "1111", "update_payload": "documented"});
    let (mut provider, cloud) = with_pool(config, pool);
    provider.increase_size(increase(2)).unwrap();
    assert_eq!(written(&cloud)[0].body.as_deref(), Some(body.as_bytes()));
}

#[test]
fn a_plan_that_is_not_known_is_not_sent() {
    let config = json!({"cluster_id": "1111", "update_payload": "documented"});
    let pool = json!({"count": 2, "auto_scale": true, "max_size": 5, "workers": []});
    let (mut provider, cloud) = with_pool(config, pool);
    assert_eq!(provider.increase_size(increase(2)).unwrap_err().code, "no-plan");
    assert!(written(&cloud).is_empty());
}

#[rstest]
#[case::missing(json!(null))]
#[case::empty(json!(""))]
#[case::word(json!("two"))]
#[case::negative(json!(-2))]
fn nothing_is_written_without_a_readable_count(#[case] count: Value) {
    let mut broken = pool();
    broken["count"] = count;
    let (mut provider, cloud) = with_pool(plain(), broken);
    let snapshot = provider.refresh(RefreshRequest::everything()).unwrap().snapshot.unwrap();
    let group = &snapshot.groups[0];
    assert_eq!(group.error.as_ref().unwrap().code, "unreadable-count");
    assert_eq!((group.target_size, group.instances.len()), (2, 2));
    for error in [provider.increase_size(increase(2)).unwrap_err(), provider.delete_instances(delete("2")).unwrap_err()]
    {
        assert_eq!((error.class, error.code.as_str()), (ErrorClass::Transient, "unreadable-count"));
    }
    assert!(written(&cloud).is_empty());
}

#[test]
fn machines_above_the_count_are_never_asked_away() {
    let mut odd = pool();
    odd["count"] = json!(1);
    let (mut provider, cloud) = with_pool(plain(), odd);
    assert_eq!(provider.increase_size(increase(1)).unwrap_err().code, "stale-target");
    provider.increase_size(increase(2)).unwrap();
    assert_eq!(written(&cloud)[0].body.as_deref(), Some(&br#"{"count":"3"}"#[..]));
}

#[rstest]
#[case::another_cluster(json!({"info": {"cluster": {"id": "2222"}}, "nodepools": {}}))]
#[case::no_cluster(json!({"info": {"cluster": {"id": "0"}}, "nodepools": {}}))]
#[case::no_info(json!({"nodepools": {}}))]
#[case::no_pools(json!({"info": {"cluster": {"id": "1111"}}}))]
#[case::null_pools(json!({"info": {"cluster": {"id": "1111"}}, "nodepools": null}))]
fn an_answer_that_does_not_name_cluster_and_pools_says_nothing(#[case] body: Value) {
    let (mut provider, _) = reaching(plain(), move |_| Ok(Answer::json(200, &body)));
    let error = provider.refresh(RefreshRequest::everything()).unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Transient, "undecodable"));
}

#[test]
fn odd_pools_and_workers_are_reported() {
    let mut odd = pool();
    odd["workers"] = json!([{"cloudid": "1", "status": "Hibernating"}, {"cloudid": ""}]);
    let (mut provider, _) = with_pool(plain(), odd);
    let answer = provider.refresh(RefreshRequest::everything()).unwrap();
    let codes: Vec<_> = answer.diagnostics.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["unknown-state", "nameless-workers"]);
    assert!(!answer.snapshot.unwrap().groups[0].instances_complete);
    let unlisted = provider.delete_instances(delete("7")).unwrap();
    assert!(matches!(&unlisted.results[0].status, DeleteStatus::Failed(error) if error.code == "unreadable-workers"));

    let (mut provider, _) = with_pool(plain(), json!({"count": 1, "auto_scale": "perhaps"}));
    let answer = provider.refresh(RefreshRequest::everything()).unwrap();
    assert_eq!(answer.diagnostics[0].code, "unreadable-auto-scale");
    assert!(answer.snapshot.unwrap().groups.is_empty());

    let (mut provider, _) = with_pool(plain(), json!({"count": 1, "auto_scale": true, "workers": []}));
    let found = provider.self_test();
    assert_eq!(found.iter().map(|finding| finding.code.as_str()).collect::<Vec<_>>(), ["no-limits"]);
}

#[test]
fn the_manifest_wishes_for_one_host_and_one_credential() {
    let manifest = <Utho<Cloud> as Provider>::MANIFEST.to_json();
    for part in [
        r#""hosts":["https://api.utho.com"]"#,
        r#""credentials":[{"slot":"api","kind":"bearer","hosts":["api.utho.com"]}]"#,
    ] {
        assert!(manifest.contains(part), "{manifest}");
    }
}

#[test]
fn what_it_can_do_is_said() {
    let (provider, _) = with_pool(plain(), pool());
    let capabilities = provider.capabilities();
    let features = capabilities.features;
    assert!(features.contains(Features::INCREASE | Features::DELETE | Features::NEEDS_NODE_HINTS));
    let never = Features::DECREASE_TARGET
        | Features::SCALE_TO_ZERO
        | Features::ATOMIC_INCREASE
        | Features::IDEMPOTENT_WRITES
        | Features::CONDITIONAL_SIZE;
    assert!(!features.intersects(never));
    assert_eq!(capabilities.wanted_node_labels, ["node_id", "cluster_id"]);
}
