use super::*;
use plimsoll_guest::http::{Answer, Method, Outgoing, SendError};
use plimsoll_guest::testing::FakeCloud;
use plimsoll_guest::{CallOptions, DeleteStatus, ErrorClass, InstanceState};
use rstest::rstest;
use serde_json::{Value, json};

const NOON: u64 = 1_717_230_600_000;

/// An API over a cloud that cannot be reached, at a fixed time.
pub(crate) fn api() -> Api<FakeCloud> {
    let settings = Settings { region: "cn-hangzhou".into(), ..Settings::default() };
    Api::new(FakeCloud::default(), &settings, "plimsoll-test", Rc::new(|| NOON))
}

type Script = fn(&Outgoing) -> Result<Answer, SendError>;

fn provider(config: &str, group: &str, script: Script) -> (AliCloud<Rc<FakeCloud>>, Rc<FakeCloud>) {
    let cloud = Rc::new(FakeCloud::new(script));
    let setup = Setup { node_groups: vec![group.to_owned()], ..Setup::with_config(config) };
    (AliCloud::over(cloud.clone(), Rc::new(|| NOON), &setup).unwrap(), cloud)
}

fn pools(provider_state: &str, desired: u32) -> Answer {
    Answer::json(
        200,
        &json!({"nodepools": [{
            "nodepool_info": {"nodepool_id": "np1", "name": "workers"},
            "status": {"state": provider_state, "total_nodes": 2},
            "auto_scaling": {"enable": false},
            "scaling_group": {"desired_size": desired, "instance_types": ["ecs.g7.xlarge"], "vswitch_ids": [],
                              "system_disk_size": 120, "spot_strategy": "NoSpot"},
            "kubernetes_config": {"labels": [{"key": "team", "value": "a"}],
                                  "taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]},
        }]}),
    )
}

fn nodes() -> Answer {
    let node = |id: &str, state: &str, trouble: &str| {
        json!({"instance_id": id, "node_name": format!("cn-hangzhou.{id}"), "state": state, "error_message": trouble,
               "instance_type": "ecs.g7.xlarge", "instance_charge_type": "PostPaid",
               "creation_time": "2024-06-01T16:00:00+08:00"})
    };
    let trouble = "NodepoolScaleFailed.FailedJoinCluster: the node did not join";
    Answer::json(
        200,
        &json!({"nodes": [node("i-1", "running", ""), node("i-2", "failed", trouble)], "page": {"total_count": 2}}),
    )
}

/// A cluster with one pool of two nodes that wishes for three.
fn cluster(request: &Outgoing) -> Result<Answer, SendError> {
    let path = request.path_and_query.split('?').next().unwrap_or_default();
    Ok(match (request.method, path) {
        (Method::Get, "/clusters/c1/nodepools") => pools("active", 3),
        (Method::Get, "/clusters/c1/nodes") => nodes(),
        (Method::Put, "/clusters/c1/nodepools/np1") | (Method::Delete, "/clusters/c1/nodepools/np1/nodes") => {
            Answer::json(200, &json!({"task_id": "T-1"}))
        }
        (Method::Post, "/") => Answer::json(
            200,
            &json!({"InstanceTypes": {"InstanceType": [
                {"InstanceTypeId": "ecs.g7.xlarge", "CpuCoreCount": 4, "MemorySize": 16.0, "CpuArchitecture": "X86"}]}}),
        ),
        _ => Answer::json(404, &json!({"code": "ErrorNodePoolNotFound", "message": path})),
    })
}

const ACK: &str = r#"{"region": "cn-hangzhou", "ack": {"cluster-id": "c1"}}"#;

fn sent(cloud: &FakeCloud, method: Method) -> Vec<(String, Value)> {
    let of = |request: &Outgoing| {
        let body = request.body.as_deref().map(serde_json::from_slice);
        (request.path_and_query.clone(), body.and_then(Result::ok).unwrap_or_default())
    };
    cloud.requests().iter().filter(|request| request.method == method).map(of).collect()
}

#[test]
fn a_pool_is_read_with_its_nodes_and_their_trouble() {
    let (mut provider, _) = provider(ACK, "0:5:np1", cluster);
    let group = provider.refresh(RefreshRequest::everything()).unwrap().snapshot.unwrap().groups.remove(0);
    assert_eq!((group.target_size, group.max_size, group.name.as_str()), (3, 5, "workers"));
    let [good, bad] = &group.instances[..] else { panic!("two nodes") };
    assert_eq!(
        (good.state, good.error.is_none(), good.created_at),
        (InstanceState::Running, true, Some(1_717_228_800_000))
    );
    assert_eq!((bad.state, bad.error.as_ref().unwrap().class), (InstanceState::Failed, ErrorClass::Bootstrap));
    let template = provider.templates(vec!["np1".into()]).unwrap().remove(0).templates.remove(0);
    assert!(template.labels.iter().any(|label| label.key == "team" && label.value == "a"));
    assert_eq!((template.taints.len(), template.instance_type.as_str()), (1, "ecs.g7.xlarge"));
}

#[test]
fn a_pools_size_is_set_only_if_it_is_the_expected_one() {
    let (mut provider, cloud) = provider(ACK, "0:5:np1", cluster);
    let options = CallOptions::with_key("k");
    let call = Increase { group: "np1".into(), delta: 2, expected_target: 3, atomic: false, options: options.clone() };
    assert_eq!(provider.increase_size(call.clone()).unwrap().target_size, 5);
    let body = json!({"scaling_group": {"desired_size": 5}});
    assert_eq!(sent(&cloud, Method::Put), [("/clusters/c1/nodepools/np1".to_owned(), body)]);
    let stale = provider.increase_size(Increase { expected_target: 2, ..call.clone() }).unwrap_err();
    assert_eq!(stale.class, ErrorClass::Conflict);
    let above = provider.increase_size(Increase { delta: 3, ..call }).unwrap_err();
    assert_eq!(above.class, ErrorClass::Quota);
    let lower = |delta| Decrease { group: "np1".into(), delta, expected_target: 3, options: options.clone() };
    assert_eq!(provider.decrease_target(lower(2)).unwrap_err().code, "below-existing");
    assert_eq!(sent(&cloud, Method::Put).len(), 1, "nothing of that was sent");
    assert_eq!(provider.decrease_target(lower(1)).unwrap().target_size, 2);
}

#[test]
fn nodes_of_a_pool_go_by_name() {
    let (mut provider, cloud) = provider(ACK, "1:5:np1", cluster);
    let ids = vec!["i-1".to_owned(), "i-9".to_owned()];
    let options = CallOptions::with_key("k");
    let call = Delete { group: "np1".into(), ids, expected_target: 3, min_size: 0, force: false, options };
    let outcome = provider.delete_instances(call).unwrap();
    let statuses: Vec<_> = outcome.results.into_iter().map(|result| result.status).collect();
    assert_eq!((outcome.target_size, statuses), (2, vec![DeleteStatus::Accepted, DeleteStatus::AlreadyGone]));
    let removal = &sent(&cloud, Method::Delete)[0].0;
    assert!(removal.contains("instance_ids=%5B%22i-1%22%5D") && removal.contains("release_node=true"), "{removal}");
}

#[test]
fn a_pool_at_work_keeps_its_wish() {
    fn busy(request: &Outgoing) -> Result<Answer, SendError> {
        if request.path_and_query.ends_with("/nodepools") { Ok(pools("scaling", 3)) } else { cluster(request) }
    }
    let (mut provider, cloud) = provider(ACK, "0:5:np1", busy);
    let options = CallOptions::with_key("k");
    let call = Decrease { group: "np1".into(), delta: 1, expected_target: 3, options };
    assert_eq!(provider.decrease_target(call).unwrap_err().code, "ScalingActivityInProgress");
    assert!(sent(&cloud, Method::Put).is_empty());
}

/// What a scripted gateway answers, and what becomes of a read.
#[rstest]
#[case::html(Answer::text(502, "<html>bad gateway</html>"), ErrorClass::Transient)]
#[case::html_with_200(Answer::text(200, "<html>hello</html>"), ErrorClass::Transient)]
#[case::redirect(Answer::text(302, ""), ErrorClass::Transient)]
#[case::empty(Answer::text(200, ""), ErrorClass::Transient)]
#[case::no_list(Answer::json(200, &json!({"RequestId": "r"})), ErrorClass::Transient)]
#[case::error_with_200(Answer::json(200, &json!({"Code": "Forbidden.RAM", "Message": "no"})), ErrorClass::Auth)]
#[case::too_often(Answer::text(429, ""), ErrorClass::Throttled)]
#[case::too_often_as_503(Answer::json(503, &json!({"Code": "Throttling", "Message": "no"})), ErrorClass::Throttled)]
fn no_answer_is_never_an_empty_one(#[case] answer: Answer, #[case] class: ErrorClass) {
    plimsoll_guest::state::remove("throttled");
    let cloud = Rc::new(FakeCloud::new(move |_| Ok(answer.clone())));
    let setup = Setup { node_groups: vec!["0:5:asg-1".into()], ..Setup::with_config(r#"{"region": "cn-hangzhou"}"#) };
    let mut provider = AliCloud::over(cloud, Rc::new(|| NOON), &setup).unwrap();
    match provider.refresh(RefreshRequest::everything()) {
        Err(error) => assert_eq!(error.class, class, "{error:?}"),
        Ok(answer) => panic!("{answer:?}"),
    }
}
