//! Every example of the page on the configuration is one that the host reads.

use std::sync::Arc;

use plimsoll_plugins::clock::StoppedClock;
use plimsoll_plugins::config::PluginConfig;
use plimsoll_plugins::credentials::{Broker, Environment};
use plimsoll_plugins::egress::{InProcess, NetworkGrants};

#[test]
fn every_example_of_the_page_is_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plugin-config.md");
    let page = std::fs::read_to_string(path).unwrap();
    let examples: Vec<_> = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 8, "{} examples", examples.len());
    let nobody = InProcess::new(|_| std::future::pending());
    let broker = Broker::new(Arc::new(StoppedClock), Environment::empty(), Arc::new(nobody));
    let mut slots = 0;
    for example in examples {
        let config =
            PluginConfig::parse("plugin-config.md", example).unwrap_or_else(|error| panic!("{error}\n{example}"));
        for entry in config.plugins.values() {
            let grants = NetworkGrants::brokered(entry, "plugin-config.md", vec![], &broker).unwrap();
            slots += grants.credentials.len();
        }
        config.network.closed_ranges(&Environment::empty());
    }
    assert!(slots >= 7, "{slots} credentials");
}
