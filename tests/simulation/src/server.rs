//! The API server, the lease and the disk of the process, with the faults of the moment.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_core::{Memory, saved};
use plimsoll_driver::{Api, Store, lock};
use plimsoll_model::{Cluster, Pod};
use plimsoll_sim::World;

use crate::faults::Faults;
use crate::violation::Invariant;

/// The API server.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) faults: Faults,
}

impl Server {
    /// Whether a write is let through.
    fn admits(&self) -> Result<(), String> {
        let mut state = self.faults.lock();
        state.calls.api += 1;
        if state.lease_lost() {
            state.found(Invariant::NoWriteWithoutLease, "a write to the API server".to_owned());
        }
        if state.api() { Err("the object has been modified".to_owned()) } else { Ok(()) }
    }
}

impl Api for Server {
    fn with<T>(&self, look: impl FnOnce(&mut Cluster) -> T) -> T {
        look(&mut lock(&self.world).cluster)
    }

    fn fence(&self) -> Result<(), String> {
        if self.faults.lock().lease_lost() { Err("the lease is lost".to_owned()) } else { Ok(()) }
    }

    async fn taint(&self, node: &str, cordon: bool) -> Result<(), String> {
        self.faults.step().await;
        let meanwhile = self.faults.lock().meanwhile.take();
        if let Some((workload, more)) = meanwhile {
            let mut world = lock(&self.world);
            let found = world.workloads.get(workload).map(|found| (found.name.clone(), found.replicas));
            if let Some((name, replicas)) = found {
                world.scale(&name, replicas + more);
                world.settle();
            }
        }
        self.admits()?;
        lock(&self.world).taint(node, cordon)?;
        self.faults.step().await;
        Ok(())
    }

    async fn untaint(&self, node: &str, uncordon: bool) -> Result<(), String> {
        self.faults.step().await;
        self.admits()?;
        lock(&self.world).untaint(node, uncordon)?;
        self.faults.step().await;
        Ok(())
    }

    async fn evict(&self, _: &Cluster, pod: &Pod, grace: Duration) -> Result<(), String> {
        self.faults.step().await;
        self.admits()?;
        if self.faults.lock().evictions() {
            return Err("too many requests".to_owned());
        }
        lock(&self.world).evict(&pod.uid, grace)
    }
}

/// What outlives the process.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    pub(crate) bytes: Arc<Mutex<Vec<u8>>>,
    pub(crate) faults: Faults,
}

impl Disk {
    /// The memory of the process that was; an empty one if it never saved any.
    ///
    /// # Errors
    ///
    /// If what was saved cannot be read.
    pub(crate) fn restore(&self) -> Result<Memory, saved::SaveError> {
        let bytes = lock(&self.bytes);
        if bytes.is_empty() { Ok(Memory::default()) } else { saved::restore(&bytes) }
    }
}

impl Store for Disk {
    async fn save(&mut self, memory: &Memory) -> Result<(), String> {
        self.faults.step().await;
        let (bytes, _) = saved::save(memory).map_err(|error| error.to_string())?;
        *lock(&self.bytes) = bytes;
        self.faults.step().await;
        Ok(())
    }
}
