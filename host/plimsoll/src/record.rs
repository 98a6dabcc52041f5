//! `--record FILE`: every loop is written down for `plimsoll replay`.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_recording::Recorder;

use crate::exit::Exit;

pub(crate) fn add_to(command: Command) -> Command {
    command.arg(
        Arg::new("record")
            .long("record")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("Write down what every loop sees and hears, for `plimsoll replay`; holds no secrets"),
    )
}

/// What writes the loops down, if that is wished. A file that is there is replaced.
pub(crate) fn recorder(matches: &ArgMatches) -> Result<Option<Recorder>, Exit> {
    // Not every command that decides has the flag.
    let path = matches.try_get_one::<PathBuf>("record").ok().flatten();
    let Some(path) = path else { return Ok(None) };
    let bad = |error: &dyn std::fmt::Display| {
        Exit::bad_input(format!("--record {}: cannot be written: {error}", path.display()))
    };
    let file = File::create(path).map_err(|error| bad(&error))?;
    // The recorder flushes after every record.
    Recorder::begin(Box::new(BufWriter::new(file))).map(Some).map_err(|error| bad(&error))
}
