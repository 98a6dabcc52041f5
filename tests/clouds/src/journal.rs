//! What was asked and what happened, for tests to look at.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::clock::UnixMs;

/// Everything since the beginning, oldest first.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Journal {
    /// Requests.
    pub calls: Vec<Call>,
    /// What happened in the cloud.
    pub events: Vec<Event>,
}

/// One request.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Call {
    /// When it came.
    pub at: UnixMs,
    /// Host that was asked.
    pub host: String,
    /// HTTP method.
    pub method: String,
    /// Operation, in the cloud's own words; empty if it was not recognised.
    pub action: String,
    /// Who asked: name of the key or of the token, never the secret.
    pub caller: String,
    /// Parameters, decoded. Secrets are left out.
    pub parameters: BTreeMap<String, String>,
    /// Status of the answer that the cloud gave; none if it never handled the request.
    pub status: Option<u16>,
    /// The cloud's error code; none for a success.
    pub code: Option<String>,
    /// What the request changed. Empty for reads and for refused requests.
    pub changes: Vec<String>,
    /// What a well-written client would not have sent.
    pub violations: Vec<String>,
    /// Names of the faults that were put in.
    pub faults: Vec<String>,
}

impl Call {
    /// Whether the cloud handled it and reported success.
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status)) && self.code.is_none()
    }
}

/// Who wanted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A request named exactly this thing.
    Asked,
    /// The cloud chose this thing to fulfil a request that did not name it. A machine that goes so is a random kill.
    Chosen,
    /// The cloud itself: replacement, reclaim, failure, time.
    Cloud,
    /// A human at the console.
    Human,
}

/// What happened to a thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Happening {
    /// A machine came to be.
    Created,
    /// A machine runs.
    Started,
    /// A machine is on its way out.
    Leaving,
    /// A machine is gone.
    Gone,
    /// An activity began.
    ActivityBegan,
    /// An activity ended.
    ActivityEnded,
    /// A setting changed.
    Changed,
}

/// Something that happened in the cloud.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// When.
    pub at: UnixMs,
    /// What.
    pub what: Happening,
    /// To what: an identifier.
    pub subject: String,
    /// Group that it belongs to.
    pub group: String,
    /// Who wanted it.
    pub cause: Cause,
    /// More words.
    pub detail: String,
}

impl Journal {
    /// Requests for one operation.
    pub fn of<'a>(&'a self, action: &'a str) -> impl Iterator<Item = &'a Call> {
        self.calls.iter().filter(move |call| call.action == action)
    }

    /// How many requests for one operation came.
    pub fn count(&self, action: &str) -> usize {
        self.of(action).count()
    }

    /// Everything that a well-written client would not have sent, with the operation.
    pub fn violations(&self) -> Vec<String> {
        let of = |call: &Call| {
            let action = call.action.clone();
            call.violations.iter().map(move |text| format!("{action}: {text}")).collect::<Vec<_>>()
        };
        self.calls.iter().flat_map(of).collect()
    }

    /// Machines that the cloud chose to remove on a request that did not name them.
    pub fn random_kills(&self) -> Vec<&Event> {
        let chosen = |event: &&Event| event.what == Happening::Leaving && event.cause == Cause::Chosen;
        self.events.iter().filter(chosen).collect()
    }

    /// Requests that changed something.
    pub fn writes(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| !call.changes.is_empty())
    }
}
