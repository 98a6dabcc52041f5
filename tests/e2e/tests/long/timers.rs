//! What is waited for is waited for once, whoever leads.

use std::time::{Duration, Instant};

use plimsoll_tests_e2e::cloud::group;
use plimsoll_tests_e2e::pair::Pair;
use plimsoll_tests_e2e::stage::{FLAGS, LIMIT, Options, Stage};
use plimsoll_tests_e2e::workload::deployment;
use plimsoll_tests_e2e::{cluster, wait};

/// How long a node must be unneeded.
const UNNEEDED: Duration = Duration::from_secs(30);
/// When the leader is killed in that time. The other takes the Lease some seconds later.
const KILLED_AFTER: Duration = Duration::from_secs(18);

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_not_unneeded_anew_for_the_next_leader() -> anyhow::Result<()> {
    let options = Options::with_groups(vec![group("workers", 60)]);
    let stage = Stage::set_up(crate::folder("timers"), crate::program(), options).await?;
    let flags: Vec<&str> = FLAGS.iter().copied().chain(["--scale-down-unneeded-time=30s"]).collect();
    let mut pair = Pair::start(&stage, &flags, LIMIT).await?;
    stage.plane.apply(&deployment("web", 8, "900m", "1Gi").to_string())?;
    cluster::all_run(&stage.client, "app=web", 8, LIMIT).await?;
    cluster::has_nodes(&stage.client, 2, LIMIT).await?;

    stage.plane.kubectl(&["scale", "deployment", "web", "--replicas=2"])?;
    // The soft taint tells that a node is unneeded.
    marked(&stage, "DeletionCandidateOfClusterAutoscaler").await?;
    let since = Instant::now();
    tokio::time::sleep(KILLED_AFTER).await;
    pair.leader(&stage.client).await?.kill()?;
    marked(&stage, "ToBeDeletedByClusterAutoscaler").await?;
    let waited = since.elapsed();
    println!("unneeded for {waited:?} over a change of the leader");
    // The taint comes within two loops, each way.
    let slack = Duration::from_secs(5);
    assert!(waited + slack >= UNNEEDED, "it went after {waited:?}");
    assert!(waited <= UNNEEDED + slack, "it went only after {waited:?}: the wait began anew");
    cluster::has_nodes(&stage.client, 1, LIMIT).await?;
    assert_eq!(stage.cloud.complaints().await?, Vec::<String>::new());
    pair.end().await?;
    stage.done()
}

/// Waits until some node has a taint.
async fn marked(stage: &Stage, taint: &str) -> anyhow::Result<()> {
    wait::until(&format!("a node with {taint}"), LIMIT, || async {
        let (nodes, marked) = cluster::marked(&stage.client, taint).await?;
        Ok(if marked > 0 { Ok(()) } else { Err(format!("{nodes} nodes, none has it")) })
    })
    .await
}
