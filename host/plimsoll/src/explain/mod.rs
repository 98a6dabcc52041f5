//! `plimsoll explain pod|node|group NAME`: why?
//!
//! A running autoscaler is asked through its API; with files, the loop decides about them here, by the code of `simulate`.

use clap::{Arg, ArgMatches, Command};
use plimsoll_signals::account::{self, Account, Bounds, GroupDetail, NodeDetail, PodDetail, Unknown};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exit::Exit;
use crate::terminal::Ink;
use crate::{expanders, flags, simulate, terminal};

pub(crate) mod ask;
mod show;

/// Where an autoscaler answers, if nobody says.
pub(crate) const ADDRESS: &str = "http://127.0.0.1:8085";

pub(crate) fn command() -> Command {
    let one =
        |what: &'static str, about: &'static str, name: &'static str| {
            let command = Command::new(what)
            .about(about)
            .arg(Arg::new("name").value_name("NAME").required(true).help(name))
            .arg(simulate::files().help(
                "Kubernetes objects and node groups to decide about, JSON or YAML; none: a running autoscaler is asked",
            ))
            .arg(
                Arg::new("output")
                    .long("output")
                    .short('o')
                    .value_parser(["text", "json"])
                    .default_value("text")
                    .help("How to show it"),
            );
            flags::add_to(expanders::add_to(simulate::deciding(command))).mut_arg("address", |argument| {
                argument.hide(false).help_heading("Options").value_name("URL").help(format!(
                    "Where the autoscaler answers, as through `kubectl port-forward` [default: {ADDRESS}]"
                ))
            })
        };
    Command::new("explain")
        .about("Why does a pod get no node, why does a node stay, what does a group do?")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(one("pod", "Why does a pod get no node, or where does it go?", "The pod, as NAMESPACE/NAME"))
        .subcommand(one("node", "Why does a node stay, or go?", "The node"))
        .subcommand(one("group", "What does a node group do, and whom does it not help?", "The node group"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<(), Exit> {
    match matches.subcommand() {
        Some(("pod", matches)) => explain::<PodDetail>("pods", matches, Account::pod, show::pod),
        Some(("node", matches)) => explain::<NodeDetail>("nodes", matches, Account::node, show::node),
        Some(("group", matches)) => explain::<GroupDetail>("groups", matches, Account::group, show::group),
        _ => Ok(()),
    }
}

fn explain<T: Serialize + DeserializeOwned>(
    kind: &str,
    matches: &ArgMatches,
    find: impl FnOnce(&Account, &str) -> Result<T, Unknown>,
    show: impl FnOnce(&T, Ink) -> String,
) -> Result<(), Exit> {
    let name = matches.get_one::<String>("name").map_or("", String::as_str);
    let address = flags::texts(matches, "address").last();
    let detail = match (matches.contains_id("files"), address) {
        (true, Some(_)) => {
            return Err(Exit::bad_input("files or --address: one of them answers, not both".to_owned()));
        }
        (true, None) => in_files(name, matches, find)?,
        (false, address) => ask::ask(address.map_or(ADDRESS, String::as_str), kind, name)?,
    };
    let text = match matches.get_one::<String>("output").map(String::as_str) {
        Some("json") => serde_json::to_string_pretty(&detail).map_err(|error| Exit::failed(error.into()))? + "\n",
        _ => show(&detail, Ink::for_stdout()),
    };
    terminal::print(&text).map_err(|error| Exit::failed(error.into()))
}

fn in_files<T>(
    name: &str,
    matches: &ArgMatches,
    find: impl FnOnce(&Account, &str) -> Result<T, Unknown>,
) -> Result<T, Exit> {
    let account = simulate::decided(matches, |decided| {
        account::account(decided.plan, decided.observation, decided.warnings, Bounds::WHOLE)
    })?;
    find(&account, name).map_err(|unknown| Exit::bad_input(unknown.message))
}
