//! One entry of `hosts`: a place on the network that a plug-in may talk to.
//!
//! ```text
//! https://api.example.com          this host, port 443
//! https://api.example.com:8443     this host, this port
//! https://*.example.com            hosts below example.com, not example.com itself
//! http://…                         only with `insecure-http: true`
//! https://[2001:db8::1]            an address, written out
//! ```
//!
//! No lists, no paths, no bare `*`: an entry that is hard to read is hard to trust.

use std::fmt;

use serde::Serialize;
use url::{Host, Url};

/// How an entry may be encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scheme {
    /// TLS.
    Https,
    /// Nothing.
    Http,
}

impl Scheme {
    fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }
    fn default_port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
    fn of(url: &Url) -> Option<Self> {
        match url.scheme() {
            "https" => Some(Self::Https),
            "http" => Some(Self::Http),
            _ => None,
        }
    }
}

/// Which hosts an entry names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostPattern {
    /// This one.
    Exactly(Host),
    /// Everything that ends in a dot and this.
    Below(String),
}

impl HostPattern {
    /// Whether this host is one of them.
    pub fn covers(&self, host: &Host<&str>) -> bool {
        match (self, host) {
            (Self::Exactly(granted), asked) => borrowed(granted) == *asked,
            (Self::Below(suffix), Host::Domain(asked)) => {
                asked.strip_suffix(suffix.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (Self::Below(_), _) => false,
        }
    }

    /// Reads a name such as `api.example.com` or `*.example.com`, or an address.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, GrantError> {
        let (suffix, wild) = match text.strip_prefix("*.") {
            Some(suffix) => (suffix, true),
            None => (text, false),
        };
        if suffix.contains('*') {
            return Err(GrantError::Star);
        }
        let host = match Host::parse(suffix).map_err(|_| GrantError::Host)? {
            Host::Domain(name) => Host::Domain(relative(&name).ok_or(GrantError::Host)?.to_owned()),
            address => address,
        };
        let letters = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        match host {
            Host::Domain(name) if !letters(&name) => Err(GrantError::Host),
            Host::Domain(suffix) if wild => Ok(Self::Below(suffix)),
            _ if wild => Err(GrantError::Star),
            host => Ok(Self::Exactly(host)),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(host) => host.fmt(f),
            Self::Below(suffix) => write!(f, "*.{suffix}"),
        }
    }
}

/// A place that a plug-in may talk to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    scheme: Scheme,
    host: HostPattern,
    port: u16,
}

/// Why an entry of `hosts` makes no sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GrantError {
    /// No scheme, or one that is no web.
    #[error("it must begin with https://")]
    Scheme,
    /// Unencrypted, and the plug-in is not marked for it.
    #[error("http:// is not encrypted; write https://, or set insecure-http: true beside hosts")]
    Insecure,
    /// A star where none may be.
    #[error("a star may only stand for the first labels of a name, as in https://*.example.com")]
    Star,
    /// No host, or not a host.
    #[error("it must name one host or address")]
    Host,
    /// User name or password.
    #[error("it must not contain a user name or password")]
    UserInfo,
    /// Path, query or fragment.
    #[error("it must end after the host or port; paths cannot be granted")]
    Path,
    /// Not a port.
    #[error("the port must be a number from 1 to 65535")]
    Port,
}

