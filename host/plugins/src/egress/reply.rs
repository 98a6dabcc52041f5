//! A response on its way to the guest: bounded in size and time, and cleaned of what signed the request.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use wasmtime_wasi_http::{DEFAULT_FORBIDDEN_HEADERS, Error as HttpError, WasiBody};

use super::SLOT_HEADER;
use super::redact::Redactor;
use super::tally::Tally;
use super::transport::{ReplyBody, TransportError};

/// Headers of a response that could carry a credential back.
const SECRET: [HeaderName; 4] =
    [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, SLOT_HEADER, HeaderName::from_static("x-acs-security-token")];

/// How long the parts of an exchange may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// Longest wait for the head; from the start of sending.
    pub(super) first_byte: Duration,
    /// Longest gap in the body.
    pub(super) between_bytes: Duration,
    /// When everything must be over, so that the guest can still report.
    pub(super) deadline: Instant,
}

impl Waits {
    pub(super) fn first_byte(&self) -> Instant {
        self.deadline.min(Instant::now() + self.first_byte)
    }
    fn next_piece(&self) -> Instant {
        self.deadline.min(Instant::now() + self.between_bytes)
    }
}

/// Takes out of a head what the guest must not see.
///
/// # Errors
/// If the head is larger than allowed, or if the body is packed, so that nobody could see what is in it.
pub(super) fn clean(headers: &mut HeaderMap, most_bytes: usize, redactor: &Redactor) -> Result<(), HttpError> {
    for name in SECRET.iter().chain(&DEFAULT_FORBIDDEN_HEADERS).chain([&header::TE, &header::TRAILER]) {
        headers.remove(name);
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > most_bytes {
        return Err(HttpError::HttpResponseHeaderSectionSize(u32::try_from(bytes).ok()));
    }
    if redactor.is_idle() {
        return Ok(());
    }
    let packed = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"identity");
    if let Some(value) = headers.get_all(header::CONTENT_ENCODING).iter().find(|value| packed(value)) {
        return Err(HttpError::HttpResponseContentCoding(value.to_str().ok().map(str::to_owned)));
    }
    for value in headers.values_mut() {
        if let Some(clean) = redactor.redacted(value.as_bytes()) {
            *value = HeaderValue::from_bytes(&clean).unwrap_or_else(|_| HeaderValue::from_static("***"));
        }
    }
    Ok(())
}

/// What goes with a body until its end.
pub(super) struct Escort {
    /// Most bytes of the body.
    pub(super) limit: usize,
    /// How many of them came.
    pub(super) came: usize,
    pub(super) waits: Waits,
    /// The exchange's place among those that run at once.
    pub(super) _turn: OwnedSemaphorePermit,
    pub(super) redactor: Redactor,
    pub(super) tally: Tally,
}

/// The body as it arrives, with an end to its size, its gaps and its time.
pub(super) fn bounded(body: ReplyBody, escort: Escort) -> WasiBody {
    let pieces = stream::unfold(Some((body, escort)), |state| async move {
        let (mut body, mut escort) = state?;
        match piece(&mut body, &mut escort).await {
            Ok(Some(bytes)) => Some((Ok(Frame::data(bytes)), Some((body, escort)))),
            Ok(None) => {
                escort.tally.answered();
                let rest = escort.redactor.finish();
                (!rest.is_empty()).then(|| (Ok(Frame::data(rest)), None))
            }
            Err(error) => {
                escort.tally.failed(&error);
                Some((Err(error), None))
            }
        }
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// How much of a refusal is looked at by the host.
const PEEKED: usize = 16 << 10;

/// The begin of a body, and the body with it.
///
/// # Errors
/// If it breaks off or stalls before so much has come.
pub(super) async fn peek(mut body: ReplyBody, waits: Waits) -> Result<(Bytes, ReplyBody), HttpError> {
    let mut begin = BytesMut::new();
    while begin.len() < PEEKED {
        let Some(frame) = next(&mut body, waits).await? else { break };
        if let Ok(data) = frame.into_data() {
            begin.extend_from_slice(&data);
        }
    }
    let begin = begin.freeze();
    let whole = stream::iter([Ok(Frame::data(begin.clone()))]).chain(BodyStream::new(body));
    Ok((begin, StreamBody::new(whole).boxed_unsync()))
}

/// The next frame as it came; none: the end.
async fn next(body: &mut ReplyBody, waits: Waits) -> Result<Option<Frame<Bytes>>, HttpError> {
    match timeout_at(waits.next_piece(), body.frame()).await {
        Err(_) if Instant::now() >= waits.deadline => Err(HttpError::HttpResponseTimeout),
        Err(_) => Err(HttpError::ConnectionReadTimeout),
        Ok(None) => Ok(None),
        Ok(Some(Err(error))) => Err(code(&error)),
        Ok(Some(Ok(frame))) => Ok(Some(frame)),
    }
}

/// The next piece; none: the end.
async fn piece(body: &mut ReplyBody, escort: &mut Escort) -> Result<Option<Bytes>, HttpError> {
    loop {
        let Some(frame) = next(body, escort.waits).await? else { return Ok(None) };
        // Trailers have no use here.
        let Ok(data) = frame.into_data() else { continue };
        escort.came = escort.came.saturating_add(data.len());
        if escort.came > escort.limit {
            return Err(HttpError::HttpResponseBodySize(u64::try_from(escort.limit).ok()));
        }
        let clean = escort.redactor.pass(data);
        if !clean.is_empty() {
            return Ok(Some(clean));
        }
    }
}

/// What a guest is told. Details are for the operator: they may hold the address with its signature.
pub(super) fn code(error: &TransportError) -> HttpError {
    match error {
        TransportError::Unresolved(rcode) => HttpError::DnsError { rcode: Some(rcode.clone()), info_code: None },
        TransportError::Closed(_) => HttpError::DestinationIpProhibited,
        TransportError::Refused => HttpError::ConnectionRefused,
        TransportError::ConnectTimeout => HttpError::ConnectionTimeout,
        TransportError::Tls(_) => HttpError::TlsCertificateError,
        TransportError::Broken(_) => HttpError::ConnectionTerminated,
        TransportError::Other(_) => HttpError::InternalError(None),
    }
}
