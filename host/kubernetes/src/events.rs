//! Events on objects, as the peer's: told once in five minutes for each reason and object, sent at their own pace, and
//! never in the way of the loop.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use jiff::Timestamp;
use kube::Client;
use kube::core::Request;
use kube::core::params::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::client::{Pace, in_words};

/// Source and reporting component of every event, as the peer's.
const COMPONENT: &str = "cluster-autoscaler";
/// The same reason on the same object is told once in this time.
const QUIET: Duration = Duration::from_secs(300);
/// Most objects and reasons that are remembered.
const MOST_REMEMBERED: usize = 8192;
/// Most events that wait to be sent; more than that are dropped.
const MOST_WAITING: usize = 4096;
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest message that the API server takes.
const MOST_LETTERS: usize = 1024;

/// What an event is about.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct About {
    /// API version.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Namespace; empty for nodes.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

impl About {
    /// A pod.
    pub fn pod(namespace: &str, name: &str, uid: &str) -> Self {
        Self::object("v1", "Pod", namespace, name, uid)
    }

    /// A node. As kubelets do it, its name stands for its UID.
    pub fn node(name: &str) -> Self {
        Self::object("v1", "Node", "", name, name)
    }

    /// A ConfigMap.
    pub fn config_map(namespace: &str, name: &str, uid: &str) -> Self {
        Self::object("v1", "ConfigMap", namespace, name, uid)
    }

    /// A Lease.
    pub fn lease(namespace: &str, name: &str, uid: &str) -> Self {
        Self::object("coordination.k8s.io/v1", "Lease", namespace, name, uid)
    }

    fn object(api_version: &'static str, kind: &'static str, namespace: &str, name: &str, uid: &str) -> Self {
        let [namespace, name, uid] = [namespace, name, uid].map(str::to_owned);
        Self { api_version, kind, namespace, name, uid }
    }
}

/// Whether all is well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// It is.
    Normal,
    /// It is not.
    Warning,
}

impl Tone {
    fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// What it is about.
    pub about: About,
    /// Whether all is well.
    pub tone: Tone,
    /// Why, in one word.
    pub reason: &'static str,
    /// What happened.
    pub message: String,
    /// What tells it from others with the same reason on the same object, if more than these.
    pub by_message: bool,
}

/// Where events are handed in.
#[derive(Clone, Debug)]
pub struct Recorder {
    queue: mpsc::Sender<Event>,
}

impl Recorder {
    /// Sends events in a task of its own, until the last recorder is dropped. `pace` says how fast; `duplicates` sends
    /// those too that are the same again, as the flag `record-duplicated-events` asks for.
    pub fn start(client: Client, pace: Arc<Pace>, duplicates: bool) -> (Self, tokio::task::JoinHandle<()>) {
        let (queue, waiting) = mpsc::channel(MOST_WAITING);
        let sender = Sender { client, pace, duplicates, sent: IndexMap::default() };
        (Self { queue }, tokio::spawn(sender.run(waiting)))
    }

    /// Hands an event in. It is dropped if too many wait already.
    pub fn record(&self, event: Event) {
        if self.queue.try_send(event).is_err() {
            tracing::debug!("an event is dropped: too many wait to be sent");
        }
    }

    /// An event that is told once in a while for its object and reason.
    pub fn tell(&self, about: About, tone: Tone, reason: &'static str, message: String) {
        self.record(Event { about, tone, reason, message, by_message: false });
    }
}

/// What tells one event from another.
type Key = (About, &'static str, Option<String>);

/// An event that was sent.
#[derive(Clone, Debug)]
struct Sent {
    at: Instant,
    count: u32,
    name: String,
    message: String,
}

struct Sender {
    client: Client,
    pace: Arc<Pace>,
    duplicates: bool,
    /// The longest remembered first.
    sent: IndexMap<Key, Sent, rustc_hash::FxBuildHasher>,
}

impl Sender {
    async fn run(mut self, mut waiting: mpsc::Receiver<Event>) {
        while let Some(event) = waiting.recv().await {
            self.take(event).await;
        }
    }

    async fn take(&mut self, event: Event) {
        let key: Key = (event.about.clone(), event.reason, event.by_message.then(|| event.message.clone()));
        let before = self.sent.get(&key).cloned();
        if !self.duplicates && before.as_ref().is_some_and(|sent| sent.at.elapsed() < QUIET) {
            return;
        }
        self.pace.turn().await;
        let again = before.filter(|sent| sent.message == event.message);
        let sent = match again {
            Some(sent) => self.count(&event, sent).await,
            None => self.create(&event).await,
        };
        if let Some(sent) = sent {
            tracing::debug!(reason = event.reason, object = event.about.name, "{}", event.message);
            self.sent.shift_remove(&key);
            if self.sent.len() >= MOST_REMEMBERED {
                self.sent.shift_remove_index(0);
            }
            self.sent.insert(key, sent);
        }
    }

    fn request(event: &Event) -> Request {
        Request::new(format!("/api/v1/namespaces/{}/events", namespace(event)))
    }

    async fn send(
        &self,
        event: &Event,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<(), u16> {
        let Ok(request) = request else { return Err(0) };
        match timeout(PATIENCE, self.client.request_text(request)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                let why = in_words(&error);
                tracing::debug!(reason = event.reason, object = event.about.name, "an event is not taken: {why}");
                Err(if let kube::Error::Api(status) = error { status.code } else { 0 })
            }
            Err(_) => Err(0),
        }
    }

    async fn create(&self, event: &Event) -> Option<Sent> {
        let now = Timestamp::now();
        let name = format!("{}.{:x}{:04x}", event.about.name, now.as_nanosecond(), fastrand::u16(..));
        let mut message = event.message.clone();
        if let Some((end, _)) = message.char_indices().nth(MOST_LETTERS - 3) {
            message.truncate(end);
            message.push_str("...");
        }
        let at = format!("{now:.0}");
        let About { api_version, kind, namespace: home, name: object, uid } = &event.about;
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace(event)},
            "involvedObject": {"apiVersion": api_version, "kind": kind, "namespace": home, "name": object, "uid": uid},
            "reason": event.reason,
            "message": message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": "",
            "type": event.tone.name(),
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        });
        let request = Self::request(event).create(&PostParams::default(), body.to_string().into_bytes());
        self.send(event, request).await.ok()?;
        Some(Sent { at: Instant::now(), count: 1, name, message: event.message.clone() })
    }

    /// The same again: the event that is there is counted up, or made anew if it ran out.
    async fn count(&self, event: &Event, sent: Sent) -> Option<Sent> {
        let count = sent.count.saturating_add(1);
        let patch = json!({"count": count, "lastTimestamp": format!("{:.0}", Timestamp::now())});
        let request = Self::request(event).patch(&sent.name, &PatchParams::default(), &Patch::Merge(&patch));
        match self.send(event, request).await {
            Ok(()) => Some(Sent { at: Instant::now(), count, ..sent }),
            Err(404) => self.create(event).await,
            Err(_) => None,
        }
    }
}

