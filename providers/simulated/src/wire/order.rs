//! Changes, and what they did. An order with a key that the cloud has seen acts no second time and gets the first answer.

use serde::{Deserialize, Serialize};

use super::{Failure, is_false};

/// Ask for more machines.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct IncreaseOrder {
    /// Same key, same effect at most once.
    pub key: String,
    /// How many more.
    pub delta: u32,
    /// Refused as a conflict if the target is another.
    pub expected_target: u32,
    /// All or nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub atomic: bool,
    /// Check only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
    /// Why, for the audit trail.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Wish for fewer machines that do not exist yet.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DecreaseOrder {
    /// Same key, same effect at most once.
    pub key: String,
    /// How many fewer.
    pub delta: u32,
    /// Refused as a conflict if the target is another.
    pub expected_target: u32,
    /// Check only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
    /// Why, for the audit trail.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Delete machines and lower the target by as many.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeleteOrder {
    /// Same key, same effect at most once.
    pub key: String,
    /// Which machines.
    pub ids: Vec<String>,
    /// Refused as a conflict if the target is another.
    pub expected_target: u32,
    /// Do not go below this size.
    pub min_size: u32,
    /// Do not wait for the machine.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,
    /// Check only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
    /// Why, for the audit trail.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What a change of size did.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SizeAnswer {
    /// Target now.
    pub target: u32,
    /// How much of the change was accepted.
    pub accepted: u32,
    /// The activity that carries it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// Accepted, but not visible yet.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unconfirmed: bool,
    /// Why less was accepted than wished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall: Option<Failure>,
}

/// What a delete did.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeleteAnswer {
    /// Target now.
    pub target: u32,
    /// One result for each machine.
    pub results: Vec<DeleteResult>,
    /// The activity that carries it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
}

/// What happened to one machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeleteResult {
    /// Which one.
    pub id: String,
    /// What happened.
    pub status: DeleteStatus,
}

/// What happened to a machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeleteStatus {
    /// It will go.
    Accepted,
    /// It was gone before.
    AlreadyGone,
    /// It stays, because of this failure.
    Failed(Failure),
    /// It was not tried, for this reason.
    Skipped(String),
}
