//! A live cluster: its objects through the API server, and what the running autoscaler knows.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_kubernetes::lists;
use plimsoll_signals::state::LoopState;
use serde_json::Value;

use super::without_managed_fields;
use crate::exit::Exit;
use crate::{explain, terminal};

/// How long the running autoscaler may take until its next loop has ended.
const PATIENCE: Duration = Duration::from_secs(300);

/// Adds what says where the cluster is.
pub(super) fn add_to(command: Command) -> Command {
    command
        .arg(
            Arg::new("kubeconfig")
                .long("kubeconfig")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Path to a kubeconfig; KUBECONFIG, ~/.kube/config or the cluster that this runs in, if left out"),
        )
        .arg(Arg::new("address").long("address").value_name("URL").help(format!(
            "Where the running autoscaler answers, as through `kubectl port-forward` [default: {}]",
            explain::ADDRESS
        )))
        .arg(
            Arg::new("no-state")
                .long("no-state")
                .num_args(0)
                .conflicts_with("address")
                .help("Ask no running autoscaler: node groups and what it remembers are left out"),
        )
}

/// The objects of the cluster, and the state of the loop that saw them.
pub(super) fn objects(matches: &ArgMatches) -> Result<Vec<Value>, Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Exit::failed(anyhow::Error::from(error).context("cannot start the runtime")))?;
    runtime.block_on(async {
        let listed = lists::everything(matches.get_one::<PathBuf>("kubeconfig").map(PathBuf::as_path)).await;
        let lists::Listed { objects, left_out } = listed.map_err(|error| Exit::bad_input(error.to_string()))?;
        for reason in left_out {
            terminal::complain(&format!("warning: {reason}"));
        }
        let mut objects: Vec<Value> = objects.into_iter().map(without_managed_fields).collect();
        if !matches.get_flag("no-state") {
            let address = matches.get_one::<String>("address").map_or(explain::ADDRESS, String::as_str);
            let state: LoopState = explain::ask::fetch(address, "api/v1/state", PATIENCE).await?;
            objects.push(serde_json::to_value(state).map_err(|error| Exit::failed(error.into()))?);
        }
        Ok(objects)
    })
}
