//! The cloud configuration: JSON, or `key = value` lines in sections. It holds no secret: the host signs.

use std::collections::BTreeMap;

use plimsoll_guest::{ErrorClass, PluginError, Setup, config};
use serde_json::{Map, Value};

use crate::api::Lenient;
use crate::endpoints::Network;
use crate::spec::{self, GroupSpec, TagRule};

/// How endpoints are found that the operator did not write down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Lookup {
    /// From the built-in table.
    #[default]
    Table,
    /// From the cloud's endpoint service; from the table if it does not answer.
    Location,
}

/// Where the products are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Endpoints {
    /// Which names are used.
    pub(crate) network: Network,
    /// How they are found.
    pub(crate) lookup: Lookup,
    /// Those that the operator wrote down, by product.
    pub(crate) written: BTreeMap<String, String>,
}

/// Which disk holds what pods write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum PodDisk {
    /// The system disk.
    #[default]
    System,
    /// The largest data disk, if there is one.
    LargestData,
}

/// How templates are made.
#[derive(Clone, Debug)]
pub(crate) struct TemplateSettings {
    /// Plain tags become labels, as the peer does it.
    pub(crate) legacy_tag_labels: bool,
    /// Which disk counts as ephemeral storage.
    pub(crate) disk: PodDisk,
    /// Pods per node.
    pub(crate) max_pods: u32,
    /// Share of the disk that pods cannot use, in percent.
    pub(crate) disk_reserve_percent: u32,
    /// CPU that pods cannot use, in thousandths of a core.
    pub(crate) reserved_cpu_milli: u64,
    /// Memory that pods cannot use, in MiB.
    pub(crate) reserved_memory_mib: u64,
}

impl Default for TemplateSettings {
    fn default() -> Self {
        Self {
            legacy_tag_labels: false,
            disk: PodDisk::System,
            max_pods: 110,
            disk_reserve_percent: 15,
            reserved_cpu_milli: 0,
            reserved_memory_mib: 0,
        }
    }
}

/// All settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Region, such as `cn-hangzhou`.
    pub(crate) region: String,
    /// Where the products are.
    pub(crate) endpoints: Endpoints,
    /// How templates are made.
    pub(crate) template: TemplateSettings,
    /// Cluster of ACK, if groups are its node pools.
    pub(crate) ack_cluster: Option<String>,
    /// Codes with the class that the operator gives them.
    pub(crate) errors: Vec<(String, ErrorClass)>,
    /// Named groups.
    pub(crate) groups: Vec<GroupSpec>,
    /// Rules for more.
    pub(crate) rules: Vec<TagRule>,
}

/// Known keys by section. What is for the host is passed over.
const KNOWN: &[(&str, &[&str])] = &[
    ("", &["region"]),
    ("endpoints", &["network", "lookup", "ess", "ecs", "vpc", "cs", "sts", "location"]),
    (
        "template",
        &["legacy-tag-labels", "disk", "max-pods", "disk-reserve-percent", "reserved-cpu-milli", "reserved-memory-mib"],
    ),
    ("ack", &["cluster-id"]),
    ("discovery", &["tags"]),
];
/// Sections that the host reads.
const HOSTS_OWN: &[&str] = &["auth", "signing"];
/// Words of keys that hold secrets.
const SECRET: &[&str] = &["secret", "securitytoken", "password"];

impl Settings {
    /// Reads everything that the host gives.
    ///
    /// # Errors
    /// Class `config`; the message says what was read, where, and what was expected.
    pub(crate) fn read(setup: &Setup) -> Result<Self, PluginError> {
        let tree = match setup.config.as_deref().map(str::trim) {
            None | Some("") => Value::Object(Map::new()),
            Some(text) => tree(text)?,
        };
        check(&tree)?;
        let groups = setup.node_groups.iter().map(|text| spec::parse_group(text)).collect::<Result<Vec<_>, _>>()?;
        let mut rules = setup.discovery.iter().map(|text| spec::parse_rule(text)).collect::<Result<Vec<_>, _>>()?;
        let tags: Vec<_> = tree.get("discovery").map(|part| part.texts("tags", "tag")).unwrap_or_default();
        if !tags.is_empty() {
            rules.push(spec::parse_rule(&format!("asg:tag={}", tags.join(",")))?);
        }
        if groups.is_empty() && rules.is_empty() {
            let message = "failed to build alicloud provider: node group specs must be specified; give --nodes=min:max:id \
                           or --node-group-auto-discovery=asg:tag=KEY[=VALUE]";
            return Err(PluginError::config(message).with_code("no-node-groups"));
        }
        let ack_cluster = tree.get("ack").map(|part| part.text("cluster-id")).filter(|id| !id.is_empty());
        let region = region(&tree, setup)?;
        Ok(Self {
            region,
            endpoints: endpoints(tree.get("endpoints"))?,
            template: template(tree.get("template"))?,
            ack_cluster,
            errors: errors(tree.get("errors"))?,
            groups,
            rules,
        })
    }
}

