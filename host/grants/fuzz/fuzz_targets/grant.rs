//! An entry of `hosts` that is read says itself again, and means the same. Run: `cargo +nightly fuzz run grant`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_grants::Grant;

fuzz_target!(|input: (&str, bool)| {
    let (text, insecure) = input;
    if let Ok(grant) = Grant::parse(text, insecure) {
        assert_eq!(Grant::parse(&grant.to_string(), insecure).as_ref(), Ok(&grant), "{grant} from {text}");
        assert!(insecure || grant.to_string().starts_with("https://"), "{grant}");
    }
});
