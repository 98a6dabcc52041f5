//! From nothing to two hundred pods and back, and what keeps a node.

use std::time::Duration;

use anyhow::Context as _;
use plimsoll_tests_e2e::autoscaler::Autoscaler;
use plimsoll_tests_e2e::cloud::group;
use plimsoll_tests_e2e::cluster::{self, Taints};
use plimsoll_tests_e2e::stage::{Options, Stage};
use plimsoll_tests_e2e::wait;
use plimsoll_tests_e2e::workload::{container, deployment, put};
use serde_json::{Value, json};

use crate::{FLAGS, LIMIT};

/// Pods of the Deployment, of which four fit on a machine.
const PODS: u32 = 200;
const MACHINES: usize = 50;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_pods_come_and_go() -> anyhow::Result<()> {
    let options = Options::with_groups(vec![group("workers", 60)]);
    let mut stage = Stage::set_up(crate::folder("up_and_down"), crate::program(), options).await?;
    let taints = Taints::watch(&stage.client);
    let program = stage.start("plimsoll-0", FLAGS).await?;

    cluster::group_status_is(&stage.client, "workers", &target(0), LIMIT).await?;
    up(&stage, &program).await?;
    hopeless_pod(&stage).await?;
    drained(&stage, &program, &taints).await?;
    kept(&stage, &program).await?;
    finish(&mut stage, program).await?;
    stage.done()
}

/// What the status says of a group of this size that is well.
fn target(size: usize) -> [(&'static str, Value); 5] {
    [
        ("/health/status", json!("Healthy")),
        ("/health/cloudProviderTarget", json!(size)),
        ("/health/nodeCounts/registered/ready", json!(size)),
        ("/health/minSize", json!(0)),
        ("/health/maxSize", json!(60)),
    ]
}

async fn up(stage: &Stage, program: &Autoscaler) -> anyhow::Result<()> {
    stage.plane.apply(&deployment("web", PODS, "900m", "1Gi").to_string())?;
    cluster::all_run(&stage.client, "app=web", PODS as usize, LIMIT).await?;
    let nodes = cluster::has_nodes(&stage.client, MACHINES, LIMIT).await?;
    assert_eq!(nodes.len(), MACHINES);
    cluster::group_status_is(&stage.client, "workers", &target(MACHINES), LIMIT).await?;

    let triggered =
        cluster::has_event(&stage.client, ("TriggeredScaleUp", "Pod", "pod triggered scale-up: [{workers 0->"), LIMIT);
    let triggered = triggered.await?;
    let source = triggered.source.and_then(|source| source.component);
    assert_eq!(source.as_deref(), Some("cluster-autoscaler"));
    assert!(triggered.message.unwrap_or_default().ends_with("(max: 60)}]"));
    cluster::has_event(&stage.client, ("ScaledUpGroup", "ConfigMap", "Scale-up: setting group workers size to"), LIMIT)
        .await?;

    let metrics = program.metrics().await?;
    assert_eq!(metrics.sum("cluster_autoscaler_scaled_up_nodes_total", &[]), Some(50.0), "{}", metrics.0);
    assert_eq!(metrics.sum("cluster_autoscaler_nodes_count", &["state=\"ready\""]), Some(50.0), "{}", metrics.0);
    metric_is(program, "cluster_autoscaler_unschedulable_pods_count", 0.0).await?;
    metric_is(program, "cluster_autoscaler_cluster_safe_to_autoscale", 1.0).await
}

async fn metric_is(program: &Autoscaler, name: &str, expected: f64) -> anyhow::Result<()> {
    wait::until(&format!("{name} to be {expected}"), LIMIT, || async {
        let metrics = program.metrics().await?;
        let value = metrics.sum(name, &[]);
        Ok(if value == Some(expected) { Ok(()) } else { Err(format!("{value:?}")) })
    })
    .await
}

/// A pod that fits nowhere is told so, and nothing grows for it.
async fn hopeless_pod(stage: &Stage) -> anyhow::Result<()> {
    let huge = deployment("huge", 1, "64", "1Gi");
    stage.plane.apply(&huge.to_string())?;
    let told = ("NotTriggerScaleUp", "Pod", "pod didn't trigger scale-up: 1 Insufficient cpu");
    cluster::has_event(&stage.client, told, LIMIT).await?;
    stage.plane.kubectl(&["delete", "deployment", "huge"])?;
    Ok(())
}

/// Fewer pods, here and there: nodes are drained until what is left is dense.
async fn drained(stage: &Stage, program: &Autoscaler, taints: &Taints) -> anyhow::Result<()> {
    stage.plane.kubectl(&["scale", "deployment", "web", "--replicas=40"])?;
    let densest = 10;
    wait::until("no more than 14 nodes", LIMIT, || async {
        let count = cluster::nodes(&stage.client).await?.len();
        Ok(if (densest..=14).contains(&count) { Ok(()) } else { Err(format!("{count} nodes")) })
    })
    .await?;
    cluster::all_run(&stage.client, "app=web", 40, LIMIT).await?;

    let marked = ("ScaleDown", "Node", "marked the node as toBeDeleted/unschedulable");
    cluster::has_event(&stage.client, marked, LIMIT).await?;
    cluster::has_event(&stage.client, ("ScaleDown", "Pod", "deleting pod for node scale down"), LIMIT).await?;
    cluster::has_event(&stage.client, ("ScaleDown", "ConfigMap", "Scale-down: removing node"), LIMIT).await?;

    let now = jiff::Timestamp::now().as_second();
    let going = taints.of("ToBeDeletedByClusterAutoscaler");
    let candidates = taints.of("DeletionCandidateOfClusterAutoscaler");
    assert!(!going.is_empty() && !candidates.is_empty());
    for (taints, expected) in [(&going, "NoSchedule"), (&candidates, "PreferNoSchedule")] {
        for (node, key, effect, value) in taints {
            let since: i64 = value.parse().with_context(|| format!("{key} of {node} is {value:?}"))?;
            assert_eq!(effect, expected, "{key} of {node}");
            assert!((now - 600..=now).contains(&since), "{key} of {node} is since {since}, now it is {now}");
        }
    }
    let metrics = program.metrics().await?;
    let removed = metrics.sum("cluster_autoscaler_scaled_down_nodes_total", &[]).unwrap_or_default();
    assert!(removed >= 36.0, "{removed} nodes were removed");
    let evicted = metrics.sum("cluster_autoscaler_evicted_pods_total", &["eviction_result=\"succeeded\""]);
    assert!(evicted.is_some_and(|evicted| evicted >= 1.0), "{evicted:?} pods were evicted");
    Ok(())
}

/// Each on a node of its own, none of which may go.
const KEEPERS: &[(&str, &str)] =
    &[("guarded", "PodDisruptionBudget"), ("unsafe", "safe-to-evict"), ("hoarder", "local"), ("bare", "controller")];

fn keepers() -> Vec<Value> {
    let mut objects: Vec<Value> =
        ["guarded", "unsafe", "hoarder"].map(|name| deployment(name, 1, "100m", "64Mi")).to_vec();
    put(
        &mut objects[1],
        &["spec", "template", "metadata", "annotations"],
        json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}),
    );
    put(&mut objects[2], &["spec", "template", "spec", "volumes"], json!([{"name": "scratch", "emptyDir": {}}]));
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"keeps": "its-node"}}},
    ]}});
    for object in &mut objects {
        put(object, &["spec", "template", "metadata", "labels", "keeps"], json!("its-node"));
        put(object, &["spec", "template", "spec", "affinity"], apart.clone());
    }
    objects.push(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "bare", "namespace": "default", "labels": {"app": "bare", "keeps": "its-node"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container("100m", "64Mi")], "affinity": apart},
    }));
    objects.push(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "guarded"}}},
    }));
    objects
}

