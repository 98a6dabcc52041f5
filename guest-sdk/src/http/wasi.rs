//! The standard `wasi:http` outgoing handler.

use super::{Answer, Method, Outgoing, Scheme, SendError, Transport, Wasi};
use crate::bindings::system::http::outgoing_handler::handle;
use crate::bindings::system::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingResponse, Method as WasiMethod, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme as WasiScheme,
};
use crate::bindings::system::io::streams::StreamError;

/// Most bytes that one blocking write may carry, by the rules of `wasi:io`.
const MAX_WRITE: usize = 4096;
/// Bytes to ask for in one read.
const READ_CHUNK: u64 = 64 << 10;
/// Requests in flight at one time.
const PARALLEL: usize = 8;

impl Transport for Wasi {
    fn send(&self, request: &Outgoing) -> Result<Answer, SendError> {
        Flight::start(request)?.land()
    }

    fn send_all(&self, requests: &[Outgoing]) -> Vec<Result<Answer, SendError>> {
        let mut answers = Vec::with_capacity(requests.len());
        for batch in requests.chunks(PARALLEL) {
            let flights: Vec<_> = batch.iter().map(Flight::start).collect();
            answers.extend(flights.into_iter().map(|flight| flight?.land()));
        }
        answers
    }
}

/// A request on its way.
struct Flight {
    answer: FutureIncomingResponse,
    max_answer_bytes: usize,
}

impl Flight {
    fn start(request: &Outgoing) -> Result<Self, SendError> {
        let outgoing = outgoing_request(request)?;
        let broken = |()| SendError::NotSent("the host gave no body to write to".to_owned());
        let body = outgoing.body().map_err(broken)?;
        // Handed over before the body is written: a body longer than the host's buffer would wait for ever.
        let answer = handle(outgoing, Some(options(request))).map_err(refused)?;
        if let Some(bytes) = &request.body {
            let stream = body.write().map_err(broken)?;
            for chunk in bytes.chunks(MAX_WRITE) {
                if stream.blocking_write_and_flush(chunk).is_err() {
                    // The answer, or the error that it is, says why.
                    break;
                }
            }
        }
        if OutgoingBody::finish(body, None).is_err() {
            return Self { answer, max_answer_bytes: request.max_answer_bytes }.refusal();
        }
        Ok(Self { answer, max_answer_bytes: request.max_answer_bytes })
    }

    /// The body could not be sent whole. If the host knows why, that is the error.
    fn refusal(self) -> Result<Self, SendError> {
        self.response().and(Err(SendError::Lost("the body could not be sent whole".to_owned())))
    }

    fn response(&self) -> Result<IncomingResponse, SendError> {
        let broken = || SendError::Lost("the host gave no answer".to_owned());
        self.answer.subscribe().block();
        self.answer.get().ok_or_else(broken)?.map_err(|()| broken())?.map_err(refused)
    }

    fn land(self) -> Result<Answer, SendError> {
        let response = self.response()?;
        let status = response.status();
        let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
        let headers = response.headers().entries();
        let headers = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), text(value))).collect();
        Ok(Answer { status, headers, body: read(&response, self.max_answer_bytes)? })
    }
}

fn outgoing_request(request: &Outgoing) -> Result<OutgoingRequest, SendError> {
    let fields = Fields::new();
    for (name, value) in &request.headers {
        fields.append(name, value.as_bytes()).map_err(|error| {
            SendError::Invalid(format!("the host takes no header {name:?} with this value: {error}"))
        })?;
    }
    let outgoing = OutgoingRequest::new(fields);
    let invalid = |what: &str| SendError::Invalid(format!("the host does not take the {what}"));
    outgoing.set_method(&method(request.method)).map_err(|()| invalid("method"))?;
    outgoing.set_scheme(Some(&scheme(request.scheme))).map_err(|()| invalid("scheme"))?;
    outgoing.set_authority(Some(&request.authority)).map_err(|()| invalid("host"))?;
    outgoing.set_path_with_query(Some(&request.path_and_query)).map_err(|()| invalid("path"))?;
    Ok(outgoing)
}

