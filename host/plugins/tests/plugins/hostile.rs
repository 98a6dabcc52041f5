//! Guests that spin, trap, leak, flood, wait and lie. Each is stopped, told in plain words, and the next call is served
//! by a fresh instance.

use std::time::{Duration, Instant};

use plimsoll_plugins::call::Busy;
use plimsoll_plugins::limits::{Limit, Limits};
use plimsoll_plugins::observer::Event;
use plimsoll_plugins::provider::RefreshRequest;
use plimsoll_plugins::{CallError, Failure};

use crate::guests::{Guest, host, lines, options, provider, source};

const MIB: usize = 1 << 20;

/// Answers the first question after `previous_revision`: "nothing changed".
fn question() -> RefreshRequest {
    RefreshRequest { previous_revision: Some("r".into()), ..RefreshRequest::default() }
}

/// A guest that misbehaves in `templates` and is fine otherwise.
fn misbehaving(body: &str) -> Guest {
    Guest::provider().body("templates", body)
}

/// Calls the function that misbehaves, and then one that must work again.
async fn provoke(guest: Guest, limits: Limits) -> (CallError, Vec<Event>) {
    let (provider, recorder) = provider(&guest, |options| options.limits = limits).await;
    provider.capabilities().await.unwrap();
    let error = provider.templates(vec!["a".into()]).await.unwrap_err();
    provider.refresh(question()).await.expect("a fresh instance must serve again");
    assert_eq!(provider.status().await.unwrap().starts, 2);
    let events = recorder.take();
    assert!(
        events.iter().any(|event| matches!(event, Event::CallFailed { reason, .. } if *reason == error.to_string())),
        "the operator must know: {events:?}"
    );
    (error, events)
}

