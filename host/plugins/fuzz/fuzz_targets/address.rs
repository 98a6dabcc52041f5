//! What passes the check of addresses is granted, encrypted, without a user, and no closed address. Run:
//! `cargo +nightly fuzz run address`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use plimsoll_plugins::egress::{Grant, NetworkGrants};

static GRANTS: LazyLock<NetworkGrants> = LazyLock::new(|| {
    let hosts = ["https://api.utho.com", "https://*.aliyuncs.com", "https://127.0.0.1", "https://[::1]"];
    let hosts = hosts.into_iter().filter_map(|text| Grant::parse(text, false).ok()).collect();
    NetworkGrants { hosts, ..NetworkGrants::default() }
});

fuzz_target!(|text: &str| {
    if let Ok(url) = GRANTS.check_address(text) {
        let host = url.host_str().unwrap_or_default();
        assert!(host == "api.utho.com" || host.ends_with(".aliyuncs.com"), "{url} from {text}");
        assert_eq!((url.scheme(), url.port_or_known_default()), ("https", Some(443)), "{url} from {text}");
        assert!(url.username().is_empty() && url.password().is_none(), "{url} from {text}");
        assert_eq!(GRANTS.check_address(url.as_str()).as_ref(), Ok(&url), "{url} from {text}");
    }
});