fn options(request: &Outgoing) -> RequestOptions {
    let nanos = u64::try_from(request.timeout.as_nanos()).ok();
    let options = RequestOptions::new();
    // A host may support fewer time-outs; it enforces its own in any case.
    let _ = options.set_connect_timeout(nanos);
    let _ = options.set_first_byte_timeout(nanos);
    let _ = options.set_between_bytes_timeout(nanos);
    options
}

fn read(response: &IncomingResponse, max_bytes: usize) -> Result<Vec<u8>, SendError> {
    let taken = |()| SendError::Lost("the body was taken before".to_owned());
    let body = response.consume().map_err(taken)?;
    // Dropped before the body, as the host demands.
    let stream = body.stream().map_err(taken)?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(READ_CHUNK) {
            Ok(chunk) => bytes.extend(chunk),
            Err(StreamError::Closed) => return Ok(bytes),
            Err(StreamError::LastOperationFailed(error)) => {
                return Err(SendError::Lost(format!("the body broke off: {}", error.to_debug_string())));
            }
        }
        if bytes.len() > max_bytes {
            return Err(SendError::TooLarge);
        }
    }
}

fn method(method: Method) -> WasiMethod {
    match method {
        Method::Get => WasiMethod::Get,
        Method::Head => WasiMethod::Head,
        Method::Post => WasiMethod::Post,
        Method::Put => WasiMethod::Put,
        Method::Patch => WasiMethod::Patch,
        Method::Delete => WasiMethod::Delete,
    }
}

fn scheme(scheme: Scheme) -> WasiScheme {
    match scheme {
        Scheme::Https => WasiScheme::Https,
        Scheme::Http => WasiScheme::Http,
    }
}

/// Whether the request can have reached the cloud decides whether a write may be repeated blindly.
fn refused(code: ErrorCode) -> SendError {
    match code {
        ErrorCode::HttpRequestDenied => SendError::Denied("the operator grants no access to this place".to_owned()),
        ErrorCode::DestinationIpProhibited => {
            SendError::Denied("the host resolves to an address that the operator did not grant".to_owned())
        }
        ErrorCode::HttpRequestMethodInvalid
        | ErrorCode::HttpRequestUriInvalid
        | ErrorCode::HttpRequestUriTooLong
        | ErrorCode::HttpRequestLengthRequired
        | ErrorCode::HttpRequestBodySize(_)
        | ErrorCode::HttpRequestHeaderSectionSize(_)
        | ErrorCode::HttpRequestHeaderSize(_)
        | ErrorCode::ConfigurationError => SendError::Invalid(text_of(code)),
        ErrorCode::DnsTimeout
        | ErrorCode::DnsError(_)
        | ErrorCode::DestinationNotFound
        | ErrorCode::DestinationIpUnroutable
        | ErrorCode::ConnectionRefused
        | ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionLimitReached
        | ErrorCode::TlsCertificateError => SendError::NotSent(text_of(code)),
        other => SendError::Lost(text_of(other)),
    }
}

/// For people; codes that are rare keep their name.
fn text_of(code: ErrorCode) -> String {
    let text = match code {
        ErrorCode::DnsTimeout => "the name could not be resolved in time",
        ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => "the name cannot be resolved",
        ErrorCode::ConnectionRefused => "the connection was refused",
        ErrorCode::ConnectionTimeout => "no connection in time",
        ErrorCode::ConnectionLimitReached => "too many connections are open",
        ErrorCode::ConnectionTerminated => "the connection broke off",
        ErrorCode::ConnectionReadTimeout | ErrorCode::HttpResponseTimeout => "no answer in time",
        ErrorCode::ConnectionWriteTimeout => "the request could not be sent in time",
        ErrorCode::TlsCertificateError => "the certificate is not trusted",
        ErrorCode::HttpProtocolError => "the answer is no HTTP",
        ErrorCode::HttpResponseIncomplete => "the answer is not whole",
        ErrorCode::InternalError(Some(text)) => return text,
        other => return other.to_string(),
    };
    text.to_owned()
}
