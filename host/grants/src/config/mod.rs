//! The operator's file about plug-ins (`--plugin-config`): which there are, and what each is granted.
//!
//! ```yaml
//! network:
//!   cluster-cidrs: [10.244.0.0/16, 10.96.0.0/12]
//! plugins:
//!   utho:
//!     file: /plugins/utho.wasm
//!     hosts:
//!       - https://api.utho.com
//!     credentials:
//!       api: {kind: bearer, file: /var/run/secrets/utho/token, hosts: [api.utho.com]}
//!     settings: {dc: innoida}
//!     limits: {memory-mib: 64, call-seconds: 20}
//! ```
//!
//! Unknown keys are errors: a grant with a spelling mistake must not pass for one that was never meant.
//! `docs/plugin-config.md` tells every key.

mod credential;
mod network;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use ipnet::IpNet;
use serde::Deserialize;
use serde_saphyr::{Location, Options, Spanned};

pub use self::credential::{CredentialEntry, CredentialKind};
use self::credential::{RawCredential, Reader};
use self::network::RawNetwork;
pub use self::network::{NetworkConfig, ProxyConfig};
use crate::grant::Grant;
use crate::kind::Kind;

/// Most and least memory that can be set, in MiB.
const MEMORY_MIB: std::ops::RangeInclusive<u32> = 1..=4096;
/// Longest call that can be set, in seconds.
const CALL_SECONDS: std::ops::RangeInclusive<u32> = 1..=600;

/// Largest bodies that can be set: of requests in KiB, of responses in MiB.
const REQUEST_KIB: std::ops::RangeInclusive<u32> = 1..=16_384;
const RESPONSE_MIB: std::ops::RangeInclusive<u32> = 1..=256;

/// What the file says about one plug-in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Entry {
    /// Where it is; none: it is built in, or found in the plug-in folder.
    pub file: Option<PathBuf>,
    /// What it must be.
    pub kind: Option<Kind>,
    /// Places that it may talk to.
    pub hosts: Vec<Grant>,
    /// Whether places without encryption may be among them.
    pub insecure_http: bool,
    /// Credentials by slot.
    pub credentials: BTreeMap<String, CredentialEntry>,
    /// Its settings.
    pub settings: BTreeMap<String, String>,
    /// Most memory in MiB.
    pub memory_mib: Option<u32>,
    /// Longest call in seconds.
    pub call_seconds: Option<u32>,
    /// Largest body of a request in KiB.
    pub request_kib: Option<u32>,
    /// Largest body of a response in MiB.
    pub response_mib: Option<u32>,
    /// Address ranges that are opened for it.
    pub cidrs: Vec<IpNet>,
}

/// The file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PluginConfig {
    /// Its name, for messages.
    pub file: String,
    /// How the host reaches the internet.
    pub network: NetworkConfig,
    /// What it says, by name of the plug-in.
    pub plugins: BTreeMap<String, Entry>,
}

/// What is wrong in the file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1; 0 if unknown.
    pub line: u64,
    /// Key, such as `plugins.utho.hosts[0]`; empty if unknown.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// How it should look.
    pub example: &'static str,
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}\n  for example:", self.message)?;
        self.example.lines().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

const EXAMPLE: &str = "plugins:
  utho:
    file: /plugins/utho.wasm
    hosts: [https://api.utho.com]
    credentials:
      api: {kind: bearer, file: /var/run/secrets/utho/token, hosts: [api.utho.com]}
    settings: {dc: innoida}
    limits: {memory-mib: 64, call-seconds: 20}";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    network: RawNetwork,
    plugins: BTreeMap<Name, RawEntry>,
}

