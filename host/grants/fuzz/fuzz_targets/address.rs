//! What passes the check of addresses is granted, encrypted, without a user, and no closed address; what is refused for want
//! of a grant passes with the entry that the refusal names. Run: `cargo +nightly fuzz run address`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use plimsoll_grants::{AddressPolicy, Grant, Refusal, check_address};

static HOSTS: LazyLock<Vec<Grant>> = LazyLock::new(|| {
    let hosts = ["https://api.utho.com", "https://*.aliyuncs.com", "https://127.0.0.1", "https://[::1]"];
    hosts.into_iter().filter_map(|text| Grant::parse(text, false).ok()).collect()
});

fuzz_target!(|text: &str| {
    let addresses = AddressPolicy::default();
    match check_address(&HOSTS, &addresses, text) {
        Ok((url, _)) => {
            let host = url.host_str().unwrap_or_default();
            assert!(host == "api.utho.com" || host.ends_with(".aliyuncs.com"), "{url} from {text}");
            assert_eq!((url.scheme(), url.port_or_known_default()), ("https", Some(443)), "{url} from {text}");
            assert!(url.username().is_empty() && url.password().is_none(), "{url} from {text}");
            let again = check_address(&HOSTS, &addresses, url.as_str()).map(|(url, _)| url);
            assert_eq!(again, Ok(url), "from {text}");
        }
        Err(Refusal::NoGrant { entry, encrypted }) => {
            if let Ok(grant) = Grant::parse(&entry, !encrypted) {
                let hosts = [grant];
                let verdict = check_address(&hosts, &addresses, text);
                assert!(!matches!(verdict, Err(Refusal::NoGrant { .. })), "{entry} does not allow {text}");
            }
        }
        Err(_) => {}
    }
});
