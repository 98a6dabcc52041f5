//! The cloud provider of this process: the plug-in that `--cloud-provider` names, with what the operator grants it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_plugins::egress::{Internet, InternetOptions};
use plimsoll_plugins::plugin::{Kind, Plugin};
use plimsoll_plugins::provider::{ProviderOptions, Setup};
use plimsoll_plugins::{Origin, PluginHost, Provider, Source};

use crate::exit::Exit;
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

/// The provider that `--cloud-provider` names: a file `NAME.wasm` in the plug-in folder, else a built-in one.
pub(crate) async fn of_cloud(matches: &ArgMatches, host: &PluginHost) -> Result<Provider, Exit> {
    let name = flags::texts(matches, "cloud-provider").last().ok_or_else(|| {
        Exit::bad_input(format!("--cloud-provider is missing; built in are {}", built_in().join(", ")))
    })?;
    let config = expanders::config(matches)?;
    let plugin = match from_folder(matches, host, name).await? {
        Some(plugin) => plugin,
        None => embedded(host, name).await?,
    };
    let entry = config.entry(name);
    let grants = entry.network_grants(&config.file, vec![]).map_err(Exit::bad_input)?;
    let internet = Internet::new(grants.addresses.clone(), internet_options(matches)?)
        .map_err(|error| Exit::bad_input(format!("--extra-ca-file: {error}")))?;
    let mut options = ProviderOptions::new(setup(matches)?, Arc::new(internet));
    options.limits = entry.limits();
    options.settings = entry.settings.clone();
    options.grants = grants;
    Provider::spawn(host, &plugin, options).map_err(|error| Exit::bad_input(error.to_string()))
}

/// Names of the providers that need no file.
fn built_in() -> Vec<&'static str> {
    plimsoll_bundled::PROVIDERS.iter().map(|&(name, _)| name).collect()
}

async fn from_folder(matches: &ArgMatches, host: &PluginHost, name: &str) -> Result<Option<Plugin>, Exit> {
    let Some(folder) = matches.get_one::<PathBuf>("plugin-dir") else { return Ok(None) };
    let file = folder.join(format!("{name}.wasm"));
    if !file.exists() {
        return Ok(None);
    }
    let bytes = std::fs::read(&file)
        .map_err(|error| Exit::bad_input(format!("{}: cannot be read: {error}", file.display())))?;
    let source =
        Source { name: name.into(), origin: Origin::File(file), kind: Some(Kind::CloudProvider), bytes: bytes.into() };
    host.load(source, None).await.map(Some).map_err(|error| Exit::bad_input(error.to_string()))
}

async fn embedded(host: &PluginHost, name: &str) -> Result<Plugin, Exit> {
    let found = plimsoll_bundled::PROVIDERS.iter().find(|&&(known, _)| known == name);
    let &(_, bytes) = found.ok_or_else(|| {
        Exit::bad_input(format!(
            "--cloud-provider={name}: there is no such provider; built in are {}; others are files NAME.wasm in the folder \
             that --plugin-dir names",
            built_in().join(", ")
        ))
    })?;
    let source =
        Source { name: name.into(), origin: Origin::BuiltIn, kind: Some(Kind::CloudProvider), bytes: bytes.into() };
    host.load(source, None).await.context("the built-in provider cannot be used").map_err(Exit::failed)
}

fn internet_options(matches: &ArgMatches) -> Result<InternetOptions, Exit> {
    let extra_roots_pem = match matches.get_one::<PathBuf>("extra-ca-file") {
        None => None,
        Some(file) => Some(
            std::fs::read(file)
                .map_err(|error| Exit::bad_input(format!("{}: cannot be read: {error}", file.display())))?,
        ),
    };
    Ok(InternetOptions { extra_roots_pem, connect_timeout: Duration::from_secs(5), ..InternetOptions::default() })
}

fn setup(matches: &ArgMatches) -> Result<Setup, Exit> {
    let last = |flag: &str| flags::texts(matches, flag).last().cloned();
    let cloud_config = match last("cloud-config").filter(|file| !file.is_empty()) {
        None => None,
        Some(file) => Some(
            std::fs::read_to_string(&file)
                .map_err(|error| Exit::bad_input(format!("--cloud-config: {file}: cannot be read: {error}")))?,
        ),
    };
    Ok(Setup {
        cloud_config,
        node_groups: flags::texts(matches, "nodes").cloned().collect(),
        discovery: flags::texts(matches, "node-group-auto-discovery").cloned().collect(),
        cluster_name: last("cluster-name").unwrap_or_default(),
        user_agent: last("user-agent").unwrap_or_else(|| format!("plimsoll/{}", env!("CARGO_PKG_VERSION"))),
    })
}
