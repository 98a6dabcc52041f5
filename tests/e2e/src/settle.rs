//! The end state that every disturbance must leave behind.

use crate::autoscaler::Autoscaler;
use crate::cluster;
use crate::stage::{LIMIT, Stage};
use crate::wait;
use crate::workload::deployment;

/// Set the number of pods, and wait until so many run on as few machines as they need. The cloud has nothing to complain of.
///
/// # Errors
/// It does not come to that.
pub async fn settles(stage: &Stage, program: &mut Autoscaler, pods: u32) -> anyhow::Result<()> {
    let text = deployment("web", pods, "900m", "1Gi").to_string();
    wait::until("the API server to take a Deployment", LIMIT, || async { stage.plane.apply(&text).map(Ok) }).await?;
    let needed = usize::try_from(pods.div_ceil(4))?;
    wait::until(&format!("{pods} pods on {needed} nodes"), LIMIT, || {
        // A process that lost its Lease ends, and the kubelet starts it again.
        let revived = program.revive();
        async {
            revived?;
            let running = cluster::pods(&stage.client, "app=web").await?;
            let nodes = cluster::nodes(&stage.client).await?.len();
            let there = running.len();
            let running = running.iter().filter(|pod| cluster::runs(pod)).count();
            let done = running == pods as usize && there == running && nodes == needed;
            Ok(if done { Ok(()) } else { Err(format!("{running} of {there} pods run on {nodes} nodes")) })
        }
    })
    .await?;
    let complaints = stage.cloud.complaints().await?;
    anyhow::ensure!(complaints.is_empty(), "{complaints:?}");
    Ok(())
}