/// Events on objects without a namespace are in the default one.
fn namespace(event: &Event) -> &str {
    if event.about.namespace.is_empty() { "default" } else { &event.about.namespace }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use tokio::time::sleep;

    use super::*;
    use crate::testing::{self, Journal, Says};

    fn recorder(qps: f64, duplicates: bool, code: Option<u16>) -> (Recorder, Journal) {
        let (client, journal) = testing::client(move |_| code.map_or(Says::Object(json!({})), Says::Fails));
        let (recorder, _) = Recorder::start(client, Arc::new(Pace::new(qps, 1)), duplicates);
        (recorder, journal)
    }

    fn told(pod: &str, message: &str) -> Event {
        let (about, message) = (About::pod("shop", pod, "uid"), message.to_owned());
        Event { about, tone: Tone::Normal, reason: "TriggeredScaleUp", message, by_message: false }
    }

    fn posts(journal: &Journal) -> Vec<Value> {
        journal.all().into_iter().filter(|asked| asked.method == "POST").map(|asked| asked.body).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn once_in_five_minutes_for_each_reason_and_object() {
        let (recorder, journal) = recorder(0.0, false, None);
        for (pod, message) in [("a", "one"), ("a", "one"), ("a", "two"), ("b", "one")] {
            recorder.record(told(pod, message));
        }
        let by_message = |message: &str| Event { by_message: true, ..told("c", message) };
        for message in ["one", "two", "two"] {
            recorder.record(by_message(message));
        }
        sleep(Duration::from_secs(1)).await;
        assert_eq!(posts(&journal).len(), 4);
        sleep(QUIET).await;
        recorder.record(told("a", "one"));
        recorder.record(told("b", "other"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!((posts(&journal).len(), journal.count("PATCH")), (5, 1), "the same again is counted up");
    }

    #[tokio::test(start_paused = true)]
    async fn the_form_of_an_event() {
        let (recorder, journal) = recorder(0.0, false, None);
        recorder.record(told("a", &"ä".repeat(2000)));
        recorder.tell(About::node("n"), Tone::Warning, "ScaleDownFailed", "no".to_owned());
        sleep(Duration::from_secs(1)).await;
        let posts = posts(&journal);
        let object = &posts[0]["involvedObject"];
        assert_eq!(
            (&object["kind"], &object["uid"], &object["namespace"]),
            (&json!("Pod"), &json!("uid"), &json!("shop"))
        );
        assert_eq!(posts[0]["message"].as_str().unwrap().chars().count(), MOST_LETTERS);
        assert_eq!(
            (&posts[0]["source"]["component"], &posts[0]["reportingComponent"]),
            (&json!(COMPONENT), &json!(COMPONENT))
        );
        assert_eq!((&posts[1]["type"], &posts[1]["metadata"]["namespace"]), (&json!("Warning"), &json!("default")));
        assert_eq!(journal.all()[0].path, "/api/v1/namespaces/shop/events");
    }

    #[tokio::test(start_paused = true)]
    async fn duplicates_are_counted_when_they_are_asked_for() {
        let (recorder, journal) = recorder(0.0, true, None);
        for _ in 0..3 {
            recorder.record(told("a", "one"));
        }
        sleep(Duration::from_secs(1)).await;
        let patches: Vec<_> = journal.all().into_iter().filter(|asked| asked.method == "PATCH").collect();
        assert_eq!(patches.iter().map(|asked| asked.body["count"].clone()).collect::<Vec<_>>(), [json!(2), json!(3)]);
    }

    #[tokio::test(start_paused = true)]
    async fn they_keep_their_pace_and_never_hold_anybody_up() {
        let (recorder, journal) = recorder(5.0, false, None);
        for pod in 0..MOST_WAITING + 100 {
            recorder.record(told(&pod.to_string(), "one"));
        }
        sleep(Duration::from_secs(10)).await;
        assert!((48..=52).contains(&posts(&journal).len()), "{}", posts(&journal).len());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_not_taken_may_be_told_again() {
        let (recorder, journal) = recorder(0.0, false, Some(403));
        recorder.record(told("a", "one"));
        recorder.record(told("a", "one"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(posts(&journal).len(), 2);
    }
}
