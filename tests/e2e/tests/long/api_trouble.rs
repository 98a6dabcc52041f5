//! The API server refuses, is away, and forgets.

use std::time::Duration;

use plimsoll_tests_e2e::autoscaler::Autoscaler;
use plimsoll_tests_e2e::cloud::group;
use plimsoll_tests_e2e::proxy::Proxy;
use plimsoll_tests_e2e::settle::settles;
use plimsoll_tests_e2e::stage::{Options, Stage};
use plimsoll_tests_e2e::workload::deployment;

use crate::FLAGS;

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_refuses_is_away_and_forgets() -> anyhow::Result<()> {
    let options = Options::with_groups(vec![group("workers", 60)]);
    let mut stage = Stage::set_up(crate::folder("api_trouble"), crate::program(), options).await?;
    let proxy = Proxy::serve(&stage.plane).await?;
    let kubeconfig = stage.kubeconfig(Some(&proxy.url())).await?;
    let mut program = Autoscaler::start(stage.setup("plimsoll-0", &kubeconfig, FLAGS))?;
    program.answers().await?;
    settles(&stage, &mut program, 8).await?;

    // Shorter than the Lease's deadline: the same process goes on.
    for (status, pods) in [(429, 12), (500, 16)] {
        proxy.refuse(Some(status));
        stage.plane.apply(&deployment("web", pods, "900m", "1Gi").to_string())?;
        tokio::time::sleep(Duration::from_secs(4)).await;
        proxy.refuse(None);
        settles(&stage, &mut program, pods).await?;
        anyhow::ensure!(program.revive()? == 0, "{status} for 4 s ended the program: {}", program.log());
    }

    // Away for longer than the Lease lasts, and without memory of what was before: a watch begins anew.
    stage.plane.order("stop kube-apiserver")?;
    tokio::time::sleep(Duration::from_secs(12)).await;
    stage.plane.order("compact")?;
    stage.plane.order("start kube-apiserver")?;
    settles(&stage, &mut program, 24).await?;
    settles(&stage, &mut program, 4).await?;
    stage.done()
}
