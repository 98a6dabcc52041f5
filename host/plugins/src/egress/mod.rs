//! The only way out of the sandbox. Every request of every plug-in takes this path, in this order:
//!
//! ```text
//! method ► address ► grant ► literal address ► headers ► credential slot ► body ► sign ► send ► reply: bounded, cleaned
//!                                                                                (names resolve to checked addresses)
//! ```
//!
//! Nothing follows a redirect: the plug-in gets it and may ask again, and then takes the whole path again.

mod granted;
mod internet;
mod outgoing;
mod redact;
mod reply;
mod tally;
mod transport;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
pub use plimsoll_grants::{
    AddressPolicy, Alias, AliasError, ClosedAddress, Denial, Grant, GrantError, NoProxy, Proxy, ProxyError, Refusal,
    SLOT_HEADER,
};
use plimsoll_grants::{Granted, Permit};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;
use tracing::Instrument as _;
use wasmtime_wasi_http::{DEFAULT_FORBIDDEN_HEADERS, Error as HttpError, WasiBody};

pub use self::granted::NetworkGrants;
pub use self::internet::{Internet, InternetError, InternetOptions, Resolver, SystemResolver};
pub(crate) use self::outgoing::Outgoing;
use self::redact::Redactor;
use self::reply::{Escort, Waits};
use self::tally::Tally;
pub use self::transport::{InProcess, ReplyBody, Transport, TransportError};
use crate::credentials::{Credential, CredentialError, Exposed};
use crate::limits::Limits;
use crate::log::Log;

/// Headers that concern one connection only, or that the client sets itself.
const OURS: [HeaderName; 5] =
    [header::TE, header::TRAILER, header::EXPECT, header::CONTENT_LENGTH, HeaderName::from_static("proxy-connection")];

/// Headers that would let a guest have the response of a signed request in another shape than the one that is cleaned.
const RESHAPING: [HeaderName; 3] = [header::ACCEPT_ENCODING, header::RANGE, header::IF_RANGE];

/// The way out of one plug-in. Clones are the same way.
#[derive(Clone)]
pub(crate) struct Egress(Arc<Inner>);

struct Inner {
    plugin: Arc<str>,
    grants: NetworkGrants,
    transport: Arc<dyn Transport>,
    log: Log,
    request_body_bytes: usize,
    response_body_bytes: usize,
    header_bytes: usize,
    exchanges: Arc<Semaphore>,
}

impl Egress {
    pub(crate) fn new(
        plugin: Arc<str>,
        grants: NetworkGrants,
        transport: Arc<dyn Transport>,
        limits: &Limits,
        log: Log,
    ) -> Self {
        Self(Arc::new(Inner {
            plugin,
            grants,
            transport,
            log,
            request_body_bytes: limits.request_body_bytes,
            response_body_bytes: limits.response_body_bytes,
            header_bytes: limits.header_bytes,
            exchanges: Arc::new(Semaphore::new(limits.exchanges)),
        }))
    }

    /// All checks that need no body and no name service.
    fn permit(&self, parts: &Parts) -> Result<Permit, Refusal> {
        let grants = &self.0.grants;
        let binding = |slot: &str| grants.credentials.get(slot).map(|credential| &credential.binding);
        plimsoll_grants::permit(parts, &grants.hosts, &grants.addresses, self.0.header_bytes, binding)
    }

    /// Tells the operator, and gives the guest a code.
    fn refuse(&self, method: &Method, uri: &Uri, refusal: Refusal) -> HttpError {
        let code = refused(&refusal);
        let grants = &self.0.grants;
        let granted = Granted { hosts: &grants.hosts, insecure_http: grants.insecure_http, file: &grants.file };
        self.0.log.denied(Denial::new(&self.0.plugin, method.as_str(), uri, &refusal, granted));
        code
    }

    pub(crate) async fn exchange(
        self,
        request: Request<WasiBody>,
        waits: Waits,
    ) -> Result<Response<WasiBody>, HttpError> {
        let (uri, empty) = (request.uri(), tracing::field::Empty);
        // Without the query, which may hold private data.
        let (host, path) = (uri.host().unwrap_or_default(), uri.path());
        let (plugin, method) = (&self.0.plugin, request.method());
        let span =
            tracing::debug_span!("plugin request", %plugin, %method, host, path, status = empty, outcome = empty);
        let mut tally = Tally::new(plugin, self.0.log.clone(), span.clone());
        match self.exchanged(request, waits, &mut tally).instrument(span).await {
            Ok((head, body, escort)) => {
                let escort = escort(tally);
                Ok(Response::from_parts(head, reply::bounded(body, escort)))
            }
            Err(error) => {
                tally.failed(&error);
                Err(error)
            }
        }
    }

    /// The head, the body, and what makes the body's escort.
    async fn exchanged(
        &self,
        request: Request<WasiBody>,
        waits: Waits,
        tally: &mut Tally,
    ) -> Result<(http::response::Parts, ReplyBody, impl FnOnce(Tally) -> Escort + use<>), HttpError> {
        let (mut parts, body) = request.into_parts();
        let permit = self.permit(&parts).map_err(|refusal| self.refuse(&parts.method, &parts.uri, refusal))?;
        tally.permitted(&permit.entry, permit.slot.as_deref());
        parts.uri = permit.url.as_str().parse().map_err(|_| HttpError::HttpRequestUriInvalid)?;
        for name in OURS.iter().chain(&DEFAULT_FORBIDDEN_HEADERS).chain([&SLOT_HEADER]) {
            parts.headers.remove(name);
        }
        let turn = timeout_at(waits.deadline, self.0.exchanges.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| HttpError::ConnectionLimitReached)?;
        let turn = turn.map_err(|_| HttpError::ConnectionTerminated)?;
        let request = Request::from_parts(parts, self.whole(body, waits).await?);
        let (mut reply, redactor) = match &permit.slot {
            Some(slot) => self.send_signed(slot, request, waits).await?,
            None => (self.send(request, waits).await?, Redactor::idle()),
        };
        tally.head(reply.status());
        reply::clean(reply.headers_mut(), self.0.header_bytes, &redactor)?;
        let (head, body) = reply.into_parts();
        let limit = self.0.response_body_bytes;
        Ok((head, body, move |tally| Escort { limit, came: 0, waits, _turn: turn, redactor, tally }))
    }

