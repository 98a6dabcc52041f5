//! `bench`: times the loop of `plimsoll simulate` on generated clusters, and checks each answer.
//!
//! The loop is timed inside the program, from the model in memory to the decision, expander component included. Reading
//! the objects is timed apart. Every run is a process of its own, so that memory is that of one loop.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::Parser;
use serde::Serialize;

mod answer;
mod objects;
mod scenes;

use answer::{Answer, Stats};
use objects::List;
use scenes::{SCENES, Scene};

/// Times the loop on generated clusters.
#[derive(Parser)]
struct Arguments {
    /// The program to time.
    #[arg(long, default_value = "target/release/plimsoll")]
    program: PathBuf,
    /// Folder for the generated clusters, and for `bench.json`.
    #[arg(long, default_value = "target")]
    folder: PathBuf,
    /// How often each loop is run.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Only scenes whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    nodes: usize,
    pods: usize,
    groups: usize,
    median_ms: f64,
    min_ms: f64,
    max_ms: f64,
    /// The median of the time that the loop really ran, which other programs on the machine change less.
    cpu_ms: f64,
    read_ms: f64,
    peak_rss_mib: f64,
    target_ms: f64,
    peer: &'static str,
    correct: bool,
    result: String,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut out = std::io::stdout().lock();
    let mut rows = Vec::new();
    writeln!(
        out,
        "{:20} {:>7} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}  result [Go autoscaler]",
        "name", "nodes", "pods", "groups", "median ms", "min ms", "max ms", "cpu ms", "read ms", "MiB"
    )?;
    for scene in SCENES.iter().filter(|scene| scene.name.contains(&arguments.only)) {
        let row = time(scene, &arguments).with_context(|| scene.name)?;
        let over = row.median_ms > scene.target_ms || scene.target_mib.is_some_and(|most| row.peak_rss_mib > most);
        let peer = if row.peer.is_empty() { String::new() } else { format!(" [{}]", row.peer) };
        let remark = match (row.correct, over) {
            (false, _) => "  WRONG",
            (true, true) => "  over target",
            (true, false) => "",
        };
        writeln!(
            out,
            "{:20} {:>7} {:>8} {:>6} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>8.0} {:>8.1}  {}{peer}{remark}",
            row.name,
            row.nodes,
            row.pods,
            row.groups,
            row.median_ms,
            row.min_ms,
            row.max_ms,
            row.cpu_ms,
            row.read_ms,
            row.peak_rss_mib,
            row.result
        )?;
        rows.push(row);
    }
    let file = arguments.folder.join("bench.json");
    std::fs::write(&file, serde_json::to_vec_pretty(&rows)?).with_context(|| file.display().to_string())?;
    let wrong = rows.iter().any(|row| !row.correct);
    Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn time(scene: &Scene, arguments: &Arguments) -> anyhow::Result<Row> {
    let folder = arguments.folder.join("bench");
    std::fs::create_dir_all(&folder)?;
    let input = folder.join(format!("{}.json", scene.name));
    write(scene, &input).with_context(|| input.display().to_string())?;
    let mut stats: Vec<Stats> = Vec::new();
    let mut results: Vec<Result<String, String>> = Vec::new();
    for _ in 0..arguments.runs.max(1) {
        let answer = run(scene, arguments, &input)?;
        results.push((scene.check)(&answer));
        stats.push(answer.stats);
    }
    std::fs::remove_file(&input)?;
    let same = results.windows(2).all(|pair| pair.first() == pair.last());
    let sorted = |of: fn(&Stats) -> f64| {
        let mut figures: Vec<f64> = stats.iter().map(of).collect();
        figures.sort_by(f64::total_cmp);
        figures
    };
    let loops = sorted(|stats| stats.loop_ms);
    let middle = |figures: &[f64]| figures.get(figures.len() / 2).copied().unwrap_or_default();
    let first = stats.first().context("no run")?;
    let result = results.into_iter().next().context("no run")?;
    Ok(Row {
        name: scene.name,
        nodes: first.nodes,
        pods: first.pods,
        groups: first.groups,
        median_ms: middle(&loops),
        min_ms: loops.first().copied().unwrap_or_default(),
        max_ms: loops.last().copied().unwrap_or_default(),
        cpu_ms: middle(&sorted(|stats| stats.loop_cpu_ms)),
        read_ms: middle(&sorted(|stats| stats.read_ms)),
        peak_rss_mib: sorted(|stats| stats.peak_rss_mib).last().copied().unwrap_or_default(),
        target_ms: scene.target_ms,
        peer: scene.peer,
        correct: result.is_ok() && same,
        result: result.unwrap_or_else(|wrong| wrong),
    })
}

fn write(scene: &Scene, file: &Path) -> anyhow::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    let mut list = List::new(&mut out as &mut dyn Write)?;
    (scene.write)(&mut list)?;
    list.end()?;
    Ok(())
}

fn run(scene: &Scene, arguments: &Arguments, input: &Path) -> anyhow::Result<Answer> {
    let program = &arguments.program;
    let output = Command::new(program)
        .arg("simulate")
        .arg(input)
        .args(["--output", "json", "--expander=least-waste"])
        .args(scene.flags)
        .output()
        .with_context(|| {
            format!("cannot run {}; build it with `cargo build --release -p plimsoll`", program.display())
        })?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{} ended with {}: {errors}", program.display(), output.status);
    serde_json::from_slice(&output.stdout).context("the answer is no plan")
}
