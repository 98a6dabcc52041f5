//! Machines become Nodes, and go.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use super::Shape;
use crate::cloud::{FakeCloud, Wanted};

/// How often the cloud is asked for its machines.
const LOOK: Duration = Duration::from_millis(250);
/// Requests to the API server at a time.
const AT_ONCE: usize = 16;

pub(super) struct Nodes {
    client: Client,
    cloud: FakeCloud,
    shape: Shape,
    renew: Duration,
    /// Nodes that were created, with the time of their last renewal.
    known: BTreeMap<String, Instant>,
}

impl Nodes {
    pub(super) fn new(client: Client, cloud: FakeCloud, shape: Shape, renew: Duration) -> Self {
        Self { client, cloud, shape, renew, known: BTreeMap::new() }
    }

    pub(super) async fn run(mut self) {
        loop {
            // The API server may be stopped, on purpose: what failed is done at the next look.
            if let Ok(wanted) = self.cloud.nodes().await {
                self.look(&wanted).await;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn look(&mut self, wanted: &[Wanted]) {
        let new: Vec<&Wanted> = wanted.iter().filter(|node| !self.known.contains_key(&node.name)).collect();
        let registered = each(new, |node| self.register(node)).await;
        let names: BTreeSet<&str> = wanted.iter().map(|node| node.name.as_str()).collect();
        let gone: Vec<&String> = self.known.keys().filter(|name| !names.contains(name.as_str())).collect();
        let removed: Vec<String> = each(gone, |name| self.remove(name)).await.into_iter().cloned().collect();
        let due = self.known.iter().filter(|(_, renewed)| renewed.elapsed() >= self.renew);
        let due: Vec<&String> = due.map(|(name, _)| name).filter(|name| names.contains(name.as_str())).collect();
        let renewed: Vec<String> = each(due, |name| self.renew(name)).await.into_iter().cloned().collect();
        for name in registered.into_iter().map(|node| node.name.clone()).chain(renewed) {
            self.known.insert(name, Instant::now());
        }
        for name in removed {
            self.known.remove(&name);
        }
    }

    async fn register(&self, wanted: &Wanted) -> kube::Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        match nodes.create(&PostParams::default(), &node(wanted, &self.shape)?).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            other => drop(other?),
        }
        self.renew(&wanted.name).await
    }

    async fn renew(&self, name: &str) -> kube::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {
                "holderIdentity": name, "leaseDurationSeconds": 40,
                "renewTime": jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
            },
        });
        leases.patch(name, &PatchParams::apply("fake-kubelet").force(), &Patch::Apply(&lease)).await.map(drop)
    }

    /// The machine is gone, and with it what ran there.
    async fn remove(&self, name: &str) -> kube::Result<()> {
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        gone(Api::<Node>::all(self.client.clone()).delete(name, &at_once).await)?;
        gone(Api::<Lease>::namespaced(self.client.clone(), "kube-node-lease").delete(name, &at_once).await)?;
        let here = ListParams::default().fields(&format!("spec.nodeName={name}"));
        for pod in Api::<Pod>::all(self.client.clone()).list(&here).await? {
            let (namespace, name) = (pod.metadata.namespace.unwrap_or_default(), pod.metadata.name.unwrap_or_default());
            gone(Api::<Pod>::namespaced(self.client.clone(), &namespace).delete(&name, &at_once).await)?;
        }
        Ok(())
    }
}

/// Do something for each, some at a time; returns those for which it succeeded.
async fn each<T: Copy, F: Future<Output = kube::Result<()>>>(all: Vec<T>, act: impl Fn(T) -> F) -> Vec<T> {
    let acts = all.into_iter().map(|one| {
        let done = act(one);
        async move { done.await.ok().map(|()| one) }
    });
    stream::iter(acts).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
}

/// What is gone already need not be deleted.
pub(super) fn gone<T>(result: kube::Result<T>) -> kube::Result<()> {
    match result {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

/// The Node that a kubelet registers, with the labels that the cloud's controller adds.
fn node(wanted: &Wanted, shape: &Shape) -> kube::Result<Node> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let capacity = |cpu: u32, memory: u32| {
        json!({
            "cpu": format!("{cpu}m"), "memory": format!("{memory}Mi"), "pods": shape.pods.to_string(),
            "ephemeral-storage": "40Gi",
        })
    };
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "lastHeartbeatTime": now, "lastTransitionTime": now});
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": wanted.name, "labels": {
            "kubernetes.io/hostname": wanted.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "node.kubernetes.io/instance-type": "ecs.g7.xlarge", "topology.kubernetes.io/region": "cn-hangzhou",
            "topology.kubernetes.io/zone": "cn-hangzhou-a", "group": wanted.group,
        }},
        "spec": {"providerID": wanted.provider_id},
        "status": {
            "capacity": capacity(shape.cpu_milli + 200, shape.memory_mib + 1_024),
            "allocatable": capacity(shape.cpu_milli, shape.memory_mib),
            "conditions": [
                condition("Ready", "True", "KubeletReady"),
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            ],
            "addresses": [{"type": "Hostname", "address": wanted.name}],
            "nodeInfo": {
                "machineID": wanted.name, "systemUUID": wanted.name, "bootID": wanted.name, "kernelVersion": "6.1",
                "osImage": "fake", "containerRuntimeVersion": "fake://1", "kubeletVersion": "v1.36.3",
                "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    });
    serde_json::from_value(node).map_err(kube::Error::SerdeError)
}
