//! What a client sees of a request: an answer, late or in pieces, or no answer at all.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};

/// What comes back over the wire.
#[derive(Debug)]
pub enum Answer {
    /// An answer.
    Reply(Box<Reply>),
    /// Nothing listens: nothing was sent.
    Refused,
    /// The name has no address: nothing was sent.
    NoAddress,
    /// The certificate is for another name: nothing was sent.
    WrongName,
    /// The connection broke after the request was sent. Whether it was handled, the journal knows and the client does not.
    Reset,
}

/// An answer and how it arrives.
#[derive(Debug)]
pub struct Reply {
    /// The answer. Of a body that broke off, this is the part that came.
    pub response: Response<Bytes>,
    /// How long its head takes to come.
    pub head_after: Duration,
    /// How long its body takes from first to last byte.
    pub body_over: Duration,
    /// How many bytes come at once; none: all.
    pub chunk_bytes: Option<usize>,
    /// The body breaks off before its announced end.
    pub broken: bool,
}

impl Answer {
    /// An answer that comes at once and whole.
    pub fn whole(response: Response<Bytes>) -> Self {
        Self::Reply(Box::new(Reply {
            response,
            head_after: Duration::ZERO,
            body_over: Duration::ZERO,
            chunk_bytes: None,
            broken: false,
        }))
    }

    /// The answer, if one came whole within `timeout`; else what a client can say of it.
    ///
    /// # Errors
    /// [`Lost`]: nothing or not everything came.
    pub fn within(self, timeout: Duration) -> Result<Response<Bytes>, Lost> {
        match self {
            Self::Refused => Err(Lost::Refused),
            Self::NoAddress => Err(Lost::NoAddress),
            Self::WrongName => Err(Lost::WrongName),
            Self::Reset => Err(Lost::Reset),
            Self::Reply(reply) if reply.head_after + reply.body_over > timeout => Err(Lost::Timeout),
            Self::Reply(reply) if reply.broken => Err(Lost::Truncated),
            Self::Reply(reply) => Ok(reply.response),
        }
    }
}

/// Why a client got no whole answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Lost {
    /// Nothing was sent.
    #[error("connection refused")]
    Refused,
    /// Nothing was sent.
    #[error("name has no address")]
    NoAddress,
    /// Nothing was sent.
    #[error("certificate is for another name")]
    WrongName,
    /// The request was sent.
    #[error("connection reset")]
    Reset,
    /// The request was sent.
    #[error("no whole answer in time")]
    Timeout,
    /// The request was sent.
    #[error("the body broke off")]
    Truncated,
}

impl Lost {
    /// Whether the request reached the cloud, as far as the client can know.
    pub fn sent(self) -> bool {
        matches!(self, Self::Reset | Self::Timeout | Self::Truncated)
    }
}

/// An answer with a body of the given type.
pub fn response(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}

/// An answer with a JSON body.
pub fn json(status: u16, body: &serde_json::Value) -> Response<Bytes> {
    response(status, "application/json;charset=utf-8", body.to_string())
}
