//! The cloud provider of this process: the plug-in that `--cloud-provider` names, with what the operator grants it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_plugins::clock::Clock;
use plimsoll_plugins::config::Entry;
use plimsoll_plugins::credentials::{Broker, Environment};
use plimsoll_plugins::egress::{Internet, InternetOptions, NetworkGrants};
use plimsoll_plugins::plugin::Kind;
use plimsoll_plugins::provider::{ProviderOptions, Setup};
use plimsoll_plugins::{Origin, PluginConfig, PluginHost, Provider, Source};

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

/// What a built-in provider is granted where the plug-in configuration says nothing of it: its cloud, and the credentials
/// that a Deployment of the Go autoscaler has.
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

/// A provider that may be replaced while the process runs: its file is looked at before each loop.
pub(crate) struct Slot {
    host: PluginHost,
    name: String,
    place: Place,
    options: ProviderOptions,
    /// Whether one was handed out.
    serves: bool,
    /// What the file was when it was last looked at.
    seen: Option<(SystemTime, u64)>,
    /// What was said last, so that it is said once.
    said: Option<String>,
}

/// Where a plug-in is.
enum Place {
    File(PathBuf),
    BuiltIn(&'static [u8]),
}

impl Slot {
    /// The provider that `--cloud-provider` names: the file of its entry in the plug-in configuration, else `NAME.wasm` in
    /// the plug-in folder, else a built-in one.
    pub(crate) fn new(matches: &ArgMatches, host: &PluginHost, clock: Arc<dyn Clock>) -> Result<Self, Exit> {
        let name = flags::texts(matches, "cloud-provider").last().ok_or_else(|| {
            Exit::bad_input(format!("--cloud-provider is missing; built in are {}", built_in().join(", ")))
        })?;
        let config = expanders::config(matches)?;
        let (config, is_default) = match config.plugins.contains_key(name) {
            true => (config, false),
            false => with_default(config, name)?,
        };
        let entry = config.entry(name);
        let place = place(matches, name, &entry)?;
        let (setup, environment) = setup(matches, is_default.then_some(name.as_str()))?;
        let internet = internet_options(matches, &config, &environment)?;
        let grants = grants(&config, &entry, clock, &environment, &internet)?;
        let transport = Internet::new(grants.addresses.clone(), internet)
            .map_err(|error| Exit::bad_input(format!("the network cannot be set up: {error}")))?;
        let mut options = ProviderOptions::new(setup, Arc::new(transport));
        options.limits = entry.limits();
        options.settings = entry.settings.clone();
        options.grants = grants;
        Ok(Self { host: host.clone(), name: name.clone(), place, options, serves: false, seen: None, said: None })
    }

    /// The provider, if it is new: at the first call, and after its file was replaced. An error is told once, and leaves
    /// the one that serves where it is.
    pub(crate) async fn poll(&mut self) -> Result<Option<Provider>, String> {
        let (origin, bytes) = match &self.place {
            Place::BuiltIn(_) if self.seen.is_some() => return Ok(None),
            Place::BuiltIn(bytes) => {
                self.seen = Some((SystemTime::UNIX_EPOCH, 0));
                (Origin::BuiltIn, bytes.to_vec())
            }
            Place::File(file) => {
                let file = file.clone();
                match self.read_if_new(&file) {
                    Ok(None) => return Ok(None),
                    Ok(Some(bytes)) => (Origin::File(file), bytes),
                    Err(why) => return self.once(why),
                }
            }
        };
        let name = self.name.as_str().into();
        let source = Source { name, origin, kind: Some(Kind::CloudProvider), bytes: bytes.into() };
        let loaded = match self.host.load(source, None).await {
            Ok(plugin) => Provider::spawn(&self.host, &plugin, self.options.clone()).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let provider = match loaded {
            Ok(provider) => provider,
            Err(why) => return self.once(why),
        };
        // One that cannot even be configured must not take the place of one that serves.
        if self.serves
            && let Err(error) = provider.capabilities().await
        {
            return self.once(format!("provider {:?}: {error}; the one before it goes on serving", self.name));
        }
        self.serves = true;
        self.said = None;
        Ok(Some(provider))
    }

    fn read_if_new(&mut self, file: &PathBuf) -> Result<Option<Vec<u8>>, String> {
        let fail =
            |error: std::io::Error| format!("provider {:?}: {} cannot be read: {error}", self.name, file.display());
        let data = std::fs::metadata(file).map_err(fail)?;
        let stamp = (data.modified().map_err(fail)?, data.len());
        if self.seen == Some(stamp) {
            return Ok(None);
        }
        let bytes = std::fs::read(file).map_err(fail)?;
        self.seen = Some(stamp);
        Ok(Some(bytes))
    }

    fn once(&mut self, why: String) -> Result<Option<Provider>, String> {
        if self.said.as_ref() == Some(&why) {
            return Ok(None);
        }
        self.said = Some(why.clone());
        Err(why)
    }
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
    config.plugins.extend(default.plugins);
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
    entry.brokered_grants(&config.file, closed, &broker).map_err(Exit::bad_input)
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
    network.internet_options(environment).map_err(Exit::bad_input)
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

    #[tokio::test]
    async fn one_that_refuses_its_configuration_does_not_take_over() {
        use plimsoll_plugins::HostOptions;
        use plimsoll_plugins::egress::{InProcess, TransportError};

        let bytes = |name| plimsoll_bundled::PROVIDERS.iter().find(|&&(known, _)| known == name).unwrap().1;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cloud.wasm");
        let setup = Setup { cloud_config: Some(r#"{"cluster_id": "1111"}"#.to_owned()), ..Setup::default() };
        let nobody = InProcess::faulty(|_| async { Err(TransportError::Refused) });
        let mut slot = Slot {
            host: PluginHost::new(HostOptions::default()).unwrap(),
            name: "cloud".to_owned(),
            place: Place::File(file.clone()),
            options: ProviderOptions::new(setup, Arc::new(nobody)),
            serves: false,
            seen: None,
            said: None,
        };
        std::fs::write(&file, bytes("utho")).unwrap();
        let first = slot.poll().await.unwrap().expect("the first one serves");
        assert_eq!(first.capabilities().await.unwrap().provider_name, "utho");

        // It reads another kind of configuration.
        std::fs::write(&file, bytes("alicloud")).unwrap();
        let refused = slot.poll().await.map(|provider| provider.is_some()).unwrap_err();
        assert!(refused.contains("the one before it goes on serving"), "{refused}");
        assert!(slot.poll().await.unwrap().is_none(), "it is told once");
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
