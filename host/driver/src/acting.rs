//! Answers the core: expanders and clouds are components, the API server is whatever the driver has.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::observation::CloudView;
use plimsoll_core::ranking::{RankRequest, Ranking};
use plimsoll_core::{Action, Memory, Outcome};
use plimsoll_model::{Cluster, Pod};
use plimsoll_plugins::Library;

use crate::clouds::Clouds;
use crate::measured::{Evicted, Write};
use crate::steps::Answers;

/// A cluster: what is there, and what the loop writes to its API server. Errors are in words.
pub trait Api: Sync {
    /// Looks at the cluster as it is now. Names and templates that the loop needs may be added to its tables, so that they
    /// mean the same next time.
    fn with<T>(&self, look: impl FnOnce(&mut Cluster) -> T) -> T;
    /// Looks at the cluster, and gives it out as it then is for the length of one loop, whatever happens to it meanwhile.
    fn observe<T>(&self, look: impl FnOnce(&mut Cluster) -> T) -> (T, Arc<Cluster>) {
        self.with(|cluster| {
            let seen = look(cluster);
            (seen, Arc::new(cluster.clone()))
        })
    }
    /// The clouds were read: a cluster whose nodes follow from them moves on.
    fn follow(&self, clouds: CloudView<'_>) {
        let _ = clouds;
    }
    /// Whether this process may still write, checked before every write.
    ///
    /// # Errors
    ///
    /// Why it may not, such as a lost lease.
    fn fence(&self) -> Result<(), String> {
        Ok(())
    }
    /// Marks a node as being deleted, and cordons it if asked to.
    fn taint(&self, node: &str, cordon: bool) -> impl Future<Output = Result<(), String>> + Send;
    /// Takes the mark off again, and the cordon if asked to.
    fn untaint(&self, node: &str, uncordon: bool) -> impl Future<Output = Result<(), String>> + Send;
    /// Evicts a pod of the cluster that the loop saw, with so much time to end. A refusal, with its reason, ends nothing: it
    /// is tried again in the next loop.
    fn evict(&self, cluster: &Cluster, pod: &Pod, grace: Duration) -> impl Future<Output = Result<(), String>> + Send;
}

/// Where the memory of the loop outlives the process.
pub trait Store: Send + Sync {
    /// Keeps what must not be forgotten. Called before every write, which is not made if this fails, and at the end of
    /// every loop.
    ///
    /// # Errors
    ///
    /// Why nothing is kept.
    fn save(&mut self, memory: &Memory) -> impl Future<Output = Result<(), String>> + Send;
}

/// Nothing outlives the process.
impl Store for () {
    async fn save(&mut self, _: &Memory) -> Result<(), String> {
        Ok(())
    }
}

/// Everybody who answers during one loop.
pub(crate) struct Acting<'a, A, S> {
    pub(crate) api: &'a A,
    pub(crate) store: &'a mut S,
    pub(crate) clouds: &'a Clouds,
    pub(crate) library: &'a Library,
    /// What the loop sees; actions refer to it by position.
    pub(crate) cluster: &'a Cluster,
    /// What was written so far.
    pub(crate) writes: Vec<Write>,
    /// Why the memory was last not kept.
    pub(crate) unsaved: Option<String>,
}

impl<A: Api, S> Acting<'_, A, S> {
    fn node(&self, index: usize) -> &str {
        self.cluster.nodes.get(index).map(|node| self.cluster.text(node.name)).unwrap_or_default()
    }

    async fn write(&self, action: &Action, evicted: &mut Vec<Evicted>) -> Outcome {
        match action {
            Action::Increase { intent, group, delta, expected_target, reason } => {
                let key = intent.idempotency_key();
                let call = self.clouds.increase(group, *delta, *expected_target, key, reason.clone());
                Outcome::Size(call.await)
            }
            Action::DecreaseTarget { intent, group, delta, expected_target, reason } => {
                let key = intent.idempotency_key();
                let call = self.clouds.decrease(group, *delta, *expected_target, key, reason.clone());
                Outcome::Size(call.await)
            }
            Action::Delete { intent, group, instances, expected_target, min_size, reason } => {
                let key = intent.idempotency_key();
                let instances = instances.clone();
                let call = self.clouds.delete(group, instances, *expected_target, *min_size, key, reason.clone());
                Outcome::Delete(call.await)
            }
            Action::Taint { node, cordon } => Outcome::Api(self.api.taint(self.node(*node), *cordon).await),
            Action::Untaint { node, uncordon } => Outcome::Api(self.api.untaint(self.node(*node), *uncordon).await),
            Action::Evict { pods, .. } => {
                for eviction in pods {
                    let Some(pod) = self.cluster.pods.get(eviction.pod) else { continue };
                    let result = self.api.evict(self.cluster, pod, eviction.grace).await;
                    evicted.push(Evicted { pod: self.cluster.pod_name(pod), result });
                }
                Outcome::Api(Ok(()))
            }
        }
    }
}

impl<A: Api, S: Store> Answers for Acting<'_, A, S> {
    async fn rank(&mut self, expander: &str, request: &RankRequest) -> Ranking {
        self.library.rank(expander, request).await
    }

    async fn act(&mut self, action: &Action) -> Outcome {
        let begun = Instant::now();
        let mut evicted = Vec::new();
        let may_write = match &self.unsaved {
            Some(why) => Err(format!("what is about to be done could not be written down: {why}")),
            None => self.api.fence(),
        };
        let outcome = match may_write {
            Ok(()) => self.write(action, &mut evicted).await,
            Err(why) => Outcome::NotSent(why),
        };
        let node = match action {
            Action::Taint { node, .. } | Action::Untaint { node, .. } | Action::Evict { node, .. } => self.node(*node),
            Action::Increase { .. } | Action::DecreaseTarget { .. } | Action::Delete { .. } => "",
        };
        let (node, took) = (node.to_owned(), begun.elapsed());
        self.writes.push(Write { action: action.clone(), node, outcome: outcome.clone(), evicted, took });
        outcome
    }

    async fn remember(&mut self, memory: &Memory) {
        self.unsaved = self.store.save(memory).await.err();
    }
}
