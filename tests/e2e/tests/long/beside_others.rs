//! Others change pods too: in-place resize, as a vertical autoscaler does it, and the addon resizer's way.

use plimsoll_tests_e2e::cloud::group;
use plimsoll_tests_e2e::stage::{FLAGS, LIMIT, Options, Stage};
use plimsoll_tests_e2e::workload::{deployment, put};
use plimsoll_tests_e2e::{cluster, wait};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_others_resize_are_followed() -> anyhow::Result<()> {
    let options = Options::with_groups(vec![group("workers", 60)]);
    let stage = Stage::set_up(crate::folder("beside_others"), crate::program(), options).await?;
    let mut program = stage.start("plimsoll-0", FLAGS).await?;

    // A running pod grows in its place until a second one does not fit beside it any more.
    stage.plane.apply(&deployment("first", 1, "500m", "64Mi").to_string())?;
    let pods = cluster::all_run(&stage.client, "app=first", 1, LIMIT).await?;
    let pod = pods[0].metadata.name.as_deref().unwrap();
    let grown = json!({"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "3500m"}}}]}});
    stage.plane.kubectl(&["patch", "pod", pod, "--subresource=resize", "--patch", &grown.to_string()])?;
    wait::until("the kubelet to follow the resize", LIMIT, || async {
        let pods = cluster::pods(&stage.client, "app=first").await?;
        let statuses =
            pods[0].status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
        let requests = statuses.first().and_then(|status| status.resources.as_ref()?.requests.as_ref()?.get("cpu"));
        let cpu = requests.map(|cpu| cpu.0.clone()).unwrap_or_default();
        Ok(if cpu == "3500m" { Ok(()) } else { Err(cpu) })
    })
    .await?;
    stage.plane.apply(&deployment("second", 1, "500m", "64Mi").to_string())?;
    cluster::all_run(&stage.client, "app=second", 1, LIMIT).await?;
    cluster::has_nodes(&stage.client, 2, LIMIT).await?;

    // It shrinks in its place: the second one has room beside it again.
    let shrunk = json!({"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m"}}}]}});
    stage.plane.kubectl(&["patch", "pod", pod, "--subresource=resize", "--patch", &shrunk.to_string()])?;
    cluster::has_nodes(&stage.client, 1, LIMIT).await?;
    cluster::all_run(&stage.client, "app=second", 1, LIMIT).await?;

    // The addon resizer changes a Deployment of kube-system as the cluster grows; its new pod needs a machine of its own.
    let mut addon = deployment("addon", 1, "100m", "64Mi");
    put(&mut addon, &["metadata", "namespace"], json!("kube-system"));
    stage.plane.apply(&addon.to_string())?;
    cluster::all_run(&stage.client, "app=addon", 1, LIMIT).await?;
    let resize = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "app", "resources": {"requests": {"cpu": "3600m", "memory": "1Gi"}}},
    ]}}}});
    stage.plane.kubectl(&["patch", "deployment", "addon", "-n", "kube-system", "--patch", &resize.to_string()])?;
    wait::until("the grown addon to run alone", LIMIT, || async {
        let pods = cluster::pods(&stage.client, "app=addon").await?;
        let grown = |pod: &k8s_openapi::api::core::v1::Pod| {
            let container = pod.spec.as_ref().and_then(|spec| spec.containers.first().cloned()).unwrap_or_default();
            let cpu = container.resources.and_then(|resources| resources.requests?.get("cpu").cloned());
            cluster::runs(pod) && cpu.is_some_and(|cpu| cpu.0 == "3600m")
        };
        Ok(if pods.len() == 1 && pods.iter().all(grown) { Ok(()) } else { Err(format!("{} pods", pods.len())) })
    })
    .await?;
    cluster::has_nodes(&stage.client, 2, LIMIT).await?;
    assert_eq!(stage.cloud.complaints().await?, Vec::<String>::new());
    program.terminate(LIMIT).await?;
    stage.done()
}
