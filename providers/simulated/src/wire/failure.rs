//! A refusal by the cloud.

use serde::{Deserialize, Serialize};

/// What kind of failure it is; the classes of the contract.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// No machines left.
    OutOfResources,
    /// A limit of the account.
    Quota,
    /// Balance or arrears.
    Billing,
    /// Credentials or permissions.
    Auth,
    /// The group is set up wrongly.
    Config,
    /// Asked too often.
    Throttled,
    /// Another activity runs, or the expected target is stale.
    Conflict,
    /// The server has a bad moment.
    Transient,
    /// No such thing.
    NotFound,
    /// The cloud cannot do that.
    Unsupported,
    /// The machine did not become a node.
    Bootstrap,
    /// Anything else.
    #[default]
    #[serde(other)]
    Other,
}

/// What a failure is about.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The whole cloud.
    #[default]
    Provider,
    /// One region.
    Region(String),
    /// One zone.
    Zone(String),
    /// One machine type.
    InstanceType(String),
    /// One group.
    Group(String),
    /// One machine.
    Instance(String),
}

/// Why something did not work.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Failure {
    /// Kind.
    pub class: Class,
    /// Stable code, such as `stock-out`.
    #[serde(default)]
    pub code: String,
    /// Text for people.
    #[serde(default)]
    pub message: String,
    /// What it is about.
    #[serde(default)]
    pub scope: Scope,
    /// Not worth trying again before so many milliseconds have passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u32>,
    /// It may have been carried out all the same.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub outcome_unknown: bool,
    /// The cloud's name for the failed request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Failure {
    /// A failure of the whole cloud.
    pub fn new(class: Class, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { class, code: code.into(), message: message.into(), ..Self::default() }
    }

    /// The same about something.
    pub fn about(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// HTTP status of an answer that carries it.
    pub fn status(&self) -> u16 {
        match self.class {
            Class::OutOfResources | Class::Conflict => 409,
            Class::Quota | Class::Auth => 403,
            Class::Billing => 402,
            Class::Config | Class::Bootstrap | Class::Other => 400,
            Class::Throttled => 429,
            Class::Transient => 503,
            Class::NotFound => 404,
            Class::Unsupported => 501,
        }
    }
}
