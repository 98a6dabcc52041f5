//! An HTTP proxy between the host and the internet. With one, the proxy resolves names, so the check of resolved addresses
//! is the proxy's business: a weaker promise. Grants, literal addresses, signatures and limits hold as before.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

use crate::environment::Environment;

/// A proxy, and what is reached without it.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    url: Url,
    past: NoProxy,
}

/// Why a proxy makes no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProxyError {
    /// It is no address of a proxy.
    #[error("a proxy is written as http://proxy.example:3128 or https://proxy.example")]
    Address,
    /// An entry of what is reached without it.
    #[error(
        "{0:?} is neither a host, a .suffix, an address nor a range; write example.com, .example.com or 10.0.0.0/8"
    )]
    Past(String),
}

impl Proxy {
    /// A proxy at this address; it may hold a user name and password for the proxy.
    ///
    /// # Errors
    /// If it is no address.
    pub fn new(address: &str, past: NoProxy) -> Result<Self, ProxyError> {
        let url = Url::parse(address.trim()).map_err(|_| ProxyError::Address)?;
        let plain = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() || !plain {
            return Err(ProxyError::Address);
        }
        Ok(Self { url, past })
    }

    /// What `HTTPS_PROXY` and `NO_PROXY` say, in either case of letters, as the Go autoscaler reads them.
    ///
    /// # Errors
    /// If they are there and make no sense.
    pub fn from_environment(environment: &Environment) -> Result<Option<Self>, ProxyError> {
        let either = |name: &str| environment.get(name).or_else(|| environment.get(&name.to_lowercase()));
        let Some(address) = either("HTTPS_PROXY") else { return Ok(None) };
        let address = if address.contains("://") { address } else { format!("http://{address}") };
        let past = either("NO_PROXY").unwrap_or_default();
        Self::new(&address, NoProxy::new(past.split(','))?).map(Some)
    }

    /// Address of the proxy, for the client.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether requests to this host go through it.
    pub fn serves(&self, host: &Host<&str>) -> bool {
        !self.past.covers(host)
    }
}

/// Without the password.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host_str().unwrap_or_default();
        f.debug_struct("Proxy").field("host", &host).field("past", &self.past).finish_non_exhaustive()
    }
}

/// Hosts that are reached without the proxy, in the manner of `NO_PROXY`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NoProxy(Vec<Past>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Past {
    Everything,
    /// This name and everything below it.
    Name(String),
    /// Everything below this name.
    Below(String),
    Range(IpNet),
}

impl NoProxy {
    /// Reads entries; empty ones do not count.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, ProxyError> {
        let entries = entries.into_iter().map(str::trim).filter(|entry| !entry.is_empty());
        entries.map(Past::parse).collect::<Result<_, _>>().map(Self)
    }

    fn covers(&self, host: &Host<&str>) -> bool {
        self.0.iter().any(|entry| entry.covers(host))
    }
}

impl Past {
    fn parse(entry: &str) -> Result<Self, ProxyError> {
        if entry == "*" {
            return Ok(Self::Everything);
        }
        let address = entry.trim_start_matches('[').trim_end_matches(']');
        if let Ok(range) = address.parse::<IpNet>().or_else(|_| address.parse::<IpAddr>().map(IpNet::from)) {
            return Ok(Self::Range(range));
        }
        let below = entry.strip_prefix("*.").or_else(|| entry.strip_prefix('.'));
        match Host::parse(below.unwrap_or(entry)) {
            Ok(Host::Domain(name)) if below.is_some() => Ok(Self::Below(name)),
            Ok(Host::Domain(name)) => Ok(Self::Name(name)),
            _ => Err(ProxyError::Past(entry.to_owned())),
        }
    }

    fn covers(&self, host: &Host<&str>) -> bool {
        let ends = |asked: &str, name: &str| asked.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
        match (self, host) {
            (Self::Everything, _) => true,
            (Self::Name(name), Host::Domain(asked)) => asked == name || ends(asked, name),
            (Self::Below(name), Host::Domain(asked)) => ends(asked, name),
            (Self::Range(range), Host::Ipv4(address)) => range.contains(&IpAddr::V4(*address)),
            (Self::Range(range), Host::Ipv6(address)) => range.contains(&IpAddr::V6(*address)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case::other("api.example.com", true)]
    #[case::name("internal.example", false)]
    #[case::below_name("a.internal.example", false)]
    #[case::suffix("a.corp", false)]
    #[case::not_the_suffix_itself("corp", true)]
    #[case::glued("evilinternal.example", true)]
    #[case::range("10.1.2.3", false)]
    #[case::beside_range("11.1.2.3", true)]
    #[case::address("[2001:db8::1]", false)]
    fn knows_what_it_serves(#[case] host: &str, #[case] served: bool) {
        let environment = Environment::of([
            ("https_proxy", "proxy.corp:3128"),
            ("NO_PROXY", "internal.example, .corp ,10.0.0.0/8,2001:db8::1,"),
        ]);
        let proxy = Proxy::from_environment(&environment).unwrap().unwrap();
        assert_eq!(proxy.url().as_str(), "http://proxy.corp:3128/");
        let host = Host::parse(host).unwrap();
        assert_eq!(proxy.serves(&crate::borrowed(&host)), served);
    }

    #[rstest::rstest]
    #[case::scheme("socks5://proxy:1080", "", ProxyError::Address)]
    #[case::path("http://proxy:3128/x", "", ProxyError::Address)]
    #[case::nothing("http://", "", ProxyError::Address)]
    #[case::past("http://proxy:3128", "a b", ProxyError::Past("a b".into()))]
    fn refuses(#[case] address: &str, #[case] past: &str, #[case] expected: ProxyError) {
        assert_eq!(NoProxy::new(past.split(',')).and_then(|past| Proxy::new(address, past)), Err(expected));
    }

    #[test]
    fn without_a_variable_there_is_none_and_a_password_is_not_shown() {
        assert_eq!(Proxy::from_environment(&Environment::empty()), Ok(None));
        let proxy = Proxy::new("http://me:s3cret@proxy:3128", NoProxy::default()).unwrap();
        assert!(!format!("{proxy:?}").contains("s3cret"));
    }
}
