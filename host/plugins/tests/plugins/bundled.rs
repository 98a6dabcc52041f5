//! The real components: the six expanders decide, and the simulated provider talks to a cloud in this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use plimsoll_bundled::{EXPANDERS, SIMULATED_PROVIDER};
use plimsoll_core::cloud::{DeleteStatus, ErrorClass, GroupId, InstanceState, NodeMatch, WriteOptions};
use plimsoll_core::ranking::{Cost, RankRequest};
use plimsoll_plugins::config::PluginConfig;
use plimsoll_plugins::egress::{InProcess, NetworkGrants};
use plimsoll_plugins::library::LibraryOptions;
use plimsoll_plugins::observer::Event;
use plimsoll_plugins::provider::{RefreshRequest, State};
use plimsoll_plugins::{Failure, Kind, Library, Provider, inspect};
use serde_json::{Value, json};

use crate::expander::request;
use crate::guests::{host, options, source};

/// Two options: the first is smaller, cheaper and wanted less.
fn question() -> RankRequest {
    let mut request = request(2);
    let cost = |micros| {
        Some(Cost {
            currency: "EUR".into(),
            nodes_micros_per_hour: micros,
            pods_micros_per_hour: Some(micros / 2),
            small_pod_micros_per_hour: Some(10_000),
        })
    };
    request.options[0].cost = cost(400_000);
    request.options[1].cost = cost(900_000);
    request.options[0].priority = Some(1);
    request.options[1].priority = Some(50);
    request.options[1].pods = vec![(0, 8)];
    request
}

async fn library() -> Library {
    let (host, recorder) = host();
    let chain: Vec<_> = EXPANDERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let library =
        Library::open(&host, &chain, LibraryOptions { embedded: EXPANDERS.to_vec(), ..LibraryOptions::default() })
            .await;
    let events = recorder.take();
    assert!(events.iter().all(|event| matches!(event, Event::Loaded { .. })), "{events:?}");
    library
}

#[tokio::test]
async fn every_embedded_expander_decides() {
    let library = library().await;
    assert_eq!(EXPANDERS.len(), 6);
    let mut winners = BTreeMap::new();
    for (name, _) in EXPANDERS {
        let verdicts = library.rank(name, &question()).await.unwrap();
        assert!(!verdicts.is_empty(), "{name} has no opinion");
        let best = verdicts.iter().max_by(|a, b| a.score.total_cmp(&b.score)).unwrap();
        winners.insert(*name, best.index);
        assert_eq!(library.rank(name, &question()).await.unwrap(), verdicts, "{name} must repeat itself");
    }
    winners.remove("random");
    let expected = [("least-nodes", 0), ("least-waste", 0), ("most-pods", 1), ("price", 0), ("priority", 1)];
    assert_eq!(winners, BTreeMap::from(expected));
}

#[tokio::test]
async fn the_random_expander_follows_the_seed() {
    let library = library().await;
    let mut chosen = std::collections::BTreeSet::new();
    for seed in 0..64 {
        let verdicts = library.rank("random", &RankRequest { seed, ..question() }).await.unwrap();
        chosen.insert(verdicts.iter().max_by(|a, b| a.score.total_cmp(&b.score)).unwrap().index);
    }
    assert_eq!(chosen.len(), 2, "each option wins now and then");
}

#[test]
fn what_is_embedded_is_small_fits_and_says_what_it_is() {
    for (name, bytes) in EXPANDERS {
        let report = inspect(&source(name, Some(Kind::Expander), bytes.to_vec()), None).unwrap().report;
        assert!(report.is_usable(), "{report}");
        assert!(report.imports.iter().all(|import| import.starts_with("autoscaler:plugin/")), "{report}");
        assert!(report.size_bytes < 100_000 && report.version.is_some(), "{report}");
    }
    let inspected = inspect(&source("simulated", None, SIMULATED_PROVIDER.to_vec()), None).unwrap();
    assert!(inspected.report.is_usable(), "{}", inspected.report);
    assert_eq!(inspected.report.kind, Some(Kind::CloudProvider));
    assert!(inspected.manifest.unknown.is_empty(), "{:?}", inspected.manifest.unknown);
}

