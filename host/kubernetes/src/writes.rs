//! Writes to nodes and pods: each one is checked against the fence, keeps its pace, and names the very version of the
//! object that it was decided on.

use std::time::Duration;

use kube::core::Request;
use kube::core::params::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, Error};
use plimsoll_model::convert::Kind;
use plimsoll_model::{Cluster, Pod};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::client::in_words;
use crate::events::{About, Tone};
use crate::live::Live;
use crate::mirror::NodeFacts;

/// Taint of a node that is being removed.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";
/// Taint of a node that is not needed now.
const DELETION_CANDIDATE: &str = "DeletionCandidateOfClusterAutoscaler";

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a write that met a newer version, or a busy server, is tried again.
const RETRY_FOR: Duration = Duration::from_secs(5);
const RETRY_PAUSE: Duration = Duration::from_millis(750);

/// Why a write was not made.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// This process may not write.
    #[error("{0}")]
    Fenced(String),
    /// There is no such object any more.
    #[error("it is not there any more")]
    Gone,
    /// It changed again and again meanwhile.
    #[error("it changed meanwhile: {0}")]
    Conflict(String),
    /// The API server refused it, or could not be reached.
    #[error("{0}")]
    Refused(String),
}

/// What the server said to one request.
enum Answer {
    Done(String),
    /// A newer version is there.
    Conflict(String),
    Gone,
    /// Later it may work.
    Busy(String),
    /// A budget is in the way, or too much is asked at once.
    TooMany(String),
    /// A right is missing.
    Forbidden(String),
    Refused(String),
}

async fn send(client: &Client, request: http::Request<Vec<u8>>) -> Answer {
    match timeout(PATIENCE, client.request_text(request)).await {
        Err(_) => Answer::Busy("the API server did not answer in time".to_owned()),
        Ok(Ok(text)) => Answer::Done(text),
        Ok(Err(Error::Api(status))) => match status.code {
            404 => Answer::Gone,
            409 => Answer::Conflict(status.message),
            429 => Answer::TooMany(status.message),
            500.. => Answer::Busy(status.message),
            403 => Answer::Forbidden(status.message),
            _ => Answer::Refused(status.message),
        },
        Ok(Err(error)) => Answer::Busy(in_words(&error)),
    }
}

impl Live {
    /// Marks a node as being deleted, and cordons it if asked to.
    ///
    /// # Errors
    ///
    /// Why it is not marked.
    pub(crate) async fn mark(&self, node: &str, cordon: bool) -> Result<(), WriteError> {
        let now = now_seconds();
        let marked = self.change_node(node, |facts| {
            let mut taints = taints(facts);
            let has = taints.iter().any(|taint| key(taint) == TO_BE_DELETED);
            if has && (facts.unschedulable || !cordon) {
                return None;
            }
            if !has {
                taints.push(json!({"key": TO_BE_DELETED, "value": now.to_string(), "effect": "NoSchedule"}));
            }
            Some(if cordon { json!({"taints": taints, "unschedulable": true}) } else { json!({"taints": taints}) })
        });
        let marked = marked.await;
        let (about, recorder) = (About::node(node), &self.options.recorder);
        match &marked {
            Ok(()) => {
                let message = "marked the node as toBeDeleted/unschedulable".to_owned();
                recorder.tell(about, Tone::Normal, "ScaleDown", message);
            }
            Err(WriteError::Fenced(_)) => {}
            Err(error) => {
                let message = format!("failed to mark the node as toBeDeleted/unschedulable: {error}");
                recorder.tell(about, Tone::Warning, "ScaleDownFailed", message);
            }
        }
        marked
    }

    /// Takes the mark off again, and the cordon if asked to.
    ///
    /// # Errors
    ///
    /// Why the node is still marked.
    pub(crate) async fn unmark(&self, node: &str, uncordon: bool) -> Result<(), WriteError> {
        let changed = self.change_node(node, |facts| {
            let mut taints = taints(facts);
            let before = taints.len();
            taints.retain(|taint| key(taint) != TO_BE_DELETED);
            if taints.len() == before {
                return None;
            }
            Some(if uncordon { json!({"taints": taints, "unschedulable": null}) } else { json!({"taints": taints}) })
        });
        match changed.await {
            // Nobody is held back by a node that is gone.
            Err(WriteError::Gone) => Ok(()),
            other => other,
        }
    }

