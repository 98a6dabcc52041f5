//! The fake nodes themselves: what a human does at the cloud's console shows in the cluster.

use plimsoll_tests_e2e::cloud::group;
use plimsoll_tests_e2e::cluster;
use plimsoll_tests_e2e::stage::{LIMIT, Options, Stage};
use plimsoll_tests_e2e::workload::deployment;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn machines_become_nodes_that_run_pods_and_go() -> anyhow::Result<()> {
    let options = Options::with_groups(vec![group("workers", 10)]);
    let stage = Stage::set_up(crate::folder("fake_nodes"), crate::program(), options).await?;
    let resize = |desired: u32| json!({"order": "resize", "group": "workers", "desired": desired});
    stage.plane.apply(&deployment("web", 6, "900m", "1Gi").to_string())?;
    cluster::all_there(&stage.client, "app=web", 6, LIMIT).await?;

    stage.cloud.tell("console", &resize(2)).await?;
    cluster::has_nodes(&stage.client, 2, LIMIT).await?;
    cluster::all_run(&stage.client, "app=web", 6, LIMIT).await?;

    stage.plane.kubectl(&["scale", "deployment", "web", "--replicas=2"])?;
    cluster::all_run(&stage.client, "app=web", 2, LIMIT).await?;
    stage.cloud.tell("console", &resize(1)).await?;
    cluster::has_nodes(&stage.client, 1, LIMIT).await?;
    cluster::all_run(&stage.client, "app=web", 2, LIMIT).await?;
    stage.done()
}
