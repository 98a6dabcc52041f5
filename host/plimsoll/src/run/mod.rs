//! `plimsoll run`: the loop, again and again, with the operator's provider.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

mod clock;
mod live;
mod simulated;

use crate::exit::Exit;
use crate::{expanders, flags, providers, record, signals, terminal};

pub(crate) fn command() -> Command {
    let simulated = "Simulated cluster";
    let command = Command::new("run")
        .about("Run the autoscaler: watch a cluster, decide, and ask the cloud through its provider")
        .after_help(
            "Flags are the Go autoscaler's. --cluster=simulated puts an in-memory cluster in the place of a real one: \
             its nodes are the machines that the provider lists, its pods are what a Scenario file says.",
        )
        .arg(
            Arg::new(flags::RUNS)
                .long("cluster")
                .value_name("KIND")
                .value_parser(["live", "simulated"])
                .default_value("live")
                .help("The cluster: the one that this runs in or --kubeconfig names, or one in memory"),
        )
        .arg(
            Arg::new("delete-node-objects")
                .long("delete-node-objects")
                .action(ArgAction::SetTrue)
                .help("Delete the objects of nodes whose machines were removed, where no cloud controller does"),
        )
        .arg(
            Arg::new("scenario")
                .long("scenario")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help_heading(simulated)
                .help("Workloads and how they change over time, as a Scenario object"),
        )
        .arg(
            Arg::new("speed")
                .long("speed")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=1000))
                .default_value("1")
                .help_heading(simulated)
                .help("Simulated seconds per second"),
        );
    flags::add_to(record::add_to(signals::add_to(providers::add_to(expanders::add_to(command)))))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<(), Exit> {
    let (settings, warnings) = flags::settings(matches).map_err(Exit::flag)?;
    for warning in &warnings {
        terminal::complain(&format!("warning: {warning}"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")
        .map_err(Exit::failed)?;
    let is_live = matches.get_one::<String>(flags::RUNS).is_some_and(|kind| kind == "live");
    let ended = runtime.block_on(async {
        let exporter = signals::log(matches, !is_live)?;
        let ended = if is_live { live::run(matches, settings).await } else { simulated::run(matches, settings).await };
        if let Some(exporter) = exporter {
            exporter.shutdown().await;
        }
        ended
    });
    // A call that hangs must not keep the process.
    runtime.shutdown_background();
    ended
}