#[rstest::rstest]
#[case::trap(
    misbehaving("unreachable"),
    "plugin \"guest\": templates broke off with a bug in the plug-in: wasm `unreachable` instruction executed"
)]
#[case::division(
    misbehaving("(i32.div_u (i32.const 1) (i32.const 0))"),
    "plugin \"guest\": templates broke off with a bug in the plug-in: integer divide by zero"
)]
#[case::wild_pointer(
    misbehaving("(i32.load (i32.const -16))"),
    "plugin \"guest\": templates broke off with a bug in the plug-in: out of bounds memory access"
)]
#[case::answer_outside_its_memory(
    misbehaving("(i32.const -16)"),
    "plugin \"guest\": templates broke off with a bug in the plug-in: pointer out of bounds of memory"
)]
#[case::endless_recursion(
    misbehaving("(call $deeper (i32.const 0))").with(
        "(func $deeper (param i32) (result i32) (i32.add (call $deeper (local.get 0)) (i32.const 1)))"
    ),
    "plugin \"guest\": templates was stopped: the plug-in ran out of stack: it recursed too deep"
)]
#[case::memory(
    misbehaving("(if (i32.eq (memory.grow (i32.const 65000)) (i32.const -1)) (then unreachable)) (i32.const 1024)"),
    "plugin \"guest\": templates was stopped: the plug-in needed more than 128 MiB of memory; if it really needs that, \
     raise plugins.guest.limits.memory-mib"
)]
#[case::memory_bit_by_bit(
    misbehaving("(loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable"),
    "plugin \"guest\": templates was stopped: the plug-in needed more than 128 MiB of memory; if it really needs that, \
     raise plugins.guest.limits.memory-mib"
)]
#[case::table(
    misbehaving(
        "(if (i32.eq (table.grow $t (ref.null func) (i32.const 1000000)) (i32.const -1)) (then unreachable)) \
         (i32.const 1024)"
    ).with("(table $t 1 funcref)"),
    "plugin \"guest\": templates was stopped: the plug-in needed more than 100000 table elements"
)]
#[case::objects_of_the_host(
    misbehaving("(loop $more (drop (call $fields)) (br $more)) unreachable")
        .import(r#"(import "wasi:http/types@0.2.12" "[constructor]fields" (func $fields (result i32)))"#),
    "plugin \"guest\": templates was stopped: the plug-in kept more than 1024 requests, responses or streams open"
)]
#[case::huge_message(
    misbehaving("(call $log (i32.const 2) (i32.const 0) (i32.const 41943040) (i32.const 0) (i32.const 0)) unreachable")
        .import(r#"(import "autoscaler:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32 i32 i32)))"#)
        .with(r#"(memory (export "memory") 700)"#),
    "plugin \"guest\": templates was stopped: the plug-in handed more than 32 MiB to the host at once"
)]
#[tokio::test]
async fn is_stopped_and_told(#[case] guest: Guest, #[case] expected: &str) {
    let (error, _) = provoke(guest, Limits::default()).await;
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn handles_have_an_end() {
    let guest = misbehaving("(loop $more (drop (call $fields)) (br $more)) unreachable")
        .import(r#"(import "wasi:http/types@0.2.12" "[constructor]fields" (func $fields (result i32)))"#);
    let limits = Limits { host_objects: 100_000, handles: 500, ..Limits::default() };
    let (error, _) = provoke(guest, limits).await;
    assert_eq!(error.failure, Failure::Limit(Limit::Handles { limit: 500 }));
}

#[tokio::test]
async fn several_memories_share_one_limit() {
    let guest = misbehaving(
        "(if (i32.eq (memory.grow $other (i32.const 480)) (i32.const -1)) (then unreachable)) (i32.const 1024)",
    )
    .with(r#"(memory (export "memory") 40) (memory $other 1)"#);
    let limits = Limits { memory_bytes: 32 * MIB, ..Limits::default() };
    let (error, _) = provoke(guest, limits).await;
    let Failure::Limit(Limit::Memory { limit_bytes, wanted_bytes }) = error.failure else { panic!("{error}") };
    assert_eq!((limit_bytes, wanted_bytes), (32 * MIB, (40 + 1 + 480) << 16));
}

#[tokio::test]
async fn memory_that_is_refused_and_not_needed_is_no_failure() {
    let guest = misbehaving("(drop (memory.grow (i32.const 65000))) (i32.const 1024)");
    let (provider, _) = provider(&guest, |_| {}).await;
    provider.templates(vec!["a".into()]).await.unwrap();
}

fn quick() -> Limits {
    Limits { read: Duration::from_millis(200), ..Limits::default() }
}

#[tokio::test]
async fn a_guest_that_computes_for_ever_is_stopped_in_time() {
    let begun = Instant::now();
    let (error, _) = provoke(misbehaving("(loop $again (br $again)) unreachable"), quick()).await;
    assert_eq!(
        error.to_string(),
        "plugin \"guest\": templates took longer than 200 ms and was stopped; it was still computing"
    );
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_guest_that_waits_for_ever_is_stopped_in_time() {
    let guest = misbehaving("(call $block (call $sleep (i64.const 3600000000000))) unreachable").import(
        r#"(import "wasi:clocks/monotonic-clock@0.2.12" "subscribe-duration" (func $sleep (param i64) (result i32)))
           (import "wasi:io/poll@0.2.12" "[method]pollable.block" (func $block (param i32)))"#,
    );
    let (error, _) = provoke(guest, quick()).await;
    assert_eq!(
        error.to_string(),
        "plugin \"guest\": templates took longer than 200 ms and was stopped; it was waiting for an answer from outside"
    );
}

#[tokio::test]
async fn one_guest_that_spins_does_not_hold_up_another() {
    let (spinning, _) = provider(&misbehaving("(loop $again (br $again)) unreachable"), |options| {
        options.limits.read = Duration::from_secs(5);
    })
    .await;
    let (good, _) = provider(&Guest::provider(), |_| {}).await;
    let spin = tokio::spawn(async move { spinning.templates(vec!["a".into()]).await });
    tokio::task::yield_now().await;
    let begun = Instant::now();
    for _ in 0..5 {
        good.refresh(question()).await.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert!(!spin.is_finished(), "the guest must still spin, or this shows nothing");
    spin.abort();
}

#[tokio::test]
async fn a_flood_of_log_lines_is_cut() {
    let guest = misbehaving(
        "(local $n i32)
         (loop $more
           (call $log (i32.const 4) (i32.const 4096) (i32.const 12) (i32.const 0) (i32.const 0))
           (local.set $n (i32.add (local.get $n) (i32.const 1)))
           (br_if $more (i32.lt_u (local.get $n) (i32.const 100000))))
         (i32.const 1024)",
    )
    .import(r#"(import "autoscaler:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32 i32 i32)))"#)
    .with(r#"(data (i32.const 4096) "look at me\1b\0a")"#);
    let (provider, recorder) = provider(&guest, |_| {}).await;
    provider.templates(vec!["a".into()]).await.unwrap();
    let lines = lines(&recorder.take());
    assert!((1..1000).contains(&lines.len()), "{} of 100000 lines", lines.len());
    assert_eq!(lines[0], "look at me\\u{1b}\\n");
}

#[tokio::test]
async fn what_a_guest_prints_is_bounded_too() {
    let guest = misbehaving(
        "(local $n i32) (local $out i32)
         (local.set $out (call $stderr))
         (loop $more
           (call $write (local.get $out) (i32.const 4096) (i32.const 5) (i32.const 8192))
           (local.set $n (i32.add (local.get $n) (i32.const 1)))
           (br_if $more (i32.lt_u (local.get $n) (i32.const 5000))))
         (i32.const 1024)",
    )
    .import(
        r#"(import "wasi:cli/stderr@0.2.12" "get-stderr" (func $stderr (result i32)))
           (import "wasi:io/streams@0.2.12" "[method]output-stream.blocking-write-and-flush"
             (func $write (param i32 i32 i32 i32)))"#,
    )
    .contract_edit("world cloud-provider {", "world cloud-provider { import wasi:cli/stderr@0.2.12;")
    .with(r#"(data (i32.const 4096) "oops\0a")"#);
    let (provider, recorder) = provider(&guest, |_| {}).await;
    provider.templates(vec!["a".into()]).await.unwrap();
    let lines = lines(&recorder.take());
    assert!((1..1000).contains(&lines.len()), "{} of 5000 lines", lines.len());
    assert_eq!(lines[0], "oops");
}

#[tokio::test]
async fn no_names_and_no_sockets() {
    // Looking up a name would leak data; opening a socket would go around all grants.
    let guest = misbehaving(
        "(call $resolve (call $network) (i32.const 4096) (i32.const 9) (i32.const 8192))
         (call $tcp (i32.const 0) (i32.const 8256))
         (call $log (i32.const 2)
           (select (i32.const 5000) (i32.const 5100)
             (i32.and (i32.load8_u (i32.const 8192)) (i32.load8_u (i32.const 8256))))
           (i32.const 6) (i32.const 0) (i32.const 0))
         (i32.const 1024)",
    )
    .import(
        r#"(import "wasi:sockets/instance-network@0.2.12" "instance-network" (func $network (result i32)))
           (import "wasi:sockets/ip-name-lookup@0.2.12" "resolve-addresses" (func $resolve (param i32 i32 i32 i32)))
           (import "wasi:sockets/tcp-create-socket@0.2.12" "create-tcp-socket" (func $tcp (param i32 i32)))
           (import "autoscaler:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32 i32 i32)))"#,
    )
    .contract_edit(
        "world cloud-provider {",
        "world cloud-provider { import wasi:sockets/instance-network@0.2.12; import wasi:sockets/ip-name-lookup@0.2.12;
         import wasi:sockets/tcp-create-socket@0.2.12;",
    )
    .with(r#"(data (i32.const 4096) "localhost") (data (i32.const 5000) "denied") (data (i32.const 5100) "opened")"#);
    let (provider, recorder) = provider(&guest, |_| {}).await;
    provider.templates(vec!["a".into()]).await.unwrap();
    assert_eq!(lines(&recorder.take()), ["denied"]);
}

#[rstest::rstest]
#[case::trap_while_it_is_made(
    Guest::provider().with("(func $begin unreachable) (start $begin)"),
    "no instance of it can be made: plugin \"bad\": start broke off with a bug in the plug-in: wasm `unreachable` \
     instruction executed"
)]
#[case::too_much_memory_at_once(
    Guest::provider().with(r#"(memory (export "memory") 3000)"#),
    "no instance of it can be made: plugin \"bad\": start was stopped: the plug-in needed more than 128 MiB of memory; \
     if it really needs that, raise plugins.bad.limits.memory-mib"
)]
#[case::too_many_memories(
    Guest::provider().with("(memory 1)".repeat(9)),
    "no instance of it can be made: plugin \"bad\": start was stopped: the plug-in needs more core instances, tables or \
     memories than the host gives (memory count too high at 10)"
)]
#[tokio::test]
async fn is_found_when_it_is_loaded(#[case] guest: Guest, #[case] expected: &str) {
    let (host, _) = host();
    let error = host.load(source("bad", None, guest.build()), None).await.unwrap_err();
    assert_eq!(error.to_string(), format!("plugin \"bad\" cannot be used: {expected}"));
}

#[tokio::test]
async fn a_guest_that_spins_while_it_is_made_is_found_when_it_is_loaded() {
    let (host, _) = host();
    let entry = plimsoll_plugins::config::Entry { call_seconds: Some(1), ..Default::default() };
    let guest = Guest::provider().with("(func $begin (loop $again (br $again))) (start $begin)");
    let error = host.load(source("bad", None, guest.build()), Some(("plugins.yaml", &entry))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "plugin \"bad\" cannot be used: no instance of it can be made: plugin \"bad\": start took longer than 1 s and was \
         stopped; it was still computing"
    );
}

#[tokio::test]
async fn a_trap_while_arguments_are_handed_over_is_a_trap_of_the_guest() {
    let guest =
        Guest::provider().with(r#"(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)"#);
    let (provider, _) = provider(&guest, |_| {}).await;
    let error = provider.templates(vec!["a".into()]).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Trap { .. }), "{error}");
}

#[tokio::test]
async fn a_guest_that_spins_is_not_taken_for_one_that_waits() {
    let (provider, _) = provider(&misbehaving("(loop $again (br $again)) unreachable"), |o| {
        *o = {
            let mut options = options();
            options.limits = quick();
            options
        }
    })
    .await;
    let error = provider.templates(vec!["a".into()]).await.unwrap_err();
    let expected = Failure::Timeout { budget: Duration::from_millis(200), busy: Busy::Computing };
    assert_eq!(error.failure, expected);
}
