//! Two replicas, one of which leads, and what a test does to them.

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};

use crate::autoscaler::Autoscaler;
use crate::cluster;
use crate::stage::{NAMESPACE, Stage};
use crate::wait;
use crate::workload::deployment;

/// A leader and one that waits.
pub struct Pair {
    replicas: Vec<Autoscaler>,
    limit: Duration,
}

/// The Lease's times, short, with the peer's proportions.
pub const LEASE_FLAGS: [&str; 3] =
    ["--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=1s"];

/// Pods of the Deployment on one machine.
const DENSITY: u32 = 4;

/// A round is either.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Pods come.
    Up,
    /// Pods go.
    Down,
}

impl Pair {
    /// Start both.
    ///
    /// # Errors
    /// One does not start.
    pub async fn start(stage: &Stage, flags: &[&str], limit: Duration) -> anyhow::Result<Self> {
        let flags: Vec<&str> = flags.iter().chain(&LEASE_FLAGS).copied().collect();
        let replicas = vec![stage.start("plimsoll-0", &flags).await?, stage.start("plimsoll-1", &flags).await?];
        Ok(Self { replicas, limit })
    }

    /// Who holds the Lease.
    ///
    /// # Errors
    /// Nobody does, after a while.
    pub async fn leader(&mut self, client: &Client) -> anyhow::Result<&mut Autoscaler> {
        let names: Vec<String> = self.replicas.iter().map(|replica| replica.name().to_owned()).collect();
        let index = wait::until("a leader", self.limit, || async {
            let lease = Api::<Lease>::namespaced(client.clone(), NAMESPACE).get("cluster-autoscaler").await?;
            let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
            // The peer's identity is the host name; something may stand behind it that tells two starts apart.
            let index = names.iter().position(|name| holder.starts_with(name.as_str()));
            Ok(index.ok_or_else(|| format!("the holder is {holder:?}")))
        })
        .await?;
        self.replicas.get_mut(index).context("no such replica")
    }

    /// Change the number of pods, kill the leader after a while, and see that everything ends as it should: every pod runs, no
    /// more machines were asked for than they need, and none that they need was taken.
    ///
    /// # Errors
    /// It does not.
    pub async fn kill_during(&mut self, stage: &Stage, pods: u32, phase: Phase, after: Duration) -> anyhow::Result<()> {
        let limit = self.limit;
        let (created, left) = moves(stage).await?;
        let before = cluster::nodes(&stage.client).await?.len();
        let leader = self.leader(&stage.client).await?;
        stage.plane.apply(&deployment("web", pods, "900m", "1Gi").to_string())?;
        tokio::time::sleep(after).await;
        leader.kill()?;
        leader.revive()?;

        cluster::all_run(&stage.client, "app=web", pods as usize, limit).await?;
        let needed = usize::try_from(pods.div_ceil(DENSITY))?;
        // Draining is greedy: what is left is dense, if not always as dense as can be.
        let enough = match phase {
            Phase::Up => needed..=needed,
            Phase::Down => needed..=needed + needed / 3,
        };
        let nodes = wait::until(&format!("{enough:?} nodes without marks"), limit, || async {
            let (nodes, marked) = cluster::marked(&stage.client, "ToBeDeletedByClusterAutoscaler").await?;
            // Machines that leave or come are not counted twice below.
            let quiet = stage.cloud.nodes().await?.len() == nodes;
            let done = enough.contains(&nodes) && marked == 0 && quiet;
            Ok(if done { Ok(nodes) } else { Err(format!("{nodes} nodes, {marked} marked")) })
        })
        .await?;
        let (created_after, left_after) = moves(stage).await?;
        let (came, went) = (created_after - created, left_after - left);
        anyhow::ensure!(
            before + came == nodes + went,
            "{before} nodes before, {came} machines came, {went} went, {nodes} nodes after"
        );
        match phase {
            Phase::Up => anyhow::ensure!(went == 0 && came == nodes - before, "{came} machines came, {went} went"),
            Phase::Down => anyhow::ensure!(came == 0, "{came} machines came while pods went"),
        }
        let complaints = stage.cloud.complaints().await?;
        anyhow::ensure!(complaints.is_empty(), "{complaints:?}");
        Ok(())
    }

    /// End both.
    ///
    /// # Errors
    /// One does not end when it is told to.
    pub async fn end(mut self) -> anyhow::Result<()> {
        for replica in &mut self.replicas {
            // One that was killed is started again, so that each ends in good order.
            if replica.revive()? > 0 {
                replica.answers().await?;
            }
            replica.terminate(self.limit).await?;
        }
        Ok(())
    }
}

/// Machines that ever came to be, and that ever left.
///
/// # Errors
/// The cloud does not tell.
pub async fn moves(stage: &Stage) -> anyhow::Result<(usize, usize)> {
    let journal = stage.cloud.journal().await?;
    let events = journal.get("events").and_then(serde_json::Value::as_array).context("the journal has no events")?;
    let count = |what: &str| events.iter().filter(|event| event.get("what").is_some_and(|said| said == what)).count();
    Ok((count("created"), count("leaving")))
}