    /// Whether a node lacks the soft mark that it is to have, or has the one that it is not to have.
    pub fn wants_soft_mark(&self, node: &str, candidate: bool) -> bool {
        self.shared().mirror().node(node).is_some_and(|facts| {
            let has = |mark: &str| facts.taints.contains(mark);
            has(DELETION_CANDIDATE) != candidate && !has(TO_BE_DELETED)
        })
    }

    /// Marks a node softly as one that is not needed, or takes that mark off.
    ///
    /// # Errors
    ///
    /// Why it was not written.
    pub async fn mark_softly(&self, node: &str, candidate: bool) -> Result<(), WriteError> {
        let now = now_seconds();
        self.change_node(node, |facts| {
            let mut taints = taints(facts);
            let before = taints.len();
            if taints.iter().any(|taint| key(taint) == TO_BE_DELETED) {
                return None;
            }
            if candidate && !taints.iter().any(|taint| key(taint) == DELETION_CANDIDATE) {
                taints.push(json!({"key": DELETION_CANDIDATE, "value": now.to_string(), "effect": "PreferNoSchedule"}));
            } else if !candidate {
                taints.retain(|taint| key(taint) != DELETION_CANDIDATE);
            }
            (taints.len() != before).then(|| json!({"taints": taints}))
        })
        .await
    }

    /// Deletes the object of a node whose machine is gone. One that came back under its name is another object, and stays.
    ///
    /// # Errors
    ///
    /// Why it is still there.
    pub async fn delete_node(&self, node: &str) -> Result<(), WriteError> {
        let Some(facts) = self.shared().mirror().node(node).cloned() else { return Ok(()) };
        self.options.pace.turn().await;
        (self.options.fence)().map_err(WriteError::Fenced)?;
        let uid = Some(facts.uid.to_string());
        let params = DeleteParams::default().preconditions(Preconditions { uid, resource_version: None });
        let request = Request::new("/api/v1/nodes").delete(node, &params);
        let request = request.map_err(|error| WriteError::Refused(error.to_string()))?;
        match send(&self.client, request).await {
            Answer::Done(_) | Answer::Gone => Ok(()),
            Answer::Conflict(why) => Err(WriteError::Conflict(why)),
            Answer::Busy(why) | Answer::TooMany(why) | Answer::Forbidden(why) | Answer::Refused(why) => {
                Err(WriteError::Refused(why))
            }
        }
    }

