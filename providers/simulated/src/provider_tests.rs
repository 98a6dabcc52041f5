use std::rc::Rc;

use plimsoll_guest::http::{Answer, Outgoing, SendError};
use plimsoll_guest::testing::FakeCloud;
use plimsoll_guest::{
    CallOptions, Deletability, DeleteResult, DeleteStatus, ErrorClass, ErrorScope, InstanceState, KeyValue, NodeMatch,
};
use rstest::rstest;
use serde::Serialize;

use super::*;
use crate::wire::{Class, Failure, Scope};

type Cloud = Rc<FakeCloud>;

fn reaching(answer: impl Fn(&Outgoing) -> Result<Answer, SendError> + 'static) -> (Simulated<Cloud>, Cloud) {
    let cloud = Rc::new(FakeCloud::new(answer));
    (Simulated::over(cloud.clone(), &Setup::with_config("{}")).unwrap(), cloud)
}

fn answering(status: u16, answer: &impl Serialize) -> (Simulated<Cloud>, Cloud) {
    let answer = Answer::json(status, answer);
    reaching(move |_| Ok(answer.clone()))
}

fn refusing(failure: &Failure) -> (Simulated<Cloud>, Cloud) {
    answering(failure.status(), failure)
}

/// What the cloud was asked, read as the cloud reads it.
fn asked(cloud: &Cloud) -> Vec<Call> {
    let read = |request: &Outgoing| {
        let body = request.body.as_deref().unwrap_or_default();
        Call::parse(request.method.as_str(), &request.path_and_query, body).unwrap()
    };
    cloud.requests().iter().map(read).collect()
}

fn options() -> CallOptions {
    CallOptions { reason: "58 pods wait".into(), ..CallOptions::with_key("intent-7") }
}

fn increase() -> Increase {
    Increase { group: "a/b".into(), delta: 3, expected_target: 12, atomic: true, options: options() }
}

fn decrease() -> Decrease {
    Decrease { group: "a".into(), delta: 2, expected_target: 12, options: CallOptions { dry_run: true, ..options() } }
}

fn delete(ids: &[&str]) -> Delete {
    let ids = ids.iter().map(|&id| id.to_owned()).collect();
    Delete { group: "a".into(), ids, expected_target: 12, min_size: 1, force: true, options: options() }
}

#[test]
fn settings_have_defaults_and_reject_strangers() {
    let none = Setup { config: None, ..Setup::with_config("") };
    assert_eq!(Simulated::over(Cloud::default(), &none).unwrap().settings.endpoint, wire::ENDPOINT);

    let config =
        r#"{"endpoint": "https://other.example", "provider-id-prefixes": ["sim://"], "accelerator-label": "gpu"}"#;
    let capabilities = Simulated::over(Cloud::default(), &Setup::with_config(config)).unwrap().capabilities();
    assert_eq!(capabilities.provider_id_prefixes, ["sim://"]);
    assert_eq!(capabilities.accelerator_label.as_deref(), Some("gpu"));

    for config in [r#"{"endpont": "https://other.example"}"#, r#"{"endpoint": "other.example"}"#, "endpoint: x"] {
        let error = Simulated::over(Cloud::default(), &Setup::with_config(config)).err().unwrap();
        assert_eq!(error.class, ErrorClass::Config, "{config}");
    }
}

