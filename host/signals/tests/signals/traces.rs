//! Spans of a loop reach a collector.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use plimsoll_signals::telemetry::{LogFormat, Telemetry};
use prost::Message as _;

use crate::stage::Stage;

/// A collector that keeps what it gets.
async fn collector() -> (std::net::SocketAddr, Arc<Mutex<Vec<ExportTraceServiceRequest>>>) {
    let requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>> = Arc::default();
    let kept = requests.clone();
    let take = move |headers: HeaderMap, body: Bytes| {
        let kept = kept.clone();
        async move {
            assert_eq!(headers["content-type"], "application/x-protobuf");
            kept.lock().unwrap().push(ExportTraceServiceRequest::decode(body).unwrap());
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/v1/traces", post(take))).await });
    (address, requests)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_is_one_trace() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (address, requests) = collector().await;
    let telemetry =
        Telemetry { format: LogFormat::Json, verbosity: None, otlp_endpoint: Some(format!("http://{address}")) };
    let exporter = telemetry.install().unwrap().expect("a collector is named");
    let mut stage = Stage::set_up().await;
    stage.play(Duration::from_secs(30)).await;
    exporter.shutdown().await;

    let requests = requests.lock().unwrap();
    let resources = requests.iter().flat_map(|request| &request.resource_spans);
    let service = |attribute: &&opentelemetry_proto::tonic::common::v1::KeyValue| attribute.key == "service.name";
    for resource in resources.clone() {
        let named = resource.resource.as_ref().unwrap().attributes.iter().find(service).unwrap();
        assert!(format!("{named:?}").contains("plimsoll"), "{named:?}");
    }
    let spans: Vec<&Span> =
        resources.flat_map(|resource| &resource.scope_spans).flat_map(|scope| &scope.spans).collect();
    let by_id: BTreeMap<&[u8], &Span> = spans.iter().map(|span| (span.span_id.as_slice(), *span)).collect();
    // From a span up to the root, by name.
    let path = |span: &Span| {
        let mut names = vec![span.name.clone()];
        let mut above = span.parent_span_id.as_slice();
        while let Some(parent) = by_id.get(above) {
            names.push(parent.name.clone());
            above = parent.parent_span_id.as_slice();
        }
        names.reverse();
        names.join(" > ")
    };
    let paths: BTreeSet<String> = spans.iter().map(|span| path(span)).collect();
    for expected in [
        "loop",
        "loop > refresh",
        "loop > refresh > plugin call",
        "loop > refresh > plugin call > plugin request",
        "loop > rank > plugin call",
        "loop > write > plugin call",
    ] {
        assert!(paths.contains(expected), "{expected} is not in {paths:#?}");
    }
}
