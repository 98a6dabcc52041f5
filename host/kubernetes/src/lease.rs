//! One leader: a Lease that all replicas, the peer's among them, compete for, by client-go's rules.
//!
//! A holder renews the Lease every retry period. Whoever finds one that did not change for its whole duration, by the own
//! clock, takes it. The holder counts as leader only for the renew deadline after it began its last good renewal, by a
//! monotonic clock, and that is shorter than the duration: it stops before anybody else begins.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::core::Request;
use kube::core::params::{GetParams, PostParams};
use kube::{Client, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout};

use crate::client::in_words;

/// How the leader is chosen: the peer's `leader-elect` flags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseOptions {
    /// `--namespace`.
    pub namespace: String,
    /// `leader-elect-resource-name`.
    pub name: String,
    /// Who this process is.
    pub identity: String,
    /// `leader-elect-lease-duration`.
    pub duration: Duration,
    /// `leader-elect-renew-deadline`.
    pub renew_deadline: Duration,
    /// `leader-elect-retry-period`.
    pub retry_period: Duration,
}

impl LeaseOptions {
    /// Checks what client-go checks.
    ///
    /// # Errors
    ///
    /// Which flag is wrong, and why.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.duration <= self.renew_deadline {
            let problem = format!("must be longer than leader-elect-renew-deadline ({:?})", self.renew_deadline);
            return Err(("leader-elect-lease-duration", problem));
        }
        if self.renew_deadline <= self.retry_period.mul_f64(1.2) {
            let problem = format!("must be longer than 1.2 times leader-elect-retry-period ({:?})", self.retry_period);
            return Err(("leader-elect-renew-deadline", problem));
        }
        if self.duration < Duration::from_secs(1) || self.retry_period.is_zero() {
            return Err(("leader-elect-retry-period", "these times must be a second and more".to_owned()));
        }
        Ok(())
    }
}

/// A Lease as the API server has it. What is not named here is kept as it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lease {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    resource_version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    holder_identity: Option<String>,
    #[serde(default)]
    lease_duration_seconds: Option<u64>,
    #[serde(default)]
    acquire_time: Option<String>,
    #[serde(default)]
    renew_time: Option<String>,
    #[serde(default)]
    lease_transitions: Option<u64>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Why the Lease is not held.
#[derive(Debug, thiserror::Error)]
enum Missed {
    /// Somebody else has it.
    #[error("{0} has it")]
    Held(String),
    /// The API server could not be asked.
    #[error("{0}")]
    Failed(String),
}

impl From<Error> for Missed {
    fn from(error: Error) -> Self {
        Self::Failed(in_words(&error))
    }
}

/// The leadership of this process, as its writes ask for it.
#[derive(Clone, Debug, Default)]
pub struct Leadership(Arc<Mutex<Standing>>);

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// Until when this process is the leader.
    until: Option<Instant>,
    /// Whether it gives the leadership up.
    ending: bool,
}

impl Leadership {
    /// Whether this process is the leader at this moment.
    ///
    /// # Errors
    ///
    /// Why it is not.
    pub fn check(&self) -> Result<(), String> {
        let standing = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match standing.until {
            Some(until) if Instant::now() < until => Ok(()),
            Some(_) => Err("the lease was not renewed in time, so another process may be the leader".to_owned()),
            None if standing.ending => Err("the lease was given back".to_owned()),
            None => Err("this process is not the leader".to_owned()),
        }
    }

    fn set(&self, until: Option<Instant>) {
        let mut standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        standing.until = if standing.ending { None } else { until };
    }

    fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Standing { until: None, ending: true };
    }
}

/// Somebody who competes for the Lease.
pub struct Candidate {
    client: Client,
    options: LeaseOptions,
    leadership: Leadership,
    /// The Lease as it was last seen, and since when it is like that.
    seen: Option<(Lease, Instant)>,
}

impl Candidate {
    /// Somebody who does not have it yet.
    pub fn new(client: Client, options: LeaseOptions) -> Self {
        Self { client, options, leadership: Leadership::default(), seen: None }
    }

