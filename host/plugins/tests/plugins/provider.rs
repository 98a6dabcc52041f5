//! The life of a provider: start, calls, failures, pauses, quarantine, replacement, end.

use std::time::Duration;

use plimsoll_core::cloud::{DeleteStatus, ErrorClass, WriteOptions};
use plimsoll_plugins::observer::{Called, Event, Observer, Outcome};
use plimsoll_plugins::provider::{RefreshRequest, ReplaceError, Setup, State};
use plimsoll_plugins::restart::RestartPolicy;
use plimsoll_plugins::{Failure, HostOptions, PluginHost, Provider};

use crate::guests::{Guest, host, lines, load, options, provider};

const LOG: &str = r#"(import "autoscaler:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32 i32 i32)))"#;

/// Logs a text that lies at two locals or constants.
fn log(at: &str, length: &str) -> String {
    format!("(call $log (i32.const 2) {at} {length} (i32.const 0) (i32.const 0))")
}

fn question() -> RefreshRequest {
    RefreshRequest { previous_revision: Some("r".into()), ..RefreshRequest::default() }
}

fn write() -> WriteOptions {
    WriteOptions {
        idempotency_key: "key-1".into(),
        deadline: Duration::from_secs(5),
        dry_run: false,
        reason: "pending pods".into(),
    }
}

/// Traps in `templates`.
fn fragile() -> Guest {
    Guest::provider().body("templates", "unreachable")
}

