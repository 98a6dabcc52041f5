//! `plimsoll simulate FILES…`: what would the loop do?
//!
//! The same core, the same expanders; only the cluster is a file and nothing is written anywhere.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_core::cloud::{DeleteOutcome, DeleteStatus, SizeOutcome};
use plimsoll_core::observation::{CloudView, prepare};
use plimsoll_core::ranking::{RankRequest, Ranking};
use plimsoll_core::{Action, Loop, Memory, Observation, Outcome, Plan, Settings};
use plimsoll_driver::steps::{self, Answers, Recorded};
use plimsoll_model::Time;
use plimsoll_model::read::{Input, Reader};
use plimsoll_plugins::Library;
use plimsoll_recording::{Recorder, Seen};
use plimsoll_signals::state::LoopState;

pub(crate) mod groups;
mod output;
mod state;
mod table;

use crate::exit::Exit;
use crate::{expanders, flags, record, terminal, usage};
use groups::FileCloud;
use output::{Answer, Stats};

pub(crate) fn command() -> Command {
    let command = Command::new("simulate")
        .about("What would the loop do with the cluster in these files? Nothing is written anywhere")
        .after_help(
            "Files hold what `kubectl get … -o json` or `-o yaml` prints, and NodeGroup objects \
             (apiVersion: plimsoll.dev/v1alpha1; docs/nodegroup.md tells of every field). \"-\" reads standard input.\n\n\
             A file has no history: waits count as over, and a pod without a node is pending even before a scheduler \
             marked it, unless it is gated.\n\n\
             Exit status: 0 decided, 1 failed, 2 bad input.",
        )
        .arg(files().required(true))
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_parser(["table", "json", "yaml"])
                .default_value("table")
                .help("How to show the plan"),
        );
    flags::add_to(record::add_to(expanders::add_to(deciding(command))))
}

/// The files to decide about.
pub(crate) fn files() -> Arg {
    Arg::new("files")
        .value_name("FILES")
        .num_args(1..)
        .value_parser(value_parser!(PathBuf))
        .help("Kubernetes objects and node groups, JSON or YAML")
}

/// Adds what a decision about files needs to be told.
pub(crate) fn deciding(command: Command) -> Command {
    command
        .arg(
            Arg::new("no-waits-elapsed")
                .long("no-waits-elapsed")
                .num_args(0)
                .help("Let waits run from now. Without it they count as over, since a file has no history"),
        )
        .arg(Arg::new("at").long("at").value_name("TIME").help("The time of the loop, as RFC 3339; now, if left out"))
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_name("N")
                .value_parser(value_parser!(u64))
                .default_value("0")
                .help("Seed of the draw between options that no expander tells apart"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<(), Exit> {
    let text = decided(matches, |decided| show(decided, matches))??;
    terminal::print(&text).context("cannot write the plan").map_err(Exit::failed)
}

/// A decision about what files hold, while the model of it is there.
pub(crate) struct Decided<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) observation: &'a Observation<'a>,
    /// What is odd about flags, files and plug-ins.
    pub(crate) warnings: &'a [String],
    stats: Stats,
}

/// Decides about the files of a command line, and looks at the result.
pub(crate) fn decided<T>(matches: &ArgMatches, look: impl FnOnce(&Decided<'_>) -> T) -> Result<T, Exit> {
    let begun = Instant::now();
    let input = read(matches)?;
    let read_ms = millis(begun.elapsed());
    let recorder = record::recorder(matches)?;
    let state = input.loop_state.clone().map(state::read).transpose()?;
    let base = state.as_ref().map(state::settings).transpose()?.unwrap_or_default();
    let (mut settings, mut warnings) = flags::settings_upon(base, matches).map_err(Exit::flag)?;
    // A state has the history that a file lacks.
    settings.waits_elapsed = state.is_none() && !matches.get_flag("no-waits-elapsed");
    settings.seed = matches.get_one::<u64>("seed").copied().unwrap_or_default();
    let at = at(matches, state.as_ref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
        .map_err(Exit::failed)?;
    runtime.block_on(async {
        let events = expanders::Events::default();
        let library = expanders::open(matches, &settings.expander, &events).await?;
        warnings.extend(input.warnings.iter().map(ToString::to_string));
        warnings.extend(events.take());
        decide(Read { input, read_ms, state, recorder }, &settings, &library, at, warnings, look, &events).await
    })
}

/// The time of the loop: as asked for, else that of the state, else now.
fn at(matches: &ArgMatches, state: Option<&LoopState>) -> Result<Time, Exit> {
    let asked = matches.get_one::<String>("at").map(|text| ("--at", text));
    match asked.or_else(|| state.map(|state| ("LoopState: at", &state.spec.at))) {
        Some((what, text)) => Time::parse(text)
            .ok_or_else(|| Exit::bad_input(format!("{what}: {text:?} is not a time such as 2026-01-31T12:00:00Z"))),
        None => Ok(crate::now()),
    }
}

/// A file, or what a pipe holds. A device would never end.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Err(std::io::Error::other("it is a device; expected a file or a pipe"));
    }
    std::fs::read(path)
}

/// Reads the files of a command line.
fn read(matches: &ArgMatches) -> Result<Input, Exit> {
    read_with(Reader::default(), matches)
}

/// The same, by a reader that somebody made.
pub(crate) fn read_with(mut reader: Reader, matches: &ArgMatches) -> Result<Input, Exit> {
    for path in matches.get_many::<PathBuf>("files").into_iter().flatten() {
        let name = path.display().to_string();
        let bytes = if name == "-" {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes).map(|_| bytes)
        } else {
            contents(path)
        };
        let bytes = bytes.map_err(|error| Exit::bad_input(format!("{name}: cannot be read: {error}")))?;
        reader.add(&name, &bytes).map_err(|error| Exit::bad_input(error.to_string()))?;
    }
    reader.finish().map_err(|error| Exit::bad_input(error.to_string()))
}

