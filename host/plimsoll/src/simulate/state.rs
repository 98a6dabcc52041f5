//! The state of a running process, which a dump holds.

use plimsoll_core::Settings;
use plimsoll_signals::state::LoopState;

use crate::exit::Exit;
use crate::flags;

/// Reads the object of a file.
pub(super) fn read(object: serde_json::Value) -> Result<LoopState, Exit> {
    serde_json::from_value(object).map_err(|error| {
        Exit::bad_input(format!("LoopState: {error}; expected what `plimsoll dump` of the same version wrote"))
    })
}

/// The settings that the process had.
pub(super) fn settings(state: &LoopState) -> Result<Settings, Exit> {
    let command = flags::add_to(clap::Command::new("LoopState").no_binary_name(true));
    let matches = command
        .try_get_matches_from(flags::normalized(state.spec.flags.iter().map(Into::into)))
        .map_err(|error| Exit::bad_input(format!("LoopState: flags: {}", error.kind())))?;
    flags::settings(&matches).map(|(settings, _)| settings).map_err(Exit::flag)
}
