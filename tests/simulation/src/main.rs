//! `soak`: plays many seeds and says what broke.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Context as _;
use clap::Parser;
use plimsoll_recording::Recorder;
use plimsoll_tests_simulation::{Components, Report, Story, Violation, play, play_recorded, shrink};

/// Plays the real core and the real components against an in-memory cluster and cloud in which everything fails.
#[derive(Parser, Debug)]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Play one seed only, and tell everything.
    #[arg(long)]
    seed: Option<u64>,
    /// Virtual hours of each run.
    #[arg(long, default_value_t = 24)]
    hours: u64,
    /// Only these happenings of the seed, by number.
    #[arg(long, value_delimiter = ',')]
    only: Option<Vec<usize>>,
    /// Where compiled components are kept.
    #[arg(long, default_value = "target/soak-cache")]
    cache: PathBuf,
    /// Runs spent on shrinking what broke.
    #[arg(long, default_value_t = 100)]
    shrink: usize,
    /// Stop at the first seed that breaks something.
    #[arg(long)]
    fail_fast: bool,
    /// Write every loop of the run that broke something, or of the one seed, to this file, for `plimsoll replay`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Runs at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let components = Components::open(&arguments.cache)?;
    if let Some(seed) = arguments.seed {
        return one(&components, seed, arguments);
    }
    let begun = Instant::now();
    let next = AtomicU64::new(arguments.first);
    let end = arguments.first + arguments.seeds;
    let results: Mutex<(Report, Vec<(u64, Violation)>)> = Mutex::default();
    std::thread::scope(|scope| {
        let work = || -> anyhow::Result<()> {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end {
                    return Ok(());
                }
                let outcome = play(&components, &Story::draw(seed, arguments.hours), None)?;
                let Ok(mut results) = results.lock() else { return Ok(()) };
                match outcome {
                    Ok(report) => results.0 += report,
                    Err(violation) => {
                        println!("seed {seed}: {violation}");
                        results.1.push((seed, violation));
                        if arguments.fail_fast {
                            next.store(end, Ordering::Relaxed);
                        }
                    }
                }
            }
        };
        let workers: Vec<_> = (0..arguments.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| anyhow::bail!("a run panicked")))
    })?;
    let (report, mut broken) = results.into_inner().context("a run panicked")?;
    println!(
        "{} seeds of {} virtual hours in {:.0}s: {} broken; {} loops, {} increases, {} decreases, {} deletions, {} kills",
        arguments.seeds,
        arguments.hours,
        begun.elapsed().as_secs_f64(),
        broken.len(),
        report.loops,
        report.increases,
        report.decreases,
        report.deletions,
        report.kills
    );
    broken.sort_by_key(|(seed, _)| *seed);
    let wanted = arguments.shrink > 0 || arguments.record.is_some();
    if let Some((seed, violation)) = broken.first().filter(|_| wanted) {
        let scenario = Story::draw(*seed, arguments.hours);
        let (small, violation) = shrink(&components, &scenario, violation, arguments.shrink)?;
        let numbers: Vec<String> = small.numbers().iter().map(ToString::to_string).collect();
        println!("\nseed {seed}, shrunk: {violation}\n{small}");
        println!("replay: soak --seed {seed} --hours {} --only {}", arguments.hours, numbers.join(","));
        if let Some(recorder) = recorder(arguments)? {
            // It breaks again; what was seen is known already.
            let _ = play_recorded(&components, &small, None, Some(recorder))?;
        }
    }
    Ok(broken.is_empty())
}

/// What writes a run down, if that is wished.
fn recorder(arguments: &Arguments) -> anyhow::Result<Option<Recorder>> {
    let Some(path) = &arguments.record else { return Ok(None) };
    let file = std::fs::File::create(path).with_context(|| format!("{}: cannot be written", path.display()))?;
    println!("recorded: {}", path.display());
    Ok(Some(Recorder::begin(Box::new(file))?))
}

fn one(components: &Components, seed: u64, arguments: &Arguments) -> anyhow::Result<bool> {
    let whole = Story::draw(seed, arguments.hours);
    let scenario = arguments.only.as_ref().map_or_else(|| whole.clone(), |numbers| whole.only(numbers));
    println!("{scenario}");
    match play_recorded(components, &scenario, Some(|line| println!("{line}")), recorder(arguments)?)? {
        Ok(report) => {
            println!("nothing broke: {report:?}");
            Ok(true)
        }
        Err(violation) => {
            println!("{violation}");
            Ok(false)
        }
    }
}
