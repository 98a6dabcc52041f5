//! The horizontal autoscaler changes how many pods a Deployment has, and nodes follow.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use plimsoll_tests_e2e::cloud::group;
use plimsoll_tests_e2e::pod_metrics::Load;
use plimsoll_tests_e2e::stage::{FLAGS, LIMIT, Options, Stage};
use plimsoll_tests_e2e::workload::deployment;
use plimsoll_tests_e2e::{cluster, pair, wait};
use serde_json::{Value, json};

/// Half of what the pods ask for is to be used: 450m by each.
fn horizontal_autoscaler() -> Value {
    let at_once = json!({
        "stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 100, "periodSeconds": 15}],
    });
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1, "maxReplicas": 40,
            "metrics": [{
                "type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            }],
            "behavior": {"scaleUp": at_once, "scaleDown": at_once},
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_follow_the_horizontal_autoscaler() -> anyhow::Result<()> {
    let options = Options::with_groups(vec![group("workers", 60)]);
    let stage = Stage::set_up(crate::folder("horizontal"), crate::program(), options).await?;
    let mut program = stage.start("plimsoll-0", FLAGS).await?;
    let load = Load::share(&stage.plane, &stage.client, "web")?;
    load.set(450);
    stage.plane.apply(&deployment("web", 1, "900m", "1Gi").to_string())?;
    cluster::all_run(&stage.client, "app=web", 1, LIMIT).await?;
    stage.plane.apply(&horizontal_autoscaler().to_string())?;

    // Four pods fit on a machine.
    for (cpu_milli, pods, nodes) in [(7_200, 16, 4), (900, 2, 1), (10_800, 24, 6), (450, 1, 1)] {
        load.set(cpu_milli);
        asks_for(&stage, pods).await?;
        cluster::all_run(&stage.client, "app=web", pods, LIMIT).await?;
        cluster::has_nodes(&stage.client, nodes, LIMIT).await?;
    }
    // It never asked for more than the peaks needed.
    let (came, went) = pair::moves(&stage).await?;
    assert_eq!((came, came - went), (9, 1));
    assert_eq!(stage.cloud.complaints().await?, Vec::<String>::new());
    program.terminate(LIMIT).await?;
    stage.done()
}

/// Waits until the Deployment is to have so many pods.
async fn asks_for(stage: &Stage, pods: usize) -> anyhow::Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(stage.client.clone(), "default");
    wait::until(&format!("the horizontal autoscaler to ask for {pods} pods"), LIMIT, || async {
        let replicas = deployments.get("web").await?.spec.replicas;
        let events = cluster::events(&stage.client, "FailedGetResourceMetric").await?;
        let why = events.into_iter().filter_map(|event| event.message).next_back();
        Ok(if usize::try_from(replicas.unwrap_or(0))? == pods { Ok(()) } else { Err(format!("{replicas:?}; {why:?}")) })
    })
    .await
}
