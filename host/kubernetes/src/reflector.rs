//! One kind of objects, from the API server into the mirror: list it page by page, then watch it, for ever.
//!
//! ```text
//!          ┌──── gone (410), or the server forgot where we were ────┐
//!          ▼                                                        │
//!  list, page by page ──► sweep what is gone ──► watch from there ──┴─► watch again from the last version seen
//!          │                                        │
//!          └────────────── failed: wait, longer each time, and try again
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures_util::{AsyncBufReadExt as _, StreamExt as _};
use kube::core::Request;
use kube::core::params::{ListParams, WatchParams};
use kube::{Client, Error};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout};

use crate::mirror::{MirrorError, News};
use crate::resources::{Need, Resource};
use crate::watches::{Shared, Sight};

/// Objects of one page: a large cluster's list is never in memory as a whole.
const PAGE: u32 = 500;
/// How long one page may take.
const PAGE_PATIENCE: Duration = Duration::from_secs(60);
/// The server ends a watch after this long, in seconds; a little of chance keeps the watches apart.
const WATCH_SECONDS: u32 = 270;
/// A watch that says nothing for longer is dead: the server ends it before, and sends bookmarks in between.
const SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 45);
const SHORTEST_PAUSE: Duration = Duration::from_millis(400);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// How often a kind that the server does not have, or does not let us see, is looked for again.
const ABSENT_PAUSE: Duration = Duration::from_secs(120);

/// A page of a list.
#[derive(Deserialize)]
struct Page<'a> {
    metadata: ListMetadata,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

/// A line of a watch.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    what: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Versioned {
    metadata: Version,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    #[serde(default)]
    resource_version: String,
}

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
enum Stop {
    /// The server no longer knows the version that was asked for.
    #[error("the version is too old")]
    Gone,
    /// The server does not have the kind.
    #[error("the API server does not have them")]
    Missing,
    /// Permission is missing.
    #[error("{0}")]
    Forbidden(String),
    /// Anything else; it may be over in a moment.
    #[error("{0}")]
    Failed(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(status) if status.code == 410 || status.reason == "Expired" => Self::Gone,
            Error::Api(status) if status.code == 404 => Self::Missing,
            Error::Api(status) if status.code == 403 => Self::Forbidden(status.message),
            Error::Api(status) => Self::Failed(format!("{} ({})", status.message, status.code)),
            other => Self::Failed(crate::client::in_words(&other)),
        }
    }
}

/// One kind.
pub(crate) struct Reflector {
    pub(crate) client: Client,
    pub(crate) resource: Resource,
    /// Which of the watches it is.
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    /// How many versions the one that the server has is older than the newest.
    pub(crate) age: usize,
}

impl Reflector {
    /// Never ends.
    pub(crate) async fn run(mut self) {
        let mut round = 0;
        let mut pause = SHORTEST_PAUSE;
        loop {
            round += 1;
            let stop = match self.list(round).await {
                Ok(version) => {
                    self.shared.sees(self.number, Sight::Clear);
                    pause = SHORTEST_PAUSE;
                    self.watch(version, round, &mut pause).await
                }
                Err(stop) => stop,
            };
            match stop {
                Stop::Gone => {
                    tracing::info!(kind = self.resource.name, "the watch was too far behind; listing again");
                    sleep(SHORTEST_PAUSE).await;
                }
                Stop::Missing if self.turn_to_older() => {}
                stop @ (Stop::Missing | Stop::Forbidden(_)) => self.absent(&stop).await,
                Stop::Failed(why) => self.failed(why, &mut pause).await,
            }
        }
    }

    /// The server does not have the kind in one version: perhaps in the one before. False, if that was the oldest; the
    /// newest has its turn again then.
    fn turn_to_older(&mut self) -> bool {
        self.age = if self.age < self.resource.older.len() { self.age + 1 } else { 0 };
        if let Some((version, _)) = self.age.checked_sub(1).and_then(|older| self.resource.older.get(older)) {
            tracing::debug!(kind = self.resource.name, version, "looking for an older version");
        }
        self.age > 0
    }

    /// Version and path that the server is asked for.
    fn place(&self) -> (&'static str, &str) {
        let older = self.age.checked_sub(1).and_then(|older| self.resource.older.get(older));
        older.map_or((self.resource.version, &self.resource.path), |(version, path)| (version, path))
    }

    async fn failed(&self, why: String, pause: &mut Duration) {
        self.shared.sees(self.number, Sight::Failing { since: Instant::now(), why });
        sleep(pause.mul_f64(0.5 + fastrand::f64())).await;
        *pause = (*pause * 2).min(LONGEST_PAUSE);
    }

