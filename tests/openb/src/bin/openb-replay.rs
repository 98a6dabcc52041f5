//! `openb-replay NODES.csv PODS.csv`: the trace on the simulated cloud, beside the fewest node-hours that could have done.

use std::fs::File;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::Parser;
use plimsoll_core::Settings;
use plimsoll_tests_openb::hours::{FewestHours, fewest_hours};
use plimsoll_tests_openb::replay::{self, Outcome};
use plimsoll_tests_openb::{shapes, trace};

/// Plays the openb trace by its times of arrival and departure, and prints node-hours, waits and evictions.
#[derive(Parser)]
struct Arguments {
    /// Table of machines.
    nodes: PathBuf,
    /// Table of pods.
    pods: PathBuf,
    /// Only pods that come in the first so many days.
    #[arg(long)]
    days: Option<u64>,
}

/// Runs to compare: a name, and its settings.
fn runs() -> Vec<(&'static str, Settings)> {
    let with = |expander: &str, settings: Settings| Settings { expander: vec![expander.to_owned()], ..settings };
    // What the peer does by default, as far as flags express it: one option in a loop, drawn by lot, one drain at a time.
    let peer = Settings { scale_up_rounds: Some(1), max_drain_parallelism: 1, ..Settings::default() };
    vec![
        ("ours, --expander=least-nodes", with("least-nodes", Settings::default())),
        ("ours, --expander=least-waste", with("least-waste", Settings::default())),
        ("the peer's way, --expander=least-waste", with("least-waste", peer.clone())),
        ("the peer's way, --expander=random", with("random", peer)),
    ]
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let machines = trace::machines(open(&arguments.nodes)?).with_context(|| name(&arguments.nodes))?;
    let mut tasks = trace::tasks(open(&arguments.pods)?).with_context(|| name(&arguments.pods))?;
    if let Some(days) = arguments.days {
        tasks.retain(|task| task.span.is_some_and(|(begin, _)| begin < days * 86_400));
    }
    let shapes = shapes(&machines);
    let fewest = fewest_hours(&shapes, &tasks);
    let mut out = stdout().lock();
    writeln!(out, "the fewest node-hours that could have held the pods: {:.0}", fewest.all)?;
    for (resource, hours) in &fewest.by_resource {
        writeln!(out, "  {resource}: {hours:.0}")?;
    }
    for (what, settings) in runs() {
        let begun = Instant::now();
        let outcome = replay::play(&shapes, &tasks, &settings)?;
        tell(&mut out, what, &outcome, &fewest, begun.elapsed().as_secs_f64())?;
    }
    Ok(())
}

fn tell(
    out: &mut impl Write,
    what: &str,
    outcome: &Outcome,
    fewest: &FewestHours,
    seconds: f64,
) -> std::io::Result<()> {
    let ratio = outcome.node_hours / fewest.all.max(f64::MIN_POSITIVE);
    writeln!(out, "{what}: {:.0} node-hours, {ratio:.2} times the fewest", outcome.node_hours)?;
    writeln!(
        out,
        "  {} pods got a node, {} did not; waits: mean {:.0}s, half at most {}s, 99 of 100 at most {}s, longest {}s",
        outcome.served,
        outcome.unserved,
        outcome.mean_wait(),
        outcome.wait(50),
        outcome.wait(99),
        outcome.wait(100)
    )?;
    writeln!(
        out,
        "  {} evictions; {} machines asked for, most at a time {}; {} loops in {seconds:.0}s",
        outcome.evictions, outcome.machines, outcome.most, outcome.loops
    )?;
    out.flush()
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("cannot open {}", path.display()))
}

fn name(path: &Path) -> String {
    path.display().to_string()
}