    /// What writes ask.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// UID of the Lease, once it was seen.
    pub fn uid(&self) -> &str {
        self.seen.as_ref().map_or("", |(lease, _)| &lease.metadata.uid)
    }

    /// Waits until this process is the leader.
    pub async fn acquire(&mut self) {
        let mut said = String::new();
        loop {
            match self.attempt().await {
                Ok(()) => return,
                Err(missed) => {
                    let why = missed.to_string();
                    if why != said {
                        tracing::info!(lease = self.options.name, "waiting to be the leader: {why}");
                        said = why;
                    }
                }
            }
            sleep(self.options.retry_period.mul_f64(1.0 + 0.2 * fastrand::f64())).await;
        }
    }

    /// Renews until that fails for the whole deadline; says why it failed.
    pub async fn hold(&mut self) -> String {
        let mut good = Instant::now();
        loop {
            sleep(self.options.retry_period).await;
            let left = self.options.renew_deadline.saturating_sub(good.elapsed());
            let why = match timeout(left, self.attempt()).await {
                Ok(Ok(())) => {
                    good = Instant::now();
                    continue;
                }
                // Nobody comes back from this.
                Ok(Err(missed @ Missed::Held(_))) => {
                    self.leadership.set(None);
                    return missed.to_string();
                }
                Ok(Err(missed)) => missed.to_string(),
                Err(_) => "the API server did not answer in time".to_owned(),
            };
            tracing::warn!(lease = self.options.name, "could not be renewed: {why}");
            if good.elapsed() >= self.options.renew_deadline {
                self.leadership.set(None);
                return why;
            }
        }
    }

