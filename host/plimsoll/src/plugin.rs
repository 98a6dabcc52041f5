//! `plimsoll plugin …`: for those who write plug-ins, and those who are asked to trust one.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_plugins::{Origin, Source, inspect};

use crate::exit::Exit;
use crate::{expanders, terminal};

pub(crate) fn command() -> Command {
    let file = |help: &'static str| {
        Arg::new("file").value_name("FILE").required(true).value_parser(value_parser!(PathBuf)).help(help)
    };
    let inspect = Command::new("inspect")
        .about("What is this plug-in, what does it wish for, and can it be used here?")
        .arg(file("A component (.wasm)"))
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_parser(["text", "json"])
                .default_value("text")
                .help("How to show it"),
        );
    let componentize = Command::new("componentize")
        .about("Turn the core module that cargo built into a component")
        .arg(file("A core module (.wasm) made with plimsoll-guest or wit-bindgen"))
        .arg(
            Arg::new("out")
                .long("out")
                .short('o')
                .value_name("FILE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("Where to put the component"),
        );
    Command::new("plugin")
        .about("Look at plug-ins and make them")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(expanders::add_to(inspect).mut_args(|argument| match argument.get_id().as_str() {
            "plugin-dir" | "plugin-cache" => argument.hide(true),
            _ => argument,
        }))
        .subcommand(componentize)
}

pub(crate) fn run(matches: &ArgMatches) -> Result<(), Exit> {
    match matches.subcommand() {
        Some(("inspect", matches)) => look(matches),
        Some(("componentize", matches)) => componentize(matches),
        _ => Ok(()),
    }
}

fn read(matches: &ArgMatches) -> Result<(PathBuf, Vec<u8>), Exit> {
    let path = matches.get_one::<PathBuf>("file").cloned().unwrap_or_default();
    let regular = std::fs::metadata(&path).and_then(|data| match data.is_file() {
        true => std::fs::read(&path),
        false => Err(std::io::Error::other("it is not a regular file")),
    });
    match regular {
        Ok(bytes) => Ok((path, bytes)),
        Err(error) => Err(Exit::bad_input(format!("{}: cannot be read: {error}", path.display()))),
    }
}

fn look(matches: &ArgMatches) -> Result<(), Exit> {
    let config = expanders::config(matches)?;
    let (path, bytes) = read(matches)?;
    let name = name_of(&path);
    let entry = config.entry(&name);
    let grants = (!config.file.is_empty()).then_some((config.file.as_str(), &entry));
    let source = Source { name: name.into(), origin: Origin::File(path), kind: entry.kind, bytes: Cow::Owned(bytes) };
    let inspected = inspect(&source, grants).map_err(|error| Exit::bad_input(error.to_string()))?;
    let report = inspected.report;
    let text = match matches.get_one::<String>("output").map(String::as_str) {
        Some("json") => {
            serde_json::to_string_pretty(&report).context("cannot write the report").map_err(Exit::failed)?
        }
        _ => report.to_string(),
    };
    let text = format!("{}\n", text.trim_end());
    terminal::print(&text).context("cannot write the report").map_err(Exit::failed)?;
    if report.problems.is_empty() { Ok(()) } else { Err(Exit::Told) }
}

fn name_of(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn componentize(matches: &ArgMatches) -> Result<(), Exit> {
    let (path, bytes) = read(matches)?;
    let out = matches.get_one::<PathBuf>("out").cloned().unwrap_or_default();
    let component = plimsoll_bundled::componentize(&bytes)
        .map_err(|error| Exit::bad_input(format!("{}: {error}", path.display())))?;
    std::fs::write(&out, &component)
        .with_context(|| format!("cannot write {}", out.display()))
        .map_err(Exit::failed)?;
    terminal::print(&format!("{}: component of {} bytes\n", out.display(), component.len()))
        .context("cannot write")
        .map_err(Exit::failed)
}
