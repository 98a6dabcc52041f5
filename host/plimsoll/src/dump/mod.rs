//! `plimsoll dump`: a cluster in one file that `plimsoll simulate` takes, from a live cluster or from other files.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_model::read::Reader;
use plimsoll_signals::anonymize::{Key, anonymize};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::{simulate, terminal};

mod live;
#[cfg(test)]
mod tests;

pub(crate) fn command() -> Command {
    let command = Command::new("dump")
        .about("Put a cluster into one file that `plimsoll simulate` takes")
        .after_help(
            "Without files the cluster is read through its API server, and the running autoscaler is asked for its node \
             groups and for what it remembers: then `plimsoll simulate` decides as the loop does that comes right after the \
             objects were read. Nothing is written but the dump.\n\n\
             With --anonymize, names, label values and annotations are replaced, and the decision stays the same. Label \
             keys, taint keys, resource names, drivers, amounts and times stay.\n\n\
             Exit status: 0 done, 1 failed, 2 bad input.",
        )
        .arg(simulate::files().help("Kubernetes objects and node groups, JSON or YAML; none: a live cluster is read"))
        .arg(
            Arg::new("out")
                .long("out")
                .short('o')
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Where to write it; standard output, if left out"),
        )
        .arg(
            Arg::new("anonymize")
                .long("anonymize")
                .num_args(0)
                .help("Replace names, label values and annotations; the decision stays the same"),
        )
        .arg(
            Arg::new("anonymize-key")
                .long("anonymize-key")
                .value_name("TEXT")
                .requires("anonymize")
                .help("With the same key the ends of new names are the same in every dump; a random one, if left out"),
        );
    live::add_to(command)
}

pub(crate) fn run(matches: &ArgMatches) -> Result<(), Exit> {
    let objects = match matches.contains_id("files") {
        true => of_files(matches)?,
        false => live::objects(matches)?,
    };
    let objects = match matches.get_flag("anonymize") {
        true => anonymize(objects, &key(matches)?).map_err(|error| Exit::bad_input(error.to_string()))?,
        false => objects,
    };
    write(&objects, matches.get_one::<PathBuf>("out"))
}

fn key(matches: &ArgMatches) -> Result<Key, Exit> {
    match matches.get_one::<String>("anonymize-key") {
        Some(text) => Ok(Key::of(text)),
        None => {
            Key::random().context("the system gives no random key; name one with --anonymize-key").map_err(Exit::failed)
        }
    }
}

/// The objects of files, which are read as `simulate` reads them, so that what it would refuse is refused here.
fn of_files(matches: &ArgMatches) -> Result<Vec<Value>, Exit> {
    let input = simulate::read_with(Reader::keeping_objects(), matches)?;
    for warning in &input.warnings {
        terminal::complain(&format!("warning: {warning}"));
    }
    Ok(input.objects.into_iter().map(without_managed_fields).collect())
}

/// Who changed which field when: as long as the object, and of no use here.
fn without_managed_fields(mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    object
}

fn write(objects: &[Value], out: Option<&PathBuf>) -> Result<(), Exit> {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    let text = serde_json::to_string(&list).context("cannot write the dump as JSON").map_err(Exit::failed)? + "\n";
    match out {
        Some(path) => {
            std::fs::write(path, text)
                .with_context(|| format!("cannot write {}", path.display()))
                .map_err(Exit::failed)?;
            terminal::complain(&format!("{}: {}", path.display(), terminal::plural(objects.len(), "object")));
            Ok(())
        }
        None => terminal::print(&text).context("cannot write").map_err(Exit::failed),
    }
}
