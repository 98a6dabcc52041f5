//! The only way out of the sandbox. Every request of every plug-in takes this path, in this order:
//!
//! ```text
//! method ► address ► grant ► literal address ► headers ► credential slot ► body ► sign ► send ► reply, bounded
//!                                                                                (names resolve to checked addresses)
//! ```
//!
//! Nothing follows a redirect: the plug-in gets it and may ask again, and then takes the whole path again.

pub mod address;
mod denial;
mod grant;
mod internet;
mod signer;
mod transport;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, Method, Request, Response, Uri, header, request};
use http_body_util::{BodyExt as _, LengthLimitError, Limited, StreamBody};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error as HttpError, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks,
};

pub use self::address::{AddressPolicy, ClosedAddress};
pub use self::denial::{Denial, Refusal};
pub use self::grant::{Grant, GrantError};
pub(crate) use self::grant::{HostPattern, borrowed};
pub use self::internet::{Internet, InternetError, InternetOptions, Resolver, SystemResolver};
pub use self::signer::{Bearer, Credential, SignError, Signer};
pub use self::transport::{InProcess, ReplyBody, Transport, TransportError};
use crate::limits::Limits;
use crate::log::Log;

/// The guest names a credential slot in this header; the host replaces it by a signature.
pub const SLOT_HEADER: HeaderName = HeaderName::from_static("x-autoscaler-credential");

/// Longest address of a request.
const MOST_URL_BYTES: usize = 8 << 10;
/// Most headers of a request.
const MOST_HEADERS: usize = 64;
/// Longest wait for the head of a response, and for the next piece of its body, unless the guest wants less.
const PATIENCE: Duration = Duration::from_secs(30);

const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// Headers that concern one connection only, or that the client sets itself.
const OURS: [HeaderName; 5] =
    [header::TE, header::TRAILER, header::EXPECT, header::CONTENT_LENGTH, HeaderName::from_static("proxy-connection")];

/// Headers of a response that could carry a credential back.
const SECRET: [HeaderName; 3] = [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, SLOT_HEADER];

/// What the operator grants one plug-in on the network. The default grants nothing.
#[derive(Clone, Debug, Default)]
pub struct NetworkGrants {
    /// Places that it may talk to.
    pub hosts: Vec<Grant>,
    /// Credential slots by name.
    pub credentials: BTreeMap<String, Credential>,
    /// Address ranges opened for it, and closed for everybody.
    pub addresses: AddressPolicy,
    /// File that holds these grants, for messages; empty if there is none.
    pub file: String,
}

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

/// A request that passed the checks: where it goes, and which credential it names.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Permit {
    url: Url,
    slot: Option<String>,
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
    fn permit(&self, parts: &request::Parts) -> Result<Permit, Refusal> {
        let grants = &self.0.grants;
        if !METHODS.contains(&parts.method) {
            return Err(Refusal::Method);
        }
        let text = parts.uri.to_string();
        if text.len() > MOST_URL_BYTES {
            return Err(Refusal::TooLong);
        }
        // One parser for the check, the signature and the connection: what is checked is what is sent.
        let url = Url::parse(&text).map_err(|_| Refusal::NoAddress)?;
        if !url.username().is_empty() || url.password().is_some() || has_user(&parts.uri) {
            return Err(Refusal::UserInfo);
        }
        if !grants.hosts.iter().any(|grant| grant.covers(&url)) {
            return Err(Refusal::NoGrant { entry: Grant::entry_for(&url), encrypted: url.scheme() == "https" });
        }
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            _ => None,
        };
        literal.map_or(Ok(()), |address| grants.addresses.check(address)).map_err(Refusal::Address)?;
        if parts.headers.len() > MOST_HEADERS {
            return Err(Refusal::TooManyHeaders);
        }
        if parts.headers.contains_key(header::AUTHORIZATION) {
            return Err(Refusal::Authorization);
        }
        let slot = self.slot(&parts.headers, &url)?;
        Ok(Permit { url, slot })
    }

    /// The credential slot that the request names, if it may.
    fn slot(&self, headers: &HeaderMap, url: &Url) -> Result<Option<String>, Refusal> {
        let mut named = headers.get_all(SLOT_HEADER).iter();
        let Some(slot) = named.next() else { return Ok(None) };
        let slot = slot.to_str().unwrap_or_default().to_owned();
        if named.next().is_some() {
            return Err(Refusal::TwoSlots);
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        match self.0.grants.credentials.get(&slot) {
            None => Err(Refusal::UnknownSlot { slot, host }),
            Some(credential) if url.host().is_some_and(|host| credential.hosts.iter().any(|h| h.covers(&host))) => {
                Ok(Some(slot))
            }
            Some(_) => Err(Refusal::SlotElsewhere { slot, host }),
        }
    }

    /// Tells the operator, and gives the guest a code.
    fn refuse(&self, method: &Method, uri: &Uri, refusal: Refusal) -> HttpError {
        let code = refusal.code();
        let grants = &self.0.grants;
        let hosts = grants.hosts.iter().map(ToString::to_string).collect();
        self.0.log.denied(Denial::new(&self.0.plugin, method.as_str(), uri, refusal, hosts, &grants.file));
        code
    }

    async fn exchange(self, request: Request<WasiBody>, waits: Waits) -> Result<Response<WasiBody>, HttpError> {
        let (mut parts, body) = request.into_parts();
        let permit = self.permit(&parts).map_err(|refusal| self.refuse(&parts.method, &parts.uri, refusal))?;
        parts.uri = permit.url.as_str().parse().map_err(|_| HttpError::HttpRequestUriInvalid)?;
        for name in OURS.iter().chain(&DEFAULT_FORBIDDEN_HEADERS).chain([&SLOT_HEADER]) {
            parts.headers.remove(name);
        }
        let turn = timeout_at(waits.deadline, self.0.exchanges.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| HttpError::ConnectionLimitReached)?;
        let turn = turn.map_err(|_| HttpError::ConnectionTerminated)?;
        let mut request = Request::from_parts(parts, self.whole(body, waits).await?);
        if let Some(slot) = &permit.slot {
            self.sign(slot, &mut request, waits).await?;
        }
        let (head, body) = self.send(request, waits).await?.into_parts();
        Ok(Response::from_parts(head, bounded(body, self.0.response_body_bytes, waits, turn)))
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

    async fn sign(&self, slot: &str, request: &mut Request<Bytes>, waits: Waits) -> Result<(), HttpError> {
        let Some(credential) = self.0.grants.credentials.get(slot) else { return Err(HttpError::HttpRequestDenied) };
        let signed = timeout_at(waits.deadline, credential.signer.sign(request)).await;
        let signed = signed.unwrap_or_else(|_| Err(SignError::Other("it took too long".to_owned())));
        signed.map_err(|error| {
            let plugin = &self.0.plugin;
            self.0.log.warn(format!("credential {slot:?} of plugin {plugin:?} cannot be used: {error}"));
            HttpError::ConfigurationError
        })
    }

    /// Sends, and cleans the head of the response.
    async fn send(&self, request: Request<Bytes>, waits: Waits) -> Result<Response<ReplyBody>, HttpError> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let reply = timeout_at(waits.first_byte(), self.0.transport.send(request)).await;
        let mut reply = reply.map_err(|_| HttpError::ConnectionReadTimeout)?.map_err(|error| match error {
            TransportError::Closed(closed) => self.refuse(&method, &uri, Refusal::Address(closed)),
            error => code(error),
        })?;
        let headers = reply.headers_mut();
        for name in SECRET.iter().chain(&DEFAULT_FORBIDDEN_HEADERS).chain([&header::TE, &header::TRAILER]) {
            headers.remove(name);
        }
        let header_bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if header_bytes > self.0.header_bytes {
            return Err(HttpError::HttpResponseHeaderSectionSize(u32::try_from(header_bytes).ok()));
        }
        Ok(reply)
    }
}

