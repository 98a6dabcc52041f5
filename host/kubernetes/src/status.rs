//! The status ConfigMap, in the peer's shape.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::Client;
use plimsoll_core::cloud::InstanceState;
use plimsoll_core::health;
use plimsoll_core::observation::GroupView;
use plimsoll_core::plan::{NodeOutcome, NodeReason, Plan};
use plimsoll_core::{Memory, Observation, Settings};
use plimsoll_model::Time;
use plimsoll_model::symbol::known;
use serde::Serialize;
use serde_json::Map;
use tokio::sync::watch;

use crate::config_map::{ConfigMap, Content};
use crate::live::Fence;

/// Longest message of an error, in letters.
const MOST_LETTERS: usize = 500;
/// Annotation with the time of the last write.
const LAST_UPDATED: &str = "cluster-autoscaler.kubernetes.io/last-updated";

/// The document in `data.status`. Keys are in the order of the alphabet, as the peer's are.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    autoscaler_status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_wide: Option<ClusterWide>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    node_groups: Vec<NodeGroup>,
    time: String,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterWide {
    health: Health,
    scale_down: ScaleDown,
    scale_up: ScaleUp,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeGroup {
    health: GroupHealth,
    name: String,
    scale_down: ScaleDown,
    scale_up: GroupScaleUp,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Health {
    last_probe_time: String,
    last_transition_time: String,
    node_counts: NodeCounts,
    status: &'static str,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupHealth {
    cloud_provider_target: u32,
    last_probe_time: String,
    last_transition_time: String,
    max_size: u32,
    min_size: u32,
    node_counts: NodeCounts,
    status: &'static str,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScaleDown {
    #[serde(skip_serializing_if = "is_zero")]
    candidates: usize,
    last_probe_time: String,
    last_transition_time: String,
    status: &'static str,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScaleUp {
    last_probe_time: String,
    last_transition_time: String,
    status: &'static str,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupScaleUp {
    backoff_info: BackoffInfo,
    last_probe_time: String,
    last_transition_time: String,
    status: &'static str,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct BackoffInfo {
    #[serde(skip_serializing_if = "String::is_empty")]
    error_code: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    error_message: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeCounts {
    long_unregistered: usize,
    registered: Registered,
    unregistered: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Registered {
    #[serde(skip_serializing_if = "is_zero")]
    being_deleted: usize,
    not_started: usize,
    ready: usize,
    suspended: usize,
    total: usize,
    unready: Unready,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Unready {
    resource_unready: usize,
    total: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl std::ops::AddAssign for NodeCounts {
    fn add_assign(&mut self, other: Self) {
        self.long_unregistered += other.long_unregistered;
        self.unregistered += other.unregistered;
        let (sum, other) = (&mut self.registered, other.registered);
        sum.being_deleted += other.being_deleted;
        sum.not_started += other.not_started;
        sum.ready += other.ready;
        sum.suspended += other.suspended;
        sum.total += other.total;
        sum.unready.total += other.unready.total;
        sum.unready.resource_unready += other.unready.resource_unready;
    }
}

/// A status document and when it was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    yaml: String,
    time: String,
}

/// Makes status documents: remembers when each status last changed.
#[derive(Debug, Default)]
pub struct Reporter {
    /// By group (empty: the whole cluster) and part: the status, and since when.
    since: BTreeMap<(String, &'static str), (&'static str, Time)>,
}

impl Reporter {
    /// Before the first loop.
    pub fn initializing(at: Time, message: &str) -> Document {
        let status = Status {
            autoscaler_status: "Initializing",
            cluster_wide: None,
            message: message.to_owned(),
            node_groups: vec![],
            time: long_time(at),
        };
        status.document()
    }

    /// After a loop.
    pub fn running(
        &mut self,
        plan: &Plan,
        observation: &Observation<'_>,
        memory: &Memory,
        settings: &Settings,
    ) -> Document {
        let at = observation.at;
        let mut all = NodeCounts::default();
        let mut in_progress = false;
        let mut candidates = 0;
        let mut groups = Vec::with_capacity(observation.groups.len());
        for view in &observation.groups {
            let counts = counts(view, observation, memory, settings);
            let unneeded = self::candidates(plan, &view.nodes);
            let outstanding = memory.ledger.outstanding(&view.cloud.id);
            in_progress |= outstanding > 0;
            candidates += unneeded;
            all += counts;
            groups.push(self.group(view, counts, unneeded, outstanding, observation, memory, settings));
        }
        // Nodes of no group are nodes too.
        let others = (0..observation.cluster.nodes.len())
            .filter(|node| observation.membership.get(*node).is_none_or(Option::is_none));
        for node in others {
            all += count_node(node, false, observation);
        }
        let health = if health::check(observation, settings).is_ok() { "Healthy" } else { "Unhealthy" };
        let scale_up = if in_progress { "InProgress" } else { "NoActivity" };
        let probe = short_time(at);
        let cluster_wide = ClusterWide {
            health: Health {
                last_probe_time: probe.clone(),
                last_transition_time: self.since("", "health", health, at),
                node_counts: all,
                status: health,
            },
            scale_down: self.scale_down("", candidates, at),
            scale_up: ScaleUp {
                last_transition_time: self.since("", "scaleUp", scale_up, at),
                last_probe_time: probe,
                status: scale_up,
            },
        };
        self.since.retain(|(name, _), _| name.is_empty() || groups.iter().any(|group| group.name == *name));
        let status = Status {
            autoscaler_status: "Running",
            cluster_wide: Some(cluster_wide),
            message: String::new(),
            node_groups: groups,
            time: long_time(at),
        };
        status.document()
    }

    #[allow(clippy::too_many_arguments, reason = "each says another thing of one group")]
    fn group(
        &mut self,
        view: &GroupView<'_>,
        counts: NodeCounts,
        candidates: usize,
        outstanding: u32,
        observation: &Observation<'_>,
        memory: &Memory,
        settings: &Settings,
    ) -> NodeGroup {
        let (cloud, at) = (view.cloud, observation.at);
        let name = cloud.id.to_string();
        let probe = short_time(at);
        let is_healthy = is_healthy(view, outstanding, observation, settings);
        let backoff = memory.backed_off(&cloud.id, at);
        let health = if is_healthy { "Healthy" } else { "Unhealthy" };
        let scale_up = match backoff {
            _ if outstanding > 0 => "InProgress",
            _ if !is_healthy => "Unhealthy",
            Some(_) => "Backoff",
            None => "NoActivity",
        };
        let error_message = backoff.map(|backoff| backoff.reason.chars().take(MOST_LETTERS).collect());
        NodeGroup {
            health: GroupHealth {
                cloud_provider_target: cloud.target_size,
                last_probe_time: probe.clone(),
                last_transition_time: self.since(&name, "health", health, at),
                max_size: cloud.max_size,
                min_size: cloud.min_size,
                node_counts: counts,
                status: health,
            },
            scale_down: self.scale_down(&name, candidates, at),
            scale_up: GroupScaleUp {
                backoff_info: BackoffInfo {
                    error_code: String::new(),
                    error_message: error_message.unwrap_or_default(),
                },
                last_probe_time: probe,
                last_transition_time: self.since(&name, "scaleUp", scale_up, at),
                status: scale_up,
            },
            name,
        }
    }

    fn scale_down(&mut self, group: &str, candidates: usize, at: Time) -> ScaleDown {
        let status = if candidates > 0 { "CandidatesPresent" } else { "NoCandidates" };
        let last_transition_time = self.since(group, "scaleDown", status, at);
        ScaleDown { candidates, last_probe_time: short_time(at), last_transition_time, status }
    }

    /// Since when a part has its status.
    fn since(&mut self, group: &str, part: &'static str, status: &'static str, at: Time) -> String {
        let known = self.since.entry((group.to_owned(), part)).or_insert((status, at));
        if known.0 != status {
            *known = (status, at);
        }
        short_time(known.1)
    }
}

impl Status {
    fn document(&self) -> Document {
        let yaml = serde_saphyr::to_string(self).unwrap_or_default();
        Document { yaml, time: self.time.clone() }
    }
}

fn is_healthy(view: &GroupView<'_>, coming: u32, observation: &Observation<'_>, settings: &Settings) -> bool {
    let ready = view.nodes.iter().filter(|node| observation.readiness.get(**node).is_none_or(|state| state.ready));
    let ready = u32::try_from(ready.count()).unwrap_or(u32::MAX);
    let starting = u32::try_from(view.starting.len()).unwrap_or(u32::MAX);
    let missing = view.cloud.target_size.saturating_sub(ready).saturating_sub(coming).saturating_sub(starting);
    missing <= settings.ok_total_unready_count
        || f64::from(missing) <= settings.max_total_unready_percentage / 100.0 * f64::from(view.cloud.target_size)
}

fn candidates(plan: &Plan, nodes: &[usize]) -> usize {
    let idle = |outcome| matches!(outcome, NodeOutcome::Unneeded | NodeOutcome::Removable);
    let goes = |reasons: &[NodeReason]| reasons.contains(&NodeReason::BeingDeleted);
    let unneeded = plan.nodes.iter().filter(|verdict| idle(verdict.outcome) && !goes(&verdict.reasons));
    unneeded.filter(|verdict| nodes.contains(&verdict.node)).count()
}

fn counts(view: &GroupView<'_>, observation: &Observation<'_>, memory: &Memory, settings: &Settings) -> NodeCounts {
    let mut counts = NodeCounts::default();
    for &node in &view.nodes {
        counts += count_node(node, view.starting.contains(&node), observation);
    }
    let alive = view.cloud.instances.iter().filter(|instance| instance.state != InstanceState::Deleting).count();
    let without_node = alive.saturating_sub(view.nodes.len());
    let patience = view.cloud.options.provision_time.unwrap_or(settings.max_node_provision_time);
    let late = memory.strays.values().filter(|stray| {
        stray.group == view.cloud.id && observation.at.since(Time::from_millis(stray.since_ms)) > patience
    });
    counts.long_unregistered = late.count().min(without_node);
    counts.unregistered = without_node - counts.long_unregistered;
    counts
}

fn count_node(node: usize, starting: bool, observation: &Observation<'_>) -> NodeCounts {
    let mut counts = NodeCounts::default();
    let registered = &mut counts.registered;
    registered.total = 1;
    let deleted = observation.cluster.nodes.get(node).is_some_and(|node| node.taint(known::TO_BE_DELETED).is_some());
    let ready = observation.readiness.get(node).is_none_or(|state| state.ready);
    let count = if deleted {
        &mut registered.being_deleted
    } else if ready {
        &mut registered.ready
    } else if starting {
        &mut registered.not_started
    } else {
        &mut registered.unready.total
    };
    *count = 1;
    counts
}

fn timestamp(at: Time) -> Timestamp {
    Timestamp::from_millisecond(at.millis()).unwrap_or_default()
}

/// RFC 3339 in seconds.
fn short_time(at: Time) -> String {
    timestamp(at).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// As Go prints a time.
fn long_time(at: Time) -> String {
    timestamp(at).strftime("%Y-%m-%d %H:%M:%S%.f +0000 UTC").to_string()
}

/// Writes status documents, the newest only, beside the loop.
pub struct StatusWriter {
    newest: watch::Sender<Option<Document>>,
    uid: watch::Receiver<String>,
    task: tokio::task::JoinHandle<ConfigMap>,
}

impl StatusWriter {
    /// Into the ConfigMap of this name, while the fence lets it.
    pub fn start(client: Client, namespace: &str, name: &str, fence: Fence) -> Self {
        let (newest, mut waiting) = watch::channel(None::<Document>);
        let (tell_uid, uid) = watch::channel(String::new());
        let mut map = ConfigMap::new(client, namespace, name, "");
        let task = tokio::spawn(async move {
            while waiting.changed().await.is_ok() {
                let document = waiting.borrow_and_update().clone();
                let Some(Document { yaml, time }) = document else { continue };
                if fence().is_err() {
                    continue;
                }
                let data = Map::from_iter([("status".to_owned(), yaml.into())]);
                let content = Content { data, ..Content::default() };
                match map.write(&content, &[(LAST_UPDATED, time)]).await {
                    Ok(()) => drop(tell_uid.send_replace(map.uid().to_owned())),
                    Err(error) => tracing::warn!("the status is not written: {error}"),
                }
            }
            map
        });
        Self { newest, uid, task }
    }

    /// Hands in a newer document.
    pub fn write(&self, document: Document) {
        self.newest.send_replace(Some(document));
    }

    /// UID of the ConfigMap, once it was written.
    pub fn uid(&self) -> String {
        self.uid.borrow().clone()
    }

    /// Whether the writing ended, which it does only by a panic.
    pub fn is_broken(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it and deletes the ConfigMap, as the peer does when it stops.
    pub async fn delete(self) {
        drop(self.newest);
        if let Ok(mut map) = self.task.await
            && let Err(error) = map.delete().await
        {
            tracing::warn!("the status is not deleted: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Time = Time::from_millis(1_796_060_609_250);

    fn scale_down(reporter: &mut Reporter, candidates: usize, at: Time) -> ScaleDown {
        reporter.scale_down("b", candidates, at)
    }

    #[test]
    fn the_shape_is_the_peers() {
        let mut reporter = Reporter::default();
        let probe = short_time(AT);
        let node_counts = NodeCounts {
            registered: Registered { ready: 2, total: 3, being_deleted: 1, ..Registered::default() },
            ..NodeCounts::default()
        };
        let group = NodeGroup {
            health: GroupHealth {
                cloud_provider_target: 2,
                last_probe_time: probe.clone(),
                last_transition_time: probe.clone(),
                max_size: 100,
                min_size: 0,
                node_counts,
                status: "Healthy",
            },
            name: "b".to_owned(),
            scale_down: scale_down(&mut reporter, 1, AT),
            scale_up: GroupScaleUp {
                backoff_info: BackoffInfo::default(),
                last_probe_time: probe.clone(),
                last_transition_time: probe,
                status: "NoActivity",
            },
        };
        let status = Status {
            autoscaler_status: "Running",
            cluster_wide: None,
            message: String::new(),
            node_groups: vec![group],
            time: long_time(AT),
        };
        let expected = [
            "autoscalerStatus: Running",
            "nodeGroups:",
            "- health:",
            "    cloudProviderTarget: 2",
            "    lastProbeTime: \"2026-11-30T17:43:29Z\"",
            "    lastTransitionTime: \"2026-11-30T17:43:29Z\"",
            "    maxSize: 100",
            "    minSize: 0",
            "    nodeCounts:",
            "      longUnregistered: 0",
            "      registered:",
            "        beingDeleted: 1",
            "        notStarted: 0",
            "        ready: 2",
            "        suspended: 0",
            "        total: 3",
            "        unready:",
            "          resourceUnready: 0",
            "          total: 0",
            "      unregistered: 0",
            "    status: Healthy",
            "  name: b",
            "  scaleDown:",
            "    candidates: 1",
            "    lastProbeTime: \"2026-11-30T17:43:29Z\"",
            "    lastTransitionTime: \"2026-11-30T17:43:29Z\"",
            "    status: CandidatesPresent",
            "  scaleUp:",
            "    backoffInfo: {}",
        ];
        let yaml = status.document().yaml;
        let lines: Vec<&str> = yaml.lines().take(expected.len()).collect();
        assert_eq!(lines, expected);
        assert!(yaml.contains("time: 2026-11-30 17:43:29.25 +0000 UTC"), "{yaml}");
    }

    #[test]
    fn a_transition_is_when_the_status_changed() {
        let mut reporter = Reporter::default();
        let later = |seconds| AT + std::time::Duration::from_secs(seconds);
        for (candidates, at, status, since) in [
            (0, 0, "NoCandidates", 0),
            (0, 10, "NoCandidates", 0),
            (2, 20, "CandidatesPresent", 20),
            (3, 30, "CandidatesPresent", 20),
        ] {
            let told = scale_down(&mut reporter, candidates, later(at));
            assert_eq!((told.status, told.last_transition_time), (status, short_time(later(since))));
            assert_eq!(told.last_probe_time, short_time(later(at)));
        }
    }
}
