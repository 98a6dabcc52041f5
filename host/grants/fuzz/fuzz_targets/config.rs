//! No text of the plug-in configuration makes the host panic, and what is granted without `insecure-http` is encrypted.
//! Run: `cargo +nightly fuzz run config`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_grants::PluginConfig;

fuzz_target!(|text: &str| {
    match PluginConfig::parse("plugins.yaml", text) {
        Ok(config) => {
            for entry in config.plugins.values() {
                let plain = entry.hosts.iter().any(|grant| grant.to_string().starts_with("http://"));
                assert!(!plain || text.contains("insecure-http"), "{text}");
            }
        }
        Err(error) => assert!(!error.message.is_empty(), "{text}"),
    }
});
