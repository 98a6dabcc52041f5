//! `/api/v1`: the last loops with their reasons, read-only.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::account::{Account, Class, Group, Growth, LeftOut, Node, Pod, Removal, Totals, Unknown};
use crate::seam::Signals;
use crate::state::LoopState;

/// Most loops of which the decisions are kept.
const MOST_KEPT: usize = 100;
/// Most entries of one answer, if nobody asks for fewer.
const MOST_SHOWN: usize = 1_000;

/// What a loop decided, if it decided anything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The time of the loop.
    pub at: String,
    /// Groups that grow.
    pub scale_up: Vec<Growth>,
    /// Nodes that go.
    pub scale_down: Vec<Removal>,
    /// What an operator should know.
    pub warnings: Vec<String>,
}

/// What is kept of the loops.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// Number of loops since the start.
    loops: u64,
    latest: Option<Arc<Account>>,
    decisions: VecDeque<Decision>,
}

impl Journal {
    /// One more loop.
    pub(crate) fn add(&mut self, account: Account) {
        self.loops += 1;
        let same_warnings = self.latest.as_ref().is_some_and(|before| before.warnings == account.warnings);
        let quiet = account.scale_up.is_empty() && account.scale_down.is_empty();
        if !quiet || !(same_warnings || account.warnings.is_empty()) {
            if self.decisions.len() == MOST_KEPT {
                self.decisions.pop_front();
            }
            self.decisions.push_back(Decision {
                at: account.at.clone(),
                scale_up: account.scale_up.clone(),
                scale_down: account.scale_down.clone(),
                warnings: account.warnings.clone(),
            });
        }
        self.latest = Some(Arc::new(account));
    }

    /// The last loop, if there was one.
    pub(crate) fn latest(&self) -> Option<Arc<Account>> {
        self.latest.clone()
    }
}

/// Answer of `/api/v1/plan`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanAnswer {
    /// Number of loops since the start.
    pub loops: u64,
    /// The time of the last loop.
    pub at: String,
    /// What it saw.
    pub totals: Totals,
    /// Groups that grow.
    pub scale_up: Vec<Growth>,
    /// Nodes that go.
    pub scale_down: Vec<Removal>,
    /// What an operator should know.
    pub warnings: Vec<String>,
    /// Classes of pods that nothing helps.
    pub not_helped: Vec<Class>,
    /// What is not kept.
    pub left_out: LeftOut,
    /// Loops that decided something, the latest first.
    pub history: Vec<Decision>,
}

/// Answer of `/api/v1/pods`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodsAnswer {
    /// The time of the loop.
    pub at: String,
    /// How many there are altogether.
    pub count: usize,
    /// The first of them.
    pub pods: Vec<Pod>,
    /// The classes that they refer to.
    pub classes: Vec<Class>,
}

/// Answer of `/api/v1/nodes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodesAnswer {
    /// The time of the loop.
    pub at: String,
    /// How many there are altogether.
    pub count: usize,
    /// The first of them.
    pub nodes: Vec<Node>,
}

/// Answer of `/api/v1/groups`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupsAnswer {
    /// The time of the loop.
    pub at: String,
    /// All of them.
    pub groups: Vec<Group>,
}

/// Which entries are wanted.
#[derive(Debug, Default, Deserialize)]
struct Wanted {
    /// Only those with this outcome.
    outcome: Option<String>,
    /// At most so many.
    limit: Option<usize>,
}

impl Wanted {
    fn first<T: Clone>(&self, all: &[T], outcome: impl Fn(&T) -> Option<&str>) -> (usize, Vec<T>) {
        let wanted = |one: &&T| self.outcome.as_deref().is_none_or(|wanted| outcome(one) == Some(wanted));
        let matching: Vec<&T> = all.iter().filter(wanted).collect();
        let limit = self.limit.unwrap_or(MOST_SHOWN);
        (matching.len(), matching.into_iter().take(limit).cloned().collect())
    }
}

