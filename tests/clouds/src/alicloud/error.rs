//! Errors in the shape that every product shares.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use crate::answer;

/// An error as the cloud reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// Code.
    pub code: String,
    /// Text for people.
    pub message: String,
    /// `AccessDeniedDetail`, where there is one.
    pub detail: Option<Value>,
}

impl ApiError {
    /// An error with any status.
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into(), detail: None }
    }

    /// Status 400.
    pub fn bad(code: &str, message: impl Into<String>) -> Self {
        Self::new(400, code, message)
    }

    /// Status 404.
    pub fn missing(code: &str, message: impl Into<String>) -> Self {
        Self::new(404, code, message)
    }

    /// Status 403.
    pub fn forbidden(code: &str, message: impl Into<String>) -> Self {
        Self::new(403, code, message)
    }

    /// The answer.
    pub fn response(&self, host: &str, request_id: &str) -> Response<Bytes> {
        let mut body = json!({
            "RequestId": request_id,
            "HostId": host,
            "Code": self.code,
            "Message": self.message,
            "Recommend": format!("https://api.aliyun.com/troubleshoot?q={}&product=Ess", self.code),
        });
        if let (Some(detail), Some(body)) = (&self.detail, body.as_object_mut()) {
            body.insert("AccessDeniedDetail".to_owned(), detail.clone());
        }
        answer::json(self.status, &body)
    }
}
