//! What carries a request that has passed all checks.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use plimsoll_grants::ClosedAddress;

use crate::Pending;

/// Body of a response that may still be arriving.
pub type ReplyBody = UnsyncBoxBody<Bytes, TransportError>;

/// Why a request got no response, or not all of it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TransportError {
    /// The name has no address, or the name servers do not answer.
    #[error("the name cannot be resolved: {0}")]
    Unresolved(String),
    /// The name has addresses, and the plug-in may be connected to none of them.
    #[error("{0}")]
    Closed(ClosedAddress),
    /// Nobody listens there.
    #[error("the connection was refused")]
    Refused,
    /// No connection in time.
    #[error("no connection in time")]
    ConnectTimeout,
    /// The other side is not who it should be, or speaks no TLS.
    #[error("TLS: {0}")]
    Tls(String),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Carries requests. It follows no redirects and adds no credentials.
pub trait Transport: Send + Sync {
    /// Sends the request and waits for the head of the response.
    fn send(&self, request: Request<Bytes>) -> Pending<'_, Result<Response<ReplyBody>, TransportError>>;
}

type Answer = dyn Fn(Request<Bytes>) -> Pending<'static, Result<Response<Bytes>, TransportError>> + Send + Sync;

/// A cloud in this process: no sockets, no names, no waiting.
#[derive(Clone)]
pub struct InProcess(Arc<Answer>);

impl InProcess {
    /// A cloud that always answers.
    pub fn new<F, A>(cloud: F) -> Self
    where
        F: Fn(Request<Bytes>) -> A + Send + Sync + 'static,
        A: Future<Output = Response<Bytes>> + Send + 'static,
    {
        Self::faulty(move |request| {
            let answer = cloud(request);
            async move { Ok(answer.await) }
        })
    }

    /// A cloud whose network may fail.
    pub fn faulty<F, A>(cloud: F) -> Self
    where
        F: Fn(Request<Bytes>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Response<Bytes>, TransportError>> + Send + 'static,
    {
        Self(Arc::new(move |request| Box::pin(cloud(request))))
    }
}

impl Transport for InProcess {
    fn send(&self, request: Request<Bytes>) -> Pending<'_, Result<Response<ReplyBody>, TransportError>> {
        let answer = (self.0)(request);
        Box::pin(
            async move { Ok(answer.await?.map(|body| Full::new(body).map_err(|never| match never {}).boxed_unsync())) },
        )
    }
}
