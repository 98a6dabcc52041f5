//! The HTTP server: metrics and health.

use std::net::{Ipv6Addr, SocketAddr};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::net::TcpListener;

use crate::account::Account;
use crate::api;
use crate::metrics::CONTENT_TYPE;
use crate::seam::Signals;
use crate::state::LoopState;

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be read.
    #[error("{0:?} is not an address; expected [HOST]:PORT, such as :8085 or 127.0.0.1:8085")]
    Address(String),
    /// Nobody can listen there.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: String,
        /// Why not.
        source: std::io::Error,
    },
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Serving {
    /// Where it listens.
    pub address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Signals {
    /// Serves at an address as Go writes it; without a host, on all addresses of the machine.
    ///
    /// # Errors
    ///
    /// If the address cannot be read, or nobody can listen there.
    pub async fn serve(&self, address: &str) -> Result<Serving, ServeError> {
        let listener = listen(address).await?;
        let failed = |source| ServeError::Listen { address: address.to_owned(), source };
        let local = listener.local_addr().map_err(failed)?;
        let router = router(self.clone());
        let task = tokio::spawn(async move {
            // Ends with an error only if the listener cannot be used any more; the health check of whoever asks fails then.
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the HTTP server ended");
            }
        });
        Ok(Serving { address: local, task })
    }
}

async fn listen(address: &str) -> Result<TcpListener, ServeError> {
    let (host, port) = address.rsplit_once(':').ok_or_else(|| ServeError::Address(address.to_owned()))?;
    let port: u16 = port.parse().map_err(|_| ServeError::Address(address.to_owned()))?;
    let failed = |source| ServeError::Listen { address: address.to_owned(), source };
    if !host.is_empty() {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        return TcpListener::bind((host, port)).await.map_err(failed);
    }
    // All addresses, of both kinds where the machine has both.
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind(("0.0.0.0", port)).await.map_err(failed),
    }
}

fn router(signals: Signals) -> Router {
    let snapshots = match signals.has_snapshots() {
        true => Router::new().route("/snapshotz", get(snapshot)),
        false => Router::new(),
    };
    snapshots
        .route("/", get(dashboard))
        .route("/metrics", get(metrics))
        .route("/health-check", get(health))
        .route("/healthz", get(health))
        .merge(crate::api::router())
        .with_state(signals)
}

/// One page without anything from elsewhere. It may load nothing but what this server answers.
async fn dashboard() -> Response {
    const POLICY: &str = "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; \
         frame-ancestors 'none'";
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(include_str!("dashboard.html"))).into_response()
}

async fn metrics(State(signals): State<Signals>) -> Response {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], signals.metrics_text()).into_response()
}

/// The state of the next loop and what became of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot<'a> {
    state: &'a LoopState,
    account: Option<&'a Account>,
}

/// Waits for the next loop, as the Go autoscaler's does.
async fn snapshot(State(signals): State<Signals>) -> Response {
    match api::next_state(&signals).await {
        Ok(state) => {
            let account = signals.latest().filter(|account| account.at == state.spec.at);
            Json(Snapshot { state: &state, account: account.as_deref() }).into_response()
        }
        Err(response) => *response,
    }
}

async fn health(State(signals): State<Signals>) -> Response {
    match signals.health() {
        Ok(()) => "OK".into_response(),
        Err(sick) => (StatusCode::INTERNAL_SERVER_ERROR, sick.to_string()).into_response(),
    }
}