#[tokio::test]
async fn all_calls_of_the_contract_are_answered() {
    let (provider, _) = provider(&Guest::provider(), |_| {}).await;
    assert_eq!(provider.capabilities().await.unwrap().provider_name, "");
    assert_eq!(provider.self_test().await.unwrap(), []);
    assert_eq!(provider.refresh(question()).await.unwrap().snapshot, None);
    let templates = provider.templates(vec!["a".into(), "b".into()]).await.unwrap();
    assert_eq!(templates.iter().map(|entry| entry.group.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(provider.increase_size("a".into(), 2, 3, false, write()).await.unwrap().accepted, 0);
    assert_eq!(provider.decrease_target("a".into(), 2, 3, write()).await.unwrap().accepted, 0);
    let gone = provider.delete_instances("a".into(), vec!["i".into()], 3, 0, false, write()).await.unwrap();
    assert!(matches!(&gone.results[..], [(id, DeleteStatus::Failed(e))] if id.as_str() == "i" && e.outcome_unknown));
    assert_eq!(provider.prices().await.unwrap(), None);
    let status = provider.status().await.unwrap();
    assert_eq!((status.state, status.starts, status.pricing), (State::Serving, 1, false));
    assert_eq!(status.memory_bytes, 4 << 16);
}

#[tokio::test]
async fn optional_abilities_are_found() {
    let (provider, _) = provider(&Guest::provider().mixin("pricing-mixin").mixin("provisioning-mixin"), |_| {}).await;
    let status = provider.status().await.unwrap();
    assert_eq!((status.state, status.pricing, status.provisioning), (State::Idle, true, true));
    assert_eq!(provider.prices().await.unwrap().unwrap().currency, "");
}

#[tokio::test]
async fn a_new_instance_is_told_what_it_needs() {
    // The first three locals are the optional configuration; the cluster's name is the eighth and ninth.
    let body = [
        log("(local.get 1)", "(local.get 2)"),
        log("(local.get 7)", "(local.get 8)"),
        "(call $get (i32.const 4096) (i32.const 2) (i32.const 512))".to_owned(),
        log("(i32.load (i32.const 516))", "(i32.load (i32.const 520))"),
        "(i32.const 1024)".to_owned(),
    ]
    .concat();
    let guest = Guest::provider()
        .import(LOG)
        .import(r#"(import "autoscaler:plugin/config@0.1.0" "get" (func $get (param i32 i32 i32)))"#)
        .with(r#"(data (i32.const 4096) "dc")"#)
        .body("configure", body);
    let (provider, recorder) = provider(&guest, |options| {
        options.setup =
            Setup { cloud_config: Some("[global]".into()), cluster_name: "shop".into(), ..Setup::default() };
        options.settings.insert("dc".into(), "innoida".into());
    })
    .await;
    provider.capabilities().await.unwrap();
    assert_eq!(lines(&recorder.take()), ["[global]", "shop", "innoida"]);
}

#[tokio::test]
async fn an_instance_lives_on_until_it_fails_and_memory_outlives_it() {
    // Counts in its own memory and in the host's, and logs both as one digit each.
    let count = "
      (i32.store8 (i32.const 64) (i32.add (i32.load8_u (i32.const 64)) (i32.const 1)))
      (call $get (i32.const 4096) (i32.const 1) (i32.const 512))
      (i32.store8 (i32.const 65)
        (i32.add (i32.const 1)
          (if (result i32) (i32.load8_u (i32.const 512))
            (then (i32.load8_u (i32.load (i32.const 516))))
            (else (i32.const 48)))))
      (call $set (i32.const 4096) (i32.const 1) (i32.const 65) (i32.const 1) (i32.const 600))";
    let guest = Guest::provider()
        .import(LOG)
        .import(
            r#"(import "autoscaler:plugin/state@0.1.0" "get" (func $get (param i32 i32 i32)))
               (import "autoscaler:plugin/state@0.1.0" "set" (func $set (param i32 i32 i32 i32 i32)))"#,
        )
        .with(r#"(data (i32.const 4096) "k") (data (i32.const 64) "0")"#)
        .body("refresh", format!("{count} {} (i32.const 1024)", log("(i32.const 64)", "(i32.const 2)")))
        .body("templates", "unreachable");
    let (provider, recorder) = provider(&guest, |_| {}).await;
    for _ in 0..2 {
        provider.refresh(question()).await.unwrap();
    }
    provider.templates(vec![]).await.unwrap_err();
    provider.refresh(question()).await.unwrap();
    assert_eq!(lines(&recorder.take()), ["11", "22", "13"]);
}

/// An answer that is an error: class and the address of the answer; everything else zero.
fn reports(class: u8, offset: u32) -> String {
    format!(
        "(i32.store8 (i32.const 2048) (i32.const 1)) (i32.store8 (i32.const {}) (i32.const {class})) (i32.const 2048)",
        2048 + offset
    )
}

#[tokio::test]
async fn a_report_of_the_plugin_keeps_the_instance() {
    let (provider, _) = provider(&Guest::provider().body("templates", reports(5, 4)), |_| {}).await;
    let error = provider.templates(vec![]).await.unwrap_err();
    let Failure::Plugin(report) = &error.failure else { panic!("{error}") };
    assert_eq!(report.class, ErrorClass::Throttled);
    provider.refresh(question()).await.unwrap();
    assert_eq!(provider.status().await.unwrap().starts, 1);
}

#[tokio::test]
async fn a_provider_that_cannot_be_configured_now_is_asked_again_each_time() {
    let (provider, recorder) = provider(&Guest::provider().body("configure", reports(3, 4)), |options| {
        options.restarts = RestartPolicy::default();
    })
    .await;
    for starts in 1..=3 {
        let error = provider.refresh(question()).await.unwrap_err();
        assert_eq!(error.clone().into_cloud_error().class, ErrorClass::Auth, "{error}");
        assert_eq!(provider.status().await.unwrap().starts, starts);
    }
    assert_eq!(recorder.take(), [], "that is no failure of the plug-in");
}

#[tokio::test]
async fn nonsense_is_not_passed_on_and_keeps_the_instance() {
    let (provider, _) = provider(&Guest::provider(), |_| {}).await;
    let error = provider.refresh(RefreshRequest::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "plugin \"guest\": refresh gave an answer that cannot be used: it says that nothing changed, but nothing was known"
    );
    provider.refresh(question()).await.unwrap();
    assert_eq!(provider.status().await.unwrap().starts, 1);
}

#[tokio::test]
async fn a_write_that_breaks_off_may_have_happened_and_one_that_never_began_has_not() {
    let (provider, _) = provider(&Guest::provider().body("increase-size", "unreachable"), |options| {
        options.restarts = RestartPolicy::default();
    })
    .await;
    let increase = async || provider.increase_size("a".into(), 2, 3, false, write()).await.unwrap_err();
    let begun = increase().await.into_cloud_error();
    assert_eq!((begun.class, begun.outcome_unknown), (ErrorClass::Transient, true));
    let not_tried = increase().await.into_cloud_error();
    assert_eq!((not_tried.class, not_tried.outcome_unknown), (ErrorClass::Transient, false));
    assert!(not_tried.retry_after.is_some(), "{not_tried}");
}

#[tokio::test]
async fn a_write_ends_with_its_own_deadline() {
    let (provider, _) =
        provider(&Guest::provider().body("increase-size", "(loop $again (br $again)) unreachable"), |_| {}).await;
    let options = WriteOptions { deadline: Duration::from_millis(150), ..write() };
    let error = provider.increase_size("a".into(), 2, 3, false, options).await.unwrap_err();
    let budget = Duration::from_millis(150);
    assert!(matches!(error.failure, Failure::Timeout { budget: found, .. } if found == budget), "{error}");
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_and_end_in_quarantine_until_the_file_is_replaced() {
    let (host, recorder) = host();
    let (bad, good) = (load(&host, "guest", &fragile()).await, load(&host, "guest", &Guest::provider()).await);
    let mut options = options();
    options.restarts = RestartPolicy { most_failures: 4, ..RestartPolicy::default() };
    let provider = Provider::spawn(&host, &bad, options).unwrap();

    let mut waits = vec![];
    loop {
        match provider.templates(vec![]).await.unwrap_err().failure {
            Failure::Trap { .. } => {}
            Failure::BackingOff { wait, .. } => {
                assert_eq!(provider.status().await.unwrap().state, State::BackingOff);
                waits.push(wait.as_millis());
                tokio::time::advance(wait).await;
            }
            Failure::Quarantined { failures, last } => {
                assert_eq!(failures, 4);
                assert!(last.contains("templates broke off"), "{last}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(waits, [1000, 2000, 4000]);
    assert_eq!(provider.status().await.unwrap().state, State::Quarantined);
    let events = recorder.take();
    let quarantined = events.iter().filter(|event| matches!(event, Event::Quarantined { failures: 4, .. })).count();
    assert_eq!(quarantined, 1, "{events:?}");

    tokio::time::advance(Duration::from_secs(100_000)).await;
    let error = provider.refresh(question()).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Quarantined { .. }), "time alone does not end a quarantine: {error}");
    provider.replace(good).await.unwrap();
    provider.templates(vec![]).await.unwrap();
    let status = provider.status().await.unwrap();
    assert_eq!((status.state, status.failures), (State::Serving, 0));
}

#[tokio::test]
async fn another_file_takes_over_and_a_bad_one_does_not() {
    let (host, recorder) = host();
    let speaks = |text: &str| {
        Guest::provider()
            .import(LOG)
            .with(format!("(data (i32.const 4096) {text:?})"))
            .body("refresh", format!("{} (i32.const 1024)", log("(i32.const 4096)", "(i32.const 3)")))
            .body("shutdown", log("(i32.const 4096)", "(i32.const 2)"))
    };
    let (old, new) = (load(&host, "guest", &speaks("old")).await, load(&host, "guest", &speaks("new")).await);
    let bad = load(&host, "guest", &Guest::provider().body("configure", "unreachable")).await;
    let wrong = load(&host, "guest", &Guest::expander()).await;
    let provider = Provider::spawn(&host, &old, options()).unwrap();

    provider.refresh(question()).await.unwrap();
    let refused = provider.replace(bad).await.unwrap_err();
    assert!(matches!(&refused, ReplaceError::Start(e) if matches!(e.failure, Failure::Trap { .. })), "{refused}");
    assert!(matches!(provider.replace(wrong).await, Err(ReplaceError::Role(_))));
    provider.refresh(question()).await.unwrap();
    provider.replace(new).await.unwrap();
    provider.refresh(question()).await.unwrap();
    let events = recorder.take();
    assert_eq!(lines(&events), ["old", "old", "ol", "new"]);
    assert!(events.iter().any(|event| matches!(event, Event::Rejected { .. })), "{events:?}");
    assert!(events.iter().any(|event| matches!(event, Event::Loaded { .. })), "{events:?}");
}

#[tokio::test]
async fn a_provider_that_is_shut_down_says_farewell_and_is_gone() {
    let guest = Guest::provider()
        .import(LOG)
        .with(r#"(data (i32.const 4096) "bye")"#)
        .body("shutdown", log("(i32.const 4096)", "(i32.const 3)"));
    let (provider, recorder) = provider(&guest, |_| {}).await;
    provider.capabilities().await.unwrap();
    let other = provider.clone();
    provider.shutdown().await;
    assert_eq!(lines(&recorder.take()), ["bye"]);
    let error = other.refresh(question()).await.unwrap_err();
    assert_eq!(error.to_string(), "plugin \"guest\": refresh was not tried: the plug-in has been shut down");
    other.shutdown().await;
}

#[tokio::test]
async fn calls_of_many_callers_are_served_one_after_another() {
    let (provider, _) = provider(&Guest::provider(), |_| {}).await;
    let calls = (0..50).map(|_| {
        let provider = provider.clone();
        tokio::spawn(async move { provider.refresh(question()).await.map(|_| ()) })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    assert_eq!(provider.status().await.unwrap().starts, 1);
}

/// Counts calls by name and outcome.
#[derive(Default)]
struct Counter(std::sync::Mutex<Vec<(String, Outcome)>>);

impl Observer for Counter {
    fn notice(&self, _event: Event) {}
    fn called(&self, called: Called) {
        self.0.lock().unwrap().push((called.call.to_string(), called.outcome));
    }
}

#[tokio::test]
async fn every_call_is_counted_with_its_outcome() {
    let counter = std::sync::Arc::new(Counter::default());
    let host = PluginHost::new(HostOptions { observer: counter.clone(), ..HostOptions::default() }).unwrap();
    let guest = Guest::provider()
        .body("templates", "unreachable")
        .body("self-test", "(loop $again (br $again)) unreachable")
        .body("increase-size", reports(5, 4));
    let plugin = load(&host, "guest", &guest).await;
    let mut options = options();
    options.limits.read = Duration::from_millis(100);
    let provider = Provider::spawn(&host, &plugin, options).unwrap();
    provider.refresh(question()).await.unwrap();
    provider.increase_size("a".into(), 1, 1, false, write()).await.unwrap_err();
    provider.templates(vec![]).await.unwrap_err();
    provider.self_test().await.unwrap_err();
    let counted = std::mem::take(&mut *counter.0.lock().unwrap());
    let counted: Vec<_> = counted.iter().map(|(call, outcome)| (call.as_str(), *outcome)).collect();
    assert_eq!(
        counted,
        [
            ("configure", Outcome::Ok),
            ("refresh", Outcome::Ok),
            ("increase-size", Outcome::PluginError),
            ("templates", Outcome::Trap),
            ("configure", Outcome::Ok),
            ("self-test", Outcome::Timeout),
        ]
    );
}

/// Says in its capabilities how it wants to be asked: at most so many machines in one delete, and so many milliseconds
/// between two reads.
fn choosy(batch: u32, interval_ms: u32) -> Guest {
    // An answer that is ok has its record at +4; there, the two fields are at +36 and +40.
    let body = format!(
        "(i32.store (i32.const 2088) (i32.const {batch})) (i32.store (i32.const 2092) (i32.const {interval_ms}))
         (i32.const 2048)"
    );
    Guest::provider().import(LOG).body("configure", body)
}

#[tokio::test]
async fn a_delete_comes_in_batches_with_keys_of_their_own() {
    // Logs the number of machines and the key.
    let body = format!(
        "(i32.store8 (i32.const 64) (i32.add (i32.const 48) (local.get 3))) {} {} (i32.const 1024)",
        log("(i32.const 64)", "(i32.const 1)"),
        log("(local.get 7)", "(local.get 8)"),
    );
    for (batch, calls) in [
        (2, &["2", "key-1", "2", "key-1-2", "1", "key-1-3"][..]),
        (5, &["5", "key-1"]),
        (0, &["5", "key-1"]),
        (u32::MAX, &["5", "key-1"]),
    ] {
        let (provider, recorder) = provider(&choosy(batch, 0).body("delete-instances", &body), |_| {}).await;
        let ids: Vec<_> = (0..5).map(|n| format!("i-{n}").as_str().into()).collect();
        let gone = provider.delete_instances("a".into(), ids.clone(), 9, 0, false, write()).await.unwrap();
        assert_eq!(gone.results.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), ids);
        assert_eq!(lines(&recorder.take()), calls, "batches of {batch}");
    }
}

#[tokio::test]
async fn a_batch_that_is_refused_ends_a_delete_and_keeps_what_was_done() {
    // Refuses from the second call on.
    let body = "(i32.store8 (i32.const 64) (i32.add (i32.load8_u (i32.const 64)) (i32.const 1)))
         (if (result i32) (i32.gt_u (i32.load8_u (i32.const 64)) (i32.const 1))
           (then (i32.store8 (i32.const 3072) (i32.const 1)) (i32.store8 (i32.const 3076) (i32.const 5)) (i32.const 3072))
           (else (i32.const 1024)))";
    let (provider, _) = provider(&choosy(2, 0).body("delete-instances", body), |_| {}).await;
    let ids: Vec<_> = (0..5).map(|n| format!("i-{n}").as_str().into()).collect();
    let gone = provider.delete_instances("a".into(), ids, 9, 0, false, write()).await.unwrap();
    let unknown = |status: &DeleteStatus| matches!(status, DeleteStatus::Failed(e) if e.outcome_unknown);
    let throttled =
        |status: &DeleteStatus| matches!(status, DeleteStatus::Failed(e) if e.class == ErrorClass::Throttled);
    let told: Vec<_> = gone.results.iter().map(|(_, status)| (unknown(status), throttled(status))).collect();
    assert_eq!(told, [(true, false), (true, false), (false, true), (false, true), (false, true)]);
}

#[tokio::test]
async fn a_provider_is_not_read_more_often_than_it_wishes() {
    let body = format!(
        "(i32.store8 (i32.const 64) (i32.const 82)) {} (i32.const 1024)",
        log("(i32.const 64)", "(i32.const 1)")
    );
    for (interval_ms, reads) in [(60_000, 1), (0, 3)] {
        let (provider, recorder) = provider(&choosy(0, interval_ms).body("refresh", &body), |_| {}).await;
        // The guest's revision is empty, and nothing changes.
        let question = RefreshRequest { previous_revision: Some(String::new()), ..RefreshRequest::default() };
        for _ in 0..3 {
            assert_eq!(provider.refresh(question.clone()).await.unwrap().snapshot, None);
        }
        assert_eq!(lines(&recorder.take()).len(), reads, "{interval_ms} ms");
    }
}
