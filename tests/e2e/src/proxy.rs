//! Stands between the program and the API server: writes down what is asked, and answers errors when told to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use tokio::net::{TcpListener, TcpStream};

use crate::plane::Plane;

/// One request that came through, or was answered here.
#[derive(Clone, Debug)]
pub struct Asked {
    /// When.
    pub at: Instant,
    /// Method.
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Status of the answer.
    pub status: u16,
}

impl Asked {
    /// Whether it is about the Lease of leader election.
    pub fn is_lease(&self) -> bool {
        self.path.contains("/leases/cluster-autoscaler")
    }

    /// Whether it is a watch.
    pub fn is_watch(&self) -> bool {
        self.path.contains("watch=true") || self.path.contains("watch=1")
    }
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    /// Answer every request so, in place of the API server.
    refuse: Option<u16>,
}

/// A plain HTTP server on loopback that hands requests on over TLS, with the caller's own token.
#[derive(Clone)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

type Sent = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

impl Proxy {
    /// Serve in front of a plane's API server until the process ends.
    ///
    /// # Errors
    /// Nothing can listen.
    pub async fn serve(plane: &Plane) -> anyhow::Result<Self> {
        let administrator = plane.config().await?;
        let mut config = kube::Config::new(administrator.cluster_url);
        config.root_cert = administrator.root_cert;
        config.disable_compression = true;
        config.default_retry = false;
        let client = Client::try_from(config)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let proxy = Self { address: listener.local_addr()?, state: Arc::default() };
        let serving = proxy.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                tokio::spawn(serving.clone().connection(stream, client.clone()));
            }
        });
        Ok(proxy)
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked since the last call.
    pub fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut self.lock().asked)
    }

    /// Answer everything with this status from now on; none: hand on again. Watches that run go on.
    pub fn refuse(&self, status: Option<u16>) {
        self.lock().refuse = status;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connection(self, stream: TcpStream, client: Client) {
        let service = service_fn(|request| self.answer(request, &client));
        // A connection that breaks is the client's to see.
        let _ended = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(&self, request: Request<Incoming>, client: &Client) -> Result<Response<Sent>, Infallible> {
        let (mut parts, body) = request.into_parts();
        let (method, path) = (parts.method.to_string(), parts.uri.to_string());
        parts.headers.remove(http::header::HOST);
        let refused = self.lock().refuse;
        let response = match (refused, body.collect().await) {
            (Some(status), _) => status_response(status, "refused on purpose"),
            (None, Err(error)) => status_response(400, &error.to_string()),
            (None, Ok(body)) => {
                let request = Request::from_parts(parts, Body::from(body.to_bytes()));
                match client.send(request).await {
                    Ok(response) => response.map(|body| body.map_err(Into::into).boxed_unsync()),
                    Err(error) => status_response(502, &error.to_string()),
                }
            }
        };
        let status = response.status().as_u16();
        self.lock().asked.push(Asked { at: Instant::now(), method, path, status });
        Ok(response)
    }
}

/// An error as the API server words it.
fn status_response(status: u16, message: &str) -> Response<Sent> {
    let reason = match status {
        429 => "TooManyRequests",
        500 => "InternalError",
        _ => "ServiceUnavailable",
    };
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": status,
    });
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::BAD_GATEWAY);
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
