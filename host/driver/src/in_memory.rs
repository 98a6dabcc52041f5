//! The in-memory cluster as a cluster that the loop can be driven against.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::observation::CloudView;
use plimsoll_model::{Cluster, Pod};
use plimsoll_sim::World;
use plimsoll_sim::joins::Joins;

use crate::acting::Api;

/// What the lock holds; what another thread dropped in the middle is as good as any.
pub fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A world with a cloud of its own.
impl Api for Mutex<World> {
    fn with<T>(&self, look: impl FnOnce(&mut Cluster) -> T) -> T {
        look(&mut lock(self).cluster)
    }

    async fn taint(&self, node: &str, cordon: bool) -> Result<(), String> {
        lock(self).taint(node, cordon)
    }

    async fn untaint(&self, node: &str, uncordon: bool) -> Result<(), String> {
        lock(self).untaint(node, uncordon)
    }

    async fn evict(&self, _: &Cluster, pod: &Pod, grace: Duration) -> Result<(), String> {
        lock(self).evict(&pod.uid, grace)
    }
}

/// A world in front of another cloud: its nodes are the machines that the cloud lists.
#[derive(Debug)]
pub struct Joining {
    /// The world.
    pub world: Mutex<World>,
    /// How machines become nodes.
    pub joins: Mutex<Joins>,
}

impl Api for Joining {
    fn with<T>(&self, look: impl FnOnce(&mut Cluster) -> T) -> T {
        self.world.with(look)
    }

    fn follow(&self, clouds: CloudView<'_>) {
        let mut world = lock(&self.world);
        lock(&self.joins).follow(&mut world, &clouds.snapshot.groups, clouds.templates);
        world.settle();
    }

    async fn taint(&self, node: &str, cordon: bool) -> Result<(), String> {
        self.world.taint(node, cordon).await
    }

    async fn untaint(&self, node: &str, uncordon: bool) -> Result<(), String> {
        self.world.untaint(node, uncordon).await
    }

    async fn evict(&self, cluster: &Cluster, pod: &Pod, grace: Duration) -> Result<(), String> {
        self.world.evict(cluster, pod, grace).await
    }
}
