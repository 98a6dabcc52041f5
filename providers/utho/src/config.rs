//! What the operator says: the cloud configuration, and node groups on the command line.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_guest::{PluginError, Setup, Taint, TaintEffect};
use serde::Deserialize;
use serde_json::Value;

use crate::errors::{OwnWords, class_named};
use crate::lenient;

/// Where the API is, unless the operator says otherwise.
const BASE_URL: &str = "https://api.utho.com/v2";

/// Everything that the operator says, checked.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Config {
    pub(crate) cluster: String,
    pub(crate) base_url: String,
    pub(crate) timeout: Duration,
    pub(crate) payload: Payload,
    pub(crate) templates: BTreeMap<String, PoolTemplate>,
    pub(crate) words: OwnWords,
    /// Pools named with `--nodes`, with their limits.
    pub(crate) named: BTreeMap<String, Limits>,
    /// Pools with automatic scaling are found by themselves.
    pub(crate) discovers: bool,
}

/// Limits of a pool's size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    pub(crate) min: u32,
    pub(crate) max: u32,
}

/// What is sent to change a pool's size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Payload {
    /// The count.
    #[default]
    CountOnly,
    /// The count, with the pool's own label and plan, as the vendor's documentation shows it.
    Documented,
}

/// What the operator knows of the nodes of a pool and the API does not tell.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct PoolTemplate {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) zone: Option<String>,
    pub(crate) arch: Option<String>,
    /// Amounts that replace or add to those of the plan.
    pub(crate) capacity: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cluster_id: Option<Value>,
    base_url: Option<String>,
    request_timeout_s: Option<u32>,
    #[serde(default)]
    update_payload: Payload,
    #[serde(default)]
    pool_templates: BTreeMap<String, TemplateText>,
    #[serde(default)]
    error_classes: BTreeMap<String, String>,
    token: Option<serde::de::IgnoredAny>,
    token_file: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct TemplateText {
    labels: BTreeMap<String, String>,
    taints: Vec<String>,
    zone: Option<String>,
    arch: Option<String>,
    capacity: BTreeMap<String, String>,
}

fn bad(why: impl Into<String>) -> PluginError {
    PluginError::config(why).with_code("bad-config")
}

impl Config {
    /// # Errors
    /// Class `config`: something is missing or wrong, and what to do about it.
    pub(crate) fn read(setup: &Setup) -> Result<Self, PluginError> {
        let file: File = setup.json_config()?;
        if file.token.is_some() || file.token_file.is_some() {
            return Err(bad(
                "the cloud configuration holds \"token\" or \"token_file\": no plug-in may see a secret; remove it, and \
                 give the token to the host as credential \"api\" of kind bearer in the plug-in configuration",
            ));
        }
        let mut named = BTreeMap::new();
        for spec in &setup.node_groups {
            let (pool, limits) = node_group(spec)?;
            if named.insert(pool.clone(), limits).is_some() {
                return Err(bad(format!("--nodes names pool {pool:?} twice; name it once")));
            }
        }
        setup.discovery.iter().try_for_each(|spec| discovery(spec))?;
        let template = |(pool, text): (String, TemplateText)| Ok((pool.clone(), text.read(&pool)?));
        Ok(Self {
            cluster: cluster_id(file.cluster_id.as_ref())?,
            base_url: file.base_url.unwrap_or_else(|| BASE_URL.to_owned()),
            timeout: timeout(file.request_timeout_s)?,
            payload: file.update_payload,
            templates: file.pool_templates.into_iter().map(template).collect::<Result<_, PluginError>>()?,
            words: file.error_classes.into_iter().map(own_word).collect::<Result<_, PluginError>>()?,
            discovers: named.is_empty() || !setup.discovery.is_empty(),
            named,
        })
    }
}

