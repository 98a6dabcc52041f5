//! The signals of this process, from its flags.

use clap::{Arg, ArgMatches, Command};
use plimsoll_core::Settings;
use plimsoll_signals::telemetry::{Exporter, LogFormat, Telemetry};
use plimsoll_signals::{HealthLimits, Options, Serving, Signals};

use crate::exit::Exit;
use crate::flags;

/// Signals as the flags want them.
pub(crate) fn open(matches: &ArgMatches, settings: &Settings) -> Result<Signals, Exit> {
    let limit = |flag| flags::duration(matches, flag).map_err(Exit::flag);
    let health = HealthLimits::new(limit("max-inactivity")?, limit("max-failing-time")?, limit("max-startup-time")?);
    let per_group_metrics = flags::switch(matches, "emit-per-nodegroup-metrics").map_err(Exit::flag)?;
    let snapshots = flags::switch(matches, "debugging-snapshot-enabled").map_err(Exit::flag)?;
    let flags = flags::deciding(matches);
    Ok(Signals::new(Options { settings: settings.clone(), per_group_metrics, health, flags, snapshots }))
}

/// Adds the options of signals that the Go autoscaler does not have.
pub(crate) fn add_to(command: Command) -> Command {
    command.arg(Arg::new("otlp-endpoint").long("otlp-endpoint").value_name("URL").help_heading("Process").help(
        "OpenTelemetry collector that takes traces by OTLP over HTTP, such as http://collector:4318; \
                 OTEL_EXPORTER_OTLP_ENDPOINT names one too",
    ))
}

/// Sets up logs and traces as the flags want them. The result is kept until the process ends. `told` says that the news are
/// told on standard output already, so that they are logged only if a flag asks for it.
pub(crate) fn log(matches: &ArgMatches, told: bool) -> Result<Option<Exporter>, Exit> {
    let format = match flags::text(matches, "logging-format") {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        other => {
            return Err(Exit::bad_input(format!("--logging-format: {other:?} is neither \"text\" nor \"json\"")));
        }
    };
    let asked = ["v", "logging-format"].into_iter().any(|flag| flags::texts(matches, flag).next().is_some());
    let verbosity = (asked || !told).then(|| flags::text(matches, "v").parse().unwrap_or_default());
    let otlp_endpoint = matches.get_one::<String>("otlp-endpoint").cloned();
    let telemetry = Telemetry { format, verbosity, otlp_endpoint };
    telemetry.install().map_err(|error| Exit::bad_input(error.to_string()))
}

/// Serves them at an address until the result is dropped.
pub(crate) async fn serve(signals: &Signals, address: &str) -> Result<Serving, Exit> {
    signals.serve(address).await.map_err(|error| Exit::bad_input(format!("--address: {error}")))
}