/// The routes.
pub(crate) fn router() -> Router<Signals> {
    Router::new()
        .route("/api/v1/plan", get(plan))
        .route("/api/v1/state", get(state))
        .route("/api/v1/pods", get(pods))
        .route("/api/v1/pods/{name}", get(pod_by_name))
        .route("/api/v1/pods/{namespace}/{name}", get(pod))
        .route("/api/v1/nodes", get(nodes))
        .route("/api/v1/nodes/{name}", get(node))
        .route("/api/v1/groups", get(groups))
        // Clouds may have slashes in the names of their groups.
        .route("/api/v1/groups/{*name}", get(group))
}

/// What the last loop says; until there was one, nothing can be said.
fn ask(signals: &Signals, answer: impl FnOnce(&Account) -> Response) -> Response {
    match signals.latest() {
        Some(account) => answer(&account),
        None => {
            let message = "no loop has ended yet: this replica waits for its lease, or has just started".to_owned();
            (StatusCode::SERVICE_UNAVAILABLE, Json(Unknown { message })).into_response()
        }
    }
}

fn found<T: Serialize>(found: Result<T, Unknown>) -> Response {
    match found {
        Ok(found) => Json(found).into_response(),
        Err(unknown) => (StatusCode::NOT_FOUND, Json(unknown)).into_response(),
    }
}

async fn plan(State(signals): State<Signals>) -> Response {
    let (loops, history) = signals.journal(|journal| {
        let latest_first: Vec<Decision> = journal.decisions.iter().rev().cloned().collect();
        (journal.loops, latest_first)
    });
    ask(&signals, |account| {
        Json(PlanAnswer {
            loops,
            at: account.at.clone(),
            totals: account.totals.clone(),
            scale_up: account.scale_up.clone(),
            scale_down: account.scale_down.clone(),
            warnings: account.warnings.clone(),
            not_helped: account.classes.iter().take(MOST_SHOWN).cloned().collect(),
            left_out: account.left_out,
            history,
        })
        .into_response()
    })
}

/// What the next loop knows when it begins: it is waited for, so that whoever has listed the objects before has what that
/// loop sees.
async fn state(State(signals): State<Signals>) -> Response {
    match next_state(&signals).await {
        Ok(state) => Json(&*state).into_response(),
        Err(response) => *response,
    }
}

/// The state of the next loop, or what to answer without it.
pub(crate) async fn next_state(signals: &Signals) -> Result<Arc<LoopState>, Box<Response>> {
    let refused =
        |status, message: &str| Box::new((status, Json(Unknown { message: message.to_owned() })).into_response());
    let told = signals.next_state().ok_or_else(|| {
        refused(StatusCode::TOO_MANY_REQUESTS, "others wait for the state of the next loop already; ask again later")
    })?;
    told.await
        .map_err(|_| refused(StatusCode::SERVICE_UNAVAILABLE, "the process ends, or the loop did not come to its end"))
}

async fn pods(State(signals): State<Signals>, Query(wanted): Query<Wanted>) -> Response {
    ask(&signals, |account| {
        let (count, pods) = wanted.first(&account.pods, |pod| Some(&pod.outcome));
        Json(PodsAnswer { at: account.at.clone(), count, pods, classes: account.classes.clone() }).into_response()
    })
}

async fn pod(State(signals): State<Signals>, Path((namespace, name)): Path<(String, String)>) -> Response {
    ask(&signals, |account| found(account.pod(&format!("{namespace}/{name}"))))
}

async fn pod_by_name(State(signals): State<Signals>, Path(name): Path<String>) -> Response {
    ask(&signals, |account| found(account.pod(&name)))
}

async fn nodes(State(signals): State<Signals>, Query(wanted): Query<Wanted>) -> Response {
    ask(&signals, |account| {
        let (count, nodes) = wanted.first(&account.nodes, |node| node.outcome.as_deref());
        Json(NodesAnswer { at: account.at.clone(), count, nodes }).into_response()
    })
}

async fn node(State(signals): State<Signals>, Path(name): Path<String>) -> Response {
    ask(&signals, |account| found(account.node(&name)))
}

async fn groups(State(signals): State<Signals>) -> Response {
    ask(&signals, |account| {
        Json(GroupsAnswer { at: account.at.clone(), groups: account.groups.clone() }).into_response()
    })
}

async fn group(State(signals): State<Signals>, Path(name): Path<String>) -> Response {
    ask(&signals, |account| found(account.group(&name)))
}
