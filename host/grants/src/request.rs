//! The checks of a request that need neither its body nor a name service, in this order:
//!
//! ```text
//! method ► address ► grant ► literal address ► headers ► credential slot
//! ```

use http::{HeaderMap, HeaderName, Method, Uri, header, request};
use url::{Host, Url};

use crate::address::AddressPolicy;
use crate::binding::Binding;
use crate::denial::Refusal;
use crate::grant::{Grant, relative};

/// The guest names a credential slot in this header; the host replaces it by a signature.
pub const SLOT_HEADER: HeaderName = HeaderName::from_static("x-autoscaler-credential");

/// Longest address of a request.
pub const MOST_URL_BYTES: usize = 8 << 10;
/// Most headers of a request.
pub const MOST_HEADERS: usize = 64;

const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// Headers that would make a server or a proxy see another request than the one that was checked.
const SMUGGLED: [HeaderName; 3] =
    [header::TRANSFER_ENCODING, header::UPGRADE, HeaderName::from_static("http2-settings")];

/// Names the operation of a request to AliCloud.
const ACTION: HeaderName = HeaderName::from_static("x-acs-action");

/// A request that passed the checks: where it goes, which grant says so, and which credential it names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Permit {
    /// The address as it was checked; this is what is connected to and signed.
    pub url: Url,
    /// The entry of `hosts`.
    pub entry: String,
    /// The credential slot.
    pub slot: Option<String>,
}

/// All checks. `most_header_bytes` is for names and values together; `binding` finds the binding of a credential slot.
///
/// # Errors
/// The first reason to refuse it.
pub fn permit<'a>(
    parts: &request::Parts,
    hosts: &[Grant],
    addresses: &AddressPolicy,
    most_header_bytes: usize,
    binding: impl FnOnce(&str) -> Option<&'a Binding>,
) -> Result<Permit, Refusal> {
    if !METHODS.contains(&parts.method) {
        return Err(Refusal::Method);
    }
    let (url, grant) = check_address(hosts, addresses, &parts.uri.to_string())?;
    check_headers(&parts.headers, &parts.uri, most_header_bytes)?;
    let slot = slot(parts, &url, binding)?;
    Ok(Permit { entry: grant.to_string(), url, slot })
}

/// Reads and checks the address of a request: one parser for the check, the signature and the connection, so what is
/// checked is what is sent. Names are not resolved here; their addresses are checked when they are.
///
/// # Errors
/// Why it is refused.
pub fn check_address<'a>(
    hosts: &'a [Grant],
    addresses: &AddressPolicy,
    text: &str,
) -> Result<(Url, &'a Grant), Refusal> {
    if text.len() > MOST_URL_BYTES {
        return Err(Refusal::TooLong);
    }
    let mut url = Url::parse(text).map_err(|_| Refusal::NoAddress)?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(Refusal::Scheme);
    }
    if let Some(Host::Domain(name)) = url.host() {
        let relative = relative(name).ok_or(Refusal::NoAddress)?.to_owned();
        if relative != name {
            url.set_host(Some(&relative)).map_err(|_| Refusal::NoAddress)?;
        }
    }
    if !url.username().is_empty() || url.password().is_some() || has_user(text) {
        return Err(Refusal::UserInfo);
    }
    let Some(grant) = hosts.iter().find(|grant| grant.covers(&url)) else {
        return Err(Refusal::NoGrant { entry: Grant::entry_for(&url), encrypted: url.scheme() == "https" });
    };
    let literal = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    };
    literal.map_or(Ok(()), |address| addresses.check(address)).map_err(Refusal::Address)?;
    Ok((url, grant))
}

/// User information, even an empty one, which a parser forgets.
fn has_user(text: &str) -> bool {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    rest.split(['/', '?', '#', '\\']).next().is_some_and(|authority| authority.contains('@'))
}

fn check_headers(headers: &HeaderMap, uri: &Uri, most_bytes: usize) -> Result<(), Refusal> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if headers.len() > MOST_HEADERS || bytes > most_bytes {
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
fn slot<'a>(
    parts: &request::Parts,
    url: &Url,
    binding: impl FnOnce(&str) -> Option<&'a Binding>,
) -> Result<Option<String>, Refusal> {
    let headers = &parts.headers;
    let mut named = headers.get_all(SLOT_HEADER).iter();
    let Some(slot) = named.next() else { return Ok(None) };
    let slot = slot.to_str().unwrap_or_default().to_owned();
    if named.next().is_some() {
        return Err(Refusal::TwoSlots);
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    let Some(binding) = binding(&slot) else {
        return Err(Refusal::UnknownSlot { slot, host });
    };
    if !url.host().is_some_and(|host| binding.hosts.iter().any(|granted| granted.covers(&host))) {
        return Err(Refusal::SlotElsewhere { slot, host });
    }
    if let Some(actions) = &binding.actions {
        let mut asked = headers.get_all(ACTION).iter().map(|value| value.to_str().unwrap_or_default());
        let action = asked.next().unwrap_or_default().to_owned();
        let about = actions.iter().filter(|granted| granted.is_about(&action));
        if asked.next().is_some() || about.clone().count() == 0 {
            return Err(Refusal::Action { slot, action });
        }
        if !about.clone().any(|granted| granted.covers(&parts.method, url.path())) {
            let route = format!("{} {}", parts.method, url.path());
            return Err(Refusal::Route { slot, action, route });
        }
    }
    Ok(Some(slot))
}
