//! Pods that are bound to fake nodes run, follow changes of their resources, and end.

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::nodes::gone;

/// Pods that are worked on at a time.
const AT_ONCE: usize = 16;

pub(super) async fn run(client: Client) {
    let config = watcher::Config::default().fields("spec.nodeName!=");
    let bound = watcher(Api::<Pod>::all(client.clone()), config).default_backoff().applied_objects();
    bound
        .for_each_concurrent(AT_ONCE, |pod| async {
            // A failed write, or a watch that broke: the watcher tells of the pod again, as it changes or at the next list.
            if let Ok(pod) = pod {
                let _done = tend(&client, &pod).await;
            }
        })
        .await;
}

async fn tend(client: &Client, pod: &Pod) -> kube::Result<()> {
    let (namespace, name) =
        (pod.metadata.namespace.as_deref().unwrap_or(""), pod.metadata.name.as_deref().unwrap_or(""));
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    if pod.metadata.deletion_timestamp.is_some() {
        let same = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
        let at_once =
            DeleteParams { grace_period_seconds: Some(0), preconditions: Some(same), ..DeleteParams::default() };
        return gone(pods.delete(name, &at_once).await);
    }
    match status(pod) {
        Some(status) => gone(pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(&status)).await),
        None => Ok(()),
    }
}

/// What a kubelet would report now; none if it has reported it.
fn status(pod: &Pod) -> Option<Value> {
    let containers = &pod.spec.as_ref()?.containers;
    let reported = pod.status.as_ref()?.container_statuses.as_deref().unwrap_or_default();
    let running = pod.status.as_ref()?.phase.as_deref() == Some("Running");
    let follows = |container: &Container| {
        let of_it = |status: &&ContainerStatus| status.name == container.name;
        reported.iter().find(of_it).is_some_and(|status| status.resources == container.resources)
    };
    if running && containers.iter().all(follows) {
        return None;
    }
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    let container = |container: &Container| {
        json!({
            "name": container.name, "image": container.image, "imageID": "fake", "ready": true, "started": true,
            "restartCount": 0, "state": {"running": {"startedAt": now}}, "resources": container.resources,
            "allocatedResources": container.resources.as_ref().and_then(|resources| resources.requests.as_ref()),
        })
    };
    Some(json!({"status": {
        "phase": "Running", "startTime": now, "observedGeneration": pod.metadata.generation,
        "conditions": [condition("Initialized"), condition("ContainersReady"), condition("Ready")],
        "containerStatuses": containers.iter().map(container).collect::<Vec<_>>(),
    }}))
}
