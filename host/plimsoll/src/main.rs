//! A Kubernetes cluster autoscaler with WebAssembly plug-ins.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use plimsoll_model::Time;

mod demo;
mod dump;
mod exit;
mod expanders;
mod explain;
mod flags;
mod plugin;
mod providers;
mod record;
mod replay;
mod run;
mod signals;
mod simulate;
mod slot;
mod terminal;
mod usage;
mod why_chosen;

use exit::Exit;

fn command() -> Command {
    Command::new("plimsoll")
        .about("A Kubernetes cluster autoscaler whose cloud providers and expanders are WebAssembly components")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(run::command())
        .subcommand(demo::command())
        .subcommand(simulate::command())
        .subcommand(explain::command())
        .subcommand(dump::command())
        .subcommand(replay::command())
        .subcommand(plugin::command())
        .subcommand(
            Command::new("flags").about("Table of the Go autoscaler's flags and what each does here, as Markdown"),
        )
        .subcommand(
            Command::new("metrics")
                .about("Table of all metrics, and how they stand to the Go autoscaler's, as Markdown"),
        )
}

fn main() -> ExitCode {
    // Whoever speaks TLS without saying by which means uses these. Fails only if somebody chose already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut command = command();
    command.build();
    let arguments = flags::normalized(in_the_peers_place(std::env::args_os()));
    let matches = match command.clone().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return usage(&error, &command),
    };
    let result = match matches.subcommand() {
        Some(("run", matches)) => run::run(matches),
        Some(("demo", matches)) => demo::run(matches),
        Some(("simulate", matches)) => simulate::run(matches),
        Some(("explain", matches)) => explain::run(matches),
        Some(("dump", matches)) => dump::run(matches),
        Some(("replay", matches)) => replay::run(matches),
        Some(("plugin", matches)) => plugin::run(matches),
        Some(("flags", _)) => terminal::print(&flags::markdown()).map_err(|error| Exit::failed(error.into())),
        Some(("metrics", _)) => {
            terminal::print(&plimsoll_signals::metrics::markdown()).map_err(|error| Exit::failed(error.into()))
        }
        _ => Ok(()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.report(),
    }
}

/// Called by the name of the Go autoscaler's program, as its users' manifests do, the program runs as that one does: there
/// are no subcommands.
fn in_the_peers_place(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let name = arguments.first().map(Path::new).and_then(Path::file_name);
    if name == Some(OsStr::new("cluster-autoscaler")) {
        arguments.insert(1, "run".into());
    }
    arguments
}

/// Wrong arguments: help and version are no errors; an unknown flag suggests the nearest.
fn usage(error: &clap::Error, command: &Command) -> ExitCode {
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg)
        && let Some(name) = given.strip_prefix("--")
    {
        let name = name.split('=').next().unwrap_or(name);
        let known = command.get_subcommands().filter_map(|subcommand| flags::nearest(name, subcommand)).next();
        let advice = known.map_or_else(String::new, |known| format!("; did you mean --{known}?"));
        terminal::complain(&format!("unknown flag --{name}{advice}"));
        return ExitCode::from(2);
    }
    let code = if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
    // A closed pipe is no reason to complain.
    let _ = error.print();
    code
}

/// The real clock.
pub(crate) fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::in_the_peers_place;

    #[test]
    fn the_peers_name_means_run() {
        for (given, expected) in [
            ("./cluster-autoscaler --v=4", "./cluster-autoscaler run --v=4"),
            ("/cluster-autoscaler", "/cluster-autoscaler run"),
            ("plimsoll simulate x", "plimsoll simulate x"),
            ("/opt/cluster-autoscaler/plimsoll run", "/opt/cluster-autoscaler/plimsoll run"),
        ] {
            let arguments = in_the_peers_place(given.split(' ').map(Into::into));
            assert_eq!(arguments, expected.split(' ').collect::<Vec<_>>(), "{given}");
        }
    }
}