    /// The body of a request; signatures need all of it.
    async fn whole(&self, body: WasiBody, waits: Waits) -> Result<Bytes, HttpError> {
        let limit = self.0.request_body_bytes;
        let body = timeout_at(waits.deadline, Limited::new(body, limit).collect()).await;
        let body = body.map_err(|_| HttpError::ConnectionWriteTimeout)?;
        let body = body.map_err(|error| match error.downcast::<LengthLimitError>() {
            Ok(_) => HttpError::HttpRequestBodySize(u64::try_from(limit).ok()),
            // The guest broke its own body off.
            Err(_) => HttpError::ConnectionTerminated,
        })?;
        Ok(body.to_bytes())
    }

    /// Signs and sends; once more if the server refuses the key and there is another. Nothing was done then, so that this
    /// is no repetition. Returns what must not come back as well.
    async fn send_signed(
        &self,
        slot: &str,
        mut request: Request<Bytes>,
        waits: Waits,
    ) -> Result<(Response<ReplyBody>, Redactor), HttpError> {
        let Some(credential) = self.0.grants.credentials.get(slot) else { return Err(HttpError::HttpRequestDenied) };
        let mut again = request.clone();
        let shown = self.sign(slot, credential, &mut request, waits).await?;
        let reply = self.send(request, waits).await?;
        if !reply.status().is_client_error() {
            return Ok((reply, Redactor::new(&shown)));
        }
        let (head, body) = reply.into_parts();
        let (begin, body) = reply::peek(body, waits).await?;
        if !credential.signer.refused(&shown, &begin) {
            return Ok((Response::from_parts(head, body), Redactor::new(&shown)));
        }
        let shown = self.sign(slot, credential, &mut again, waits).await?;
        Ok((self.send(again, waits).await?, Redactor::new(&shown)))
    }

    /// Signs, and tells what of the secret the request now shows.
    async fn sign(
        &self,
        slot: &str,
        credential: &Credential,
        request: &mut Request<Bytes>,
        waits: Waits,
    ) -> Result<Exposed, HttpError> {
        for name in &RESHAPING {
            request.headers_mut().remove(name);
        }
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let signed = timeout_at(waits.deadline, credential.signer.sign(request)).await;
        match signed.unwrap_or_else(|_| Err(CredentialError::Other("it took too long".to_owned()))) {
            Ok(exposed) => Ok(exposed),
            Err(CredentialError::Request(reason)) => Err(self.refuse(&method, &uri, Refusal::Unsignable(reason))),
            Err(error) => {
                let plugin = &self.0.plugin;
                self.0.log.warn(format!("credential {slot:?} of plugin {plugin:?} cannot be used: {error}"));
                Err(HttpError::ConfigurationError)
            }
        }
    }

    /// The guest learns only that the certificate is not good; what is wrong with it, only an operator can mend.
    fn tell_of_trust(&self, uri: &Uri, error: &TransportError) {
        if let TransportError::Tls(what) = error {
            let (plugin, host) = (&self.0.plugin, uri.host().unwrap_or_default());
            let mend = "a certificate of your own authority is trusted if network.extra-ca-file names that";
            self.0.log.warn(format!("plugin {plugin:?}, a request to {host}: TLS: {what}; {mend}"));
        }
    }

    async fn send(&self, request: Request<Bytes>, waits: Waits) -> Result<Response<ReplyBody>, HttpError> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let reply = timeout_at(waits.first_byte(), self.0.transport.send(request)).await;
        reply.map_err(|_| HttpError::ConnectionReadTimeout)?.map_err(|error| match error {
            TransportError::Closed(closed) => self.refuse(&method, &uri, Refusal::Address(closed)),
            error => {
                self.tell_of_trust(&uri, &error);
                reply::code(&error)
            }
        })
    }
}

/// What the guest is told.
fn refused(refusal: &Refusal) -> HttpError {
    match refusal {
        Refusal::Method => HttpError::HttpRequestMethodInvalid,
        Refusal::TooLong => HttpError::HttpRequestUriTooLong,
        Refusal::NoAddress | Refusal::Scheme | Refusal::UserInfo => HttpError::HttpRequestUriInvalid,
        Refusal::Address(_) => HttpError::DestinationIpProhibited,
        Refusal::TooManyHeaders => HttpError::HttpRequestHeaderSectionSize(None),
        Refusal::NoGrant { .. }
        | Refusal::Authorization
        | Refusal::Header(_)
        | Refusal::Action { .. }
        | Refusal::Route { .. }
        | Refusal::Unsignable(_)
        | Refusal::TwoSlots
        | Refusal::UnknownSlot { .. }
        | Refusal::SlotElsewhere { .. } => HttpError::HttpRequestDenied,
    }
}

#[cfg(test)]
mod tests;
