//! The leader is killed twenty times at random moments, while pods come and while they go.

use std::time::Duration;

use plimsoll_tests_e2e::cloud::group;
use plimsoll_tests_e2e::pair::{Pair, Phase};
use plimsoll_tests_e2e::stage::{FLAGS, LIMIT, Options, Stage};

/// Kills in each of the two phases.
const ROUNDS: u32 = 10;

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_is_killed_twenty_times() -> anyhow::Result<()> {
    let seed: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    let mut chance = fastrand::Rng::with_seed(seed);
    let options = Options::with_groups(vec![group("workers", 60)]);
    let stage = Stage::set_up(crate::folder("kills"), crate::program(), options).await?;
    let mut pair = Pair::start(&stage, FLAGS, LIMIT).await?;
    for round in 1..=ROUNDS {
        for phase in [Phase::Up, Phase::Down] {
            let (pods, after) = match phase {
                Phase::Up => (chance.u32(30..80), chance.u64(0..5_000)),
                Phase::Down => (chance.u32(1..12), chance.u64(0..12_000)),
            };
            println!("round {round} {phase:?}: {pods} pods, killed after {after} ms");
            pair.kill_during(&stage, pods, phase, Duration::from_millis(after)).await?;
        }
    }
    pair.end().await?;
    stage.done()
}
