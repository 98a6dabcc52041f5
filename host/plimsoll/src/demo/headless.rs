//! The demo as lines of text.

use std::time::Duration;

use anyhow::Context as _;

use super::narrate::clock;
use super::stage::Stage;
use crate::terminal;

/// Plays the whole story and prints what happens, then a summary.
pub(crate) async fn print(mut stage: Stage) -> anyhow::Result<()> {
    while !stage.is_over() {
        let until = stage.now() + Duration::from_secs(10);
        for line in stage.advance(until).await {
            terminal::print(&line.to_string()).context("cannot write")?;
        }
    }
    terminal::print(&summary(&stage)).context("cannot write")
}

/// What came of it.
pub(crate) fn summary(stage: &Stage) -> String {
    let (hours, bound) = stage.figures.node_hours();
    let world = stage.world();
    let sizes: Vec<String> = world.pools.iter().map(|pool| format!("{} {}", pool.id, pool.target)).collect();
    format!(
        "\n{} of virtual time · {} helped · longest wait {}s · {hours:.2} node-hours (no fewer than {bound:.2} could do) · \
         at the end: {}\n",
        clock(stage.elapsed()),
        terminal::plural(stage.figures.helped, "pod"),
        stage.figures.longest_wait.as_secs(),
        sizes.join(", ")
    )
}
