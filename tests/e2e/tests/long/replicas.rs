//! Two replicas; the leader is killed while it works.

use std::time::Duration;

use plimsoll_tests_e2e::cloud::group;
use plimsoll_tests_e2e::pair::{Pair, Phase};
use plimsoll_tests_e2e::stage::{Options, Stage};

use crate::{FLAGS, LIMIT};

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_is_killed_while_pods_come_and_while_they_go() -> anyhow::Result<()> {
    let options = Options::with_groups(vec![group("workers", 60)]);
    let stage = Stage::set_up(crate::folder("replicas"), crate::program(), options).await?;
    let mut pair = Pair::start(&stage, FLAGS, LIMIT).await?;
    pair.kill_during(&stage, 24, Phase::Up, Duration::from_millis(fastrand::u64(300..3_000))).await?;
    pair.kill_during(&stage, 5, Phase::Down, Duration::from_millis(fastrand::u64(2_000..8_000))).await?;
    pair.end().await?;
    stage.done()
}
