//! The API server is away for a minute and forgets; the token is replaced, and the old one stops to be valid.

use std::time::Duration;

use plimsoll_tests_e2e::cloud::group;
use plimsoll_tests_e2e::settle::settles;
use plimsoll_tests_e2e::stage::{FLAGS, Options, Stage};

#[tokio::test(flavor = "multi_thread")]
async fn away_for_a_minute_and_a_new_token() -> anyhow::Result<()> {
    let options = Options::with_groups(vec![group("workers", 60)]);
    let mut stage = Stage::set_up(crate::folder("api_trouble_long"), crate::program(), options).await?;
    let mut program = stage.start("plimsoll-0", FLAGS).await?;
    settles(&stage, &mut program, 20).await?;

    stage.plane.order("stop kube-apiserver")?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    stage.plane.order("compact")?;
    stage.plane.order("start kube-apiserver")?;
    settles(&stage, &mut program, 40).await?;
    settles(&stage, &mut program, 8).await?;

    stage.renew_token()?;
    // The API server remembers a token for ten seconds, the client for a minute.
    tokio::time::sleep(Duration::from_secs(75)).await;
    settles(&stage, &mut program, 24).await?;
    stage.done()
}
