//! What the HTTP server answers.

use std::time::Duration;

use plimsoll_signals::Serving;
use plimsoll_signals::account::{GroupDetail, NodeDetail, PodDetail};
use plimsoll_signals::state::LoopState;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::stage::{Stage, signals};

/// Status, head and body of an answer.
async fn get(serving: &Serving, path: &str) -> (u16, String, String) {
    let port = serving.address.port();
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}

async fn json(serving: &Serving, path: &str) -> Value {
    let (status, _, body) = get(serving, path).await;
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn before_the_first_loop() {
    let signals = signals();
    let serving = signals.serve("127.0.0.1:0").await.unwrap();
    assert_eq!(get(&serving, "/health-check").await.0, 200);
    let (status, _, body) = get(&serving, "/api/v1/plan").await;
    assert_eq!(status, 503);
    assert!(body.contains("no loop has ended yet"), "{body}");
    let (status, head, body) = get(&serving, "/metrics").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(body.contains("cluster_autoscaler_errors_total{type=\"cloudProviderError\"} 0"), "{body}");
}

#[tokio::test]
async fn an_address_that_cannot_be_used() {
    let signals = signals();
    for (address, expected) in
        [("8085", "is not an address"), (":many", "is not an address"), ("192.0.2.1:0", "cannot listen")]
    {
        let error = signals.serve(address).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{address}: {error}");
    }
    let first = signals.serve("127.0.0.1:0").await.unwrap();
    let again = signals.serve(&first.address.to_string()).await.unwrap_err().to_string();
    assert!(again.contains("cannot listen"), "{again}");
}

#[tokio::test]
async fn the_last_loops_as_data() {
    let mut stage = Stage::set_up().await;
    stage.signals.monitor();
    // The metrics server and the budget of the orders hold an idle node now.
    stage.play(Duration::from_secs(7 * 60 + 40)).await;
    let serving = stage.signals.serve("127.0.0.1:0").await.unwrap();
    let plan = json(&serving, "/api/v1/plan").await;
    let grown: Vec<&Value> =
        plan["history"].as_array().unwrap().iter().flat_map(|d| d["scaleUp"].as_array().unwrap()).collect();
    assert!(grown.iter().any(|growth| growth["group"] == "gpu-t4" && growth["expander"].is_null()), "{grown:?}");
    assert!(
        grown.iter().any(|growth| growth["group"] == "workers-a" && growth["expander"] == "least-waste"),
        "{grown:?}"
    );

    let groups = json(&serving, "/api/v1/groups").await;
    assert_eq!(groups["groups"].as_array().unwrap().len(), 4);
    let group: GroupDetail = serde_json::from_value(json(&serving, "/api/v1/groups/workers-a").await).unwrap();
    assert!(!group.members.is_empty() && group.group.template.is_ok());

    let blocked = json(&serving, "/api/v1/nodes?outcome=blocked").await;
    let blocked: Vec<NodeDetail> = {
        let mut details = Vec::new();
        for node in blocked["nodes"].as_array().unwrap() {
            let path = format!("/api/v1/nodes/{}", node["node"].as_str().unwrap());
            details.push(serde_json::from_value(json(&serving, &path).await).unwrap());
        }
        details
    };
    let held =
        |detail: &&NodeDetail| detail.node.reasons.iter().any(|reason| reason.message.contains("PodDisruptionBudget"));
    let held = blocked.iter().find(held).unwrap_or_else(|| panic!("{blocked:?}"));
    let pod = &held.running[0];
    let detail: PodDetail = serde_json::from_value(json(&serving, &format!("/api/v1/pods/{pod}")).await).unwrap();
    assert_eq!(detail.runs_on.unwrap().node, held.node.node);

    for (path, expected) in [
        ("/api/v1/nodes/workers-a-0001", "did you mean workers-a-001?"),
        ("/api/v1/groups/worker-a", "did you mean workers-a?"),
        ("/api/v1/pods/shop/nobody", "there was no pod"),
    ] {
        let (status, _, body) = get(&serving, path).await;
        assert_eq!(status, 404, "{path}");
        assert!(body.contains(expected), "{path}: {body}");
    }
    assert_eq!(json(&serving, "/api/v1/nodes?limit=1").await["nodes"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_state_is_that_of_the_next_loop() {
    let mut stage = Stage::set_up().await;
    stage.play(Duration::from_secs(60)).await;
    let serving = stage.signals.serve("127.0.0.1:0").await.unwrap();
    let asked = tokio::spawn(async move {
        let (status, _, body) = get(&serving, "/snapshotz").await;
        (status, body)
    });
    let mut at = Duration::from_secs(60);
    while !asked.is_finished() {
        at += Duration::from_secs(10);
        stage.play(at).await;
        tokio::task::yield_now().await;
    }
    let (status, body) = asked.await.unwrap();
    assert_eq!(status, 200, "{body}");
    let mut snapshot: Value = serde_json::from_str(&body).unwrap();
    let state: LoopState = serde_json::from_value(snapshot["state"].take()).unwrap();
    assert_eq!(state.spec.flags, ["--scale-down-unneeded-time=1m"]);
    assert_eq!(state.spec.cloud.snapshot.groups.len(), 4);
    assert!(state.spec.cloud.templates.values().all(Result::is_ok));
}
