//! What carries a request: the host in a component, a closure in a test.

use std::time::Duration;

use serde::Serialize;

use super::Method;

/// How the authority is spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// Encrypted.
    Https,
    /// In the clear; a host grants it only where the operator asked for it.
    Http,
}

/// A request that is ready to go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Method.
    pub method: Method,
    /// Scheme.
    pub scheme: Scheme,
    /// Host, with a port if it is not the usual one.
    pub authority: String,
    /// Path and query, encoded, beginning with a slash.
    pub path_and_query: String,
    /// Headers; names are in lower case.
    pub headers: Vec<(String, String)>,
    /// Body; none for a request without one.
    pub body: Option<Vec<u8>>,
    /// Longest wait for the answer.
    pub timeout: Duration,
    /// Most bytes of the answer's body.
    pub max_answer_bytes: usize,
}

impl Outgoing {
    /// Value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers; names are in lower case.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer with a JSON body. (A value that has no JSON form gives an empty body.)
    pub fn json(status: u16, value: &(impl Serialize + ?Sized)) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { status, headers, body: serde_json::to_vec(value).unwrap_or_default() }
    }

    /// An answer with a text body.
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: vec![], body: body.into().into_bytes() }
    }

    /// The same with one more header.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        self
    }
}

/// Why nothing came back. The kinds differ in whether the cloud can have acted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The operator grants no access to this place; nothing was sent.
    Denied(String),
    /// The request itself is not valid, such as a header that may not be set; nothing was sent.
    Invalid(String),
    /// It never left: no address, no connection.
    NotSent(String),
    /// It left, and no whole answer came: the cloud may have acted.
    Lost(String),
    /// The answer is longer than allowed: the cloud may have acted.
    TooLarge,
}

/// Carries requests.
pub trait Transport {
    /// Send one request and wait for the answer.
    ///
    /// # Errors
    /// No whole answer came; see [`SendError`].
    fn send(&self, request: &Outgoing) -> Result<Answer, SendError>;

    /// Send several requests and wait for all answers, in the same order. At once, where that is possible.
    fn send_all(&self, requests: &[Outgoing]) -> Vec<Result<Answer, SendError>> {
        requests.iter().map(|request| self.send(request)).collect()
    }
}

impl<T: Transport + ?Sized> Transport for &T {
    fn send(&self, request: &Outgoing) -> Result<Answer, SendError> {
        (**self).send(request)
    }

    fn send_all(&self, requests: &[Outgoing]) -> Vec<Result<Answer, SendError>> {
        (**self).send_all(requests)
    }
}

impl<T: Transport + ?Sized> Transport for std::rc::Rc<T> {
    fn send(&self, request: &Outgoing) -> Result<Answer, SendError> {
        (**self).send(request)
    }

    fn send_all(&self, requests: &[Outgoing]) -> Vec<Result<Answer, SendError>> {
        (**self).send_all(requests)
    }
}

/// The host's `wasi:http`. Outside a component it sends nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wasi;

#[cfg(not(target_arch = "wasm32"))]
impl Transport for Wasi {
    fn send(&self, request: &Outgoing) -> Result<Answer, SendError> {
        Err(SendError::NotSent(format!("{} can only be reached from a component inside its host", request.authority)))
    }
}