fn bad(why: String) -> PluginError {
    PluginError::config(format!("cannot read the cloud configuration: {why}")).with_code("bad-config")
}

fn region(tree: &Value, setup: &Setup) -> Result<String, PluginError> {
    let attribute = || setup.attributes.iter().find(|entry| entry.key == "region").map(|entry| entry.value.clone());
    let written = Some(tree.text("region")).filter(|region| !region.is_empty());
    let region = written.or_else(|| config::get("region")).or_else(attribute).unwrap_or_default().trim().to_owned();
    let legal = region.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if region.is_empty() || !legal {
        return Err(bad(format!(
            "the region is {region:?}; write \"region\": \"cn-hangzhou\" into it, or set the plug-in's setting \"region\""
        )));
    }
    Ok(region)
}

fn endpoints(part: Option<&Value>) -> Result<Endpoints, PluginError> {
    let Some(part) = part else { return Ok(Endpoints::default()) };
    let network = match part.text("network").as_str() {
        "" | "public" => Network::Public,
        "vpc" => Network::Vpc,
        other => return Err(bad(format!("endpoints.network is {other:?}, expected \"public\" or \"vpc\""))),
    };
    let lookup = match part.text("lookup").as_str() {
        "" | "table" => Lookup::Table,
        "location" => Lookup::Location,
        other => return Err(bad(format!("endpoints.lookup is {other:?}, expected \"table\" or \"location\""))),
    };
    let written = ["ess", "ecs", "vpc", "cs", "location"].map(|product| (product.to_owned(), part.text(product)));
    let written = written.into_iter().filter(|(_, host)| !host.is_empty()).collect();
    Ok(Endpoints { network, lookup, written })
}

fn template(part: Option<&Value>) -> Result<TemplateSettings, PluginError> {
    let mut settings = TemplateSettings::default();
    let Some(part) = part else { return Ok(settings) };
    let number = |key: &str, default: u32| match part.member(key) {
        None => Ok(default),
        Some(value) => {
            part.count(key).ok_or_else(|| bad(format!("template.{key} is {value}, expected a whole number from 0")))
        }
    };
    settings.max_pods = number("max-pods", settings.max_pods)?;
    settings.disk_reserve_percent = number("disk-reserve-percent", settings.disk_reserve_percent)?.min(100);
    settings.reserved_cpu_milli = number("reserved-cpu-milli", 0)?.into();
    settings.reserved_memory_mib = number("reserved-memory-mib", 0)?.into();
    if let Some(value) = part.member("legacy-tag-labels") {
        settings.legacy_tag_labels = part
            .truth("legacy-tag-labels")
            .ok_or_else(|| bad(format!("template.legacy-tag-labels is {value}, expected true or false")))?;
    }
    settings.disk = match part.text("disk").as_str() {
        "" | "system" => PodDisk::System,
        "largest-data" => PodDisk::LargestData,
        other => return Err(bad(format!("template.disk is {other:?}, expected \"system\" or \"largest-data\""))),
    };
    Ok(settings)
}

fn errors(part: Option<&Value>) -> Result<Vec<(String, ErrorClass)>, PluginError> {
    let Some(Value::Object(part)) = part else { return Ok(vec![]) };
    let class = |(code, name): (&String, &Value)| {
        let name = name.as_str().unwrap_or_default();
        let class = CLASSES.iter().find(|(known, _)| *known == name).map(|(_, class)| (code.clone(), *class));
        class.ok_or_else(|| {
            let known: Vec<_> = CLASSES.iter().map(|(name, _)| *name).collect();
            bad(format!("errors.{code} is {name:?}, expected one of {}", known.join(", ")))
        })
    };
    part.iter().map(class).collect()
}