#[test]
fn every_call_is_read_by_the_cloud_as_it_was_meant() {
    let (mut provider, cloud) = answering(200, &serde_json::json!({}));
    // The answers do not fit most calls; only what was asked matters here.
    provider.self_test();
    let _ = provider.refresh(RefreshRequest {
        previous_revision: Some("r1".into()),
        only_groups: vec!["a".into()],
        ..RefreshRequest::everything()
    });
    let _ = provider.templates(vec!["a".into()]);
    let _ = provider.prices();
    let _ = provider.increase_size(increase());
    let _ = provider.decrease_target(decrease());
    let _ = provider.delete_instances(delete(&["m1"]));

    let (key, reason) = (String::from("intent-7"), String::from("58 pods wait"));
    let expected = [
        Call::Health,
        Call::State(wire::StateQuery { revision: Some("r1".into()), groups: vec!["a".into()] }),
        Call::Templates(wire::TemplatesQuery { groups: vec!["a".into()] }),
        Call::Prices,
        Call::Increase(
            "a/b".into(),
            wire::IncreaseOrder {
                key: key.clone(),
                delta: 3,
                expected_target: 12,
                atomic: true,
                dry_run: false,
                reason: reason.clone(),
            },
        ),
        Call::DecreaseTarget(
            "a".into(),
            wire::DecreaseOrder {
                key: key.clone(),
                delta: 2,
                expected_target: 12,
                dry_run: true,
                reason: reason.clone(),
            },
        ),
        Call::DeleteInstances(
            "a".into(),
            wire::DeleteOrder {
                key,
                ids: vec!["m1".into()],
                expected_target: 12,
                min_size: 1,
                force: true,
                dry_run: false,
                reason,
            },
        ),
    ];
    assert_eq!(asked(&cloud), expected);
    assert!(cloud.requests().iter().all(|request| request.authority == "sim.plimsoll.internal"));
    assert!(cloud.requests().iter().all(|request| request.header("user-agent") == Some("plimsoll-test")));
}

#[test]
fn a_state_becomes_a_snapshot() {
    let state = wire::State {
        revision: "r2".into(),
        observed_at_ms: 5000,
        next_refresh_ms: Some(1000),
        groups: Some(vec![wire::Group {
            id: "workers".into(),
            min: 1,
            max: 9,
            target: 3,
            status: wire::GroupStatus::Suspended,
            template_version: "t1".into(),
            template_choice: wire::TemplateChoice::OnePerZone,
            options: wire::GroupOptions {
                unneeded_ms: Some(60_000),
                priority: Some(7),
                attributes: [("team".to_owned(), "ml".to_owned())].into(),
                ..Default::default()
            },
            instances: vec![
                wire::Instance {
                    id: "m1".into(),
                    state: wire::InstanceState::Running,
                    provider_id: Some("sim://m1".into()),
                    node_name: Some("n1".into()),
                    created_at_ms: Some(4000),
                    zone: Some("z".into()),
                    instance_type: Some("c4".into()),
                    spot: true,
                    protected: Some("prepaid".into()),
                    ..Default::default()
                },
                wire::Instance {
                    id: "m2".into(),
                    state: wire::InstanceState::Creating,
                    error: Some(
                        Failure::new(Class::OutOfResources, "stock-out", "none left").about(Scope::Zone("z".into())),
                    ),
                    placeholder: true,
                    ..Default::default()
                },
            ],
            activities: vec![wire::Activity {
                id: "act-1".into(),
                state: wire::ActivityState::Partial,
                started_at_ms: Some(4500),
                key: Some("intent-7".into()),
            }],
            failures: vec![wire::ScaleFailure {
                id: "f1".into(),
                at_ms: 4600,
                missing: 2,
                error: Failure::new(Class::Quota, "cpus", "no more"),
                ..Default::default()
            }],
            ..Default::default()
        }]),
    };
    let (mut provider, _) = answering(200, &state);
    let answer = provider.refresh(RefreshRequest::everything()).unwrap();
    assert_eq!((answer.revision.as_str(), answer.observed_at, answer.next_refresh_ms), ("r2", 5000, Some(1000)));

    let snapshot = answer.snapshot.unwrap();
    assert!(snapshot.complete);
    let [group] = &snapshot.groups[..] else { panic!("one group") };
    assert_eq!((group.id.as_str(), group.name.as_str(), group.observed_at), ("workers", "workers", 5000));
    assert_eq!((group.min_size, group.max_size, group.target_size), (1, 9, 3));
    assert_eq!(group.status, plimsoll_guest::GroupStatus::Suspended);
    assert_eq!(group.template_choice, plimsoll_guest::TemplateChoice::OnePerZone);
    assert!(group.instances_complete);
    assert_eq!((group.options.unneeded_ms, group.options.priority), (Some(60_000), Some(7)));
    assert_eq!(group.options.attributes, [KeyValue::new("team", "ml")]);
    assert_eq!(group.activities[0].idempotency_key.as_deref(), Some("intent-7"));
    assert_eq!((group.failures[0].missing, group.failures[0].error.class), (2, ErrorClass::Quota));

    let [running, late] = &group.instances[..] else { panic!("two machines") };
    assert_eq!(running.matches, [NodeMatch::ProviderId("sim://m1".into()), NodeMatch::NodeName("n1".into())]);
    assert_eq!((running.state, running.created_at, running.spot), (InstanceState::Running, Some(4000), true));
    assert_eq!(running.deletable, Deletability::No("prepaid".into()));
    assert_eq!((late.state, late.placeholder, &late.deletable), (InstanceState::Creating, true, &Deletability::Yes));
    let error = late.error.as_ref().unwrap();
    assert_eq!((error.class, &error.scope), (ErrorClass::OutOfResources, &ErrorScope::Zone("z".into())));
}

