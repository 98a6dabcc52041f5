//! The cluster as the driver sees it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use plimsoll_driver::Api;
use plimsoll_model::{Cluster, Pod};

use crate::client::Pace;
use crate::events::Recorder;
use crate::resources::{self, Resource};
use crate::watches::{Shared, Watches};

/// Nodes and pods that were last seen longer ago than this are no ground to act on.
const STALE_AFTER: Duration = Duration::from_secs(60);
/// Names and pod specs of objects that are gone are kept until there are so many more than objects.
const GARBAGE_SHARE: usize = 8;
const GARBAGE_FLOOR: usize = 200_000;

/// Says whether this process may write, and why not.
pub type Fence = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// How a live cluster is served.
#[derive(Clone)]
pub struct LiveOptions {
    /// Namespace of the autoscaler's own objects.
    pub namespace: String,
    /// Name of the ConfigMap with the priorities of node groups, if the chain of expanders asks for it.
    pub priorities: Option<&'static str>,
    /// How fast writes may follow each other.
    pub pace: Arc<Pace>,
    /// Whether this process may write.
    pub fence: Fence,
    /// Where it is told what is done.
    pub recorder: Recorder,
}

/// A live cluster.
pub struct Live {
    pub(crate) client: Client,
    pub(crate) options: LiveOptions,
    resources: Vec<Resource>,
    watches: Mutex<Watches>,
    /// Watches that will take the place of those above once they have seen everything.
    successor: Mutex<Option<Watches>>,
}

impl Live {
    /// Begins to watch the cluster.
    pub fn start(client: Client, options: LiveOptions) -> Self {
        let mut resources = resources::of_observation();
        if let Some(name) = options.priorities {
            let without = "the priority expander has no priorities";
            resources.insert(0, resources::config_map(&options.namespace, name, without));
        }
        let watches = Mutex::new(Watches::start(&client, &resources));
        Self { client, options, resources, watches, successor: Mutex::default() }
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner).shared.clone()
    }

    /// Waits until everything was seen once.
    pub async fn ready(&self) {
        self.shared().ready().await;
    }

    /// Kinds that are not seen yet, with the reason if there is one.
    pub fn waiting_for(&self) -> Vec<String> {
        self.shared().waiting_for()
    }

    /// What is wrong with what is seen, for people.
    pub fn troubles(&self) -> Vec<String> {
        self.shared().troubles()
    }

    /// Why what is seen is too old to act on, if it is.
    pub fn stale(&self) -> Option<String> {
        self.shared().stale(STALE_AFTER)
    }

    /// Waits until the scheduler finds that a pod fits nowhere. One signal from before is kept.
    pub async fn unschedulable(&self) {
        self.shared().unschedulable.notified().await;
    }

    /// Waits until a watch ends, which is the end of the observation.
    pub async fn broken(&self) {
        self.shared().broken.notified().await;
    }

    /// Names and pod specs of objects that are gone stay in the tables. When these are mostly of such objects, everything
    /// is read anew beside, and takes the place of the old once it is complete. Says whether that happened just now: names
    /// then have other numbers.
    pub fn renew(&self) -> bool {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut successor = self.successor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = successor.take_if(|successor| successor.shared.is_ready()) {
            *watches = ready;
            return true;
        }
        let (entries, objects) = watches.shared.mirror().table_sizes();
        if successor.is_none() && entries > GARBAGE_FLOOR + GARBAGE_SHARE * objects {
            tracing::info!(
                entries,
                objects,
                "most names and pod specs are of objects that are gone; reading everything anew"
            );
            *successor = Some(Watches::start(&self.client, &self.resources));
        }
        false
    }
}

impl Api for Live {
    fn with<T>(&self, look: impl FnOnce(&mut Cluster) -> T) -> T {
        look(self.shared().mirror().cluster_mut())
    }

    fn observe<T>(&self, look: impl FnOnce(&mut Cluster) -> T) -> (T, Arc<Cluster>) {
        let shared = self.shared();
        let mut mirror = shared.mirror();
        let cluster = mirror.in_order();
        let seen = look(Arc::make_mut(cluster));
        (seen, Arc::clone(cluster))
    }

    fn fence(&self) -> Result<(), String> {
        (self.options.fence)()
    }

    async fn taint(&self, node: &str, cordon: bool) -> Result<(), String> {
        self.mark(node, cordon).await.map_err(|error| error.to_string())
    }

    async fn untaint(&self, node: &str, uncordon: bool) -> Result<(), String> {
        self.unmark(node, uncordon).await.map_err(|error| error.to_string())
    }

    async fn evict(&self, cluster: &Cluster, pod: &Pod, grace: Duration) -> Result<(), String> {
        self.evict_pod(cluster, pod, grace).await.map_err(|error| error.to_string())
    }
}
