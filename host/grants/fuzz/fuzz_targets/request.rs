//! A whole request: what passes all checks brings no header that the host sets, and names a credential only where that is
//! bound to. Run: `cargo +nightly fuzz run request`.
#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use http::{HeaderName, HeaderValue, Method, Request, Uri};
use libfuzzer_sys::fuzz_target;
use plimsoll_grants::{ActionGrant, AddressPolicy, Binding, Grant, MOST_HEADERS, SLOT_HEADER, permit};

const MOST_BYTES: usize = 4096;

static HOSTS: LazyLock<Vec<Grant>> = LazyLock::new(|| {
    let hosts = ["https://api.utho.com", "https://*.aliyuncs.com"];
    hosts.into_iter().filter_map(|text| Grant::parse(text, false).ok()).collect()
});
static SLOTS: LazyLock<BTreeMap<&str, Binding>> = LazyLock::new(|| {
    let utho = Binding::new(["api.utho.com"]).ok();
    let ess = Binding::new(["ess.aliyuncs.com"]).ok().map(|ess| {
        let actions = ["RemoveInstances", "Pools GET /clusters/*/nodepools"];
        ess.only_for(actions.into_iter().filter_map(|text| ActionGrant::parse(text).ok()))
    });
    [("api", utho), ("ess", ess)].into_iter().filter_map(|(slot, binding)| Some((slot, binding?))).collect()
});

fuzz_target!(|input: (&str, &str, Vec<(&str, &str)>)| {
    let (method, uri, headers) = input;
    let (Ok(method), Ok(uri)) = (method.parse::<Method>(), uri.parse::<Uri>()) else { return };
    let mut request = Request::new(());
    (*request.method_mut(), *request.uri_mut()) = (method, uri);
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            request.headers_mut().append(name, value);
        }
    }
    let parts = request.into_parts().0;
    let Ok(permit) = permit(&parts, &HOSTS, &AddressPolicy::default(), MOST_BYTES, |slot| SLOTS.get(slot)) else { return };
    let host = permit.url.host_str().unwrap_or_default();
    assert!(host == "api.utho.com" || host.ends_with(".aliyuncs.com"), "{permit:?}");
    assert!(parts.headers.len() <= MOST_HEADERS);
    assert!(parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>() <= MOST_BYTES);
    for (name, value) in &parts.headers {
        let name = name.as_str();
        assert!(!name.starts_with("proxy-") && !["authorization", "transfer-encoding", "upgrade"].contains(&name), "{name}");
        // The host is asked for as it was checked, however it was spelled.
        let authority = parts.uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        assert!(name != "host" || value.to_str().is_ok_and(|value| value.eq_ignore_ascii_case(authority)), "{value:?}");
    }
    let named: Vec<_> = parts.headers.get_all(SLOT_HEADER).iter().map(|value| value.to_str().ok()).collect();
    assert_eq!(named.first().copied().flatten(), permit.slot.as_deref());
    match permit.slot.as_deref() {
        Some("api") => assert_eq!(host, "api.utho.com"),
        Some("ess") => {
            let actions: Vec<_> = parts.headers.get_all("x-acs-action").iter().map(HeaderValue::as_bytes).collect();
            assert_eq!(host, "ess.aliyuncs.com");
            let path = permit.url.path();
            match actions[..] {
                [b"RemoveInstances"] => assert_eq!(path, "/"),
                [b"Pools"] => assert!(parts.method == "GET" && path.ends_with("/nodepools"), "{path}"),
                _ => panic!("{actions:?}"),
            }
        }
        Some(other) => panic!("{other} is no slot"),
        None => {}
    }
});