/// Name of a plug-in. It ends up in messages, metrics and file names.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 63 || !name.chars().all(fits) {
            return Err(format!("{name:?} cannot be the name of a plug-in; use up to 63 of a-z, 0-9 and -"));
        }
        Ok(Self(name))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawEntry {
    file: Option<PathBuf>,
    kind: Option<Kind>,
    #[serde(default)]
    hosts: Vec<Spanned<String>>,
    #[serde(default)]
    credentials: BTreeMap<String, RawCredential>,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    #[serde(default)]
    limits: RawLimits,
    #[serde(default)]
    insecure_http: bool,
    #[serde(default)]
    cidrs: Vec<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct RawLimits {
    memory_mib: Option<Spanned<u32>>,
    call_seconds: Option<Spanned<u32>>,
    request_kib: Option<Spanned<u32>>,
    response_mib: Option<Spanned<u32>>,
}

impl PluginConfig {
    /// Reads the file's text. `file` is its name, for messages. An empty file grants nothing.
    ///
    /// # Errors
    /// The first thing that is wrong, with line, key and an example.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let nothing = text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
        if nothing {
            return Ok(Self { file: file.to_owned(), ..Self::default() });
        }
        let raw = read(file, text)?;
        let network = network::read(file, raw.network)?;
        let mut plugins = BTreeMap::new();
        for (Name(name), raw) in raw.plugins {
            let entry = Place { file, plugin: &name }.entry(raw)?;
            plugins.insert(name, entry);
        }
        Ok(Self { file: file.to_owned(), network, plugins })
    }

    /// What it says about a plug-in; nothing is granted to one that it does not mention.
    pub fn entry(&self, plugin: &str) -> Entry {
        self.plugins.get(plugin).cloned().unwrap_or_default()
    }
}

fn read(file: &str, text: &str) -> Result<RawFile, ConfigError> {
    let mut options = Options::default();
    options.with_snippet = false;
    let mut track = serde_path_to_error::Track::new();
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
        RawFile::deserialize(serde_path_to_error::Deserializer::new(yaml, &mut track))
    });
    read.map_err(|error| {
        let key = track.path().to_string();
        // A value that remembers its place is read as a field of that name.
        let key = match key.strip_suffix(".value") {
            Some(shorter) if !key.contains(".settings.") => shorter.to_owned(),
            _ => key,
        };
        ConfigError {
            file: file.to_owned(),
            line: error.location().map_or(0, |location| location.line()),
            key: if key == "." { String::new() } else { key },
            message: plain(&error),
            example: EXAMPLE,
        }
    })
}

/// The message without the location, which is told in front.
fn plain(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    let end = text.find(" at line ").unwrap_or(text.len());
    text.get(..end).unwrap_or(text).to_owned()
}

fn error(file: &str, location: Location, key: String, message: String, example: &'static str) -> ConfigError {
    ConfigError { file: file.to_owned(), line: location.line(), key, message, example }
}

struct Place<'a> {
    file: &'a str,
    plugin: &'a str,
}