async fn kept(stage: &Stage, program: &Autoscaler) -> anyhow::Result<()> {
    stage.plane.apply(&json!({"apiVersion": "v1", "kind": "List", "items": keepers()}).to_string())?;
    let pods = cluster::all_run(&stage.client, "keeps=its-node", KEEPERS.len(), LIMIT).await?;
    stage.plane.kubectl(&["scale", "deployment", "web", "--replicas=0"])?;
    let nodes = cluster::has_nodes(&stage.client, KEEPERS.len(), LIMIT).await?;
    // What keeps them is known once they have been idle for a loop.
    for (name, reason) in KEEPERS {
        let label = |pod: &&k8s_openapi::api::core::v1::Pod| {
            pod.metadata.labels.as_ref().and_then(|labels| labels.get("app")).is_some_and(|app| app == name)
        };
        let pod = pods.iter().find(label).with_context(|| format!("no pod of {name}"))?;
        let node = cluster::node_of(pod).context("it has no node")?;
        assert!(nodes.contains(node), "{name}'s node {node} is gone");
        wait::until(&format!("the reason why {node} is kept"), LIMIT, || async {
            let address = format!("--address={}", program.address());
            let told = stage.run(&["explain", "node", node, &address])?;
            Ok(if told.contains(reason) && told.contains(name) { Ok(()) } else { Err(told) })
        })
        .await?;
    }
    Ok(())
}

/// Without the keepers everything goes, and nothing was done twice.
async fn finish(stage: &mut Stage, mut program: Autoscaler) -> anyhow::Result<()> {
    stage.plane.kubectl(&["delete", "deployment", "guarded", "unsafe", "hoarder", "--wait=false"])?;
    stage.plane.kubectl(&["delete", "pod", "bare", "--wait=false"])?;
    cluster::has_nodes(&stage.client, 0, LIMIT).await?;
    cluster::has_event(&stage.client, ("ScaleDownEmpty", "ConfigMap", "Scale-down: removing empty node"), LIMIT)
        .await?;
    cluster::group_status_is(&stage.client, "workers", &target(0), LIMIT).await?;
    assert_eq!(stage.cloud.complaints().await?, Vec::<String>::new());
    let status = program.terminate(Duration::from_secs(30)).await?;
    assert!(status.success(), "it ended with {status}: {}", program.log());
    Ok(())
}
