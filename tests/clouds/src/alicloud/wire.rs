//! A request, taken apart. Percent-encoding by RFC 3986, written here so that it shares nothing with any client.

use bytes::Bytes;
use http::{HeaderMap, Request};

/// A request, decoded.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Host without port, in lower case.
    pub host: String,
    /// Value of the `Host` header as it was sent, for signatures.
    pub host_header: String,
    /// Method.
    pub method: String,
    /// Path.
    pub path: String,
    /// Parameters in the query.
    pub query: Vec<(String, String)>,
    /// Parameters in a form body.
    pub form: Vec<(String, String)>,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
    /// Not encrypted.
    pub plain: bool,
    /// The query or the form cannot be decoded.
    pub broken: Option<String>,
    /// Oddities that the cloud itself would accept.
    pub oddities: Vec<String>,
}

const FORM: &str = "application/x-www-form-urlencoded";

impl Incoming {
    /// Take a request apart.
    pub fn read(request: &Request<Bytes>) -> Self {
        let uri = request.uri();
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        let authority = uri.authority().map(|authority| authority.as_str().to_owned());
        let host_header =
            if header("host").is_empty() { authority.unwrap_or_default() } else { header("host").to_owned() };
        let mut incoming = Self {
            host: host_header.split(':').next().unwrap_or_default().to_ascii_lowercase(),
            host_header,
            method: request.method().to_string(),
            path: uri.path().to_owned(),
            query: vec![],
            form: vec![],
            headers: request.headers().clone(),
            body: request.body().clone(),
            plain: uri.scheme_str() == Some("http"),
            broken: None,
            oddities: vec![],
        };
        incoming.query = incoming.pairs(uri.query().unwrap_or_default());
        if header("content-type").starts_with(FORM) {
            let body = String::from_utf8_lossy(request.body()).into_owned();
            incoming.form = incoming.pairs(&body);
        } else if !request.body().is_empty() && !header("content-type").starts_with("application/json") {
            incoming.oddities.push(format!("a body of type {:?}, expected {FORM}", header("content-type")));
        }
        incoming
    }

    fn pairs(&mut self, text: &str) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for piece in text.split('&').filter(|piece| !piece.is_empty()) {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            if piece.contains('+') {
                self.oddities.push(format!("a space written as + in {name}, expected %20"));
            }
            match decode(name).zip(decode(value)) {
                Some(pair) => pairs.push(pair),
                None => self.broken = Some(format!("the parameter {name} is not percent-encoded UTF-8")),
            }
        }
        pairs
    }

    /// Value of a header; empty if it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// All parameters, of query and form.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.query.iter().chain(&self.form).map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters().find(|(candidate, _)| *candidate == name).map(|(_, value)| value)
    }

    /// Whether it is signed, or meant to be, in the headers. The vendor's own client sends `x-acs-action` with either
    /// signature, so that header alone does not tell.
    pub fn is_v3(&self) -> bool {
        let named = !self.header("x-acs-action").is_empty() && self.parameter("Action").is_none();
        named || self.header("authorization").starts_with("ACS3")
    }

    /// Name of the operation; empty if there is none.
    pub fn action(&self) -> &str {
        if self.is_v3() { self.header("x-acs-action") } else { self.parameter("Action").unwrap_or_default() }
    }

    /// Version of the API; empty if there is none.
    pub fn version(&self) -> &str {
        if self.is_v3() { self.header("x-acs-version") } else { self.parameter("Version").unwrap_or_default() }
    }
}

/// Percent-encode: letters, digits and `-_.~` stay.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Undo percent-encoding, and `+` for a space; none if the text is not encoded UTF-8.
pub fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{decode, encode};

    #[rstest]
    #[case::kept("aZ09-_.~", "aZ09-_.~")]
    #[case::reserved("a b*c+/=&:", "a%20b%2Ac%2B%2F%3D%26%3A")]
    #[case::wide("中文", "%E4%B8%AD%E6%96%87")]
    fn text_is_encoded_and_decoded(#[case] text: &str, #[case] encoded: &str) {
        assert_eq!(encode(text), encoded);
        assert_eq!(decode(encoded).as_deref(), Some(text));
    }

    #[rstest]
    #[case::cut_off("a%2")]
    #[case::no_digits("%zz")]
    #[case::not_utf8("%ff")]
    fn what_is_not_encoded_is_told(#[case] text: &str) {
        assert_eq!(decode(text), None);
    }

    #[test]
    fn plus_is_a_space() {
        assert_eq!(decode("a+b").as_deref(), Some("a b"));
    }
}
