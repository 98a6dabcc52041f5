//! How long the component of AliCloud works on a refresh, without its cloud and the network: `refresh-time [MACHINES]`.
//!
//! Answers come from memory, and the time that the fake cloud needs for them is taken off. What is left is told in two
//! parts: how long the guest was busy, with the host's functions that it called, and what the host did for it besides:
//! checks, signatures, search for their echoes, and the answer on its way out. Prints JSON.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a program for people at a terminal that shares a part of the tests"
)]

#[path = "../tests/plugins/cloud.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod cloud;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_plugins::observer::{Called, Event, Observer};
use plimsoll_plugins::provider::RefreshRequest;
use plimsoll_plugins::{Call, HostOptions};
use plimsoll_tests_clouds::Cloud as _;
use plimsoll_tests_clouds::alicloud::{Group, Scenario};
use serde_json::json;

/// Refreshes that are timed, after one that is not.
const ROUNDS: usize = 50;

/// How long the guest was busy in the last refresh.
#[derive(Default)]
struct Busy(Mutex<Duration>);

impl Busy {
    fn take(&self) -> Duration {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Busy {
    fn notice(&self, _event: Event) {}
    fn called(&self, called: Called) {
        if called.call == Call::Refresh {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) += called.inside;
        }
    }
}

/// The middle, the slow ones, and the slowest.
fn spread(mut times: Vec<Duration>) -> serde_json::Value {
    times.sort();
    let at = |share: usize| times.get((times.len() - 1) * share / 100).copied().unwrap_or_default();
    json!({"median": milliseconds(at(50)), "p95": milliseconds(at(95)), "most": milliseconds(at(100))})
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 100.0
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let size: u32 = std::env::args().nth(1).map_or(1500, |text| text.parse().expect("MACHINES is a number"));
    let group = Group::new("asg-1", 0, size).desiring(size).running(size);
    let cloud = cloud::Cloud::start(Scenario::with_groups(vec![group]));
    let spec = format!("0:{size}:asg-1");
    let busy = Arc::new(Busy::default());
    let options = HostOptions { observer: busy.clone(), ..cloud.host_options() };
    let provider = cloud.provider_with(cloud::FIXED_KEY, &[&spec], options).await;
    let (mut guest, mut host) = (Vec::new(), Vec::new());
    let mut calls = 0;
    for round in 0..=ROUNDS {
        let before = cloud.world().journal().calls.len();
        cloud.take_spent();
        busy.take();
        let begun = Instant::now();
        provider.refresh(RefreshRequest::default()).await.expect("the cloud answers");
        let took = begun.elapsed().saturating_sub(cloud.take_spent());
        calls = cloud.world().journal().calls.len() - before;
        if round > 0 {
            let inside = busy.take();
            guest.push(inside);
            host.push(took.saturating_sub(inside));
        }
        cloud.advance(30);
    }
    let status = provider.status().await.expect("it serves");
    let report = json!({
        "machines": size,
        "calls": calls,
        "guest-ms": spread(guest),
        "host-ms": spread(host),
        "memory-bytes": status.memory_bytes,
        "optimized": !cfg!(debug_assertions),
    });
    println!("{report:#}");
}
