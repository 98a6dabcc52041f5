//! Answers the core: expanders and clouds are components, the API server is whatever the driver has.

use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_core::ranking::{RankRequest, Ranking};
use plimsoll_core::{Action, Outcome};
use plimsoll_model::Cluster;
use plimsoll_plugins::Library;
use plimsoll_sim::World;

use crate::clouds::Clouds;
use crate::drive::Answers;

/// What the loop writes to the API server. Errors are in words.
pub(crate) trait Api {
    /// Marks a node as being deleted, and cordons it if asked to.
    fn taint(&self, node: &str, cordon: bool) -> Result<(), String>;
    /// Takes the mark off again.
    fn untaint(&self, node: &str) -> Result<(), String>;
    /// Evicts a pod by its UID. A refusal is no failure: it is tried again in the next loop.
    fn evict(&self, uid: &str);
}

/// The in-memory cluster.
impl Api for Mutex<World> {
    fn taint(&self, node: &str, cordon: bool) -> Result<(), String> {
        lock(self).taint(node, cordon)
    }

    fn untaint(&self, node: &str) -> Result<(), String> {
        lock(self).untaint(node)
    }

    fn evict(&self, uid: &str) {
        // The world tells of a refusal itself.
        let _ = lock(self).evict(uid);
    }
}

/// The world; one that another thread dropped in the middle is as good as any.
pub(crate) fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everybody who answers during one loop.
pub(crate) struct Acting<'a, A> {
    pub(crate) api: &'a A,
    pub(crate) clouds: &'a Clouds,
    pub(crate) library: &'a Library,
    /// What the loop sees; actions refer to it by position.
    pub(crate) cluster: &'a Cluster,
}

impl<A> Acting<'_, A> {
    fn node(&self, index: usize) -> &str {
        self.cluster.nodes.get(index).map(|node| self.cluster.text(node.name)).unwrap_or_default()
    }
}

impl<A: Api> Answers for Acting<'_, A> {
    async fn rank(&mut self, expander: &str, request: &RankRequest) -> Ranking {
        self.library.rank(expander, request).await
    }

    async fn act(&mut self, action: &Action) -> Outcome {
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
            Action::Taint { node, cordon } => Outcome::Api(self.api.taint(self.node(*node), *cordon)),
            Action::Untaint { node } => Outcome::Api(self.api.untaint(self.node(*node))),
            Action::Evict { pods, .. } => {
                let uids = pods.iter().filter_map(|&pod| self.cluster.pods.get(pod)).map(|pod| &pod.uid);
                uids.for_each(|uid| self.api.evict(uid));
                Outcome::Api(Ok(()))
            }
        }
    }
}