impl Grant {
    /// Reads an entry.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, insecure_http: bool) -> Result<Self, GrantError> {
        let (scheme, rest) = text.split_once("://").ok_or(GrantError::Scheme)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "https" => Scheme::Https,
            "http" if insecure_http => Scheme::Http,
            "http" => return Err(GrantError::Insecure),
            _ => return Err(GrantError::Scheme),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#', '\\']) {
            return Err(GrantError::Path);
        }
        if rest.contains('@') {
            return Err(GrantError::UserInfo);
        }
        // The colons of an address in brackets are not the one before a port.
        let after_address = rest.rfind(']').map_or(0, |end| end + 1);
        let colon = rest.get(after_address..).and_then(|tail| tail.find(':')).map(|at| at + after_address);
        let (host, port) = match colon.and_then(|at| rest.split_at_checked(at)) {
            Some((host, port)) => {
                let port = port.get(1..).and_then(|port| port.parse().ok()).filter(|port| *port != 0);
                (host, port.ok_or(GrantError::Port)?)
            }
            None => (rest, scheme.default_port()),
        };
        if host.is_empty() {
            return Err(GrantError::Host);
        }
        Ok(Self { scheme, host: HostPattern::parse(host)?, port })
    }

    /// Whether a request to this address is granted by this entry.
    pub fn covers(&self, url: &Url) -> bool {
        Scheme::of(url) == Some(self.scheme)
            && url.port_or_known_default() == Some(self.port)
            && url.host().is_some_and(|host| self.host.covers(&host))
    }

    /// Whether everything that `other` grants is granted by this entry too.
    pub fn includes(&self, other: &Grant) -> bool {
        let host = match (&self.host, &other.host) {
            (HostPattern::Below(wide), HostPattern::Below(narrow)) => {
                wide == narrow || HostPattern::Below(wide.clone()).covers(&Host::Domain(narrow))
            }
            (wide, HostPattern::Exactly(host)) => wide.covers(&borrowed(host)),
            (HostPattern::Exactly(_), HostPattern::Below(_)) => false,
        };
        host && self.scheme == other.scheme && self.port == other.port
    }

    /// Whether this entry reaches hosts that match the pattern.
    pub(crate) fn reaches(&self, hosts: &HostPattern) -> bool {
        match (&self.host, hosts) {
            (HostPattern::Exactly(host), pattern) => pattern.covers(&borrowed(host)),
            (HostPattern::Below(suffix), HostPattern::Exactly(host)) => {
                HostPattern::Below(suffix.clone()).covers(&borrowed(host))
            }
            (HostPattern::Below(a), HostPattern::Below(b)) => {
                a == b
                    || HostPattern::Below(a.clone()).covers(&Host::Domain(b))
                    || HostPattern::Below(b.clone()).covers(&Host::Domain(a))
            }
        }
    }

    /// The entry that would grant a request to this address.
    pub(crate) fn entry_for(url: &Url) -> String {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
    }
}

/// A name without the dot that says it is complete; `None` if a label is empty. `a.example.` and `a.example` are one host,
/// and must be one for grants, credentials and certificates.
pub(crate) fn relative(name: &str) -> Option<&str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.split('.').all(|label| !label.is_empty()).then_some(name)
}

/// The same host without owning it.
pub fn borrowed(host: &Host) -> Host<&str> {
    match host {
        Host::Domain(name) => Host::Domain(name),
        Host::Ipv4(address) => Host::Ipv4(*address),
        Host::Ipv6(address) => Host::Ipv6(*address),
    }
}

