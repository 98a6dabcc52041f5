//! The checks of a request that need neither its body nor a name service.

use http::{HeaderMap, HeaderName, Method, Uri, header, request};
use url::{Host, Url};

use super::{Egress, Grant, NetworkGrants, Refusal, SLOT_HEADER};

/// Longest address of a request.
pub(super) const MOST_URL_BYTES: usize = 8 << 10;
/// Most headers of a request.
pub(super) const MOST_HEADERS: usize = 64;

const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// Headers that would make a server or a proxy see another request than the one that was checked.
const SMUGGLED: [HeaderName; 3] =
    [header::TRANSFER_ENCODING, header::UPGRADE, HeaderName::from_static("http2-settings")];

/// Names the operation of a request to AliCloud.
const ACTION: HeaderName = HeaderName::from_static("x-acs-action");

/// A request that passed the checks: where it goes, which grant says so, and which credential it names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Permit {
    pub(super) url: Url,
    pub(super) entry: String,
    pub(super) slot: Option<String>,
}

impl NetworkGrants {
    /// Reads and checks the address of a request: one parser for the check, the signature and the connection, so what is
    /// checked is what is sent. Names are not resolved here; their addresses are checked when they are.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn check_address(&self, text: &str) -> Result<Url, Refusal> {
        self.granted(text).map(|(url, _)| url)
    }

    fn granted(&self, text: &str) -> Result<(Url, &Grant), Refusal> {
        if text.len() > MOST_URL_BYTES {
            return Err(Refusal::TooLong);
        }
        let mut url = Url::parse(text).map_err(|_| Refusal::NoAddress)?;
        if let Some(Host::Domain(name)) = url.host() {
            let relative = super::grant::relative(name).ok_or(Refusal::NoAddress)?.to_owned();
            if relative != name {
                url.set_host(Some(&relative)).map_err(|_| Refusal::NoAddress)?;
            }
        }
        if !url.username().is_empty() || url.password().is_some() || has_user(text) {
            return Err(Refusal::UserInfo);
        }
        let Some(grant) = self.hosts.iter().find(|grant| grant.covers(&url)) else {
            return Err(Refusal::NoGrant { entry: Grant::entry_for(&url), encrypted: url.scheme() == "https" });
        };
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            _ => None,
        };
        literal.map_or(Ok(()), |address| self.addresses.check(address)).map_err(Refusal::Address)?;
        Ok((url, grant))
    }
}

/// User information, even an empty one, which a parser forgets.
fn has_user(text: &str) -> bool {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    rest.split(['/', '?', '#', '\\']).next().is_some_and(|authority| authority.contains('@'))
}

impl Egress {
    /// All checks that need no body and no name service.
    pub(super) fn permit(&self, parts: &request::Parts) -> Result<Permit, Refusal> {
        if !METHODS.contains(&parts.method) {
            return Err(Refusal::Method);
        }
        let (url, grant) = self.0.grants.granted(&parts.uri.to_string())?;
        self.check_headers(&parts.headers, &parts.uri)?;
        let slot = self.slot(&parts.headers, &url)?;
        Ok(Permit { entry: grant.to_string(), url, slot })
    }

    fn check_headers(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if headers.len() > MOST_HEADERS || bytes > self.0.header_bytes {
            return Err(Refusal::TooManyHeaders);
        }
        if headers.contains_key(header::AUTHORIZATION) {
            return Err(Refusal::Authorization);
        }
        let proxy = |name: &HeaderName| name.as_str().starts_with("proxy-");
        if let Some(name) = headers.keys().find(|name| SMUGGLED.contains(name) || proxy(name)) {
            return Err(Refusal::Header(name.clone()));
        }
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        let other = |value: &http::HeaderValue| !value.as_bytes().eq_ignore_ascii_case(authority.as_bytes());
        if headers.get_all(header::HOST).iter().any(other) {
            return Err(Refusal::Header(header::HOST));
        }
        Ok(())
    }

    /// The credential slot that the request names, if it may.
    fn slot(&self, headers: &HeaderMap, url: &Url) -> Result<Option<String>, Refusal> {
        let mut named = headers.get_all(SLOT_HEADER).iter();
        let Some(slot) = named.next() else { return Ok(None) };
        let slot = slot.to_str().unwrap_or_default().to_owned();
        if named.next().is_some() {
            return Err(Refusal::TwoSlots);
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        let Some(credential) = self.0.grants.credentials.get(&slot) else {
            return Err(Refusal::UnknownSlot { slot, host });
        };
        if !url.host().is_some_and(|host| credential.hosts.iter().any(|granted| granted.covers(&host))) {
            return Err(Refusal::SlotElsewhere { slot, host });
        }
        if let Some(actions) = &credential.actions {
            let mut asked = headers.get_all(ACTION).iter().map(|value| value.to_str().unwrap_or_default());
            let action = asked.next().unwrap_or_default().to_owned();
            if asked.next().is_some() || !actions.contains(&action) {
                return Err(Refusal::Action { slot, action });
            }
        }
        Ok(Some(slot))
    }
}
