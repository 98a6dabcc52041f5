//! What a test looks at in the API server.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod};
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::wait;

/// Names of all nodes.
///
/// # Errors
/// The API server does not answer.
pub async fn nodes(client: &Client) -> anyhow::Result<BTreeSet<String>> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
    Ok(nodes.into_iter().filter_map(|node| node.metadata.name).collect())
}

/// Wait until there are so many nodes.
///
/// # Errors
/// There are others after `limit`.
pub async fn has_nodes(client: &Client, count: usize, limit: Duration) -> anyhow::Result<BTreeSet<String>> {
    wait::until(&format!("{count} nodes"), limit, || async {
        let nodes = nodes(client).await?;
        Ok(if nodes.len() == count { Ok(nodes) } else { Err(format!("{} nodes: {nodes:?}", nodes.len())) })
    })
    .await
}

/// How many nodes there are, and how many of them have a taint.
///
/// # Errors
/// The API server does not answer.
pub async fn marked(client: &Client, key: &str) -> anyhow::Result<(usize, usize)> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?.items;
    let has = |node: &&Node| {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
        taints.iter().any(|taint| taint.key == key)
    };
    Ok((nodes.len(), nodes.iter().filter(has).count()))
}

/// Pods of a label selector in all namespaces.
///
/// # Errors
/// The API server does not answer.
pub async fn pods(client: &Client, selector: &str) -> anyhow::Result<Vec<Pod>> {
    Ok(Api::<Pod>::all(client.clone()).list(&ListParams::default().labels(selector)).await?.items)
}

/// How many pods a field selector finds.
///
/// # Errors
/// The API server does not answer.
pub async fn count_pods(client: &Client, fields: &str) -> anyhow::Result<usize> {
    let all: Api<Pod> = Api::all(client.clone());
    let mut count = 0;
    let mut page = ListParams::default().fields(fields).limit(500);
    loop {
        let pods = all.list_metadata(&page).await?;
        count += pods.items.len();
        match pods.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(count),
        }
    }
}

/// Whether a pod runs and is not on its way out.
pub fn runs(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
}

/// The node of a pod.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// Wait until so many pods of a selector run, and there are no others.
///
/// # Errors
/// It is otherwise after `limit`.
pub async fn all_run(client: &Client, selector: &str, count: usize, limit: Duration) -> anyhow::Result<Vec<Pod>> {
    wait::until(&format!("{count} running pods of {selector}"), limit, || async {
        let pods = pods(client, selector).await?;
        let running = pods.iter().filter(|pod| runs(pod)).count();
        let there = pods.len();
        Ok(if running == count && there == count { Ok(pods) } else { Err(format!("{there} pods, {running} run")) })
    })
    .await
}

/// Wait until there are so many pods of a selector, running or not.
///
/// # Errors
/// There are others after `limit`.
pub async fn all_there(client: &Client, selector: &str, count: usize, limit: Duration) -> anyhow::Result<Vec<Pod>> {
    wait::until(&format!("{count} pods of {selector}"), limit, || async {
        let pods = pods(client, selector).await?;
        Ok(if pods.len() == count { Ok(pods) } else { Err(format!("{} pods", pods.len())) })
    })
    .await
}

/// Events of a reason.
///
/// # Errors
/// The API server does not answer.
pub async fn events(client: &Client, reason: &str) -> anyhow::Result<Vec<Event>> {
    let of_reason = ListParams::default().fields(&format!("reason={reason}"));
    Ok(Api::<Event>::all(client.clone()).list(&of_reason).await?.items)
}

/// Wait for an event of a reason on a kind of object whose message holds a text.
///
/// # Errors
/// There is none after `limit`; the error holds those that there are.
pub async fn has_event(
    client: &Client,
    (reason, kind, text): (&str, &str, &str),
    limit: Duration,
) -> anyhow::Result<Event> {
    wait::until(&format!("an event {reason} on a {kind} with {text:?}"), limit, || async {
        let events = events(client, reason).await?;
        let message = |event: &Event| event.message.clone().unwrap_or_default();
        let fits =
            |event: &&Event| event.involved_object.kind.as_deref() == Some(kind) && message(event).contains(text);
        Ok(events
            .iter()
            .find(fits)
            .cloned()
            .ok_or_else(|| format!("{:?}", events.iter().map(message).collect::<Vec<_>>())))
    })
    .await
}

/// The document in the status ConfigMap.
///
/// # Errors
/// There is none, or it cannot be read.
pub async fn status(client: &Client) -> anyhow::Result<Value> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), crate::stage::NAMESPACE);
    let map = maps.get("cluster-autoscaler-status").await?;
    let text =
        map.data.and_then(|data| data.get("status").cloned()).context("the status ConfigMap has no key status")?;
    Ok(serde_saphyr::from_str(&text)?)
}

/// Wait until the status says this of a group: pointers into it with values.
///
/// # Errors
/// It says otherwise after `limit`.
pub async fn group_status_is(
    client: &Client,
    group: &str,
    expected: &[(&str, Value)],
    limit: Duration,
) -> anyhow::Result<()> {
    wait::until(&format!("the status of {group} to be {expected:?}"), limit, || async {
        let status = status(client).await?;
        let groups = status.get("nodeGroups").and_then(Value::as_array).cloned().unwrap_or_default();
        let of_it = groups.into_iter().find(|one| one.get("name").and_then(Value::as_str) == Some(group));
        let of_it = of_it.with_context(|| format!("no group {group} in {status}"))?;
        let is = |(pointer, value): &(&str, Value)| of_it.pointer(pointer) == Some(value);
        Ok(if expected.iter().all(is) { Ok(()) } else { Err(of_it.to_string()) })
    })
    .await
}

/// A taint that some node had at some time: node, key, effect, value.
pub type Tainted = (String, String, String, String);

/// Writes down all taints that nodes ever have.
pub struct Taints {
    seen: Arc<Mutex<BTreeSet<Tainted>>>,
    task: JoinHandle<()>,
}

impl Taints {
    /// Begin.
    pub fn watch(client: &Client) -> Self {
        let seen: Arc<Mutex<BTreeSet<Tainted>>> = Arc::default();
        let nodes = watcher(Api::<Node>::all(client.clone()), watcher::Config::default()).default_backoff();
        let task = tokio::spawn({
            let seen = seen.clone();
            nodes.applied_objects().for_each(move |node| {
                if let Ok(node) = node {
                    let name = node.metadata.name.unwrap_or_default();
                    let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
                    let taints = taints
                        .into_iter()
                        .map(|taint| (name.clone(), taint.key, taint.effect, taint.value.unwrap_or_default()));
                    seen.lock().unwrap_or_else(PoisonError::into_inner).extend(taints);
                }
                std::future::ready(())
            })
        });
        Self { seen, task }
    }

    /// Those of a key.
    pub fn of(&self, key: &str) -> Vec<Tainted> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().filter(|(_, of, ..)| of == key).cloned().collect()
    }
}

impl Drop for Taints {
    fn drop(&mut self) {
        self.task.abort();
    }
}
