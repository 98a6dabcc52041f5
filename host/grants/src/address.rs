//! Which addresses a plug-in may be connected to: those of the public internet, and what the operator opened.
//!
//! The check is made on the resolved address that is then connected to, so a name cannot point elsewhere in between.
//! The ranges are the special-purpose registries of IANA (RFC 6890), plus what hides another address inside.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}
const fn v6(head: [u16; 4], tail: u16, prefix: u8) -> Ipv6Net {
    let [a, b, c, d] = head;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, tail), prefix)
}

/// More exact ranges come first.
const CLOSED_V4: &[(Ipv4Net, &str)] = &[
    (v4(169, 254, 169, 254, 32), "the metadata service of clouds"),
    (v4(100, 100, 100, 200, 32), "the metadata service of AliCloud"),
    (v4(127, 0, 0, 0, 8), "a loopback address"),
    (v4(10, 0, 0, 0, 8), "a private address"),
    (v4(172, 16, 0, 0, 12), "a private address"),
    (v4(192, 168, 0, 0, 16), "a private address"),
    (v4(100, 64, 0, 0, 10), "an address shared by carriers (CGNAT)"),
    (v4(169, 254, 0, 0, 16), "a link-local address"),
    (v4(0, 0, 0, 0, 8), "an address of this host"),
    (v4(192, 0, 0, 0, 24), "an address reserved for protocols"),
    (v4(192, 0, 2, 0, 24), "an address for documentation"),
    (v4(198, 51, 100, 0, 24), "an address for documentation"),
    (v4(203, 0, 113, 0, 24), "an address for documentation"),
    (v4(192, 88, 99, 0, 24), "a 6to4 relay"),
    (v4(198, 18, 0, 0, 15), "an address for benchmarks"),
    (v4(224, 0, 0, 0, 4), "a multicast address"),
    (v4(255, 255, 255, 255, 32), "the broadcast address"),
    (v4(240, 0, 0, 0, 4), "a reserved address"),
];
const CLOSED_V6: &[(Ipv6Net, &str)] = &[
    (v6([0xfd00, 0xec2, 0, 0], 0x254, 128), "the metadata service of clouds"),
    (v6([0, 0, 0, 0], 1, 128), "a loopback address"),
    (v6([0, 0, 0, 0], 0, 128), "the unspecified address"),
    (v6([0xfc00, 0, 0, 0], 0, 7), "a private address (unique local)"),
    (v6([0xfe80, 0, 0, 0], 0, 10), "a link-local address"),
    (v6([0xff00, 0, 0, 0], 0, 8), "a multicast address"),
    (v6([0x2001, 0xdb8, 0, 0], 0, 32), "an address for documentation"),
    (v6([0x3fff, 0, 0, 0], 0, 20), "an address for documentation"),
    (v6([0x2001, 0, 0, 0], 0, 32), "a Teredo tunnel"),
    (v6([0x2001, 0, 0, 0], 0, 23), "an address reserved for protocols"),
    (v6([0x2001, 0x20, 0, 0], 0, 28), "an address reserved for protocols"),
];
/// Everything that is routed publicly lies in here.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0], 0, 3);
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0], 0, 96);
const SIX_TO_FOUR: Ipv6Net = v6([0x2002, 0, 0, 0], 0, 16);

/// The addresses that one plug-in may be connected to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AddressPolicy {
    /// Ranges that the operator opened for this plug-in; these win over everything.
    pub opened: Vec<IpNet>,
    /// Ranges closed besides the built-in ones: pods, services, nodes, the API server.
    pub closed: Vec<IpNet>,
}

/// Why an address is closed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClosedAddress {
    /// The address, as it was resolved.
    pub address: IpAddr,
    /// What it is, such as `a private address`.
    pub kind: &'static str,
}

impl fmt::Display for ClosedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.address, self.kind)
    }
}

impl std::error::Error for ClosedAddress {}

impl AddressPolicy {
    /// Everything is open: for the host's own requests, never for those of a plug-in.
    pub fn everything() -> Self {
        let all = [IpNet::V4(v4(0, 0, 0, 0, 0)), IpNet::V6(v6([0; 4], 0, 0))];
        Self { opened: all.into(), closed: vec![] }
    }

    /// Whether a plug-in may be connected to this address.
    ///
    /// # Errors
    /// The kind of the address, if it may not.
    pub fn check(&self, address: IpAddr) -> Result<(), ClosedAddress> {
        let plain = unwrap(address);
        if self.opened.iter().any(|range| range.contains(&plain)) {
            return Ok(());
        }
        // Where a packet to it ends.
        let end = translated(plain).map_or(plain, IpAddr::V4);
        let kind = if self.closed.iter().any(|range| range.contains(&plain) || range.contains(&end)) {
            Some("an address of the cluster itself")
        } else {
            match end {
                IpAddr::V4(end) => closed_v4(end),
                IpAddr::V6(end) => closed_v6(end),
            }
        };
        kind.map_or(Ok(()), |kind| Err(ClosedAddress { address, kind }))
    }
}

