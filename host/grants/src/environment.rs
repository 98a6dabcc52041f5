//! Environment variables, and the keys that they speak of: by the names that the Go autoscaler and AliCloud's own library
//! read, so that a Deployment can stay as it is.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::keys::{AccessKey, KeyConfig, KeyOrigin, METADATA, Place, RamRole, Role, Rrsa, STS};

/// Environment variables: the process's own, or given ones. Clones see the same.
#[derive(Clone)]
pub struct Environment(Variables);

#[derive(Clone)]
enum Variables {
    Process,
    Given(Arc<RwLock<BTreeMap<String, String>>>),
}

impl Environment {
    /// The variables of this process.
    pub fn process() -> Self {
        Self(Variables::Process)
    }
    /// No variables.
    pub fn empty() -> Self {
        Self::of::<&str>([])
    }
    /// These variables.
    pub fn of<T: Into<String>>(pairs: impl IntoIterator<Item = (T, T)>) -> Self {
        let pairs = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self(Variables::Given(Arc::new(RwLock::new(pairs))))
    }
    /// Changes a given variable; the process's own stay as they are.
    pub fn set(&self, name: &str, value: &str) {
        if let Variables::Given(given) = &self.0 {
            given.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), value.to_owned());
        }
    }
    /// The value without white space around it; none: it is not set or empty.
    pub fn get(&self, name: &str) -> Option<String> {
        let value = match &self.0 {
            Variables::Process => std::env::var(name).ok(),
            Variables::Given(given) => given.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned(),
        };
        value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }
    /// The first of these names that has a value, and its value.
    fn first<'a>(&self, names: &[&'a str]) -> Option<(&'a str, String)> {
        names.iter().find_map(|name| Some((*name, self.get(name)?)))
    }
    fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
    }
}

/// Values may be secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Variables::Process => "Environment(of the process)",
            Variables::Given(_) => "Environment(given)",
        })
    }
}

/// Key id and secret, in families that are never mixed; the first with a value counts.
const ACCESS_KEYS: [(&str, &str, Option<&str>); 2] = [
    ("ACCESS_KEY_ID", "ACCESS_KEY_SECRET", None),
    ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", Some("ALIBABA_CLOUD_SECURITY_TOKEN")),
];
const PROVIDER_ARN: [&str; 2] = ["ALIBABA_CLOUD_OIDC_PROVIDER_ARN", "ALICLOUD_OIDC_PROVIDER_ARN"];
const TOKEN_FILE: [&str; 2] = ["ALIBABA_CLOUD_OIDC_TOKEN_FILE", "ALICLOUD_OIDC_TOKEN_FILE_PATH"];
const ROLE_ARN: [&str; 2] = ["ALIBABA_CLOUD_ROLE_ARN", "ALICLOUD_ROLE_ARN"];
const SESSION: [&str; 3] = ["ALIBABA_CLOUD_SESSION_NAME", "ALICLOUD_SESSION_NAME", "ALIBABA_CLOUD_ROLE_SESSION_NAME"];
const METADATA_DISABLED: &str = "ALIBABA_CLOUD_ECS_METADATA_DISABLED";

/// The keys that the environment speaks of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chosen {
    /// Where they come from.
    pub keys: KeyConfig,
    /// The way in words: `access key`, `RRSA`, or `RAM role of the instance`.
    pub mode: &'static str,
    /// What the operator should know, such as a way that is only half filled in.
    pub notes: Vec<String>,
}

/// The environment speaks of no keys that can be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no AliCloud credentials in the environment:{}", .tried.iter().map(|line| format!("\n  {line}")).collect::<String>())]
pub struct EnvironmentError {
    /// One line for each way: what is there, and what is missing.
    pub tried: Vec<String>,
}

/// What one way needs, and whether it is there.
enum Found<T> {
    All(T),
    /// What is there, and what is not.
    Part(Vec<&'static str>, Vec<&'static str>),
    Nothing,
}