#[test]
fn an_unchanged_state_has_no_snapshot_and_a_part_is_not_complete() {
    let state = wire::State { revision: "r1".into(), observed_at_ms: 1, ..Default::default() };
    let (mut provider, _) = answering(200, &state);
    assert_eq!(provider.refresh(RefreshRequest::everything()).unwrap().snapshot, None);

    let (mut provider, _) = answering(200, &wire::State { groups: Some(vec![]), ..state });
    let part = RefreshRequest { only_groups: vec!["a".into()], ..RefreshRequest::everything() };
    assert!(!provider.refresh(part).unwrap().snapshot.unwrap().complete);
}

#[test]
fn an_unknown_machine_state_is_unknown_and_not_an_error() {
    let (mut provider, _) = reaching(|_| {
        let group = r#"{"id":"a","min":0,"max":1,"target":1,"instances":[{"id":"m","state":"hibernating"}]}"#;
        Ok(Answer::text(200, format!(r#"{{"revision":"r","observed-at-ms":1,"groups":[{group}]}}"#)))
    });
    let snapshot = provider.refresh(RefreshRequest::everything()).unwrap().snapshot.unwrap();
    assert_eq!(snapshot.groups[0].instances[0].state, InstanceState::Unknown);
}

#[test]
fn every_group_asked_for_gets_an_entry() {
    let template = wire::Template {
        key: "k".into(),
        instance_type: "c4".into(),
        capacity: [("cpu".to_owned(), "4".to_owned())].into(),
        taints: vec![wire::Taint { key: "team".into(), value: "ml".into(), effect: wire::TaintEffect::NoExecute }],
        accelerator: Some(wire::Accelerator {
            model: "l4".into(),
            resource_name: "nvidia.com/gpu".into(),
            count: 1,
            ..Default::default()
        }),
        ..Default::default()
    };
    let told = |group: &str, templates, error| wire::GroupTemplates {
        group: group.into(),
        version: "t".into(),
        templates,
        error,
    };
    let broken = Failure::new(Class::Config, "no-image", "the image is gone");
    let (mut provider, _) = answering(
        200,
        &wire::Templates {
            groups: vec![
                told("stranger", vec![], None),
                told("a", vec![template], None),
                told("b", vec![], Some(broken)),
            ],
        },
    );
    let entries = provider.templates(["a", "b", "c"].map(String::from).into()).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.group.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    let template = &entries[0].templates[0];
    assert_eq!((template.weight, template.arch.as_str(), template.capacity[0].amount.as_str()), (1, "amd64", "4"));
    assert_eq!(template.taints[0].effect, plimsoll_guest::TaintEffect::NoExecute);
    assert_eq!(template.accelerator.as_ref().unwrap().count, 1);
    assert_eq!(entries[1].error.as_ref().unwrap().code, "no-image");
    assert_eq!(entries[2].error.as_ref().unwrap().class, ErrorClass::NotFound);
}

#[test]
fn prices_are_passed_on() {
    let (mut provider, _) = answering(
        200,
        &wire::Prices {
            currency: "EUR".into(),
            valid_until_ms: Some(9),
            templates: vec![wire::TemplatePrice {
                group: "a".into(),
                template_key: "k".into(),
                micros_per_hour: 400_000,
            }],
            units: vec![wire::UnitPrice {
                resource_name: "cpu".into(),
                micros_per_hour: 30_000,
                selector: [("spot".to_owned(), "true".to_owned())].into(),
            }],
        },
    );
    let book = provider.prices().unwrap();
    assert_eq!((book.currency.as_str(), book.valid_until), ("EUR", Some(9)));
    assert_eq!((book.templates[0].template_key.as_str(), book.templates[0].micros_per_hour), ("k", 400_000));
    assert_eq!(book.units[0].selector, [KeyValue::new("spot", "true")]);
}

#[test]
fn a_part_that_was_accepted_is_no_error() {
    let shortfall =
        Failure::new(Class::OutOfResources, "stock-out", "one left").about(Scope::InstanceType("c4".into()));
    let answer = wire::SizeAnswer {
        target: 13,
        accepted: 1,
        activity: Some("act-2".into()),
        unconfirmed: true,
        shortfall: Some(shortfall),
    };
    let (mut provider, _) = answering(200, &answer);
    let outcome = provider.increase_size(increase()).unwrap();
    assert_eq!((outcome.target_size, outcome.accepted, outcome.confirmed), (13, 1, false));
    assert_eq!(outcome.activity.as_deref(), Some("act-2"));
    assert_eq!(outcome.shortfall.unwrap().scope, ErrorScope::InstanceType("c4".into()));
}

#[test]
fn no_more_is_accepted_than_was_asked_for() {
    let (mut provider, _) = answering(200, &wire::SizeAnswer { target: 99, accepted: 87, ..Default::default() });
    assert_eq!(provider.increase_size(increase()).unwrap().accepted, 3);
    assert_eq!(provider.decrease_target(decrease()).unwrap().accepted, 2);
}

#[test]
fn every_machine_gets_one_result_in_the_order_asked() {
    let result = |id: &str, status| wire::DeleteResult { id: id.into(), status };
    let answer = wire::DeleteAnswer {
        target: 10,
        results: vec![
            result("m4", wire::DeleteStatus::Skipped("the group is at its minimum".into())),
            result("stranger", wire::DeleteStatus::Accepted),
            result("m3", wire::DeleteStatus::Failed(Failure::new(Class::Config, "protected", "prepaid"))),
            result("m2", wire::DeleteStatus::AlreadyGone),
            result("m1", wire::DeleteStatus::Accepted),
        ],
        activity: None,
    };
    let (mut provider, _) = answering(200, &answer);
    let outcome = provider.delete_instances(delete(&["m1", "m2", "m3", "m4", "m5"])).unwrap();
    assert_eq!(outcome.target_size, 10);
    let [first, second, third, fourth, fifth] = &outcome.results[..] else { panic!("five results") };
    assert_eq!(first, &DeleteResult::accepted("m1"));
    assert_eq!(second, &DeleteResult::already_gone("m2"));
    assert!(matches!(&third.status, DeleteStatus::Failed(error) if error.code == "protected"));
    assert_eq!(fourth, &DeleteResult::skipped("m4", "the group is at its minimum"));
    assert!(matches!(&fifth.status, DeleteStatus::Failed(error) if error.outcome_unknown && error.code == "no-result"));
}

#[rstest]
#[case::stock_out(Class::OutOfResources, 409, ErrorClass::OutOfResources)]
#[case::quota(Class::Quota, 403, ErrorClass::Quota)]
#[case::billing(Class::Billing, 402, ErrorClass::Billing)]
#[case::auth(Class::Auth, 403, ErrorClass::Auth)]
#[case::config(Class::Config, 400, ErrorClass::Config)]
#[case::throttled(Class::Throttled, 429, ErrorClass::Throttled)]
#[case::stale_target(Class::Conflict, 409, ErrorClass::Conflict)]
#[case::bad_moment(Class::Transient, 503, ErrorClass::Transient)]
#[case::gone(Class::NotFound, 404, ErrorClass::NotFound)]
#[case::cannot(Class::Unsupported, 501, ErrorClass::Unsupported)]
#[case::bootstrap(Class::Bootstrap, 400, ErrorClass::Bootstrap)]
#[case::other(Class::Other, 400, ErrorClass::Other)]
fn the_clouds_own_failures_keep_their_meaning(#[case] class: Class, #[case] status: u16, #[case] expected: ErrorClass) {
    let failure = Failure {
        retry_after_ms: Some(2500),
        request_id: Some("req-1".into()),
        ..Failure::new(class, "the-code", "the message").about(Scope::Group("a".into()))
    };
    assert_eq!(failure.status(), status);
    let (mut provider, _) = refusing(&failure);
    let errors = [
        provider.refresh(RefreshRequest::everything()).unwrap_err(),
        provider.templates(vec![]).unwrap_err(),
        provider.prices().unwrap_err(),
        provider.increase_size(increase()).unwrap_err(),
        provider.decrease_target(decrease()).unwrap_err(),
        provider.delete_instances(delete(&["m1"])).unwrap_err(),
    ];
    let expected = PluginError {
        class: expected,
        scope: ErrorScope::Group("a".into()),
        code: "the-code".into(),
        message: "the message".into(),
        retry_after_ms: Some(2500),
        outcome_unknown: false,
        request_id: Some("req-1".into()),
    };
    for error in errors {
        assert_eq!(error, expected);
    }
}

#[rstest]
#[case::garbage(Ok(Answer::text(200, "<html>oops</html>")), ErrorClass::Transient, "undecodable", true)]
#[case::half_an_answer(Ok(Answer::text(200, r#"{"target": 1"#)), ErrorClass::Transient, "undecodable", true)]
#[case::empty(Ok(Answer::text(200, "")), ErrorClass::Transient, "undecodable", true)]
#[case::server_error_without_account(Ok(Answer::text(500, "boom")), ErrorClass::Transient, "500", true)]
#[case::error_with_other_json(Ok(Answer::text(500, r#"{"error": "boom"}"#)), ErrorClass::Transient, "500", true)]
#[case::timed_out(Err(SendError::Lost("no first byte in time".into())), ErrorClass::Transient, "no-answer", true)]
#[case::too_long(Err(SendError::TooLarge), ErrorClass::Transient, "answer-too-large", true)]
#[case::not_connected(Err(SendError::NotSent("refused".into())), ErrorClass::Transient, "not-sent", false)]
#[case::denied(Err(SendError::Denied("no grant".into())), ErrorClass::Config, "denied", false)]
fn trouble_on_the_way(
    #[case] answer: Result<Answer, SendError>,
    #[case] class: ErrorClass,
    #[case] code: &str,
    #[case] outcome_unknown: bool,
) {
    let (mut provider, _) = reaching(move |_| answer.clone());
    let check = |error: PluginError, outcome_unknown: bool| {
        assert_eq!(
            (error.class, error.code.as_str(), error.outcome_unknown),
            (class, code, outcome_unknown),
            "{error:?}"
        );
    };
    check(provider.increase_size(increase()).unwrap_err(), outcome_unknown);
    check(provider.decrease_target(decrease()).unwrap_err(), outcome_unknown);
    check(provider.delete_instances(delete(&["m1"])).unwrap_err(), outcome_unknown);
    // Reading changes nothing, so nothing is unknown; and it is never an empty cloud.
    check(provider.refresh(RefreshRequest::everything()).unwrap_err(), false);
    check(provider.templates(vec!["a".into()]).unwrap_err(), false);
    check(provider.prices().unwrap_err(), false);
}

#[test]
fn a_call_whose_time_is_over_sends_nothing() {
    let (mut provider, cloud) = answering(200, &wire::SizeAnswer::default());
    let late = Increase { options: CallOptions { deadline_ms: 0, ..options() }, ..increase() };
    let error = provider.increase_size(late).unwrap_err();
    assert_eq!((error.code.as_str(), error.outcome_unknown), ("not-sent", false));
    assert!(cloud.requests().is_empty());
}

#[test]
fn the_self_test_finds_a_cloud_that_is_not_there() {
    let (mut provider, _) = answering(200, &serde_json::json!({}));
    assert_eq!(provider.self_test(), []);
    let mut lost = Simulated::over(Cloud::default(), &Setup::with_config("{}")).unwrap();
    let [finding] = &lost.self_test()[..] else { panic!("one finding") };
    assert_eq!((finding.severity, finding.code.as_str()), (plimsoll_guest::Severity::Error, "not-sent"));
}

#[test]
fn the_manifest_asks_for_the_simulated_cloud_only() {
    let json: serde_json::Value = serde_json::from_str(&<Simulated<Cloud> as Provider>::MANIFEST.to_json()).unwrap();
    assert_eq!(json["hosts"], serde_json::json!([wire::ENDPOINT]));
}
