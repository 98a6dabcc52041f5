//! Signature V3 (ACS3-HMAC-SHA256): over a canonical form of the request, in the header `authorization`.

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderName, HeaderValue, Request, header};
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};

use super::Stamp;
use super::call::{Call, set_query};
use super::encode::{canonical, hex};
use crate::credentials::{CredentialError, Key};

const DATE: HeaderName = HeaderName::from_static("x-acs-date");
const NONCE: HeaderName = HeaderName::from_static("x-acs-signature-nonce");
const BODY: HeaderName = HeaderName::from_static("x-acs-content-sha256");
const TOKEN: HeaderName = HeaderName::from_static("x-acs-security-token");

/// A request in the form that is signed.
pub(super) struct Canonical {
    /// Names of the signed headers, joined by `;`.
    pub(super) signed: String,
    /// SHA-256 of the canonical request, in hex.
    pub(super) hash: String,
}

impl Canonical {
    /// `headers`: name and value, sorted by name.
    pub(super) fn new(method: &str, path: &str, query: &str, headers: &[(String, String)], body: &str) -> Self {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let signed = headers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(";");
        let text = format!("{method}\n{path}\n{query}\n{lines}\n{signed}\n{body}");
        Self { signed, hash: hex(&Sha256::digest(text)) }
    }

    /// The signature, in hex.
    pub(super) fn signature(&self, secret: &str) -> Result<String, CredentialError> {
        let mut hmac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
            .map_err(|error| CredentialError::Other(error.to_string()))?;
        hmac.update(format!("ACS3-HMAC-SHA256\n{}", self.hash).as_bytes());
        Ok(hex(&hmac.finalize().into_bytes()))
    }
}

/// Signs, and tells what the request now shows.
pub(super) fn sign(
    request: &mut Request<Bytes>,
    call: Call,
    key: &Key,
    stamp: &Stamp,
) -> Result<Vec<String>, CredentialError> {
    let query = canonical(&call.in_query);
    set_query(request, &query)?;
    let body = hex(&Sha256::digest(request.body()));
    insert(request, DATE, &stamp.date)?;
    insert(request, NONCE, &stamp.nonce)?;
    insert(request, BODY, &body)?;
    if let Some(token) = &key.token {
        insert(request, TOKEN, token.expose_secret())?;
    }
    let canonical = Canonical::new(request.method().as_str(), request.uri().path(), &query, &to_sign(request), &body);
    let signature = canonical.signature(key.secret.expose_secret())?;
    let value =
        format!("ACS3-HMAC-SHA256 Credential={},SignedHeaders={},Signature={signature}", key.id, canonical.signed);
    insert(request, header::AUTHORIZATION, &value)?;
    Ok(vec![value, signature])
}

/// The headers that are signed, in order: the host, what is AliCloud's, and the type of the body.
fn to_sign(request: &Request<Bytes>) -> Vec<(String, String)> {
    let mut headers = vec![("host".to_owned(), host(request))];
    for (name, value) in request.headers() {
        if name.as_str().starts_with("x-acs-") || name == header::CONTENT_TYPE {
            headers.push((name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        }
    }
    headers.sort_unstable();
    headers
}

/// What the client will write into the header `host`: the port only if it is not the scheme's own.
fn host(request: &Request<Bytes>) -> String {
    let uri = request.uri();
    let own = match uri.scheme_str() {
        Some("http") => 80,
        _ => 443,
    };
    let host = uri.host().unwrap_or_default();
    match uri.port_u16() {
        Some(port) if port != own => format!("{host}:{port}"),
        _ => host.to_owned(),
    }
}

fn insert(request: &mut Request<Bytes>, name: HeaderName, value: &str) -> Result<(), CredentialError> {
    let mut value = HeaderValue::try_from(value)
        .map_err(|_| CredentialError::Other(format!("the key or token has characters that {name} cannot have")))?;
    value.set_sensitive(true);
    request.headers_mut().insert(name, value);
    Ok(())
}
