//! `openb NODES.csv PODS.csv OUT.json`: the trace as objects for `plimsoll simulate`.

use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Parser;
use plimsoll_tests_openb::{list, lower_bounds, shapes, trace};

/// Writes the pods and machines of the openb trace as one List of pending pods and node groups.
#[derive(Parser)]
struct Arguments {
    /// Table of machines.
    nodes: PathBuf,
    /// Table of pods.
    pods: PathBuf,
    /// File to write.
    out: PathBuf,
    /// Put pods and groups into another order, the same for the same seed.
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
    /// Print how few machines could possibly do.
    #[arg(long)]
    lower_bound: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let machines = trace::machines(open(&arguments.nodes)?).with_context(|| name(&arguments.nodes))?;
    let mut tasks = trace::tasks(open(&arguments.pods)?).with_context(|| name(&arguments.pods))?;
    let mut shapes = shapes(&machines);
    if let Some(seed) = arguments.shuffle {
        let mut random = fastrand::Rng::with_seed(seed);
        random.shuffle(&mut tasks);
        random.shuffle(&mut shapes);
    }

    let file = File::create(&arguments.out).with_context(|| format!("cannot write {}", arguments.out.display()))?;
    let mut out = BufWriter::new(file);
    serde_json::to_writer(&mut out, &list(&shapes, &tasks)).with_context(|| name(&arguments.out))?;
    out.flush().with_context(|| name(&arguments.out))?;

    let mut report = stdout().lock();
    let servable = tasks.iter().filter(|task| shapes.iter().any(|(shape, _)| task.fits(shape))).count();
    writeln!(
        report,
        "{} pods, of which {servable} fit on some machine; {} machines in {} groups",
        tasks.len(),
        machines.len(),
        shapes.len()
    )?;
    if arguments.lower_bound {
        let bounds = lower_bounds(&shapes, &tasks);
        for bound in &bounds {
            writeln!(report, "  {bound}")?;
        }
        let most = bounds.iter().map(|bound| bound.machines).max().unwrap_or(0);
        writeln!(report, "at least {most} machines")?;
    }
    Ok(())
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("cannot open {}", path.display()))
}

fn name(path: &Path) -> String {
    path.display().to_string()
}
