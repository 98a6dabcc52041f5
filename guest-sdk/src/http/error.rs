//! What can go wrong with a request.

use super::response::Call;
use super::{Response, SendError};

/// Why a request gave no usable answer. `?` turns it into a [`PluginError`](crate::PluginError).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {failure}", call.text)]
pub struct Error {
    call: Call,
    failure: Failure,
}

/// The kinds of failure. They differ in whether the cloud can have acted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// The operator grants no access to this place, or no such credential; nothing was sent.
    #[error("not granted: {0}")]
    Denied(String),
    /// The request itself is not valid, such as a header that cannot be; nothing was sent.
    #[error("not a valid request: {0}")]
    Invalid(String),
    /// Nothing was sent: no address, no connection, or no time left.
    #[error("not sent: {0}")]
    NotSent(String),
    /// No whole answer came: the cloud may have acted.
    #[error("{0}")]
    Lost(String),
    /// The answer is longer than allowed: the cloud may have acted.
    #[error("the answer is longer than {limit_bytes} bytes")]
    TooLarge {
        /// What was allowed.
        limit_bytes: usize,
    },
    /// The cloud answered with a status other than 2xx.
    #[error("status {}{}", .0.status(), excerpt(.0))]
    Status(Box<Response>),
    /// The answer is not what it should be: the cloud may have acted.
    #[error("cannot read the answer: {0}")]
    Undecodable(String),
}

fn excerpt(response: &Response) -> String {
    match response.excerpt() {
        text if text.is_empty() => text,
        text => format!(": {text}"),
    }
}

impl Error {
    pub(super) fn new(call: Call, failure: Failure) -> Self {
        Self { call, failure }
    }

    pub(super) fn of_send(call: Call, error: SendError, limit_bytes: usize) -> Self {
        let failure = match error {
            SendError::Denied(why) => Failure::Denied(why),
            SendError::Invalid(why) => Failure::Invalid(why),
            SendError::NotSent(why) => Failure::NotSent(why),
            SendError::Lost(why) => Failure::Lost(why),
            SendError::TooLarge => Failure::TooLarge { limit_bytes },
        };
        Self::new(call, failure)
    }

    /// What happened.
    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// The cloud's answer, if its status was the trouble. Look here for the cloud's own error body.
    pub fn response(&self) -> Option<&Response> {
        if let Failure::Status(response) = &self.failure { Some(response) } else { None }
    }

    /// Whether the cloud may have acted although no good answer came. Never for a request that changes nothing.
    ///
    /// An error of the server (5xx) counts: gateways report one after the server behind them has acted.
    pub fn outcome_unknown(&self) -> bool {
        let may_have_acted = match &self.failure {
            Failure::Denied(_) | Failure::Invalid(_) | Failure::NotSent(_) => false,
            Failure::Lost(_) | Failure::TooLarge { .. } | Failure::Undecodable(_) => true,
            Failure::Status(response) => response.status() >= 500 || response.status() == 408,
        };
        may_have_acted && self.call.changes_something
    }

    /// A short stable name of the failure; for a status its number.
    pub fn code(&self) -> String {
        match &self.failure {
            Failure::Denied(_) => "denied".to_owned(),
            Failure::Invalid(_) => "invalid-request".to_owned(),
            Failure::NotSent(_) => "not-sent".to_owned(),
            Failure::Lost(_) => "no-answer".to_owned(),
            Failure::TooLarge { .. } => "answer-too-large".to_owned(),
            Failure::Undecodable(_) => "undecodable".to_owned(),
            Failure::Status(response) => response.status().to_string(),
        }
    }
}
