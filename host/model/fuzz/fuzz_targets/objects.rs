//! Whatever is in a file, it is read or refused, and a refusal names the file. Run: `cargo +nightly fuzz run objects`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_model::read::Reader;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::default();
    match reader.add("file", bytes) {
        Ok(()) => match reader.finish() {
            Ok(input) => input.warnings.iter().for_each(|warning| drop(warning.to_string())),
            Err(error) => assert!(error.to_string().starts_with("file:"), "{error}"),
        },
        Err(error) => assert!(error.to_string().starts_with("file:"), "{error}"),
    }
});