/// Milliseconds, to a thousandth.
fn millis(span: Duration) -> f64 {
    span.as_micros() as f64 / 1000.0
}

/// What the files hold, and how long it took to read them.
struct Read {
    input: Input,
    read_ms: f64,
    state: Option<LoopState>,
    /// Writes the loop down, if that is wished.
    recorder: Option<Recorder>,
}

async fn decide<T>(
    Read { input, read_ms, state, mut recorder }: Read,
    settings: &Settings,
    library: &Library,
    at: Time,
    mut warnings: Vec<String>,
    look: impl FnOnce(&Decided<'_>) -> T,
    events: &expanders::Events,
) -> Result<T, Exit> {
    let Input { mut cluster, node_groups, .. } = input;
    if node_groups.is_empty() && state.is_none() {
        warnings.push("no NodeGroup object was given, so nothing can grow or shrink".to_owned());
    }
    let (mut memory_of_loop, known) = state.map(|state| (state.spec.memory, state.spec.cloud)).unwrap_or_default();
    let cloud = FileCloud::new(node_groups, &cluster, at, settings, &mut memory_of_loop.ledger)
        .map_err(Exit::bad_input)?
        .upon(known)
        .map_err(Exit::bad_input)?;
    let (begun, ran) = (Instant::now(), usage::processor_time());
    let view = CloudView {
        snapshot: &cloud.snapshot,
        capabilities: &cloud.capabilities,
        templates: &cloud.provided,
        fixed_templates: &cloud.templates,
        prices: cloud.prices.as_ref(),
    };
    let before = recorder.is_some().then(|| memory_of_loop.clone());
    let prepared = prepare(at, &mut cluster, view, settings, &mut memory_of_loop.templates);
    let observation = Observation::new(prepared, &cluster, view, settings);
    if let (Some(recorder), Some(memory)) = (&mut recorder, &before) {
        recorder.begins(&Seen { at, settings, cluster: &cluster, clouds: view, memory });
    }
    let turn = Loop::new(&observation, settings, &mut memory_of_loop);
    let mut answers = Recorded { answers: Accepting { library }, recorder: recorder.as_mut() };
    let plan = steps::run(turn, &mut answers).await;
    if let Some(recorder) = &mut recorder {
        recorder.ends(&plan, &observation);
        let trouble = recorder.take_trouble();
        trouble.map_or(Ok(()), |error| Err(Exit::failed(error.into())))?;
    }
    let stats = Stats {
        nodes: cluster.nodes.len(),
        pods: cluster.pods.len(),
        groups: observation.groups.len(),
        loop_ms: millis(begun.elapsed()),
        loop_cpu_ms: millis(usage::processor_time().saturating_sub(ran)),
        read_ms,
        peak_rss_mib: usage::peak_mib(),
    };
    for event in events.take() {
        if !warnings.contains(&event) {
            warnings.push(event);
        }
    }
    // What the plan warns of is told with it.
    warnings.retain(|text| plan.warnings.iter().all(|warning| warning.to_string() != *text));
    Ok(look(&Decided { plan: &plan, observation: &observation, warnings: &warnings, stats }))
}

fn show(decided: &Decided<'_>, matches: &ArgMatches) -> Result<String, Exit> {
    let &Decided { plan, observation, warnings, stats } = decided;
    let format = matches.get_one::<String>("output").map_or("table", String::as_str);
    if format == "table" {
        return Ok(table::render(plan, observation, warnings, stats, terminal::Ink::for_stdout()));
    }
    let answer = Answer::new(plan, observation, warnings, stats);
    let text = match format {
        "yaml" => serde_saphyr::to_string(&answer).context("cannot write the plan as YAML").map_err(Exit::failed)?,
        _ => {
            serde_json::to_string_pretty(&answer).context("cannot write the plan as JSON").map_err(Exit::failed)? + "\n"
        }
    };
    Ok(text)
}

/// A cloud that takes every order and an API server that takes every write: a plan says what would be asked for.
struct Accepting<'a> {
    library: &'a Library,
}

impl Answers for Accepting<'_> {
    async fn rank(&mut self, expander: &str, request: &RankRequest) -> Ranking {
        self.library.rank(expander, request).await
    }

    async fn act(&mut self, action: &Action) -> Outcome {
        accepted(action)
    }

    async fn remember(&mut self, _: &Memory) {}
}

/// What becomes of an action that everybody accepts.
pub(crate) fn accepted(action: &Action) -> Outcome {
    match action {
        Action::Increase { delta, expected_target, .. } => Outcome::Size(Ok(SizeOutcome {
            target_size: expected_target.saturating_add(*delta),
            accepted: *delta,
            activity: None,
            confirmed: true,
            shortfall: None,
        })),
        Action::DecreaseTarget { delta, expected_target, .. } => Outcome::Size(Ok(SizeOutcome {
            target_size: expected_target.saturating_sub(*delta),
            accepted: *delta,
            activity: None,
            confirmed: true,
            shortfall: None,
        })),
        Action::Delete { instances, expected_target, .. } => Outcome::Delete(Ok(DeleteOutcome {
            target_size: expected_target.saturating_sub(u32::try_from(instances.len()).unwrap_or(u32::MAX)),
            results: instances.iter().map(|id| (id.clone(), DeleteStatus::Accepted)).collect(),
            activity: None,
        })),
        Action::Taint { .. } | Action::Untaint { .. } | Action::Evict { .. } => Outcome::Api(Ok(())),
    }
}
