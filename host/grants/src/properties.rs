//! What holds for any text: the properties that the fuzz targets look for, on random input in every test run.

use proptest::prelude::*;

use crate::{AddressPolicy, Grant, Refusal, check_address};

/// Texts that look like addresses, so that something is found.
fn address_like() -> impl Strategy<Value = String> {
    let scheme = prop_oneof![Just("https"), Just("http"), Just("HTTPS"), Just("ftp"), "[a-z]{0,5}".prop_map(|_| "x")];
    let host = prop_oneof![
        "[a-zA-Z0-9.*-]{1,20}",
        Just("api.utho.com".to_owned()),
        Just("*.aliyuncs.com".to_owned()),
        any::<std::net::Ipv4Addr>().prop_map(|address| address.to_string()),
        any::<std::net::Ipv6Addr>().prop_map(|address| format!("[{address}]")),
        any::<u32>().prop_map(|number| number.to_string()),
    ];
    let port = prop_oneof![Just(String::new()), any::<u16>().prop_map(|port| format!(":{port}")), ":[0-9a-z]{0,6}"];
    let tail = prop_oneof![Just(String::new()), "[/?#@\\\\][ -~]{0,10}"];
    (scheme, "[@a-z]{0,2}", host, port, tail).prop_map(|(scheme, user, host, port, tail)| {
        let user = if user.contains('@') { user } else { String::new() };
        format!("{scheme}://{user}{host}{port}{tail}")
    })
}

fn check(hosts: &[Grant], text: &str) -> Result<url::Url, Refusal> {
    check_address(hosts, &AddressPolicy::default(), text).map(|(url, _)| url)
}

proptest! {
    /// An entry that is read says itself again, and means the same.
    #[test]
    fn entries_are_stable(text in prop_oneof![address_like(), "\\PC{0,40}"], insecure in any::<bool>()) {
        if let Ok(grant) = Grant::parse(&text, insecure) {
            let again = Grant::parse(&grant.to_string(), insecure);
            prop_assert_eq!(again.as_ref(), Ok(&grant), "{} from {}", grant, text);
            prop_assert!(grant.includes(&grant));
            prop_assert!(insecure || grant.to_string().starts_with("https://"));
        }
    }

    /// The entry that a refusal names would allow the request.
    #[test]
    fn the_entry_that_is_told_helps(text in address_like()) {
        if let Err(Refusal::NoGrant { entry, .. }) = check(&[], &text)
            && let Ok(grant) = Grant::parse(&entry, true)
        {
            let refused = matches!(check(&[grant], &text), Err(Refusal::NoGrant { .. }));
            prop_assert!(!refused, "{} does not allow {}", entry, text);
        }
    }

    /// What is let through is granted, encrypted unless granted otherwise, without a user, and no closed address.
    #[test]
    fn what_passes_is_granted(text in prop_oneof![address_like(), "\\PC{0,60}"]) {
        let hosts = ["https://api.utho.com", "https://*.aliyuncs.com", "https://127.0.0.1", "https://[::1]"];
        let hosts = hosts.map(|text| Grant::parse(text, false).unwrap());
        if let Ok(url) = check(&hosts, &text) {
            let host = url.host_str().unwrap();
            prop_assert!(host == "api.utho.com" || host.ends_with(".aliyuncs.com"), "{}", url);
            prop_assert_eq!((url.scheme(), url.port_or_known_default()), ("https", Some(443)));
            prop_assert!(url.username().is_empty() && url.password().is_none() && !text.split(['/', '?', '#', '\\']).nth(2).unwrap_or_default().contains('@'));
            prop_assert_eq!(check(&hosts, url.as_str()), Ok(url.clone()));
        }
    }
}