impl Place<'_> {
    fn error(&self, location: Location, key: &str, message: String, example: &'static str) -> ConfigError {
        error(self.file, location, format!("plugins.{}.{key}", self.plugin), message, example)
    }

    fn entry(&self, raw: RawEntry) -> Result<Entry, ConfigError> {
        let mut hosts = vec![];
        for (index, host) in raw.hosts.iter().enumerate() {
            hosts.push(Grant::parse(&host.value, raw.insecure_http).map_err(|error| {
                let (key, message) = (format!("hosts[{index}]"), format!("{:?}: {error}", host.value));
                self.error(
                    host.referenced,
                    &key,
                    message,
                    "hosts:\n  - https://api.example.com\n  - https://*.example.com:8443",
                )
            })?);
        }
        let mut cidrs = vec![];
        for (index, cidr) in raw.cidrs.iter().enumerate() {
            cidrs.push(range(&cidr.value).map_err(|message| {
                self.error(cidr.referenced, &format!("cidrs[{index}]"), message, "cidrs: [10.20.0.0/16]")
            })?);
        }
        let mut credentials = BTreeMap::new();
        for (slot, raw) in raw.credentials {
            let entry = Reader { spot: self, slot: &slot }.read(raw, &hosts)?;
            credentials.insert(slot, entry);
        }
        let limit = |value: Option<Spanned<u32>>, key: &str, range: std::ops::RangeInclusive<u32>| match value {
            Some(value) if !range.contains(&value.value) => {
                let message = format!("{} is not between {} and {}", value.value, range.start(), range.end());
                let example = "limits: {memory-mib: 64, call-seconds: 20}";
                Err(self.error(value.referenced, &format!("limits.{key}"), message, example))
            }
            value => Ok(value.map(|value| value.value)),
        };
        Ok(Entry {
            file: raw.file,
            kind: raw.kind,
            hosts,
            insecure_http: raw.insecure_http,
            credentials,
            settings: raw.settings,
            memory_mib: limit(raw.limits.memory_mib, "memory-mib", MEMORY_MIB)?,
            call_seconds: limit(raw.limits.call_seconds, "call-seconds", CALL_SECONDS)?,
            request_kib: limit(raw.limits.request_kib, "request-kib", REQUEST_KIB)?,
            response_mib: limit(raw.limits.response_mib, "response-mib", RESPONSE_MIB)?,
            cidrs,
        })
    }
}

