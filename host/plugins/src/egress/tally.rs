//! Counts requests: each is told once, when it is over.

use std::time::Instant;

use tracing::Span;
use wasmtime_wasi_http::Error as HttpError;

use crate::log::Log;
use crate::observer::{RequestOutcome, Requested};

/// What is told in place of a host that no grant covers, so that a guest cannot make up names of metrics.
const ELSEWHERE: &str = "not granted";

/// One request in the making.
pub(super) struct Tally {
    log: Log,
    begun: Instant,
    span: Span,
    told: bool,
    plugin: String,
    entry: String,
    slot: Option<String>,
    status: Option<u16>,
}

impl Tally {
    pub(super) fn new(plugin: &str, log: Log, span: Span) -> Self {
        Self {
            log,
            begun: Instant::now(),
            span,
            told: false,
            plugin: plugin.to_owned(),
            entry: ELSEWHERE.to_owned(),
            slot: None,
            status: None,
        }
    }

    /// It passed the checks.
    pub(super) fn permitted(&mut self, entry: &str, slot: Option<&str>) {
        entry.clone_into(&mut self.entry);
        self.slot = slot.map(str::to_owned);
    }

    /// The head of a response came.
    pub(super) fn head(&mut self, status: http::StatusCode) {
        self.status = Some(status.as_u16());
        self.span.record("status", status.as_u16());
    }

    /// All of the response came.
    pub(super) fn answered(&mut self) {
        self.tell(RequestOutcome::Answered);
    }

    /// It ended with an error.
    pub(super) fn failed(&mut self, error: &HttpError) {
        let Self { plugin, entry, .. } = self;
        if let Some(what) = cut(error, plugin) {
            self.log.warn(format!("plugin {plugin:?}, a request to {entry}: {what}"));
        }
        self.tell(outcome(error));
    }

    fn tell(&mut self, outcome: RequestOutcome) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        self.span.record("outcome", outcome.name());
        self.log.requested(Requested {
            plugin: self.plugin.clone(),
            host: self.entry.clone(),
            credential: self.slot.clone(),
            status: self.status,
            outcome,
            took: self.begun.elapsed(),
        });
    }
}

/// The guest lost interest.
impl Drop for Tally {
    fn drop(&mut self) {
        self.tell(RequestOutcome::Abandoned);
    }
}

/// What was too large, and which limit says so.
fn cut(error: &HttpError, plugin: &str) -> Option<String> {
    let raise = |key: &str| format!("if it really needs that, raise plugins.{plugin}.limits.{key}");
    Some(match error {
        HttpError::HttpRequestBodySize(Some(limit)) => {
            format!("its body has more than {} and was not sent; {}", size(*limit), raise("request-kib"))
        }
        HttpError::HttpResponseBodySize(Some(limit)) => {
            format!("the response has more than {} and was cut; {}", size(*limit), raise("response-mib"))
        }
        HttpError::HttpResponseHeaderSectionSize(Some(bytes)) => {
            format!("the headers of the response have {bytes} bytes, more than is passed on")
        }
        HttpError::HttpResponseContentCoding(coding) => {
            let coding = coding.as_deref().unwrap_or("some way");
            format!("the response is packed ({coding}), so that nobody can see whether it holds the signature")
        }
        _ => return None,
    })
}

fn size(bytes: u64) -> String {
    match bytes {
        0..=1023 => format!("{bytes} bytes"),
        1024..=1_048_575 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

fn outcome(error: &HttpError) -> RequestOutcome {
    match error {
        HttpError::HttpRequestDenied
        | HttpError::DestinationIpProhibited
        | HttpError::HttpRequestMethodInvalid
        | HttpError::HttpRequestUriInvalid
        | HttpError::HttpRequestUriTooLong
        | HttpError::HttpRequestHeaderSectionSize(_) => RequestOutcome::Denied,
        HttpError::ConfigurationError => RequestOutcome::NoCredential,
        HttpError::HttpRequestBodySize(_)
        | HttpError::HttpResponseBodySize(_)
        | HttpError::HttpResponseHeaderSectionSize(_)
        | HttpError::HttpResponseContentCoding(_) => RequestOutcome::Cut,
        HttpError::ConnectionTimeout
        | HttpError::ConnectionReadTimeout
        | HttpError::ConnectionWriteTimeout
        | HttpError::HttpResponseTimeout
        | HttpError::ConnectionLimitReached => RequestOutcome::TimedOut,
        _ => RequestOutcome::NetworkError,
    }
}
