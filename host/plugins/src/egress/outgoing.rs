//! Where `wasi:http` of a store meets the way out.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, header};
use tokio::time::Instant;
use tracing::Instrument as _;
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error as HttpError, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks,
};

use super::Egress;
use super::reply::Waits;

/// Longest wait for the head of a response, and for the next piece of its body, unless the guest wants less.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The hooks of `wasi:http` in one store.
pub(crate) struct Outgoing {
    egress: Option<Egress>,
    deadline: Instant,
    /// Gaps do not count: the driver of a deterministic run owns time.
    patient: bool,
}

impl Outgoing {
    /// None: no request leaves, whatever it is.
    pub(crate) fn new(egress: Option<Egress>, patient: bool) -> Self {
        Self { egress, deadline: Instant::now(), patient }
    }

    /// A call begins; what it sends must be answered by then.
    pub(crate) fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    pub(super) fn waits(&self, options: Option<RequestOptions>) -> Waits {
        let options = options.unwrap_or_default();
        let deadline = self.deadline;
        if self.patient {
            let rest = deadline.saturating_duration_since(Instant::now());
            return Waits { first_byte: rest, between_bytes: rest, deadline };
        }
        Waits {
            first_byte: options.first_byte_timeout.unwrap_or(PATIENCE).min(PATIENCE),
            between_bytes: options.between_bytes_timeout.unwrap_or(PATIENCE).min(PATIENCE),
            deadline,
        }
    }
}

type Io = Box<dyn Future<Output = Result<(), HttpError>> + Send>;

impl WasiHttpHooks for Outgoing {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(|name| name == header::AUTHORIZATION || DEFAULT_FORBIDDEN_HEADERS.contains(name))
    }

    /// The client writes it from the checked address.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _consumed: Io,
    ) -> Box<dyn Future<Output = Result<(Response<WasiBody>, Io), HttpError>> + Send> {
        let waits = self.waits(options);
        let Some(egress) = self.egress.clone() else {
            return Box::new(async { Err(HttpError::HttpRequestDenied) });
        };
        // It is polled by another task, and still part of the call.
        let exchange = egress.exchange(request, waits).instrument(tracing::Span::current());
        Box::new(async move { Ok((exchange.await?, Box::new(async { Ok(()) }) as Io)) })
    }
}