/// The keys that the environment speaks of: an access key if there is one, else RRSA, else the role of the instance.
///
/// As in the Go autoscaler (AliCloud provider, configuration), with two differences: the region does not count, as it
/// signs nothing; and a way that is only half filled in never ends at the instance's role, which would be another
/// identity than was meant.
///
/// # Errors
/// If a way is half filled in and none is complete, or if there is none and the metadata service is switched off.
pub fn alicloud_from_environment(environment: &Environment) -> Result<Chosen, EnvironmentError> {
    let mut notes = vec![];
    let mut tried = vec![];
    let mut partial = false;
    let mut note = |mode: &str, there: Vec<&str>, missing: Vec<&str>| {
        tried.push(format!("{mode}: {} is set, {} is not", there.join(", "), missing.join(", ")));
        partial = true;
    };
    let keys = |origin| KeyConfig { origin, assume: None, sts: sts(environment) };
    match access_key(environment) {
        Found::All(key) => return Ok(Chosen { keys: keys(KeyOrigin::AccessKey(key)), mode: "access key", notes }),
        Found::Part(there, missing) => note("access key", there, missing),
        Found::Nothing => {}
    }
    match rrsa(environment) {
        Found::All(rrsa) => {
            notes.extend(tried);
            return Ok(Chosen { keys: keys(KeyOrigin::Rrsa(rrsa)), mode: "RRSA", notes });
        }
        Found::Part(there, missing) => note("RRSA", there, missing),
        Found::Nothing => {}
    }
    let disabled = environment.is_true(METADATA_DISABLED);
    if !partial && !disabled {
        let role = RamRole {
            name: environment.get("ALIBABA_CLOUD_ECS_METADATA"),
            endpoint: environment.get("METADATA_ENDPOINT").unwrap_or_else(|| METADATA.to_owned()),
            only_v2: environment.is_true("ALIBABA_CLOUD_IMDSV1_DISABLED"),
        };
        return Ok(Chosen { keys: keys(KeyOrigin::RamRole(role)), mode: "RAM role of the instance", notes });
    }
    if !partial {
        tried.push("access key: ACCESS_KEY_ID and ACCESS_KEY_SECRET are not set".to_owned());
        tried.push(format!("RRSA: {}, {} and {} are not set", PROVIDER_ARN[0], TOKEN_FILE[0], ROLE_ARN[0]));
    }
    tried.push(if disabled {
        format!("RAM role of the instance: switched off by {METADATA_DISABLED}")
    } else {
        "RAM role of the instance: not tried, as another way is begun; unset its variables, or set all of them"
            .to_owned()
    });
    Err(EnvironmentError { tried })
}

fn access_key(environment: &Environment) -> Found<AccessKey> {
    for (id, secret, token) in ACCESS_KEYS {
        let variable = |name: &str| Place::Variable(name.to_owned());
        match (environment.get(id), environment.get(secret)) {
            (Some(_), Some(_)) => {
                return Found::All(AccessKey {
                    id: variable(id),
                    secret: variable(secret),
                    token: token.map(variable),
                });
            }
            (Some(_), None) => return Found::Part(vec![id], vec![secret]),
            (None, Some(_)) => return Found::Part(vec![secret], vec![id]),
            (None, None) => {}
        }
    }
    Found::Nothing
}

fn rrsa(environment: &Environment) -> Found<Rrsa> {
    let fields = [PROVIDER_ARN, TOKEN_FILE, ROLE_ARN].map(|names| (names, environment.first(&names)));
    if let [(_, Some((_, provider_arn))), (_, Some((_, token_file))), (_, Some((_, arn)))] = &fields {
        let session_name = environment.first(&SESSION).map(|(_, name)| name);
        let role = Role { arn: arn.clone(), session_name, duration_seconds: None, external_id: None };
        return Found::All(Rrsa { provider_arn: provider_arn.clone(), token_file: token_file.into(), role });
    }
    let there: Vec<_> = fields.iter().filter_map(|(_, found)| Some(found.as_ref()?.0)).collect();
    let missing = fields.iter().filter(|(_, found)| found.is_none()).map(|([name, _], _)| *name).collect();
    if there.is_empty() { Found::Nothing } else { Found::Part(there, missing) }
}

/// The token service: the central one, or the one of a region.
fn sts(environment: &Environment) -> String {
    let inside = environment.is_true("ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED");
    let region = environment.get("ALIBABA_CLOUD_STS_REGION");
    match region.or_else(|| environment.get("REGION_ID").filter(|_| inside)) {
        Some(region) if inside => format!("https://sts-vpc.{region}.aliyuncs.com"),
        Some(region) => format!("https://sts.{region}.aliyuncs.com"),
        None => STS.to_owned(),
    }
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