/// A range, or a single address.
fn range(text: &str) -> Result<IpNet, String> {
    let single = || text.parse().map(|address: std::net::IpAddr| IpNet::from(address));
    let range: IpNet = text
        .parse()
        .or_else(|_| single())
        .map_err(|_| format!("{text:?} is neither an address nor a range of them"))?;
    if range != range.trunc() {
        return Err(format!("{text:?} has bits set behind its prefix; write {}", range.trunc()));
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_everything() {
        let text = "
plugins:
  utho:
    file: /plugins/utho.wasm
    kind: cloud-provider
    hosts:
      - https://api.utho.com
      - http://proxy.internal:3128
    credentials:
      api: {kind: bearer, file: /run/token, hosts: [api.utho.com]}
    settings: {dc: innoida, page-size: 100, strict: true, version: 1.10}
    limits: {memory-mib: 64, call-seconds: 20}
    insecure-http: true
    cidrs: [10.20.0.0/16, 10.1.1.1]
  least-waste: {}
";
        let config = PluginConfig::parse("plugins.yaml", text).unwrap();
        let utho = config.entry("utho");
        assert_eq!(
            utho.hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["https://api.utho.com", "http://proxy.internal:3128"]
        );
        assert_eq!((utho.kind, utho.file), (Some(Kind::CloudProvider), Some("/plugins/utho.wasm".into())));
        assert_eq!(utho.credentials["api"].hosts, ["api.utho.com"]);
        let settings: Vec<_> = utho.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(settings, [("dc", "innoida"), ("page-size", "100"), ("strict", "true"), ("version", "1.10")]);
        assert_eq!(utho.cidrs.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.20.0.0/16", "10.1.1.1/32"]);
        assert_eq!((utho.memory_mib, utho.call_seconds, utho.insecure_http), (Some(64), Some(20), true));
        assert_eq!(config.entry("least-waste"), Entry::default());
        assert_eq!(config.entry("not mentioned"), Entry::default());
    }

    #[rstest::rstest]
    #[case::empty("")]
    #[case::comment("# nothing yet\n\n")]
    fn an_empty_file_grants_nothing(#[case] text: &str) {
        assert_eq!(PluginConfig::parse("plugins.yaml", text).unwrap().plugins, BTreeMap::new());
    }

    #[rstest::rstest]
    #[case::unknown_key(
        "plugins:\n  utho:\n    host: https://api.utho.com\n",
        "plugins.yaml:3: plugins.utho.host: unknown field `host`, expected one of file, kind, hosts, \
         credentials, settings, limits, insecure-http, cidrs"
    )]
    #[case::unknown_top(
        "plugin: {}\n",
        "plugins.yaml:1: plugin: unknown field `plugin`, expected one of network, plugins"
    )]
    #[case::not_encrypted(
        "plugins:\n  utho:\n    hosts:\n      - https://api.utho.com\n      - http://api.utho.com\n",
        "plugins.yaml:5: plugins.utho.hosts[1]: \"http://api.utho.com\": http:// is not encrypted; write https://, or \
         set insecure-http: true beside hosts"
    )]
    #[case::path(
        "plugins: {utho: {hosts: [https://api.utho.com/v2]}}\n",
        "plugins.yaml:1: plugins.utho.hosts[0]: \"https://api.utho.com/v2\": it must end after the host or port; paths \
         cannot be granted"
    )]
    #[case::cidr(
        "plugins:\n  utho:\n    cidrs:\n      - 10.0.0.300/8\n",
        "plugins.yaml:4: plugins.utho.cidrs[0]: \"10.0.0.300/8\" is neither an address nor a range of them"
    )]
    #[case::cidr_bits(
        "plugins:\n  utho:\n    cidrs: [10.20.1.0/16]\n",
        "plugins.yaml:3: plugins.utho.cidrs[0]: \"10.20.1.0/16\" has bits set behind its prefix; write 10.20.0.0/16"
    )]
    #[case::credential_elsewhere(
        "plugins:\n  utho:\n    hosts: [https://api.utho.com]\n    credentials:\n      api:\n        kind: bearer\n        \
         file: /t\n        hosts: [api.utho.co]\n",
        "plugins.yaml:8: plugins.utho.credentials.api.hosts[0]: \"api.utho.co\" is not granted; add \
         https://api.utho.co under plugins.utho.hosts first"
    )]
    #[case::credential_kind(
        "plugins:\n  utho:\n    credentials:\n      api: {kind: magic, file: /t, hosts: []}\n",
        "plugins.yaml:4: plugins.utho.credentials.api.kind: unknown variant `magic`, expected one of bearer, basic, \
         hmac-header, alicloud-v3, alicloud-v1"
    )]
    #[case::limit(
        "plugins:\n  utho:\n    limits: {memory-mib: 0}\n",
        "plugins.yaml:3: plugins.utho.limits.memory-mib: 0 is not between 1 and 4096"
    )]
    #[case::kind(
        "plugins:\n  utho:\n    kind: driver\n",
        "plugins.yaml:3: plugins.utho.kind: unknown variant `driver`, expected one of cloud-provider, expander"
    )]
    #[case::name(
        "plugins:\n  Utho Cloud: {}\n",
        "plugins.yaml:2: plugins.Utho Cloud: \"Utho Cloud\" cannot be the name of a plug-in; use up to 63 of a-z, 0-9 \
         and -"
    )]
    fn says_where_and_what_is_wrong(#[case] text: &str, #[case] expected: &str) {
        let error = PluginConfig::parse("plugins.yaml", text).unwrap_err().to_string();
        assert_eq!(error.split("\n  for example:\n").next().unwrap(), expected, "{error}");
        assert!(error.contains("\n  for example:\n    "), "{error}");
    }

    #[rstest::rstest]
    #[case::list("plugins: [a]\n", 1)]
    #[case::tabs("plugins:\n\tutho: {}\n", 2)]
    #[case::twice("plugins:\n  utho: {}\n  utho: {}\n", 3)]
    #[case::number("plugins:\n  utho:\n    limits: {memory-mib: many}\n", 3)]
    #[case::open("plugins:\n  utho: {hosts: [\n", 0)]
    fn broken_files_are_told_with_their_line(#[case] text: &str, #[case] line: u64) {
        let error = PluginConfig::parse("plugins.yaml", text).unwrap_err();
        assert!(line == 0 || error.line == line, "{error}");
        assert!(!error.message.is_empty() && !error.message.contains("line"), "{error}");
    }
}
