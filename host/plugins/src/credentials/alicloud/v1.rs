//! Signature V1: HMAC-SHA1 over all parameters, which is then one of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::Request;
use secrecy::ExposeSecret as _;
use sha1::Sha1;
use zeroize::Zeroizing;

use super::Stamp;
use super::call::{ACTION, Call, VERSION, set_query};
use super::encode::{canonical, encode};
use crate::credentials::{CredentialError, Key};

/// The signature of these parameters, in base64.
pub(super) fn signature(
    method: &str,
    parameters: &[(String, String)],
    secret: &str,
) -> Result<String, CredentialError> {
    let text = format!("{method}&%2F&{}", encode(&canonical(parameters)));
    let key = Zeroizing::new(format!("{secret}&"));
    let mut hmac =
        Hmac::<Sha1>::new_from_slice(key.as_bytes()).map_err(|error| CredentialError::Other(error.to_string()))?;
    hmac.update(text.as_bytes());
    Ok(STANDARD.encode(hmac.finalize().into_bytes()))
}

/// Signs, and tells what the request now shows.
pub(super) fn sign(
    request: &mut Request<Bytes>,
    call: Call,
    key: &Key,
    stamp: &Stamp,
) -> Result<Vec<String>, CredentialError> {
    if request.uri().path() != "/" {
        let path = request.uri().path();
        return Err(CredentialError::Request(format!(
            "signature V1 knows only the path /, not {path}; use alicloud-v3"
        )));
    }
    if !request.body().is_empty() && call.in_form.is_empty() {
        let message = "signature V1 does not cover a body that is no form; use alicloud-v3";
        return Err(CredentialError::Request(message.to_owned()));
    }
    let mut sent = call.in_query;
    let mut add = |name: &str, value: &str| sent.push((name.to_owned(), value.to_owned()));
    add("Action", &call.action);
    add("Version", &call.version);
    add("AccessKeyId", &key.id);
    add("SignatureMethod", "HMAC-SHA1");
    add("SignatureVersion", "1.0");
    add("SignatureNonce", &stamp.nonce);
    add("Timestamp", &stamp.date);
    if let Some(token) = &key.token {
        add("SecurityToken", token.expose_secret());
    }
    if !sent.iter().chain(&call.in_form).any(|(name, _)| name == "Format") {
        sent.push(("Format".to_owned(), "JSON".to_owned()));
    }
    let signed: Vec<_> = sent.iter().chain(&call.in_form).cloned().collect();
    let signature = signature(request.method().as_str(), &signed, key.secret.expose_secret())?;
    let query = format!("{}&Signature={}", canonical(&sent), encode(&signature));
    set_query(request, &query)?;
    request.headers_mut().remove(ACTION);
    request.headers_mut().remove(VERSION);
    Ok(vec![signature])
}