/// One group of machines.
struct Cloud {
    target: u64,
    machines: Vec<String>,
    done: BTreeMap<String, u64>,
}

fn answer(status: u16, body: Value) -> Response<Bytes> {
    Response::builder().status(status).body(Bytes::from(body.to_string())).unwrap()
}

fn failure(status: u16, class: &str) -> Response<Bytes> {
    answer(status, json!({"class": class, "code": "Sim", "message": "not so", "scope": {"group": "pool-a"}}))
}

impl Cloud {
    fn serve(&mut self, request: &Request<Bytes>) -> Response<Bytes> {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let revision = format!("r{}-{}", self.target, self.machines.len());
        match request.uri().path() {
            "/v1/health" => answer(200, json!({})),
            "/v1/state" if body["revision"] == json!(revision) => {
                answer(200, json!({"revision": revision, "observed-at-ms": 5000}))
            }
            "/v1/state" => {
                let machine = |id: &String| json!({"id": id, "state": "running", "provider-id": format!("sim://{id}")});
                let instances: Vec<_> = self.machines.iter().map(machine).collect();
                let group = json!({"id": "pool-a", "min": 0, "max": 10, "target": self.target, "instances": instances});
                answer(200, json!({"revision": revision, "observed-at-ms": 5000, "groups": [group]}))
            }
            "/v1/prices" => {
                answer(200, json!({"currency": "EUR", "units": [{"resource-name": "cpu", "micros-per-hour": 20000}]}))
            }
            "/v1/groups/pool-a/increase" => {
                let key = body["key"].as_str().unwrap_or_default().to_owned();
                if !self.done.contains_key(&key) {
                    if body["expected-target"] != json!(self.target) {
                        return failure(409, "conflict");
                    }
                    self.target += body["delta"].as_u64().unwrap_or_default();
                    self.done.insert(key, self.target);
                }
                answer(200, json!({"target": self.target, "accepted": body["delta"]}))
            }
            "/v1/groups/pool-a/delete-instances" => {
                let ids: Vec<_> = body["ids"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                self.machines.retain(|machine| !ids.contains(&machine.as_str()));
                self.target = self.machines.len() as u64;
                let results: Vec<_> = ids.iter().map(|id| json!({"id": id, "status": "accepted"})).collect();
                answer(200, json!({"target": self.target, "results": results}))
            }
            _ => failure(404, "not-found"),
        }
    }
}

const GRANTS: &str = "plugins: {simulated: {hosts: [https://sim.plimsoll.internal]}}";

async fn provider(grants: &str) -> (Provider, Arc<Mutex<Cloud>>, Arc<plimsoll_plugins::observer::Recorder>) {
    let (host, recorder) = host();
    let plugin = host.load(source("simulated", None, SIMULATED_PROVIDER.to_vec()), None).await.unwrap();
    let cloud = Arc::new(Mutex::new(Cloud {
        target: 3,
        machines: ["i-1", "i-2", "i-3"].map(str::to_owned).into(),
        done: BTreeMap::new(),
    }));
    let mut options = options();
    let entry = PluginConfig::parse("plugins.yaml", grants).unwrap().entry("simulated");
    options.grants = NetworkGrants::of_this_machine(&entry, "plugins.yaml", vec![]).unwrap();
    let behind = cloud.clone();
    options.transport = Arc::new(InProcess::new(move |request| {
        let answer = behind.lock().unwrap().serve(&request);
        async move { answer }
    }));
    options.setup.cluster_name = "test".into();
    options.setup.user_agent = "plimsoll-test".into();
    (Provider::spawn(&host, &plugin, options).unwrap(), cloud, recorder)
}

fn write(key: &str) -> WriteOptions {
    WriteOptions {
        idempotency_key: key.into(),
        deadline: Duration::from_secs(5),
        dry_run: false,
        reason: "pending pods".into(),
    }
}

#[tokio::test]
async fn the_simulated_provider_reads() {
    let (provider, _, _) = provider(GRANTS).await;
    let capabilities = provider.capabilities().await.unwrap();
    assert!(capabilities.features.increase && capabilities.features.delete, "{capabilities:?}");
    let first = provider.refresh(RefreshRequest::default()).await.unwrap();
    let group = &first.snapshot.as_ref().unwrap().groups[0];
    assert_eq!((group.id.as_str(), group.min_size, group.max_size, group.target_size), ("pool-a", 0, 10, 3));
    assert_eq!(group.instances.len(), 3);
    assert_eq!(group.instances[0].state, InstanceState::Running);
    assert!(group.instances[0].matches.contains(&NodeMatch::ProviderId("sim://i-1".into())));
    assert_eq!(first.observed_at.millis(), 5000);

    let again = RefreshRequest { previous_revision: Some(first.revision.clone()), ..RefreshRequest::default() };
    let again = provider.refresh(again).await.unwrap();
    assert_eq!((again.revision, again.snapshot), (first.revision, None));

    let prices = provider.prices().await.unwrap().unwrap();
    assert_eq!((prices.currency.as_str(), prices.units[0].micros_per_hour), ("EUR", 20_000));
    let status = provider.status().await.unwrap();
    assert_eq!((status.state, status.pricing, status.starts), (State::Serving, true, 1));
    assert!(status.memory_bytes > 0);
}

#[tokio::test]
async fn the_simulated_provider_writes_once_for_each_key() {
    let (provider, cloud, _) = provider(GRANTS).await;
    let group = || GroupId::from("pool-a");
    for _ in 0..2 {
        let outcome = provider.increase_size(group(), 2, 3, false, write("intent-1")).await.unwrap();
        assert_eq!((outcome.target_size, outcome.accepted), (5, 2));
    }
    assert_eq!(cloud.lock().unwrap().target, 5);
    let stale = provider.increase_size(group(), 2, 3, false, write("intent-2")).await.unwrap_err();
    assert!(
        matches!(&stale.failure, Failure::Plugin(e) if e.class == ErrorClass::Conflict && !e.outcome_unknown),
        "{stale}"
    );

    let ids = vec!["i-2".into(), "i-3".into()];
    let outcome = provider.delete_instances(group(), ids, 5, 0, false, write("intent-3")).await.unwrap();
    let accepted = |id: &str| (id.into(), DeleteStatus::Accepted);
    assert_eq!(outcome.results, [accepted("i-2"), accepted("i-3")]);
    assert_eq!(cloud.lock().unwrap().machines, ["i-1"]);
}

#[tokio::test]
async fn without_a_grant_the_simulated_provider_reports_that_it_was_denied() {
    let (provider, _, recorder) = provider("").await;
    let error = provider.refresh(RefreshRequest::default()).await.unwrap_err();
    assert!(error.is_report(), "{error}");
    let events = recorder.take();
    let denied = events.iter().find_map(|event| match event {
        Event::Denied { denial } => Some(denial.to_string()),
        _ => None,
    });
    assert_eq!(
        denied.as_deref(),
        Some(
            "plugin \"simulated\" asked for https://sim.plimsoll.internal/v1/state and was refused: no grant covers it
  plugins.yaml grants it no host
  to allow it, add under plugins.simulated.hosts:  - https://sim.plimsoll.internal"
        )
    );
}

#[tokio::test]
async fn rubbish_from_the_cloud_is_a_report_and_not_an_empty_cloud() {
    for body in ["", "{", "<html>busy</html>", "{\"revision\": 7}"] {
        let (host, _) = host();
        let plugin = host.load(source("simulated", None, SIMULATED_PROVIDER.to_vec()), None).await.unwrap();
        let mut options = options();
        let entry = PluginConfig::parse("p", GRANTS).unwrap().entry("simulated");
        options.grants = NetworkGrants::of_this_machine(&entry, "p", vec![]).unwrap();
        options.transport =
            Arc::new(InProcess::new(move |_| async move { Response::new(Bytes::from_static(body.as_bytes())) }));
        let provider = Provider::spawn(&host, &plugin, options).unwrap();
        let error = provider.refresh(RefreshRequest::default()).await.unwrap_err();
        assert!(matches!(&error.failure, Failure::Plugin(e) if e.class == ErrorClass::Transient), "{body}: {error}");
    }
}
