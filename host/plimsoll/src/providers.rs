//! The cloud provider of this process: the plug-in that `--cloud-provider` names, with what the operator grants it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_plugins::clock::Clock;
use plimsoll_plugins::config::Entry;
use plimsoll_plugins::credentials::{Broker, Environment};
use plimsoll_plugins::egress::{Internet, InternetOptions, NetworkGrants};
use plimsoll_plugins::limits::Limits;
use plimsoll_plugins::provider::{ProviderOptions, Setup};
use plimsoll_plugins::{PluginConfig, PluginHost};

use crate::exit::Exit;
use crate::slot::{Place, Slot};
use crate::{expanders, flags};

/// Adds the options that say how clouds are reached.
pub(crate) fn add_to(command: Command) -> Command {
    command.arg(
        Arg::new("extra-ca-file")
            .long("extra-ca-file")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help_heading("Plug-ins")
            .help(
                "Certificates, in PEM, that are trusted besides the built-in ones when a plug-in speaks to its cloud",
            ),
    )
}

/// What a built-in provider is granted where the plug-in configuration grants it no host and no credential: its cloud, and
/// the credentials that a Deployment of the Go autoscaler has.
const DEFAULTS: &[(&str, &str)] = &[
    (
        "alicloud",
        "plugins:
  alicloud:
    hosts: ['https://*.aliyuncs.com']
    credentials:
      api: {kind: alicloud-v3, hosts: ['*.aliyuncs.com'], environment: true}
",
    ),
    (
        "utho",
        "plugins:
  utho:
    hosts: ['https://api.utho.com']
    credentials:
      api: {kind: bearer, env: UTHO_TOKEN, hosts: [api.utho.com]}
",
    ),
];

/// The variable in which the token of a Utho configuration file is handed to the broker.
const UTHO_TOKEN: &str = "UTHO_TOKEN";

/// The provider that `--cloud-provider` names: the file of its entry in the plug-in configuration, else `NAME.wasm` in the
/// plug-in folder, else a built-in one.
pub(crate) fn slot(matches: &ArgMatches, host: &PluginHost, clock: Arc<dyn Clock>) -> Result<Slot, Exit> {
    let name = flags::texts(matches, "cloud-provider").last().ok_or_else(|| {
        Exit::bad_input(format!("--cloud-provider is missing; built in are {}", built_in().join(", ")))
    })?;
    let config = expanders::config(matches)?;
    let granted = config
        .plugins
        .get(name)
        .is_some_and(|entry| entry.file.is_some() || !entry.hosts.is_empty() || !entry.credentials.is_empty());
    let (config, is_default) = if granted { (config, false) } else { with_default(config, name)? };
    let entry = config.entry(name);
    let place = place(matches, name, &entry)?;
    let (setup, environment) = setup(matches, is_default.then_some(name.as_str()))?;
    let internet = internet_options(matches, &config, &environment)?;
    let grants = grants(&config, &entry, clock, &environment, &internet)?;
    let transport = Internet::new(grants.addresses.clone(), internet)
        .map_err(|error| Exit::bad_input(format!("the network cannot be set up: {error}")))?;
    let mut options = ProviderOptions::new(setup, Arc::new(transport));
    options.limits = Limits::of(&entry);
    options.settings = entry.settings.clone();
    options.grants = grants;
    Ok(Slot::new(host.clone(), name.clone(), place, options))
}

/// Names of the providers that need no file.
fn built_in() -> Vec<&'static str> {
    plimsoll_bundled::PROVIDERS.iter().map(|&(name, _)| name).collect()
}

/// The operator's configuration with what a built-in provider has by default. A provider from a file has nothing.
fn with_default(mut config: PluginConfig, name: &str) -> Result<(PluginConfig, bool), Exit> {
    let Some((_, text)) = DEFAULTS.iter().find(|(known, _)| *known == name) else { return Ok((config, false)) };
    let default = PluginConfig::parse("built-in defaults", text)
        .context("the built-in grants are wrong")
        .map_err(Exit::failed)?;
    for (name, default) in default.plugins {
        let entry = config.plugins.entry(name).or_default();
        (entry.hosts, entry.credentials) = (default.hosts, default.credentials);
    }
    Ok((config, true))
}

