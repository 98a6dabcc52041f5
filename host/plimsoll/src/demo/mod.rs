//! `plimsoll demo`: no cluster, no cloud, no network. A simulated shop behind the real loop and real components.

use clap::{Arg, ArgMatches, Command, value_parser};

mod explain;
mod headless;
mod ledger;
pub(crate) mod narrate;
mod rows;
mod stage;
mod view;
mod wrapped;

use crate::exit::Exit;
use crate::{expanders, flags, record, terminal};
use stage::Stage;

pub(crate) fn command() -> Command {
    let command = Command::new("demo")
        .about("Watch the loop at work: a simulated cluster and cloud, real decisions, real plug-ins; needs nothing")
        .after_help(
            "Keys: space pauses, + and - change the speed, up and down choose a node, e explains it, Esc goes back, \
             q ends.\n\
             Waits are shorter than in production (scale-down-unneeded-time 60s, scale-down-delay-after-add 60s, \
             max-drain-parallelism 3), unless a flag sets them.",
        )
        .arg(
            Arg::new("headless")
                .long("headless")
                .num_args(0)
                .help("Print events as lines and end with a summary; as fast as it goes"),
        )
        .arg(
            Arg::new("speed")
                .long("speed")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=1000))
                .default_value("8")
                .help("Virtual seconds per second"),
        );
    flags::add_to(record::add_to(expanders::add_to(command)))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<(), Exit> {
    let (settings, warnings) = flags::settings(matches).map_err(Exit::flag)?;
    for warning in &warnings {
        terminal::complain(&format!("warning: {warning}"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime =
        runtime.map_err(|error| Exit::failed(anyhow::Error::new(error).context("cannot start the runtime")))?;
    runtime.block_on(async {
        let load = Stage::set_up(matches, settings);
        let interactive = !matches.get_flag("headless") && std::io::IsTerminal::is_terminal(&std::io::stdout());
        if interactive {
            let speed = matches.get_one::<u32>("speed").copied().unwrap_or(8);
            view::watch(load, speed).await
        } else {
            headless::print(load.await?).await.map_err(Exit::failed)
        }
    })
}