    /// What the loop can do without is taken to be empty; what it cannot do without is asked for again soon.
    async fn absent(&self, stop: &Stop) {
        match self.resource.need {
            Need::Required => {
                self.shared.sees(self.number, Sight::Failing { since: Instant::now(), why: stop.to_string() });
                sleep(LONGEST_PAUSE).await;
            }
            Need::Optional(without) => {
                self.mirror(|mirror| mirror.sweep(self.resource.kind, u32::MAX));
                let why = match stop {
                    Stop::Forbidden(why) => format!("may not be read, so {without}: {why}"),
                    stop => format!("are not there, so {without}: {stop}"),
                };
                self.shared.sees(self.number, Sight::Absent { why });
                sleep(ABSENT_PAUSE.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
            }
        }
    }

    fn mirror<T>(&self, look: impl FnOnce(&mut crate::mirror::Mirror) -> T) -> T {
        look(&mut self.shared.mirror())
    }

    /// Reads all objects; the number of the list is put on each. Returns the version of the list.
    async fn list(&self, round: u32) -> Result<String, Stop> {
        let (version, path) = self.place();
        let request = Request::new(path);
        let mut next = None;
        loop {
            let mut params = ListParams::default().limit(PAGE);
            params.field_selector.clone_from(&self.resource.fields);
            params.continue_token = next;
            let built = request.list(&params).map_err(|error| Stop::Failed(error.to_string()))?;
            let text = timeout(PAGE_PATIENCE, self.client.request_text(built)).await;
            let text = text.map_err(|_| Stop::Failed("the API server did not answer in time".to_owned()))??;
            let page: Page<'_> = serde_json::from_str(&text)
                .map_err(|error| Stop::Failed(format!("the API server answered with what is no list: {error}")))?;
            for item in page.items.into_iter().flatten() {
                match self.age {
                    0 => self.put(item.get(), round),
                    // Items of a list do not say what they are, and these are not in the form of today.
                    _ => self.put(&with_version(item.get(), version), round),
                }
            }
            next = page.metadata.next.filter(|next| !next.is_empty());
            if next.is_none() {
                self.mirror(|mirror| mirror.sweep(self.resource.kind, round));
                return Ok(page.metadata.resource_version);
            }
        }
    }

    /// Follows all changes from a version on, over as many connections as it takes.
    async fn watch(&self, mut version: String, round: u32, pause: &mut Duration) -> Stop {
        loop {
            let begun = Instant::now();
            match self.watch_once(&mut version, round).await {
                // The server ends every watch in time, but hardly at once.
                Ok(()) => {
                    *pause = SHORTEST_PAUSE;
                    if begun.elapsed() < SHORTEST_PAUSE {
                        sleep(SHORTEST_PAUSE).await;
                    }
                }
                Err(Stop::Failed(why)) => self.failed(why, pause).await,
                Err(stop) => return stop,
            }
        }
    }

    async fn watch_once(&self, version: &mut String, round: u32) -> Result<(), Stop> {
        let mut params = WatchParams::default().timeout(WATCH_SECONDS + fastrand::u32(0..30));
        params.field_selector.clone_from(&self.resource.fields);
        let built = Request::new(self.place().1).watch(&params, version);
        let built = built.map_err(|error| Stop::Failed(error.to_string()))?;
        let opened = timeout(PAGE_PATIENCE, self.client.request_stream(built)).await;
        let stream = opened.map_err(|_| Stop::Failed("the API server did not answer in time".to_owned()))??;
        self.shared.sees(self.number, Sight::Clear);
        let mut lines = std::pin::pin!(stream.lines());
        loop {
            match timeout(SILENCE, lines.next()).await {
                Ok(Some(Ok(line))) => self.take(&line, version, round)?,
                Ok(Some(Err(error))) => return Err(Stop::Failed(format!("the watch broke off: {error}"))),
                Ok(None) => return Ok(()),
                Err(_) => return Err(Stop::Failed("the watch fell silent".to_owned())),
            }
        }
    }

    fn take(&self, line: &str, version: &mut String, round: u32) -> Result<(), Stop> {
        if line.is_empty() {
            return Ok(());
        }
        let event: Event<'_> = serde_json::from_str(line)
            .map_err(|error| Stop::Failed(format!("the API server sent what is no event: {error}")))?;
        let text = event.object.get();
        match event.what {
            "ADDED" | "MODIFIED" => self.put(text, round),
            "DELETED" => {
                let deleted = self.mirror(|mirror| mirror.delete(self.resource.kind, text));
                deleted.unwrap_or_else(|error| self.complain(&error));
                self.shared.changed.notify_waiters();
            }
            "BOOKMARK" => {}
            _ => {
                let status: kube::core::Status = serde_json::from_str(text).unwrap_or_default();
                return Err(Stop::from(Error::Api(Box::new(status))));
            }
        }
        if let Ok(seen) = serde_json::from_str::<Versioned>(text)
            && !seen.metadata.resource_version.is_empty()
        {
            *version = seen.metadata.resource_version;
        }
        Ok(())
    }

    fn put(&self, text: &str, round: u32) {
        match self.mirror(|mirror| mirror.put(self.resource.kind, text, round)) {
            Ok(News::Unschedulable) => self.shared.unschedulable.notify_one(),
            Ok(News::Plain) => {}
            Err(error) => self.complain(&error),
        }
        self.shared.changed.notify_waiters();
    }

    fn complain(&self, error: &MirrorError) {
        self.shared.complain(error.to_string());
    }
}

/// An object that says of which version it is.
fn with_version(text: &str, version: &str) -> String {
    let rest = text.trim_start().strip_prefix('{').unwrap_or_default();
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    format!("{{\"apiVersion\":\"{version}\"{comma}{rest}")
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use plimsoll_model::convert::Kind;
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::*;
    use crate::testing::{self, Says, list, node, until};
    use crate::watches::Watches;

    fn nodes() -> Resource {
        crate::resources::of_observation().into_iter().find(|resource| resource.kind == Kind::Node).unwrap()
    }

    fn names(watches: &Watches) -> Vec<String> {
        let mut mirror = watches.shared.mirror();
        let cluster = mirror.in_order();
        cluster.nodes.iter().map(|node| cluster.text(node.name).to_owned()).collect()
    }

    fn event(what: &str, object: serde_json::Value) -> String {
        json!({"type": what, "object": object}).to_string()
    }

    #[tokio::test(start_paused = true)]
    async fn pages_then_changes_then_everything_anew_when_it_fell_behind() {
        let (say, lines) = mpsc::unbounded_channel();
        let lines = Mutex::new(Some(lines));
        let (client, journal) = testing::client(move |asked| {
            let listed = asked.query.contains("continue=next");
            let mut lines = lines.lock().unwrap();
            match (asked.is_watch(), lines.is_some()) {
                (true, true) => Says::Lines(lines.take().unwrap()),
                (true, false) => Says::Nothing,
                (false, true) if listed => list(7, &[node("b", 2, json!(null))], None),
                (false, true) => list(7, &[node("a", 1, json!(null))], Some("next")),
                (false, false) => list(20, &[node("c", 19, json!(null))], None),
            }
        });
        let watches = Watches::start(&client, &[nodes()]);
        watches.shared.ready().await;
        assert_eq!(names(&watches), ["a", "b"]);
        until(|| journal.all().iter().any(|asked| asked.is_watch() && asked.query.contains("resourceVersion=7"))).await;

        say.send(event("ADDED", node("d", 8, json!(null)))).unwrap();
        say.send(event("DELETED", node("a", 9, json!(null)))).unwrap();
        say.send(event("BOOKMARK", json!({"kind": "Node", "metadata": {"resourceVersion": "12"}}))).unwrap();
        until(|| names(&watches) == ["b", "d"]).await;

        say.send(event("ERROR", json!({"kind": "Status", "code": 410, "reason": "Expired"}))).unwrap();
        until(|| names(&watches) == ["c"]).await;
        assert_eq!(watches.shared.troubles(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_ends_goes_on_where_it_was() {
        let (say, lines) = mpsc::unbounded_channel();
        let lines = Mutex::new(Some(lines));
        let (client, journal) = testing::client(move |asked| match asked.is_watch() {
            true => lines.lock().unwrap().take().map_or(Says::Nothing, Says::Lines),
            false => list(7, &[], None),
        });
        let watches = Watches::start(&client, &[nodes()]);
        say.send(event("BOOKMARK", json!({"metadata": {"resourceVersion": "33"}}))).unwrap();
        drop(say);
        until(|| journal.all().iter().any(|asked| asked.query.contains("resourceVersion=33"))).await;
        assert_eq!(journal.all().iter().filter(|asked| !asked.is_watch()).count(), 1, "nothing is listed again");
        drop(watches);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_had() {
        for (name, code, kind, ready, words) in [
            ("an API that is not there", 404, Kind::DeviceClass, true, "are not there, so pods with resource claims"),
            ("what may not be seen", 403, Kind::CSINode, true, "may not be read, so pods with volumes"),
            ("nodes, which must be seen", 403, Kind::Node, false, "code 403"),
            ("a server that does not work", 500, Kind::DeviceClass, false, "code 500"),
        ] {
            let (client, journal) = testing::client(move |_| Says::Fails(code));
            let resources = crate::resources::of_observation();
            let resource = resources.into_iter().find(|resource| resource.kind == kind).unwrap();
            let watches = Watches::start(&client, &[resource]);
            until(|| journal.count("GET") >= 1 && !watches.shared.troubles().is_empty()).await;
            assert_eq!(watches.shared.is_ready(), ready, "{name}");
            let troubles = watches.shared.troubles().join("; ");
            assert!(troubles.contains(words), "{name}: {troubles}");
            until(|| journal.count("GET") >= 3).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_older_version_is_taken_where_the_newest_is_not_there() {
        let slice = |name: &str, version: u32| {
            json!({
                "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()},
                "spec": {
                    "driver": "gpu.example.com", "nodeName": "a",
                    "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "gpu-0", "basic": {"attributes": {"model": {"string": "t4"}}}}],
                },
            })
        };
        let (say, lines) = mpsc::unbounded_channel();
        let lines = Mutex::new(Some(lines));
        let (client, journal) =
            testing::client(move |asked| match (asked.path.contains("/v1beta1/"), asked.is_watch()) {
                (false, _) => Says::Fails(404),
                (true, true) => lines.lock().unwrap().take().map_or(Says::Nothing, Says::Lines),
                (true, false) => list(7, &[slice("listed", 7)], None),
            });
        let resources = crate::resources::of_observation();
        let slices = resources.into_iter().find(|resource| resource.kind == Kind::ResourceSlice).unwrap();
        let watches = Watches::start(&client, &[slices]);
        watches.shared.ready().await;
        let mut watched = slice("watched", 8);
        watched["apiVersion"] = json!("resource.k8s.io/v1beta1");
        watched["kind"] = json!("ResourceSlice");
        say.send(event("ADDED", watched)).unwrap();
        let attributes = || {
            let mut mirror = watches.shared.mirror();
            let slices = &mirror.in_order().devices.slices;
            slices.iter().flat_map(|slice| &slice.devices).filter(|device| !device.attributes.is_empty()).count()
        };
        until(|| attributes() == 2).await;
        assert_eq!(watches.shared.troubles(), Vec::<String>::new());
        let paths: Vec<String> = journal.all().into_iter().map(|asked| asked.path).collect();
        let plural = |version: &str| format!("/apis/resource.k8s.io/{version}/resourceslices");
        assert_eq!(paths, ["v1", "v1beta2", "v1beta1", "v1beta1"].map(plural));
    }

    #[test]
    fn an_object_says_its_version() {
        for (text, expected) in
            [("{}", r#"{"apiVersion":"v"}"#), (r#" {"kind":"K"}"#, r#"{"apiVersion":"v","kind":"K"}"#)]
        {
            assert_eq!(with_version(text, "v"), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_comes_back_is_seen_again() {
        let works = Arc::new(Mutex::new(true));
        let flag = works.clone();
        let (client, _) = testing::client(move |asked| match (*flag.lock().unwrap(), asked.is_watch()) {
            (false, _) => Says::Fails(503),
            // It ends at once.
            (true, true) => Says::Lines(mpsc::unbounded_channel().1),
            (true, false) => list(7, &[node("a", 1, json!(null))], None),
        });
        let watches = Watches::start(&client, &[nodes()]);
        watches.shared.ready().await;
        *works.lock().unwrap() = false;
        until(|| watches.shared.stale(Duration::from_secs(60)).is_some()).await;
        assert_eq!(names(&watches), ["a"], "what was seen is not forgotten");
        *works.lock().unwrap() = true;
        until(|| watches.shared.stale(Duration::ZERO).is_none()).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_falls_silent_is_begun_again() {
        let (client, journal) = testing::client(|asked| match asked.is_watch() {
            true => {
                let (say, lines) = mpsc::unbounded_channel();
                std::mem::forget(say);
                Says::Lines(lines)
            }
            false => list(7, &[], None),
        });
        let _watches = Watches::start(&client, &[nodes()]);
        until(|| journal.all().iter().filter(|asked| asked.is_watch()).count() >= 2).await;
    }
}
