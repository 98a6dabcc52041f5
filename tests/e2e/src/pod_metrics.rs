//! A stub in the place of the metrics server: what pods use, as the horizontal autoscaler reads it.
//!
//! The API `metrics.k8s.io` is served by a CustomResourceDefinition, so the horizontal autoscaler finds the objects that are
//! written here where the metrics server would compute them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::cluster;
use crate::plane::Plane;

const NAMESPACE: &str = "default";
/// How often usage is measured.
const MEASURE: Duration = Duration::from_secs(1);

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pods.metrics.k8s.io
  annotations: {api-approved.kubernetes.io: 'unapproved, a stub in tests'}
spec:
  group: metrics.k8s.io
  names: {kind: PodMetrics, plural: pods}
  scope: Namespaced
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

/// Work that the running pods of an app share; the stub ends when this is dropped.
pub struct Load {
    cpu_milli: Arc<AtomicU32>,
    task: JoinHandle<()>,
}

impl Load {
    /// Begin to tell what the pods with the label `app=NAME` use: nothing, at first.
    ///
    /// # Errors
    /// The API server does not take the stub.
    pub fn share(plane: &Plane, client: &Client, app: &str) -> anyhow::Result<Self> {
        plane.apply(DEFINITION)?;
        plane.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd/pods.metrics.k8s.io"])?;
        let cpu_milli = Arc::new(AtomicU32::new(0));
        let task = tokio::spawn(measure(client.clone(), app.to_owned(), cpu_milli.clone()));
        Ok(Self { cpu_milli, task })
    }

    /// From now on there is so much to do.
    pub fn set(&self, cpu_milli: u32) {
        self.cpu_milli.store(cpu_milli, Ordering::Relaxed);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn measure(client: Client, app: String, cpu_milli: Arc<AtomicU32>) {
    loop {
        // What failed is measured again.
        let _measured = measure_once(&client, &app, cpu_milli.load(Ordering::Relaxed)).await;
        tokio::time::sleep(MEASURE).await;
    }
}

async fn measure_once(client: &Client, app: &str, cpu_milli: u32) -> anyhow::Result<()> {
    let kind = GroupVersionKind::gvk("metrics.k8s.io", "v1beta1", "PodMetrics");
    let resource = ApiResource::from_gvk_with_plural(&kind, "pods");
    let metrics: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
    let selector = format!("app={app}");
    let pods: Vec<Pod> = cluster::pods(client, &selector).await?.into_iter().filter(cluster::runs).collect();
    let names: BTreeSet<&str> = pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
    let each = cpu_milli / u32::try_from(names.len().max(1))?;
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for name in &names {
        let told = json!({
            "apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": app}},
            "timestamp": now, "window": "1s",
            "containers": [{"name": "app", "usage": {"cpu": format!("{each}m"), "memory": "64Mi"}}],
        });
        metrics.patch(name, &PatchParams::apply("stub").force(), &Patch::Apply(&told)).await?;
    }
    for old in metrics.list_metadata(&ListParams::default().labels(&selector)).await? {
        let name = old.metadata.name.unwrap_or_default();
        if !names.contains(name.as_str()) {
            metrics.delete(&name, &DeleteParams::default()).await?;
        }
    }
    Ok(())
}
