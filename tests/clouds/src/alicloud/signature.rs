//! Both signatures, as the server computes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::wire::{Incoming, encode};

/// A signature and the text that it signs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// Text that is signed.
    pub string_to_sign: String,
    /// Signature over it.
    pub signature: String,
}

/// Parameters in canonical order and encoding.
fn canonical<'a>(parameters: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut pairs: Vec<(&str, &str)> = parameters.collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    pairs.join("&")
}

/// Signature version 1.0 over all parameters but the signature itself.
pub fn v1<'a>(method: &str, parameters: impl Iterator<Item = (&'a str, &'a str)>, secret: &str) -> Signed {
    let query = canonical(parameters.filter(|(name, _)| *name != "Signature"));
    let string_to_sign = format!("{method}&%2F&{}", encode(&query));
    let signature = Hmac::<Sha1>::new_from_slice(format!("{secret}&").as_bytes())
        .map(|mac| STANDARD.encode(mac.chain_update(&string_to_sign).finalize().into_bytes()))
        .unwrap_or_default();
    Signed { string_to_sign, signature }
}

/// SHA-256 in lower-case hexadecimal digits.
pub fn sha256_hex(data: &[u8]) -> String {
    hex(&Sha256::digest(data))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// HMAC-SHA256.
pub fn hmac_sha256(secret: &[u8], data: &[u8]) -> Vec<u8> {
    Hmac::<Sha256>::new_from_slice(secret)
        .map(|mac| mac.chain_update(data).finalize().into_bytes().to_vec())
        .unwrap_or_default()
}

/// What an ACS3 `Authorization` header says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Authorization {
    /// Access key.
    pub key: String,
    /// Names of signed headers, as sent.
    pub signed_headers: String,
    /// Signature.
    pub signature: String,
}

impl Authorization {
    /// Read `ACS3-HMAC-SHA256 Credential=…,SignedHeaders=…,Signature=…`; none if it is not that.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("ACS3-HMAC-SHA256 ")?;
        let find = |name: &str| rest.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
        Some(Self {
            key: find("Credential")?.to_owned(),
            signed_headers: find("SignedHeaders")?.to_owned(),
            signature: find("Signature")?.to_owned(),
        })
    }
}

/// The canonical request of ACS3-HMAC-SHA256. The body's hash is computed, not believed.
pub fn canonical_request(incoming: &Incoming, signed_headers: &str) -> String {
    let query = canonical(incoming.query.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let mut names: Vec<&str> = signed_headers.split(';').collect();
    names.sort_unstable();
    let line = |name: &&str| {
        let value = if *name == "host" { incoming.host_header.as_str() } else { incoming.header(name) };
        format!("{name}:{}\n", value.trim())
    };
    let headers: String = names.iter().map(line).collect();
    let hash = sha256_hex(&incoming.body);
    format!("{}\n{}\n{query}\n{headers}\n{}\n{hash}", incoming.method, incoming.path, names.join(";"))
}

/// Signature ACS3-HMAC-SHA256 over a canonical request.
pub fn v3(canonical_request: &str, secret: &str) -> Signed {
    let string_to_sign = format!("ACS3-HMAC-SHA256\n{}", sha256_hex(canonical_request.as_bytes()));
    let signature = hex(&hmac_sha256(secret.as_bytes(), string_to_sign.as_bytes()));
    Signed { string_to_sign, signature }
}
