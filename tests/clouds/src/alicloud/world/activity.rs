//! Scaling activities.

use serde::Serialize;

use crate::clock::UnixMs;

/// How an activity stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Status {
    /// It runs.
    InProgress,
    /// It did all.
    Successful,
    /// It did a part.
    Warning,
    /// It did nothing.
    Failed,
    /// It was not begun.
    Rejected,
}

impl Status {
    /// As answers have it.
    pub fn text(self) -> &'static str {
        match self {
            Self::InProgress => "InProgress",
            Self::Successful => "Successful",
            Self::Warning => "Warning",
            Self::Failed => "Failed",
            Self::Rejected => "Rejected",
        }
    }
}

/// What an activity does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Direction {
    /// It makes machines.
    Out,
    /// It removes machines.
    In,
}

/// Why a creation failed: code and text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Failure {
    /// Code.
    pub code: String,
    /// Text.
    pub message: String,
}

impl Failure {
    /// A failure.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// A scaling activity.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Activity {
    /// Identifier.
    pub id: String,
    /// Group.
    pub group: String,
    /// What it does.
    pub direction: Direction,
    /// How it stands.
    pub status: Status,
    /// Why it is.
    pub cause: String,
    /// `APIs`, or the cloud itself.
    pub trigger: &'static str,
    /// Capacity that it is to add or machines that it is to remove.
    pub wanted: u32,
    /// Machines that it made or removes.
    pub members: Vec<String>,
    /// What went wrong.
    pub failure: Option<Failure>,
    /// Text that the caller gave.
    pub metadata: Option<String>,
    /// When it was accepted.
    pub start: UnixMs,
    /// When it ended.
    pub end: Option<UnixMs>,
    /// Machines are made at this time; none: that is done, or there are none to make.
    pub creates_at: Option<UnixMs>,
    /// Capacity of the group when it ended.
    pub total_after: u32,
}
