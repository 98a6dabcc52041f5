//! The operation that a request is for, checked: nothing in it may say who asks, and nothing may be hidden in it.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Uri, header};
use url::form_urlencoded;

use super::encode::query;
use crate::credentials::CredentialError;

/// Names the operation.
pub(crate) const ACTION: HeaderName = HeaderName::from_static("x-acs-action");
/// Its API date.
pub(super) const VERSION: HeaderName = HeaderName::from_static("x-acs-version");
const REGION: HeaderName = HeaderName::from_static("x-acs-region-id");

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// Parameters that are the host's; compared without case.
const RESERVED: [&str; 11] = [
    "Action",
    "Version",
    "AccessKeyId",
    "SecurityToken",
    "Signature",
    "SignatureMethod",
    "SignatureVersion",
    "SignatureType",
    "SignatureNonce",
    "Timestamp",
    "BearerToken",
];

/// An operation, and its parameters as the server will decode them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::credentials) struct Call {
    pub(super) action: String,
    pub(super) version: String,
    pub(super) in_query: Vec<(String, String)>,
    pub(super) in_form: Vec<(String, String)>,
}

impl Call {
    /// Reads the operation. Query and form are written again with one encoder, so what was checked is what is signed, and
    /// what is signed is what is sent.
    pub(in crate::credentials) fn take(request: &mut Request<Bytes>) -> Result<Self, CredentialError> {
        let action = one(request, &ACTION, "DescribeScalingGroups")?;
        let version = one(request, &VERSION, "2014-08-28")?;
        let own = |name: &HeaderName| name.as_str().starts_with("x-acs-") && ![ACTION, VERSION, REGION].contains(name);
        if let Some(name) = request.headers().keys().find(|name| own(name)) {
            return Err(refused(format!("the header {name} is added by the host; leave it out")));
        }
        let in_query = parameters(request.uri().query().unwrap_or_default().as_bytes())?;
        let in_form = form(request)?;
        let call = Self { action, version, in_query, in_form };
        call.write(request)?;
        Ok(call)
    }

    fn write(&self, request: &mut Request<Bytes>) -> Result<(), CredentialError> {
        set_query(request, &query(borrowed(&self.in_query)))?;
        if !self.in_form.is_empty() {
            *request.body_mut() = query(borrowed(&self.in_form)).into();
            request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(FORM));
        }
        Ok(())
    }
}

fn borrowed(parameters: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}

fn refused(message: String) -> CredentialError {
    CredentialError::Request(message)
}

/// The one value of a header that must be there.
fn one(request: &Request<Bytes>, name: &HeaderName, example: &str) -> Result<String, CredentialError> {
    let mut values = request.headers().get_all(name).iter();
    let value = values.next().and_then(|value| value.to_str().ok()).map(str::trim).unwrap_or_default();
    let fits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !fits || values.next().is_some() {
        return Err(refused(format!("a request signed for AliCloud needs the header {name} once, such as {example}")));
    }
    Ok(value.to_owned())
}

fn parameters(text: &[u8]) -> Result<Vec<(String, String)>, CredentialError> {
    let parameters: Vec<_> = form_urlencoded::parse(text).into_owned().collect();
    let reserved = |name: &str| RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name));
    match parameters.iter().find(|(name, _)| reserved(name)) {
        Some((name, _)) if ["action", "version"].contains(&name.to_ascii_lowercase().as_str()) => {
            let header = format!("x-acs-{}", name.to_ascii_lowercase());
            Err(refused(format!("the parameter {name} must not be given; the header {header} says it")))
        }
        Some((name, _)) => Err(refused(format!("the parameter {name} is added by the host; leave it out"))),
        None => Ok(parameters),
    }
}

fn form(request: &Request<Bytes>) -> Result<Vec<(String, String)>, CredentialError> {
    let mut types = request.headers().get_all(header::CONTENT_TYPE).iter();
    let kind = types.next().and_then(|kind| kind.to_str().ok()).unwrap_or(FORM);
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if types.next().is_some() {
        return Err(refused("it has two content types".to_owned()));
    }
    if request.body().is_empty() || kind.eq_ignore_ascii_case(JSON) {
        return Ok(vec![]);
    }
    if !kind.eq_ignore_ascii_case(FORM) {
        return Err(refused(format!("a body of type {kind:?} cannot be signed; send {FORM} or {JSON}")));
    }
    parameters(request.body())
}

/// Puts another query in the place of the one that is there.
pub(super) fn set_query(request: &mut Request<Bytes>, query: &str) -> Result<(), CredentialError> {
    let mut parts = request.uri().clone().into_parts();
    let path = request.uri().path();
    let target = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    let bad = |reason: String| refused(format!("its address cannot be written: {reason}"));
    parts.path_and_query = Some(target.parse().map_err(|error: http::uri::InvalidUri| bad(error.to_string()))?);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|error| bad(error.to_string()))?;
    Ok(())
}