/// As one writes it in the file.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.host)?;
        if self.port == self.scheme.default_port() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl Serialize for Grant {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case::host("https://api.utho.com", "https://api.utho.com")]
    #[case::slash("https://api.utho.com/", "https://api.utho.com")]
    #[case::case("HTTPS://API.Utho.Com", "https://api.utho.com")]
    #[case::default_port("https://api.utho.com:443", "https://api.utho.com")]
    #[case::port("https://api.utho.com:8443", "https://api.utho.com:8443")]
    #[case::wildcard("https://*.aliyuncs.com", "https://*.aliyuncs.com")]
    #[case::trailing_dot("https://api.utho.com.", "https://api.utho.com")]
    #[case::unicode("https://bücher.example", "https://xn--bcher-kva.example")]
    #[case::address("https://203.0.113.7:6443", "https://203.0.113.7:6443")]
    #[case::address_v6("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443")]
    #[case::address_v6_default_port("https://[2001:DB8:0::1]", "https://[2001:db8::1]")]
    fn reads_entries(#[case] text: &str, #[case] meant: &str) {
        assert_eq!(Grant::parse(text, false).unwrap().to_string(), meant);
    }

    #[rstest::rstest]
    #[case::no_scheme("api.utho.com", GrantError::Scheme)]
    #[case::other_scheme("ftp://api.utho.com", GrantError::Scheme)]
    #[case::insecure("http://api.utho.com", GrantError::Insecure)]
    #[case::bare_star("https://*", GrantError::Star)]
    #[case::star_inside("https://api.*.com", GrantError::Star)]
    #[case::star_glued("https://*api.utho.com", GrantError::Star)]
    #[case::star_before_address("https://*.10.0.0.1", GrantError::Star)]
    #[case::star_before_part_of_an_address("https://*.1", GrantError::Star)]
    #[case::user("https://me@api.utho.com", GrantError::UserInfo)]
    #[case::path("https://api.utho.com/v2", GrantError::Path)]
    #[case::query("https://api.utho.com?x", GrantError::Path)]
    #[case::backslash("https://api.utho.com\\x", GrantError::Path)]
    #[case::port_word("https://api.utho.com:https", GrantError::Port)]
    #[case::port_zero("https://api.utho.com:0", GrantError::Port)]
    #[case::port_large("https://api.utho.com:65536", GrantError::Port)]
    #[case::port_missing("https://api.utho.com:", GrantError::Port)]
    #[case::no_host("https://", GrantError::Host)]
    #[case::no_host_but_port("https://:443", GrantError::Host)]
    #[case::space("https://api utho.com", GrantError::Host)]
    #[case::list("https://a.com,b.com", GrantError::Host)]
    #[case::two_dots("https://api.utho.com..", GrantError::Host)]
    #[case::first_label_empty("https://.utho.com", GrantError::Host)]
    fn refuses_entries(#[case] text: &str, #[case] error: GrantError) {
        assert_eq!(Grant::parse(text, false), Err(error));
    }

    #[rstest::rstest]
    #[case::itself("https://api.utho.com", "https://api.utho.com/v2/x?y", true)]
    #[case::written_out_port("https://api.utho.com", "https://api.utho.com:443/", true)]
    #[case::upper_case("https://api.utho.com", "https://API.UTHO.COM/", true)]
    #[case::other_host("https://api.utho.com", "https://api.utho.co/", false)]
    #[case::longer_host("https://api.utho.com", "https://api.utho.com.evil.example/", false)]
    #[case::other_port("https://api.utho.com", "https://api.utho.com:8443/", false)]
    #[case::plain_text("https://api.utho.com", "http://api.utho.com/", false)]
    #[case::plain_text_on_tls_port("https://api.utho.com", "http://api.utho.com:443/", false)]
    #[case::below("https://*.utho.com", "https://a.b.utho.com/", true)]
    #[case::not_the_suffix_itself("https://*.utho.com", "https://utho.com/", false)]
    #[case::not_glued("https://*.utho.com", "https://evilutho.com/", false)]
    #[case::empty_label("https://*.utho.com", "https://.utho.com/", false)]
    #[case::decimal_address("https://127.0.0.1", "https://2130706433/", true)]
    #[case::name_is_no_address("https://127.0.0.1", "https://localhost/", false)]
    fn covers_requests(#[case] grant: &str, #[case] url: &str, #[case] covered: bool) {
        let grant = Grant::parse(grant, false).unwrap();
        assert_eq!(grant.covers(&Url::parse(url).unwrap()), covered);
    }

    #[rstest::rstest]
    #[case::same("https://a.example", "https://a.example", true)]
    #[case::wide_covers_exact("https://*.example", "https://a.example", true)]
    #[case::wide_covers_narrow("https://*.example", "https://*.a.example", true)]
    #[case::narrow_does_not_cover_wide("https://*.a.example", "https://*.example", false)]
    #[case::exact_does_not_cover_wide("https://a.example", "https://*.a.example", false)]
    #[case::port("https://a.example", "https://a.example:444", false)]
    fn compares_wishes_with_grants(#[case] granted: &str, #[case] wished: &str, #[case] included: bool) {
        let parse = |text| Grant::parse(text, false).unwrap();
        assert_eq!(parse(granted).includes(&parse(wished)), included);
    }
}