    /// Patches a node's spec from what the watch saw of it last. When somebody else was faster, the watch tells, and the
    /// change is made anew from that.
    async fn change_node(&self, name: &str, change: impl Fn(&NodeFacts) -> Option<Value>) -> Result<(), WriteError> {
        let begun = Instant::now();
        loop {
            let shared = self.shared();
            let facts = shared.mirror().node(name).cloned().ok_or(WriteError::Gone)?;
            let Some(spec) = change(&facts) else { return Ok(()) };
            self.options.pace.turn().await;
            (self.options.fence)().map_err(WriteError::Fenced)?;
            let patch = json!({"metadata": {"resourceVersion": &*facts.version, "uid": &*facts.uid}, "spec": spec});
            let request = Request::new("/api/v1/nodes").patch(name, &PatchParams::default(), &Patch::Merge(&patch));
            let request = request.map_err(|error| WriteError::Refused(error.to_string()))?;
            let answer = match send(&self.client, request).await {
                Answer::Forbidden(why) => self.replace_node(name, &facts, &spec, why).await,
                answer => answer,
            };
            let why = match answer {
                Answer::Done(text) => {
                    // The next loop sees its own write, even if the watch is slower.
                    if let Err(error) = shared.mirror().put(Kind::Node, &text, 0) {
                        shared.complain(error.to_string());
                    }
                    return Ok(());
                }
                Answer::Gone => return Err(WriteError::Gone),
                Answer::Forbidden(why) | Answer::Refused(why) => return Err(WriteError::Refused(why)),
                Answer::Conflict(why) => {
                    self.newer_than(name, &facts).await;
                    WriteError::Conflict(why)
                }
                Answer::Busy(why) | Answer::TooMany(why) => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                    WriteError::Refused(why)
                }
            };
            if begun.elapsed() > RETRY_FOR {
                return Err(why);
            }
        }
    }

    /// The same as a whole, for roles as the Go autoscaler had them: they allow to get and update nodes, not to patch them.
    /// `forbidden` is what is said if that is forbidden too.
    async fn replace_node(&self, name: &str, facts: &NodeFacts, spec: &Value, forbidden: String) -> Answer {
        let nodes = Request::new("/api/v1/nodes");
        let request = match nodes.get(name, &GetParams::default()) {
            Ok(request) => request,
            Err(error) => return Answer::Refused(error.to_string()),
        };
        let text = match send(&self.client, request).await {
            Answer::Done(text) => text,
            Answer::Forbidden(_) => return Answer::Forbidden(forbidden),
            other => return other,
        };
        let Ok(mut node) = serde_json::from_str::<Value>(&text) else {
            return Answer::Refused(format!("the API server's node {name} is no JSON"));
        };
        let metadata = node.get("metadata");
        let same = |key: &str, value: &str| {
            metadata.and_then(|metadata| metadata.get(key)).and_then(Value::as_str) == Some(value)
        };
        if !same("resourceVersion", &facts.version) || !same("uid", &facts.uid) {
            return Answer::Conflict("it has another version than the watch saw".to_owned());
        }
        if let (Some(Value::Object(old)), Value::Object(new)) = (node.get_mut("spec"), spec) {
            old.extend(new.clone());
        }
        let request = match nodes.replace(name, &PostParams::default(), node.to_string().into_bytes()) {
            Ok(request) => request,
            Err(error) => return Answer::Refused(error.to_string()),
        };
        match send(&self.client, request).await {
            Answer::Forbidden(_) => Answer::Forbidden(forbidden),
            other => other,
        }
    }

    /// Waits a moment for the watch to see another version of a node.
    async fn newer_than(&self, name: &str, facts: &NodeFacts) {
        let shared = self.shared();
        let seen = async {
            loop {
                let changed = shared.changed.notified();
                if shared.mirror().node(name) != Some(facts) {
                    return;
                }
                changed.await;
            }
        };
        // The watch may be slow; what it has by then is tried.
        let _ = timeout(RETRY_PAUSE, seen).await;
    }

    /// Evicts a pod.
    ///
    /// # Errors
    ///
    /// Why it stays: what a budget forbids now may work in the next loop.
    pub(crate) async fn evict_pod(&self, cluster: &Cluster, pod: &Pod, grace: Duration) -> Result<(), WriteError> {
        let namespace = cluster.text(cluster.specs[pod.spec].namespace);
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": &*pod.name, "namespace": namespace},
            "deleteOptions": {"gracePeriodSeconds": grace.as_secs(), "preconditions": {"uid": &*pod.uid}},
        });
        self.options.pace.turn().await;
        let who = format!("{namespace}/{}", pod.name);
        (self.options.fence)().map_err(WriteError::Fenced)?;
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let body = eviction.to_string().into_bytes();
        let request = Request::new(path).create_subresource("eviction", &pod.name, &PostParams::default(), body);
        let request = request.map_err(|error| WriteError::Refused(error.to_string()))?;
        match send(&self.client, request).await {
            Answer::Done(_) => {
                tracing::info!(pod = who, "evicted");
                let about = About::pod(namespace, &pod.name, &pod.uid);
                let message = "deleting pod for node scale down".to_owned();
                self.options.recorder.tell(about, Tone::Normal, "ScaleDown", message);
            }
            // Gone, or another pod has its name by now.
            Answer::Gone | Answer::Conflict(_) => {}
            Answer::TooMany(why) => {
                tracing::info!(pod = who, "is not evicted now: {why}");
                return Err(WriteError::Refused(why));
            }
            Answer::Busy(why) | Answer::Forbidden(why) | Answer::Refused(why) => {
                self.shared().complain(format!("{who} cannot be evicted: {why}"));
                return Err(WriteError::Refused(why));
            }
        }
        Ok(())
    }
}

