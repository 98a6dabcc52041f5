//! The API server, the lease and the disk of the process, with the faults of the moment.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_core::{Memory, saved};
use plimsoll_driver::{Api, Store, lock};
use plimsoll_model::{Cluster, Pod};
use plimsoll_sim::World;

use crate::faults::Faults;
use crate::scenario::{ApiFault, Moment};
use crate::violation::Invariant;

/// The API server.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) faults: Faults,
}

impl Server {
    /// Whether a write is let through.
    fn admits(&self) -> Result<Option<ApiFault>, String> {
        let mut state = self.faults.lock();
        state.calls.api += 1;
        if state.lease_lost() {
            state.found(Invariant::NoWriteWithoutLease, "a write to the API server".to_owned());
        }
        match state.api() {
            Some(ApiFault::Conflict | ApiFault::Flickers) => Err("the object has been modified".to_owned()),
            fault => Ok(fault),
        }
    }

    /// What the caller hears of a write that took effect.
    fn heard(fault: Option<ApiFault>) -> Result<(), String> {
        match fault {
            Some(ApiFault::LostAfter) => Err("the connection was lost".to_owned()),
            _ => Ok(()),
        }
    }

    /// Somebody's pod lands on a marked node, if it is the moment for it.
    fn squeeze(&self, node: &str, now: Moment) {
        let squeezed = self.faults.lock().squeeze.take_if(|(_, at)| *at == now);
        if let Some((workload, _)) = squeezed {
            let mut world = lock(&self.world);
            let name = world.workloads.get(workload).map(|found| found.name.clone());
            world.squeeze_in(&name.unwrap_or_default(), node);
        }
    }

    fn node_of(&self, uid: &str) -> String {
        let world = lock(&self.world);
        let pod = world.cluster.pods.iter().find(|pod| *pod.uid == *uid);
        pod.and_then(|pod| pod.node).map(|node| world.cluster.text(node).to_owned()).unwrap_or_default()
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
        self.faults.step(Moment::BeforeMark).await;
        self.squeeze(node, Moment::BeforeMark);
        self.faults.lock().calls.marks += 1;
        let meanwhile = self.faults.lock().meanwhile.take();
        if let Some((workload, more)) = meanwhile {
            let mut world = lock(&self.world);
            let found = world.workloads.get(workload).map(|found| (found.name.clone(), found.replicas));
            if let Some((name, replicas)) = found {
                world.scale(&name, replicas + more);
                world.settle();
            }
        }
        let fault = self.admits()?;
        lock(&self.world).taint(node, cordon)?;
        self.squeeze(node, Moment::AfterMark);
        self.faults.step(Moment::AfterMark).await;
        Self::heard(fault)
    }

    async fn untaint(&self, node: &str, uncordon: bool) -> Result<(), String> {
        self.faults.step(Moment::BeforeUnmark).await;
        self.faults.lock().calls.marks += 1;
        let fault = self.admits()?;
        lock(&self.world).untaint(node, uncordon)?;
        self.faults.step(Moment::AfterUnmark).await;
        Self::heard(fault)
    }

    async fn evict(&self, _: &Cluster, pod: &Pod, grace: Duration) -> Result<(), String> {
        self.faults.step(Moment::BeforeEviction).await;
        let node = self.node_of(&pod.uid);
        self.squeeze(&node, Moment::BeforeEviction);
        self.admits()?;
        if self.faults.lock().evictions() {
            return Err("too many requests".to_owned());
        }
        let evicted = lock(&self.world).evict(&pod.uid, grace);
        self.squeeze(&node, Moment::AfterEviction);
        self.faults.step(Moment::AfterEviction).await;
        evicted
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
        self.faults.step(Moment::BeforeSave).await;
        let (bytes, _) = saved::save(memory).map_err(|error| error.to_string())?;
        *lock(&self.bytes) = bytes;
        self.faults.step(Moment::AfterSave).await;
        Ok(())
    }
}
