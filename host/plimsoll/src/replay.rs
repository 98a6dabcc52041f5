//! `plimsoll replay FILE`: runs recorded loops again through the core, and says whether they decide the same.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_recording::Recording;
use plimsoll_recording::replay::{self, Difference, Replayed};
use serde::Serialize;

use crate::exit::Exit;
use crate::terminal::{self, Ink, plural};

/// Most decisions of one loop that the table shows, and most differences.
const MOST_LINES: usize = 40;

pub(crate) fn command() -> Command {
    Command::new("replay")
        .about("Run the loops of a recording again, and say whether they decide the same")
        .after_help(
            "The recording is a file that --record wrote. Each loop gets what it saw and the answers that it got then; \
             nothing is written anywhere. Of loops that decide nothing, only their number is told, unless --loop asks \
             for one.\n\n\
             Exit status: 0 the same, 1 something differs, 2 bad input.",
        )
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The recording"),
        )
        .arg(
            Arg::new("loop")
                .long("loop")
                .value_name("N")
                .value_parser(value_parser!(u64).range(1..))
                .help("Only this loop, with everything that it decided; the first is 1"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_parser(["table", "json"])
                .default_value("table")
                .help("How to show the loops; json is one object a line"),
        )
}

/// A loop, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(rename = "loop")]
    number: usize,
    at: String,
    nodes: usize,
    pods: usize,
    groups: usize,
    steps: &'a [String],
    decisions: &'a [String],
    same: bool,
    differences: Vec<String>,
    /// The recording ends in the middle of it.
    unfinished: bool,
}

pub(crate) fn run(matches: &ArgMatches) -> Result<(), Exit> {
    let path = matches.get_one::<PathBuf>("file").cloned().unwrap_or_default();
    let bad = |error: &dyn std::fmt::Display| Exit::bad_input(format!("{}: {error}", path.display()));
    let file = File::open(&path).map_err(|error| bad(&format!("cannot be read: {error}")))?;
    let mut recording = Recording::open(BufReader::new(file)).map_err(|error| bad(&error))?;
    let wanted = matches.get_one::<u64>("loop").and_then(|&number| usize::try_from(number).ok());
    let json = matches.get_one::<String>("output").is_some_and(|format| format == "json");
    let (mut loops, mut different, mut found) = (0, 0, false);
    while let Some(replayed) = replay::again(&mut recording).map_err(|error| bad(&error))? {
        loops += 1;
        let is_wanted = wanted.is_none_or(|wanted| wanted == replayed.number);
        if is_wanted {
            found = true;
            different += usize::from(!replayed.differences.is_empty());
            let text = if json { line(&replayed)? } else { table(&replayed, wanted.is_some()) };
            terminal::print(&text).context("cannot write").map_err(Exit::failed)?;
        }
        if wanted == Some(replayed.number) {
            break;
        }
    }
    if let Some(wanted) = wanted.filter(|_| !found) {
        return Err(bad(&format!("there is no loop {wanted}: it has {}", plural(loops, "loop"))));
    }
    if !json {
        let played = if wanted.is_some() { 1 } else { loops };
        let verdict = match different {
            0 => "the same decisions".to_owned(),
            count => format!("{} differently", plural(count, "loop") + if count == 1 { " decides" } else { " decide" }),
        };
        let text = format!("{}: {verdict}\n", plural(played, "loop"));
        terminal::print(&text).context("cannot write").map_err(Exit::failed)?;
    }
    if different > 0 { Err(Exit::Differs) } else { Ok(()) }
}

fn line(replayed: &Replayed) -> Result<String, Exit> {
    let (nodes, pods, groups) = replayed.saw;
    let shown = Shown {
        number: replayed.number,
        at: replayed.at.to_string(),
        nodes,
        pods,
        groups,
        steps: &replayed.steps,
        decisions: &replayed.decided,
        same: replayed.differences.is_empty(),
        differences: replayed.differences.iter().map(Difference::to_string).collect(),
        unfinished: replayed.unfinished,
    };
    let text = serde_json::to_string(&shown).context("cannot write a loop as JSON").map_err(Exit::failed)?;
    Ok(text + "\n")
}

/// What a loop did, without what merely stays as it is; all of it if asked for.
fn table(replayed: &Replayed, all: bool) -> String {
    let ink = Ink::for_stdout();
    let matters =
        |line: &&String| ["up:", "down:", "not helped:", "warning:"].iter().any(|kind| line.starts_with(kind));
    let lines: Vec<&String> = replayed.decided.iter().filter(|line| all || matters(line)).collect();
    let quiet = lines.is_empty() && replayed.steps.is_empty() && replayed.differences.is_empty();
    if quiet && !all && !replayed.unfinished {
        return String::new();
    }
    let (nodes, pods, groups) = replayed.saw;
    let mut text = String::new();
    let head = format!("loop {} at {}", replayed.number, replayed.at);
    let saw = [plural(nodes, "node"), plural(pods, "pod"), plural(groups, "group")].join(", ");
    let end = if replayed.unfinished { "; the recording ends in the middle of it" } else { "" };
    // A String cannot fail to be written to.
    let _ = writeln!(text, "{}: {saw}{end}", ink.heading(&head));
    let most = if all { usize::MAX } else { MOST_LINES };
    for step in replayed.steps.iter().take(most) {
        let _ = writeln!(text, "  step: {step}");
    }
    for line in lines.iter().take(most) {
        let _ = writeln!(text, "  {line}");
    }
    for difference in replayed.differences.iter().take(most) {
        let _ = writeln!(text, "  {}", ink.warning(&format!("differs: {difference}")));
    }
    let left = [replayed.steps.len(), lines.len(), replayed.differences.len()];
    let left: usize = left.iter().map(|count| count.saturating_sub(most)).sum();
    if left > 0 {
        let _ = writeln!(text, "  … and {}; --loop {} tells all", plural(left, "more line"), replayed.number);
    }
    text
}