    /// Stops to be the leader, and lets another one begin at once.
    pub async fn release(&mut self) {
        let held = self.leadership.check().is_ok();
        self.leadership.end();
        let Some((mut lease, _)) = self.seen.clone().filter(|_| held) else { return };
        let now = micro_time();
        lease.spec = Spec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            ..lease.spec
        };
        match timeout(self.options.retry_period, self.replace(&lease)).await {
            Ok(Ok(_)) => tracing::info!(lease = self.options.name, "given back"),
            Ok(Err(error)) => tracing::warn!(lease = self.options.name, "not given back; it runs out: {error}"),
            Err(_) => tracing::warn!(lease = self.options.name, "not given back; it runs out: no answer in time"),
        }
    }

    /// Takes or renews the Lease, if that may be.
    async fn attempt(&mut self) -> Result<(), Missed> {
        let begun = Instant::now();
        let now = micro_time();
        let held = self.seen.as_ref().filter(|(lease, _)| self.is_own(lease) && self.leadership.check().is_ok());
        // As long as nobody else writes, the last answer is all there is to know.
        if let Some((lease, _)) = held {
            let mut renewed = lease.clone();
            renewed.spec.renew_time = Some(now.clone());
            if let Ok(lease) = self.replace(&renewed).await {
                return self.won(lease, begun);
            }
        }
        let Some(lease) = self.read().await? else {
            let lease = self.create(&now).await?;
            return self.won(lease, begun);
        };
        match &self.seen {
            Some((seen, _)) if seen.spec == lease.spec => {
                let since = self.seen.take().map_or(begun, |(_, since)| since);
                self.seen = Some((lease.clone(), since));
            }
            _ => self.seen = Some((lease.clone(), Instant::now())),
        }
        let own = self.is_own(&lease);
        let holder = lease.spec.holder_identity.clone().unwrap_or_default();
        if !own && !holder.is_empty() {
            let lasts = Duration::from_secs(lease.spec.lease_duration_seconds.unwrap_or(0)).max(self.options.duration);
            let since = self.seen.as_ref().map_or(begun, |(_, since)| *since);
            if since.elapsed() < lasts {
                return Err(Missed::Held(holder));
            }
        }
        let mut taken = lease;
        let spec = &mut taken.spec;
        if !own {
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0) + 1);
        }
        spec.holder_identity = Some(self.options.identity.clone());
        spec.lease_duration_seconds = Some(self.options.duration.as_secs());
        spec.renew_time = Some(now);
        let lease = self.replace(&taken).await?;
        self.won(lease, begun)
    }

    fn is_own(&self, lease: &Lease) -> bool {
        lease.spec.holder_identity.as_deref() == Some(self.options.identity.as_str())
    }

    fn won(&mut self, lease: Lease, begun: Instant) -> Result<(), Missed> {
        self.seen = Some((lease, begun));
        self.leadership.set(Some(begun + self.options.renew_deadline));
        Ok(())
    }

    fn request(&self) -> Request {
        Request::new(format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.options.namespace))
    }

    async fn read(&self) -> Result<Option<Lease>, Missed> {
        let request = self.request().get(&self.options.name, &GetParams::default()).map_err(unsendable)?;
        match self.send(request).await {
            Ok(lease) => Ok(Some(lease)),
            Err(Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn create(&self, now: &str) -> Result<Lease, Missed> {
        let lease = serde_json::json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.options.name, "namespace": self.options.namespace},
            "spec": {
                "holderIdentity": self.options.identity,
                "leaseDurationSeconds": self.options.duration.as_secs(),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        });
        let body = lease.to_string().into_bytes();
        let request = self.request().create(&PostParams::default(), body).map_err(unsendable)?;
        Ok(self.send(request).await?)
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, Missed> {
        let body = serde_json::to_vec(lease).map_err(|error| Missed::Failed(error.to_string()))?;
        let request = self.request().replace(&self.options.name, &PostParams::default(), body).map_err(unsendable)?;
        Ok(self.send(request).await?)
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> Result<Lease, Error> {
        // One request must not eat the whole deadline.
        let patience = self.options.renew_deadline.mul_f64(0.5);
        let answer = timeout(patience, self.client.request(request)).await;
        answer.unwrap_or_else(|_| Err(Error::Service("the API server did not answer in time".into())))
    }
}

fn unsendable(error: kube::core::request::Error) -> Missed {
    Missed::Failed(error.to_string())
}

/// Now, as the API server writes it in Leases.
fn micro_time() -> String {
    format!("{:.6}", Timestamp::now())
}

/// Who this process is: the host name, and something that no other process on this host has.
pub fn identity() -> String {
    format!("{}_{:016x}", host_name(), fastrand::u64(..))
}

/// Name of the host, which in a cluster is the pod's.
pub fn host_name() -> String {
    let given = std::env::var("HOSTNAME").unwrap_or_default();
    let name = match given.trim() {
        "" => std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default(),
        given => given.to_owned(),
    };
    match name.trim() {
        "" => "plimsoll".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{self, Says};

    const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

    fn options(identity: &str) -> LeaseOptions {
        LeaseOptions {
            namespace: "kube-system".to_owned(),
            name: "cluster-autoscaler".to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// An API server with one Lease.
    #[derive(Clone, Default)]
    struct Server(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        lease: Option<Value>,
        version: u64,
        down: bool,
    }

    impl Server {
        fn client(&self) -> Client {
            let state = self.0.clone();
            let (client, _) = testing::client(move |asked| {
                let state = &mut *state.lock().unwrap();
                if state.down {
                    return Says::Fails(503);
                }
                match (asked.method.as_str(), asked.path == PATH) {
                    ("GET", false) => state.lease.clone().map_or(Says::Fails(404), Says::Object),
                    ("POST", true) if state.lease.is_some() => Says::Fails(409),
                    ("PUT", false) if state.lease.is_none() => Says::Fails(404),
                    ("PUT", false)
                        if asked.body["metadata"]["resourceVersion"].as_str()
                            != Some(state.version.to_string().as_str()) =>
                    {
                        Says::Fails(409)
                    }
                    ("POST", true) | ("PUT", false) => {
                        state.version += 1;
                        let mut lease = asked.body.clone();
                        lease["metadata"]["resourceVersion"] = state.version.to_string().into();
                        lease["metadata"]["uid"] = "lease-uid".into();
                        state.lease = Some(lease.clone());
                        Says::Object(lease)
                    }
                    other => panic!("{other:?}"),
                }
            });
            client
        }

        fn spec(&self) -> Value {
            self.0.lock().unwrap().lease.as_ref().unwrap()["spec"].clone()
        }

        fn set_down(&self, down: bool) {
            self.0.lock().unwrap().down = down;
        }

        fn candidate(&self, identity: &str) -> Candidate {
            Candidate::new(self.client(), options(identity))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_one_makes_it_and_keeps_it() {
        let server = Server::default();
        let mut one = server.candidate("one");
        assert!(one.leadership().check().is_err());
        one.acquire().await;
        assert!(one.leadership().check().is_ok());
        assert_eq!(one.uid(), "lease-uid");
        let first = server.spec();
        assert_eq!((&first["holderIdentity"], &first["leaseDurationSeconds"]), (&json!("one"), &json!(15)));
        assert!(timeout(Duration::from_secs(60), one.hold()).await.is_err(), "it holds");
        assert!(one.leadership().check().is_ok());
        assert_eq!(server.spec()["acquireTime"], first["acquireTime"]);
        assert_eq!(server.spec()["leaseTransitions"], json!(0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_one_waits_until_the_first_has_been_silent_for_the_whole_duration() {
        let server = Server::default();
        let (mut one, mut two) = (server.candidate("one"), server.candidate("two"));
        one.acquire().await;
        assert!(timeout(Duration::from_secs(14), two.acquire()).await.is_err());
        assert!(one.leadership().check().is_err(), "the first stops of itself, before");
        two.acquire().await;
        assert!(two.leadership().check().is_ok());
        assert_eq!((&server.spec()["holderIdentity"], &server.spec()["leaseTransitions"]), (&json!("two"), &json!(1)));
        let why = one.hold().await;
        assert!(why.contains("two has it"), "{why}");
    }

    #[tokio::test(start_paused = true)]
    async fn clocks_of_others_do_not_matter() {
        let server = Server::default();
        server.candidate("one").acquire().await;
        server.0.lock().unwrap().lease.as_mut().unwrap()["spec"]["renewTime"] = json!("1999-01-01T00:00:00.000000Z");
        let begun = Instant::now();
        server.candidate("two").acquire().await;
        assert!(begun.elapsed() >= Duration::from_secs(15), "it is watched for its whole duration");
    }

    #[tokio::test(start_paused = true)]
    async fn leadership_ends_with_the_renewals() {
        let server = Server::default();
        let mut one = server.candidate("one");
        one.acquire().await;
        let leadership = one.leadership();
        server.set_down(true);
        let begun = Instant::now();
        let held = tokio::spawn(async move { one.hold().await });
        sleep(Duration::from_millis(9_900)).await;
        assert!(leadership.check().is_ok());
        sleep(Duration::from_millis(200)).await;
        assert!(leadership.check().is_err());
        held.await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(15), "before anybody else may take it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_failure_does_no_harm() {
        let server = Server::default();
        let mut one = server.candidate("one");
        one.acquire().await;
        let leadership = one.leadership();
        let held = tokio::spawn(async move { one.hold().await });
        server.set_down(true);
        sleep(Duration::from_secs(7)).await;
        server.set_down(false);
        sleep(Duration::from_secs(60)).await;
        assert!(leadership.check().is_ok() && !held.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_given_back_is_taken_at_once() {
        let server = Server::default();
        let mut one = server.candidate("one");
        one.acquire().await;
        one.release().await;
        assert!(one.leadership().check().unwrap_err().contains("given back"));
        let spec = server.spec();
        assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&json!(""), &json!(1)));
        let begun = Instant::now();
        server.candidate("two").acquire().await;
        assert!(begun.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn times_that_contradict_each_other() {
        let seconds = Duration::from_secs;
        for (duration, deadline, retry, wrong) in [
            (15, 10, 2, None),
            (10, 10, 2, Some("leader-elect-lease-duration")),
            (15, 2, 2, Some("leader-elect-renew-deadline")),
            (15, 10, 0, Some("leader-elect-retry-period")),
        ] {
            let (duration, renew_deadline, retry_period) = (seconds(duration), seconds(deadline), seconds(retry));
            let options = LeaseOptions { duration, renew_deadline, retry_period, ..options("one") };
            assert_eq!(options.check().err().map(|(flag, _)| flag), wrong);
        }
    }

    #[test]
    fn identities_differ() {
        assert_ne!(identity(), identity());
        assert!(identity().starts_with(&host_name()));
    }
}