const CLASSES: &[(&str, ErrorClass)] = &[
    ("out-of-resources", ErrorClass::OutOfResources),
    ("quota", ErrorClass::Quota),
    ("billing", ErrorClass::Billing),
    ("auth", ErrorClass::Auth),
    ("config", ErrorClass::Config),
    ("throttled", ErrorClass::Throttled),
    ("conflict", ErrorClass::Conflict),
    ("transient", ErrorClass::Transient),
    ("not-found", ErrorClass::NotFound),
    ("bootstrap", ErrorClass::Bootstrap),
    ("other", ErrorClass::Other),
];

/// The text as a tree, whichever form it has. Keys are made small, with dashes.
fn tree(text: &str) -> Result<Value, PluginError> {
    if text.starts_with('{') {
        let value: Value = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
        return Ok(normal(value, 0));
    }
    let mut root = Map::new();
    let mut section = String::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = key(name);
            continue;
        }
        let (name, value) = line.split_once('=').ok_or_else(|| {
            bad(format!("line {} is neither \"[section]\" nor \"key = value\" (nor is the whole JSON)", index + 1))
        })?;
        let value =
            plain(value.trim()).ok_or_else(|| bad(format!("line {} has a list that cannot be read", index + 1)))?;
        let place = match section.as_str() {
            "" | "global" => &mut root,
            section => match root.entry(section).or_insert_with(|| Value::Object(Map::new())) {
                Value::Object(part) => part,
                _ => return Err(bad(format!("line {}: {section:?} is a key and a section", index + 1))),
            },
        };
        let name = if section == "errors" { name.trim().to_owned() } else { key(name) };
        place.insert(name, value);
    }
    Ok(Value::Object(root))
}

fn key(text: &str) -> String {
    text.trim().to_ascii_lowercase().replace('_', "-")
}

/// A value without its quotes and without a comment behind it; lists are as in JSON.
fn plain(value: &str) -> Option<Value> {
    if value.starts_with('[') {
        return serde_json::from_str(value).ok();
    }
    let text = match value.strip_prefix('"') {
        Some(rest) => rest.split('"').next().unwrap_or_default(),
        None => value.split(" #").next().unwrap_or_default().trim(),
    };
    Some(Value::String(text.to_owned()))
}

fn normal(value: Value, depth: u32) -> Value {
    match value {
        Value::Object(object) if depth < 2 => {
            let entry = |(name, value): (String, Value)| {
                let name = key(&name);
                let value = if name == "errors" { value } else { normal(value, depth + 1) };
                (name, value)
            };
            Value::Object(object.into_iter().map(entry).collect())
        }
        other => other,
    }
}

/// Refuses secrets, and what nobody would read.
fn check(tree: &Value) -> Result<(), PluginError> {
    let Value::Object(root) = tree else { return Err(bad("it is no JSON object".to_owned())) };
    for (name, value) in root {
        refuse_secret(name)?;
        match value {
            Value::Object(part) if name != "errors" => {
                part.keys().try_for_each(|name| refuse_secret(name))?;
                if HOSTS_OWN.contains(&name.as_str()) {
                    continue;
                }
                let known = KNOWN.iter().find(|(section, _)| section == name);
                let (_, known) = known.ok_or_else(|| bad(format!("there is no section {name:?}")))?;
                if let Some(stranger) = part.keys().find(|key| !known.contains(&key.as_str())) {
                    return Err(bad(format!(
                        "there is no key {stranger:?} in {name:?}; known are {}",
                        known.join(", ")
                    )));
                }
            }
            Value::Object(_) => {}
            _ if name == "region" => {}
            _ => return Err(bad(format!("there is no key {name:?} at the top; known is \"region\""))),
        }
    }
    Ok(())
}

fn refuse_secret(name: &str) -> Result<(), PluginError> {
    let bare = name.replace('-', "");
    if SECRET.iter().any(|word| bare.contains(word)) || bare == "accesskeyid" {
        return Err(bad(format!(
            "{name:?} does not belong there: plug-ins get no keys; bind the credential slot \"api\" in the host's settings"
        )));
    }
    Ok(())
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