fn taints(facts: &NodeFacts) -> Vec<Value> {
    if facts.taints.is_empty() { vec![] } else { serde_json::from_str(&facts.taints).unwrap_or_default() }
}

fn key(taint: &Value) -> &str {
    taint.get("key").and_then(Value::as_str).unwrap_or_default()
}

fn now_seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::client::Pace;
    use crate::events::Recorder;
    use crate::live::LiveOptions;
    use crate::testing::{self, Journal, Says, list, node, until};

    /// A live cluster with one node, whose patches are answered like this, one after the other; and its journal.
    async fn live(taints: Value, answers: Vec<Says>) -> (Live, Journal) {
        let answers = Mutex::new(answers.into_iter());
        let (client, journal) = testing::client(move |asked| match (asked.method.as_str(), asked.is_watch()) {
            ("GET", false) if asked.path == "/api/v1/nodes" => list(5, &[node("a", 5, taints.clone())], None),
            ("GET", false) if asked.path.starts_with("/api/v1/nodes/") => Says::Fails(403),
            ("GET", false) => list(5, &[], None),
            ("GET", true) => Says::Nothing,
            _ if asked.path.ends_with("/events") => Says::Object(json!({})),
            _ => answers.lock().unwrap().next().unwrap_or(Says::Fails(500)),
        });
        let pace = Arc::new(Pace::new(0.0, 1));
        let (recorder, _) = Recorder::start(client.clone(), pace.clone(), false);
        let options = LiveOptions {
            namespace: "kube-system".to_owned(),
            priorities: None,
            pace,
            fence: Arc::new(|| Ok(())),
            recorder,
        };
        let live = Live::start(client, options);
        live.ready().await;
        (live, journal)
    }

    fn patches(journal: &Journal) -> Vec<Value> {
        journal.all().into_iter().filter(|asked| asked.method == "PATCH").map(|asked| asked.body).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_mark_keeps_the_other_taints_and_names_the_version() {
        let other = json!({"key": "other", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"});
        let answer = Says::Object(node("a", 6, json!([other, {"key": TO_BE_DELETED, "effect": "NoSchedule"}])));
        let (live, journal) = live(json!([other]), vec![answer]).await;
        live.mark("a", true).await.unwrap();
        let patch = patches(&journal).remove(0);
        assert_eq!(patch["metadata"]["resourceVersion"], "5");
        assert_eq!(patch["spec"]["taints"][0], other);
        assert_eq!(patch["spec"]["taints"][1]["key"], TO_BE_DELETED);
        assert_eq!(patch["spec"]["unschedulable"], true);
        assert_eq!(&*live.shared().mirror().node("a").unwrap().version, "6", "the answer is seen at once");
        live.mark("a", false).await.unwrap();
        assert_eq!(patches(&journal).len(), 1, "what is marked is not marked again");
        until(|| journal.all().iter().any(|asked| asked.body["reason"] == "ScaleDown")).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_cordon_goes_with_the_mark_only_where_it_came_with_it() {
        for cordon in [true, false] {
            let taints = json!([{"key": TO_BE_DELETED, "effect": "NoSchedule"}]);
            let (live, journal) = live(taints, vec![Says::Object(node("a", 6, json!([])))]).await;
            live.unmark("a", cordon).await.unwrap();
            let patch = patches(&journal).remove(0);
            assert_eq!(patch["spec"]["taints"], json!([]));
            assert_eq!(patch["spec"].get("unschedulable").is_some(), cordon);
            live.unmark("a node that is gone", true).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_conflict_is_tried_again_and_a_refusal_is_not() {
        for (name, answers, written, tries) in [
            ("conflict, then taken", vec![Says::Fails(409), Says::Object(node("a", 7, json!([])))], true, 2),
            ("busy, then taken", vec![Says::Fails(500), Says::Object(node("a", 7, json!([])))], true, 2),
            ("refused", vec![Says::Fails(403)], false, 1),
            ("gone", vec![Says::Fails(404)], false, 1),
            ("never", (0..50).map(|_| Says::Fails(409)).collect(), false, 7),
        ] {
            let (live, journal) = live(json!(null), answers).await;
            assert_eq!(live.mark("a", true).await.is_ok(), written, "{name}");
            assert_eq!(patches(&journal).len().min(7), tries, "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_behind_the_fence() {
        let (mut live, journal) = live(json!(null), vec![]).await;
        live.options.fence = Arc::new(|| Err("not the leader".to_owned()));
        assert!(matches!(live.mark("a", true).await, Err(WriteError::Fenced(_))));
        assert!(matches!(live.mark_softly("a", true).await, Err(WriteError::Fenced(_))));
        let mut cluster = Cluster::default();
        let pod = json!({"metadata": {"name": "p", "namespace": "shop", "uid": "u"}});
        Kind::Pod.import_text(&pod.to_string(), &mut cluster).unwrap();
        let evicted = live.evict_pod(&cluster, &cluster.pods[0], Duration::from_secs(20)).await;
        assert!(matches!(evicted, Err(WriteError::Fenced(_))));
        assert_eq!(journal.count("PATCH") + journal.count("POST"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn evictions() {
        let pod = json!({
            "metadata": {"name": "p", "namespace": "shop", "uid": "u"},
            "spec": {"terminationGracePeriodSeconds": 300},
        });
        let mut cluster = Cluster::default();
        Kind::Pod.import_text(&pod.to_string(), &mut cluster).unwrap();
        for (name, answer, gone) in [
            ("taken", Says::Object(json!({})), true),
            ("gone already", Says::Fails(404), true),
            ("another pod has its name", Says::Fails(409), true),
            ("a budget is in the way", Says::Fails(429), false),
            ("not allowed", Says::Fails(403), false),
        ] {
            let (live, journal) = live(json!(null), vec![answer]).await;
            assert_eq!(
                live.evict_pod(&cluster, &cluster.pods[0], Duration::from_secs(20)).await.is_ok(),
                gone,
                "{name}"
            );
            let posts: Vec<_> = journal.all().into_iter().filter(|asked| asked.path.ends_with("/eviction")).collect();
            assert_eq!(posts.len(), 1, "{name}: a refusal is for the next loop");
            assert_eq!(posts[0].path, "/api/v1/namespaces/shop/pods/p/eviction");
            let options = &posts[0].body["deleteOptions"];
            assert_eq!((&options["gracePeriodSeconds"], &options["preconditions"]["uid"]), (&json!(20), &json!("u")));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_is_deleted_as_the_object_that_was_seen() {
        let (live, journal) = live(json!(null), vec![Says::Object(json!({}))]).await;
        live.delete_node("a").await.unwrap();
        live.delete_node("never there").await.unwrap();
        let deletes: Vec<_> = journal.all().into_iter().filter(|asked| asked.method == "DELETE").collect();
        assert_eq!(deletes.len(), 1);
        assert_eq!(
            (deletes[0].path.as_str(), &deletes[0].body["preconditions"]["uid"]),
            ("/api/v1/nodes/a", &json!("uid-a"))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn soft_marks_leave_nodes_that_go_alone() {
        for (name, taints, candidate, wanted) in [
            ("put on", json!(null), true, true),
            ("is there", json!([{"key": DELETION_CANDIDATE, "effect": "PreferNoSchedule"}]), true, false),
            ("taken off", json!([{"key": DELETION_CANDIDATE, "effect": "PreferNoSchedule"}]), false, true),
            ("is not there", json!(null), false, false),
            ("goes", json!([{"key": TO_BE_DELETED, "effect": "NoSchedule"}]), true, false),
        ] {
            let (live, journal) = live(taints, vec![Says::Object(node("a", 6, json!([])))]).await;
            assert_eq!(live.wants_soft_mark("a", candidate), wanted, "{name}");
            live.mark_softly("a", candidate).await.unwrap();
            assert_eq!(patches(&journal).len(), usize::from(wanted), "{name}");
        }
    }
}