fn closed_v4(address: Ipv4Addr) -> Option<&'static str> {
    CLOSED_V4.iter().find(|(range, _)| range.contains(&address)).map(|(_, kind)| *kind)
}

/// The IPv4 address behind a translator, for an address that leads to one.
fn translated(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let [_, b, c, _, _, _, y, z] = address.segments();
    if NAT64.contains(&address) {
        return Some(join(y, z));
    }
    SIX_TO_FOUR.contains(&address).then(|| join(b, c))
}

fn closed_v6(address: Ipv6Addr) -> Option<&'static str> {
    let kind = CLOSED_V6.iter().find(|(range, _)| range.contains(&address)).map(|(_, kind)| *kind);
    kind.or_else(|| (!GLOBAL_V6.contains(&address)).then_some("an address that is not routed publicly"))
}

/// An IPv4 address that was written as IPv6 is judged as what it is.
fn unwrap(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    if let Some(mapped) = v6.to_ipv4_mapped() {
        return mapped.into();
    }
    // The old "compatible" form, but not `::` and `::1`.
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, y, z] if y != 0 => join(y, z).into(),
        _ => address,
    }
}

fn join(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case::public_v4("8.8.8.8", None)]
    #[case::beside_private("172.32.0.1", None)]
    #[case::below_cgnat("100.63.255.255", None)]
    #[case::public_v6("2606:4700::1111", None)]
    #[case::nat64_of_public("64:ff9b::8.8.8.8", None)]
    #[case::six_to_four_of_public("2002:808:808::1", None)]
    #[case::mapped_public("::ffff:8.8.8.8", None)]
    #[case::loopback("127.8.9.1", Some("a loopback address"))]
    #[case::private_10("10.1.2.3", Some("a private address"))]
    #[case::private_172("172.31.255.255", Some("a private address"))]
    #[case::private_192("192.168.0.1", Some("a private address"))]
    #[case::metadata("169.254.169.254", Some("the metadata service of clouds"))]
    #[case::metadata_alicloud("100.100.100.200", Some("the metadata service of AliCloud"))]
    #[case::cgnat("100.127.255.255", Some("an address shared by carriers (CGNAT)"))]
    #[case::link_local("169.254.1.1", Some("a link-local address"))]
    #[case::this_host("0.0.0.0", Some("an address of this host"))]
    #[case::documentation("203.0.113.9", Some("an address for documentation"))]
    #[case::benchmarks("198.19.0.1", Some("an address for benchmarks"))]
    #[case::multicast("224.0.0.251", Some("a multicast address"))]
    #[case::broadcast("255.255.255.255", Some("the broadcast address"))]
    #[case::reserved("250.1.1.1", Some("a reserved address"))]
    #[case::mapped_loopback("::ffff:127.0.0.1", Some("a loopback address"))]
    #[case::mapped_metadata("::ffff:a9fe:a9fe", Some("the metadata service of clouds"))]
    #[case::compatible_private("::10.0.0.1", Some("a private address"))]
    #[case::nat64_of_metadata("64:ff9b::169.254.169.254", Some("the metadata service of clouds"))]
    #[case::six_to_four_of_private("2002:a00:1::1", Some("a private address"))]
    #[case::loopback_v6("::1", Some("a loopback address"))]
    #[case::unspecified_v6("::", Some("the unspecified address"))]
    #[case::unique_local("fd12:3456::1", Some("a private address (unique local)"))]
    #[case::metadata_v6("fd00:ec2::254", Some("the metadata service of clouds"))]
    #[case::link_local_v6("fe80::1", Some("a link-local address"))]
    #[case::multicast_v6("ff02::1", Some("a multicast address"))]
    #[case::documentation_v6("2001:db8::1", Some("an address for documentation"))]
    #[case::teredo("2001:0:1::1", Some("a Teredo tunnel"))]
    #[case::discard("100::1", Some("an address that is not routed publicly"))]
    #[case::site_local("fec0::1", Some("an address that is not routed publicly"))]
    fn knows_what_is_public(#[case] address: &str, #[case] kind: Option<&str>) {
        let verdict = AddressPolicy::default().check(address.parse().unwrap());
        assert_eq!(verdict.err().map(|closed| closed.kind), kind);
    }

    #[rstest::rstest]
    #[case::opened("10.9.1.1", true)]
    #[case::opened_but_mapped("::ffff:10.9.1.1", true)]
    #[case::beside_opened("10.10.0.1", false)]
    #[case::closed_by_the_cluster("8.8.8.8", false)]
    #[case::closed_by_the_cluster_but_mapped("::ffff:8.8.8.8", false)]
    #[case::closed_by_the_cluster_but_translated("64:ff9b::8.8.8.8", false)]
    #[case::closed_by_the_cluster_but_tunnelled("2002:808:808::1", false)]
    #[case::public("8.8.4.4", true)]
    fn the_operator_opens_and_closes_ranges(#[case] address: &str, #[case] allowed: bool) {
        let policy =
            AddressPolicy { opened: vec!["10.9.0.0/16".parse().unwrap()], closed: vec!["8.8.8.0/24".parse().unwrap()] };
        assert_eq!(policy.check(address.parse().unwrap()).is_ok(), allowed);
    }
}