fn place(matches: &ArgMatches, name: &str, entry: &Entry) -> Result<Place, Exit> {
    if let Some(file) = &entry.file {
        return Ok(Place::File(file.clone()));
    }
    let file = matches.get_one::<PathBuf>("plugin-dir").map(|folder| folder.join(format!("{name}.wasm")));
    let built_in = plimsoll_bundled::PROVIDERS.iter().find(|&&(known, _)| known == name);
    match (file, built_in) {
        // A file that is not there yet may come.
        (Some(file), None) => Ok(Place::File(file)),
        (Some(file), _) if file.exists() => Ok(Place::File(file)),
        (_, Some(&(_, bytes))) => Ok(Place::BuiltIn(bytes)),
        (None, None) => Err(Exit::bad_input(format!(
            "--cloud-provider={name}: there is no such provider; built in are {}; others are files NAME.wasm in the folder \
             that --plugin-dir names",
            self::built_in().join(", ")
        ))),
    }
}

fn grants(
    config: &PluginConfig,
    entry: &Entry,
    clock: Arc<dyn Clock>,
    environment: &Environment,
    internet: &InternetOptions,
) -> Result<NetworkGrants, Exit> {
    let broker = Broker::reaching(clock, environment.clone(), internet.clone())
        .map_err(|error| Exit::bad_input(error.to_string()))?;
    let closed = config.network.closed_ranges(environment);
    NetworkGrants::brokered(entry, &config.file, closed, &broker).map_err(Exit::bad_input)
}

fn internet_options(
    matches: &ArgMatches,
    config: &PluginConfig,
    environment: &Environment,
) -> Result<InternetOptions, Exit> {
    let mut network = config.network.clone();
    if let Some(file) = matches.get_one::<PathBuf>("extra-ca-file") {
        network.extra_ca_file = Some(file.clone());
    }
    InternetOptions::of(&network, environment).map_err(Exit::bad_input)
}

/// What the provider is told at first, and the environment that its credentials are taken from. `like_the_peer` names a
/// built-in provider whose configuration is that of a Deployment of the Go autoscaler.
fn setup(matches: &ArgMatches, like_the_peer: Option<&str>) -> Result<(Setup, Environment), Exit> {
    let last = |flag: &str| flags::texts(matches, flag).last().filter(|text| !text.is_empty()).cloned();
    let mut environment = Environment::process();
    let mut cloud_config = None;
    if let Some(file) = last("cloud-config") {
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Exit::bad_input(format!("--cloud-config: {file}: cannot be read: {error}")))?;
        let (text, token) = match like_the_peer {
            Some("utho") => without_token(text),
            _ => (text, None),
        };
        if let Some(token) = token {
            environment = Environment::of([(UTHO_TOKEN.to_owned(), token)]);
        }
        cloud_config = Some(text);
    }
    let mut attributes = BTreeMap::new();
    if let Some(region) = environment.get("REGION_ID") {
        attributes.insert("region".to_owned(), region);
    }
    let setup = Setup {
        cloud_config,
        node_groups: flags::texts(matches, "nodes").cloned().collect(),
        discovery: flags::texts(matches, "node-group-auto-discovery").cloned().collect(),
        cluster_name: last("cluster-name").unwrap_or_default(),
        user_agent: last("user-agent").unwrap_or_else(|| format!("plimsoll/{}", env!("CARGO_PKG_VERSION"))),
        attributes,
    };
    Ok((setup, environment))
}

/// The Go autoscaler keeps Utho's token in the configuration file. It is taken out before the plug-in sees the rest. A
/// file that is no JSON object is left to the plug-in, which says what is wrong with it.
fn without_token(text: String) -> (String, Option<String>) {
    let Ok(mut fields) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text) else {
        return (text, None);
    };
    let token = fields.remove("token").and_then(|token| token.as_str().map(str::to_owned));
    (serde_json::Value::Object(fields).to_string(), token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_be_read() {
        for &(name, text) in DEFAULTS {
            let config = PluginConfig::parse("defaults", text).unwrap();
            assert_eq!(config.entry(name).hosts.len(), 1, "{name}");
        }
    }

    #[test]
    fn a_token_never_reaches_the_plug_in() {
        let (rest, token) = without_token(r#"{"cluster_id": "1111", "token": "s3cret"}"#.to_owned());
        assert_eq!((rest.as_str(), token.as_deref()), (r#"{"cluster_id":"1111"}"#, Some("s3cret")));
        for odd in ["", "[]", "cluster_id = 1"] {
            assert_eq!(without_token(odd.to_owned()), (odd.to_owned(), None));
        }
    }
}