/// `http::Uri` keeps user information in the authority.
fn has_user(uri: &Uri) -> bool {
    uri.authority().is_some_and(|authority| authority.as_str().contains('@'))
}

/// How long the parts of an exchange may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// Longest wait for the head; from the start of sending.
    first_byte: Duration,
    /// Longest gap in the body.
    between_bytes: Duration,
    /// When everything must be over, so that the guest can still report.
    deadline: Instant,
}

impl Waits {
    fn first_byte(&self) -> Instant {
        self.deadline.min(Instant::now() + self.first_byte)
    }
    fn next_piece(&self) -> Instant {
        self.deadline.min(Instant::now() + self.between_bytes)
    }
}

/// The body as it arrives, with an end to its size, its gaps and its time.
fn bounded(body: ReplyBody, limit: usize, waits: Waits, turn: OwnedSemaphorePermit) -> WasiBody {
    let pieces = stream::unfold(Some((body, limit, turn)), move |state| async move {
        let (mut body, left, turn) = state?;
        loop {
            let frame = match timeout_at(waits.next_piece(), body.frame()).await {
                Err(_) if Instant::now() >= waits.deadline => return Some((Err(HttpError::HttpResponseTimeout), None)),
                Err(_) => return Some((Err(HttpError::ConnectionReadTimeout), None)),
                Ok(None) => return None,
                Ok(Some(Err(error))) => return Some((Err(code(error)), None)),
                Ok(Some(Ok(frame))) => frame,
            };
            // Trailers have no use here.
            let Some(piece) = frame.data_ref() else { continue };
            return match left.checked_sub(piece.len()) {
                Some(left) => Some((Ok(frame), Some((body, left, turn)))),
                None => Some((Err(HttpError::HttpResponseBodySize(u64::try_from(limit).ok())), None)),
            };
        }
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// What a guest is told. Details are for the operator.
fn code(error: TransportError) -> HttpError {
    match error {
        TransportError::Unresolved(rcode) => HttpError::DnsError { rcode: Some(rcode), info_code: None },
        TransportError::Closed(_) => HttpError::DestinationIpProhibited,
        TransportError::Refused => HttpError::ConnectionRefused,
        TransportError::ConnectTimeout => HttpError::ConnectionTimeout,
        TransportError::Tls(_) => HttpError::TlsCertificateError,
        TransportError::Broken(_) => HttpError::ConnectionTerminated,
        TransportError::Other(text) => HttpError::InternalError(Some(text)),
    }
}

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

    fn waits(&self, options: Option<RequestOptions>) -> Waits {
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
        let exchange = egress.exchange(request, waits);
        Box::new(async move { Ok((exchange.await?, Box::new(async { Ok(()) }) as Io)) })
    }
}

#[cfg(test)]
mod tests;
