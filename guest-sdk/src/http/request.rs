//! A request before it knows its host.

use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::PluginError;

/// What stays as it is in one segment of a path, by RFC 3986: letters, digits and `-._~`.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// HTTP method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Read.
    Get,
    /// Read headers only.
    Head,
    /// Do.
    Post,
    /// Replace.
    Put,
    /// Change a part.
    Patch,
    /// Remove.
    Delete,
}

impl Method {
    /// As it is written in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// A request to a path below a client's base URL.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "a request does nothing until a client sends it"]
pub struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) timeout: Option<Duration>,
    pub(super) changes_something: bool,
}

impl Request {
    /// A request with any method. The path begins with a slash; `{}` in it is filled by [`segment`](Self::segment).
    pub fn new(method: Method, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            query: String::new(),
            headers: vec![],
            body: None,
            timeout: None,
            changes_something: !matches!(method, Method::Get | Method::Head),
        }
    }

    /// Read.
    pub fn get(path: &str) -> Self {
        Self::new(Method::Get, path)
    }

    /// Do.
    pub fn post(path: &str) -> Self {
        Self::new(Method::Post, path)
    }

    /// Replace.
    pub fn put(path: &str) -> Self {
        Self::new(Method::Put, path)
    }

    /// Change a part.
    pub fn patch(path: &str) -> Self {
        Self::new(Method::Patch, path)
    }

    /// Remove.
    pub fn delete(path: &str) -> Self {
        Self::new(Method::Delete, path)
    }

    /// Fills the first `{}` of the path, encoded so that it stays one segment.
    pub fn segment(mut self, value: &str) -> Self {
        // A segment of dots would climb the path after normalization.
        let encoded = match value {
            "." => "%2E".to_owned(),
            ".." => "%2E%2E".to_owned(),
            value => utf8_percent_encode(value, SEGMENT).to_string(),
        };
        self.path = self.path.replacen("{}", &encoded, 1);
        self
    }

    /// Adds a query parameter, encoded.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        if !self.query.is_empty() {
            self.query.push('&');
        }
        self.query.extend(utf8_percent_encode(name, SEGMENT));
        self.query.push('=');
        self.query.extend(utf8_percent_encode(value, SEGMENT));
        self
    }

    /// Adds a header. `authorization` cannot be set by a plug-in; name a credential slot instead.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        self
    }

    /// With a JSON body.
    ///
    /// # Errors
    /// Class `other`, code `encode`: the value has no JSON form, such as a map whose keys are not text.
    pub fn json(self, value: &(impl Serialize + ?Sized)) -> Result<Self, PluginError> {
        let body = serde_json::to_vec(value).map_err(|error| {
            PluginError::other(
                "encode",
                format!("the body of {} {} has no JSON form: {error}", self.method.as_str(), self.path),
            )
        })?;
        Ok(self.body("application/json", body))
    }

    /// With a body of form fields.
    pub fn form(self, fields: &[(&str, &str)]) -> Self {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.body("application/x-www-form-urlencoded", body.into_bytes())
    }

    /// With a body of any type.
    pub fn body(mut self, content_type: &str, body: Vec<u8>) -> Self {
        self.body = Some(body);
        self.header("content-type", content_type)
    }

    /// Do not wait longer than this for the answer, even if the deadline of the call is later.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Changes nothing although its method is not GET, as in clouds where every call is a POST. A lost answer then leaves
    /// nothing unknown.
    pub fn read_only(mut self) -> Self {
        self.changes_something = false;
        self
    }

    /// Changes something although its method is GET.
    pub fn changes_something(mut self) -> Self {
        self.changes_something = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("pool-1", "/p/pool-1/x")]
    #[case::slash("a/b", "/p/a%2Fb/x")]
    #[case::climb("..", "/p/%2E%2E/x")]
    #[case::query("a?b=c&d#e", "/p/a%3Fb%3Dc%26d%23e/x")]
    #[case::space_and_percent("a b%2F", "/p/a%20b%252F/x")]
    #[case::braces("{}", "/p/%7B%7D/x")]
    #[case::letters_beyond_ascii("zürich", "/p/z%C3%BCrich/x")]
    fn a_segment_stays_one_segment(#[case] value: &str, #[case] path: &str) {
        assert_eq!(Request::get("/p/{}/x").segment(value).path, path);
    }

    #[test]
    fn segments_fill_from_the_left() {
        assert_eq!(Request::get("/a/{}/b/{}").segment("1").segment("2").path, "/a/1/b/2");
    }

    #[test]
    fn query_parameters_are_encoded() {
        let request = Request::get("/").query("tag", "a=b&c").query("wait", "");
        assert_eq!(request.query, "tag=a%3Db%26c&wait=");
    }

    #[test]
    fn form_fields_are_encoded() {
        let request = Request::post("/").form(&[("name", "a b"), ("x", "1&2")]);
        assert_eq!(request.body.as_deref(), Some(&b"name=a+b&x=1%262"[..]));
    }

    #[test]
    fn a_value_without_json_form_is_an_error() {
        let map = std::collections::BTreeMap::from([(vec![1u8], 1)]);
        assert_eq!(Request::post("/").json(&map).unwrap_err().code, "encode");
    }
}