/// Utho numbers its clusters; anything else is a mistake that would show only later, as a cluster that is not found.
fn cluster_id(value: Option<&Value>) -> Result<String, PluginError> {
    let hint =
        "expected the number of the cluster, as in \"cluster_id\": \"1111\"; nodes carry it in the label cluster_id";
    let id =
        lenient::identifier(value).ok_or_else(|| bad(format!("the cloud configuration has no cluster_id; {hint}")))?;
    if id.bytes().all(|digit| digit.is_ascii_digit()) {
        Ok(id)
    } else {
        Err(bad(format!("cluster_id is {id:?}; {hint}")))
    }
}

fn timeout(seconds: Option<u32>) -> Result<Duration, PluginError> {
    match seconds.unwrap_or(30) {
        seconds @ 1..=300 => Ok(Duration::from_secs(seconds.into())),
        other => Err(bad(format!("request_timeout_s is {other}; expected 1 to 300"))),
    }
}

fn own_word((words, class): (String, String)) -> Result<(String, plimsoll_guest::ErrorClass), PluginError> {
    match class_named(&class) {
        Some(known) if !words.trim().is_empty() => Ok((words, known)),
        Some(_) => Err(bad("error_classes has an empty text; expected words of a message")),
        None => Err(bad(format!("error_classes gives {words:?} the class {class:?}, which is unknown"))),
    }
}

/// Reads `<min>:<max>:<pool>`.
fn node_group(spec: &str) -> Result<(String, Limits), PluginError> {
    let bad = |why: &str| {
        bad(format!("--nodes={spec}: {why}; expected <min>:<max>:<id of the pool>, as in 1:5:pool-UWIKpAJX"))
    };
    let mut parts = spec.splitn(3, ':');
    let (Some(min), Some(max), Some(pool)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(bad("it has fewer than three parts"));
    };
    let number =
        |text: &str, name: &str| text.trim().parse().map_err(|_| bad(&format!("{name} {text:?} is no number")));
    let limits = Limits { min: number(min, "min size")?, max: number(max, "max size")? };
    match pool.trim() {
        "" => Err(bad("the pool is not named")),
        _ if limits.max < limits.min => Err(bad("max size is below min size")),
        // A pool of size zero does not exist at Utho.
        _ if limits.max == 0 => Err(bad("max size is 0, and the least size of a pool is 1")),
        pool => Ok((pool.to_owned(), limits)),
    }
}

/// The rule that all pools with automatic scaling are groups is the only one.
fn discovery(spec: &str) -> Result<(), PluginError> {
    match spec.trim() {
        "utho" | "utho:" | "utho:regexp=.*" => Ok(()),
        other => Err(bad(format!(
            "--node-group-auto-discovery={other}: expected utho:regexp=.*, which stands for every pool with automatic \
             scaling; name single pools with --nodes=<min>:<max>:<id of the pool>"
        ))),
    }
}

impl TemplateText {
    fn read(self, pool: &str) -> Result<PoolTemplate, PluginError> {
        if let Some(arch) = self.arch.as_deref().filter(|arch| !["amd64", "arm64"].contains(arch)) {
            return Err(bad(format!("pool_templates.{pool}.arch is {arch:?}; expected amd64 or arm64")));
        }
        let taints = self.taints.iter().map(|text| taint(pool, text)).collect::<Result<_, _>>()?;
        Ok(PoolTemplate { labels: self.labels, taints, zone: self.zone, arch: self.arch, capacity: self.capacity })
    }
}

/// Reads `key=value:Effect` or `key:Effect`.
fn taint(pool: &str, text: &str) -> Result<Taint, PluginError> {
    let bad = || {
        bad(format!(
            "pool_templates.{pool}.taints has {text:?}; expected key=value:Effect, with the effect NoSchedule, \
             PreferNoSchedule or NoExecute"
        ))
    };
    let (pair, effect) = text.rsplit_once(':').ok_or_else(bad)?;
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    let effect = match effect {
        "NoSchedule" => TaintEffect::NoSchedule,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        _ => return Err(bad()),
    };
    if key.is_empty() { Err(bad()) } else { Ok(Taint::new(key, value, effect)) }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
