//! Names with addresses that the operator wrote down, like the host aliases of a pod, but with stars and ports.

use std::net::{IpAddr, SocketAddr};

use url::Host;

use crate::grant::HostPattern;

/// A name, or all names below one, and where connections to it go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alias {
    names: HostPattern,
    address: SocketAddr,
}

/// What is wrong with an alias.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AliasError {
    /// The name.
    #[error("{0:?} is not a host name such as api.example.com or *.example.com")]
    Name(String),
    /// The address.
    #[error("{0:?} is not an address, with or without a port, such as 10.0.0.7 or 10.0.0.7:8443")]
    Address(String),
}

impl Alias {
    /// From a name and an address. Without a port the request's own is used.
    ///
    /// # Errors
    /// If one of the two is something else.
    pub fn parse(name: &str, address: &str) -> Result<Self, AliasError> {
        let names = HostPattern::parse(name).map_err(|_| AliasError::Name(name.to_owned()))?;
        let whole = address.parse::<IpAddr>().map(|address| SocketAddr::new(address, 0));
        let address = whole.or_else(|_| address.parse()).map_err(|_| AliasError::Address(address.to_owned()))?;
        Ok(Self { names, address })
    }

    /// Where connections to a name go, if this alias is about it.
    pub fn of(&self, name: &str) -> Option<SocketAddr> {
        self.names.covers(&Host::Domain(name)).then_some(self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses() {
        for (name, address, asked, found) in [
            ("api.example.com", "10.0.0.7", "api.example.com", Some("10.0.0.7:0")),
            ("*.example.com", "127.0.0.1:8443", "a.b.example.com", Some("127.0.0.1:8443")),
            ("*.example.com", "[::1]:8443", "api.example.com", Some("[::1]:8443")),
            ("*.example.com", "127.0.0.1", "example.com", None),
            ("api.example.com", "127.0.0.1", "api.example.org", None),
        ] {
            let alias = Alias::parse(name, address).unwrap();
            assert_eq!(alias.of(asked).map(|found| found.to_string()).as_deref(), found, "{name} {asked}");
        }
    }

    #[test]
    fn what_is_no_alias() {
        for (name, address) in [("*", "127.0.0.1"), ("a.*.b", "127.0.0.1"), ("a b", "127.0.0.1")] {
            assert!(matches!(Alias::parse(name, address), Err(AliasError::Name(_))), "{name}");
        }
        for address in ["", "localhost", "127.0.0.1:", "127.0.0.1:99999", "http://127.0.0.1"] {
            assert!(matches!(Alias::parse("a.example", address), Err(AliasError::Address(_))), "{address}");
        }
    }
}
