//! Runs that repeat: what a plug-in sees comes from the driver, and the speed of the machine decides nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use plimsoll_model::Time;
use plimsoll_plugins::call::Busy;
use plimsoll_plugins::clock::VirtualClock;
use plimsoll_plugins::config::PluginConfig;
use plimsoll_plugins::egress::{InProcess, NetworkGrants};
use plimsoll_plugins::limits::Limits;
use plimsoll_plugins::observer::{Event, Recorder};
use plimsoll_plugins::provider::RefreshRequest;
use plimsoll_plugins::{Failure, HostOptions, PluginHost, Provider};

use crate::guests::{Guest, lines, load, options};

fn question() -> RefreshRequest {
    RefreshRequest { previous_revision: Some("r".into()), ..RefreshRequest::default() }
}

fn host(clock: &VirtualClock, seed: u64) -> (PluginHost, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let options = HostOptions::deterministic(Arc::new(clock.clone()), seed, recorder.clone());
    (PluginHost::new(options).unwrap(), recorder)
}

/// Logs the seconds of the wall clock, the monotonic clock in milliseconds, and a random number, as eight letters each.
fn curious() -> Guest {
    Guest::provider()
        .import(
            r#"(import "wasi:random/random@0.2.12" "get-random-u64" (func $random (result i64)))
               (import "wasi:clocks/wall-clock@0.2.12" "now" (func $wall (param i32)))
               (import "wasi:clocks/monotonic-clock@0.2.12" "now" (func $steady (result i64)))
               (import "autoscaler:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32 i32 i32)))"#,
        )
        .with(
            "(func $letters (param $value i64) (local $n i32)
               (loop $next
                 (i32.store8 (i32.add (i32.const 4096) (local.get $n))
                   (i32.add (i32.const 97) (i32.and (i32.wrap_i64 (local.get $value)) (i32.const 15))))
                 (local.set $value (i64.shr_u (local.get $value) (i64.const 4)))
                 (local.set $n (i32.add (local.get $n) (i32.const 1)))
                 (br_if $next (i32.lt_u (local.get $n) (i32.const 8))))
               (call $log (i32.const 2) (i32.const 4096) (i32.const 8) (i32.const 0) (i32.const 0)))",
        )
        .body(
            "refresh",
            "(call $wall (i32.const 512))
             (call $letters (i64.load (i32.const 512)))
             (call $letters (i64.div_u (call $steady) (i64.const 1000000)))
             (call $letters (call $random))
             (i32.const 1024)",
        )
}

fn letters(mut value: u64) -> String {
    std::iter::repeat_with(|| {
        let letter = char::from(b'a' + (value & 15) as u8);
        value >>= 4;
        letter
    })
    .take(8)
    .collect()
}

async fn run(seed: u64) -> Vec<String> {
    let clock = VirtualClock::new(Time::from_millis(1_000_000));
    let (host, recorder) = host(&clock, seed);
    let plugin = load(&host, "curious", &curious()).await;
    let provider = Provider::spawn(&host, &plugin, options()).unwrap();
    provider.refresh(question()).await.unwrap();
    clock.set(Time::from_millis(1_060_000));
    provider.refresh(question()).await.unwrap();
    lines(&recorder.take())
}

#[tokio::test]
async fn a_run_is_a_function_of_clock_and_seed() {
    let first = run(1).await;
    assert_eq!(run(1).await, first);
    assert_eq!(first[..2], [letters(1_000), letters(0)]);
    assert_eq!(first[3..5], [letters(1_060), letters(60_000)]);
    assert_ne!(first[2], first[5], "each number is drawn anew");
    assert_ne!(run(2).await[2], first[2], "another seed, other numbers");
}

#[tokio::test]
async fn two_plugins_and_two_instances_draw_other_numbers() {
    let clock = VirtualClock::new(Time::from_millis(0));
    let (host, recorder) = host(&clock, 1);
    let guest = curious().body("templates", "unreachable");
    for name in ["one", "two"] {
        let plugin = load(&host, name, &guest).await;
        let provider = Provider::spawn(&host, &plugin, options()).unwrap();
        provider.refresh(question()).await.unwrap();
        provider.templates(vec![]).await.unwrap_err();
        provider.refresh(question()).await.unwrap();
    }
    let lines = lines(&recorder.take());
    let mut drawn: Vec<_> = lines.iter().skip(2).step_by(3).collect();
    drawn.sort();
    drawn.dedup();
    assert_eq!(drawn.len(), 4, "{lines:?}");
}

/// Runs `count` rounds of a loop that uses a few units of fuel each.
fn busy(count: u64) -> Guest {
    Guest::provider().body(
        "templates",
        format!(
            "(local $n i64)
             (loop $again
               (local.set $n (i64.add (local.get $n) (i64.const 1)))
               (br_if $again (i64.lt_u (local.get $n) (i64.const {count}))))
             (i32.const 1024)"
        ),
    )
}

#[tokio::test]
async fn instructions_and_not_time_end_a_call() {
    let clock = VirtualClock::new(Time::from_millis(0));
    let (host, _) = host(&clock, 1);
    let budget = Duration::from_millis(10);
    let outcome = async |count| {
        let plugin = load(&host, "busy", &busy(count)).await;
        let mut options = options();
        options.limits = Limits { read: budget, ..Limits::default() };
        Provider::spawn(&host, &plugin, options).unwrap().templates(vec![]).await
    };
    // Ten million units of fuel: enough for a million rounds, however slow the machine is.
    outcome(1_000_000).await.unwrap();
    let error = outcome(u64::MAX).await.unwrap_err();
    assert_eq!(error.failure, Failure::Timeout { budget, busy: Busy::Computing });
}

#[tokio::test]
async fn a_cloud_that_takes_long_does_not_change_the_run() {
    let clock = VirtualClock::new(Time::from_millis(0));
    let (host, recorder) = host(&clock, 1);
    let guest = Guest::provider().asks(1, "sim.internal", None).body("refresh", "(drop (call $ask)) (i32.const 1024)");
    let plugin = load(&host, "patient", &guest).await;
    let config = PluginConfig::parse("p", "plugins: {patient: {hosts: [https://sim.internal]}}").unwrap();
    let mut options = options();
    options.limits = Limits { read: Duration::from_millis(10), ..Limits::default() };
    options.grants = NetworkGrants::of_this_machine(&config.entry("patient"), "p", vec![]).unwrap();
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    options.transport = Arc::new(InProcess::new(move |_| {
        let count = count.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            *count.lock().unwrap() += 1;
            Response::new(Bytes::new())
        }
    }));
    let provider = Provider::spawn(&host, &plugin, options).unwrap();
    provider.refresh(question()).await.unwrap();
    assert_eq!(*asked.lock().unwrap(), 1);
    let events = recorder.take();
    assert!(events.iter().all(|event| matches!(event, Event::Started { .. })), "{events:?}");
}
