//! Fake nodes: what kubelets and a cloud controller manager would do, for all machines of a cloud.
//!
//! A machine that runs becomes a Node with a lease that is renewed; pods that are bound to it become Running, follow changes of
//! their resources, and end when they are deleted. When the machine is gone, its Node and what was on it goes too.

mod nodes;
mod pods;

use std::time::Duration;

use kube::Client;
use tokio::task::JoinHandle;

use crate::cloud::FakeCloud;

/// What a node has: `capacity` and `allocatable`.
#[derive(Clone, Debug)]
pub struct Shape {
    /// In millicores.
    pub cpu_milli: u32,
    /// In MiB.
    pub memory_mib: u32,
    /// Pods.
    pub pods: u32,
}

impl Default for Shape {
    /// `ecs.g7.xlarge`, of which 200m and 1 GiB are the system's own.
    fn default() -> Self {
        Self { cpu_milli: 3_800, memory_mib: 15 * 1_024, pods: 110 }
    }
}

/// Kubelets of a cloud's machines; they end when this is dropped.
pub struct Kubelets {
    tasks: Vec<JoinHandle<()>>,
}

impl Kubelets {
    /// Start them. Leases are renewed every `renew`; unless `pods_run`, pods are left alone.
    pub fn start(client: &Client, cloud: &FakeCloud, shape: Shape, renew: Duration, pods_run: bool) -> Self {
        let nodes = nodes::Nodes::new(client.clone(), cloud.clone(), shape, renew);
        let mut tasks = vec![tokio::spawn(nodes.run())];
        if pods_run {
            tasks.push(tokio::spawn(pods::run(client.clone())));
        }
        Self { tasks }
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
