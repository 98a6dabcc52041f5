//! Addresses: what the standard library calls loopback, private, link-local … is closed, in every form of IPv6 that holds an
//! IPv4 address too; and a range that is opened is open. Run: `cargo +nightly fuzz run ranges`.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use plimsoll_grants::AddressPolicy;

fn closed_v4(address: Ipv4Addr) -> bool {
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || address.is_unspecified()
        || address == Ipv4Addr::new(100, 100, 100, 200)
}

fn closed_v6(address: Ipv6Addr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
}

fuzz_target!(|input: (u128, u32)| {
    let policy = AddressPolicy::default();
    let (v6, v4) = (Ipv6Addr::from_bits(input.0), Ipv4Addr::from_bits(input.1));
    assert!(!closed_v6(v6) || policy.check(v6.into()).is_err(), "{v6}");
    let verdict = policy.check(v4.into()).is_err();
    assert!(!closed_v4(v4) || verdict, "{v4}");
    let inside = u128::from(input.1);
    let (mapped, nat64) = (0xffff << 32 | inside, 0x0064_ff9b << 96 | inside);
    let six_to_four = 0x2002 << 112 | inside << 80 | input.0 & (u128::MAX >> 48);
    let cluster = AddressPolicy { opened: vec![], closed: vec![IpAddr::from(v4).into()] };
    for disguise in [mapped, nat64, six_to_four] {
        let disguise = Ipv6Addr::from_bits(disguise);
        assert_eq!(policy.check(disguise.into()).is_err(), verdict, "{disguise} holds {v4}");
        assert!(cluster.check(disguise.into()).is_err(), "{disguise} holds {v4}");
    }
    for address in [IpAddr::from(v4), IpAddr::from(v6)] {
        let opened = AddressPolicy { opened: vec![address.into()], closed: vec![address.into()] };
        // A range of IPv6 does not open the IPv4 address that is hidden in it: that is judged as what it is.
        let hidden = matches!(address, IpAddr::V6(v6) if input.0 >> 32 == 0 && input.0 > 1 || v6.to_ipv4_mapped().is_some());
        assert!(hidden || opened.check(address).is_ok(), "{address}");
        let closed = AddressPolicy { opened: vec![], closed: vec![address.into()] };
        assert!(hidden || closed.check(address).is_err(), "{address}");
    }
});
