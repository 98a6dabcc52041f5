//! A whole answer.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::error::{Error, Failure};
use super::{Answer, Outgoing};

/// The answer to a request, with any status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    pub(super) call: Call,
    answer: Answer,
}

/// Which request it was, for messages, without its query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Call {
    pub(super) text: String,
    pub(super) changes_something: bool,
}

impl Call {
    pub(super) fn of(request: &Outgoing, changes_something: bool) -> Self {
        let path = request.path_and_query.split('?').next().unwrap_or_default();
        Self { text: format!("{} {}{path}", request.method.as_str(), request.authority), changes_something }
    }
}

impl Response {
    pub(super) fn new(call: Call, answer: Answer) -> Self {
        Self { call, answer }
    }

    /// HTTP status.
    pub fn status(&self) -> u16 {
        self.answer.status
    }

    /// Whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        matches!(self.answer.status, 200..=299)
    }

    /// Value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.answer.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.answer.body
    }

    /// The beginning of the body as one line of text, for messages.
    pub fn excerpt(&self) -> String {
        const LONGEST: usize = 200;
        let text = String::from_utf8_lossy(&self.answer.body);
        let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = line.char_indices().nth(LONGEST) {
            line.truncate(end);
            line.push('…');
        }
        line
    }

    /// The header `retry-after`, if it is in seconds (a date is ignored).
    pub fn retry_after(&self) -> Option<Duration> {
        self.header("retry-after")?.trim().parse().ok().map(Duration::from_secs)
    }

    /// The same answer if its status is 2xx.
    ///
    /// # Errors
    /// [`Failure::Status`] with the answer for any other status, redirects included: they are never followed.
    pub fn success(self) -> Result<Self, Error> {
        if self.is_success() { Ok(self) } else { Err(Error::new(self.call.clone(), Failure::Status(Box::new(self)))) }
    }

    /// The body read as JSON, whatever the status.
    ///
    /// # Errors
    /// [`Failure::Undecodable`] with the place of the fault.
    pub fn json<D: DeserializeOwned>(&self) -> Result<D, Error> {
        serde_json::from_slice(&self.answer.body).map_err(|error| {
            let what = format!("{error}; status {}, body: {}", self.status(), self.excerpt());
            Error::new(self.call.clone(), Failure::Undecodable(what))
        })
    }
}
