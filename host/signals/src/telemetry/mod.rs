//! Logs and traces: what `tracing` tells, to standard error and to an OpenTelemetry collector.

mod otlp;

use tracing_subscriber::filter::{EnvFilter, LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

pub use otlp::{Exporter, OtlpError};

/// How a line of the log looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What is logged, and where traces go.
#[derive(Clone, Debug)]
pub struct Telemetry {
    /// `logging-format`.
    pub format: LogFormat,
    /// `v`, as klog counts it; none: errors only, as somebody else tells the rest.
    pub verbosity: Option<i64>,
    /// Where an OpenTelemetry collector takes traces over HTTP; none: the standard variables say, or nobody does.
    pub otlp_endpoint: Option<String>,
}

/// Why nothing is logged.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// Traces cannot be exported.
    #[error(transparent)]
    Otlp(#[from] OtlpError),
    /// Somebody logs already.
    #[error("logs are set up already: {0}")]
    Twice(#[from] TryInitError),
    /// `RUST_LOG` cannot be read.
    #[error("RUST_LOG cannot be read: {0}; expected something like info,plimsoll=debug")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
}

/// Verbosity of klog as a level: what the Go autoscaler says at `v` 4 is what one wants to know when something is odd.
fn level(verbosity: i64) -> LevelFilter {
    match verbosity {
        ..=3 => LevelFilter::INFO,
        4..=5 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

impl Telemetry {
    /// What goes to the log: `RUST_LOG` if it is set, else by verbosity. Libraries are heard from when they warn.
    fn filter(&self, wanted: Option<&str>) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
        match wanted.filter(|text| !text.is_empty()) {
            Some(text) => EnvFilter::builder().parse(text),
            None => {
                let Some(level) = self.verbosity.map(level) else { return EnvFilter::builder().parse("error") };
                EnvFilter::builder().parse(format!("warn,plimsoll={level},plugin={level}"))
            }
        }
    }

    /// Sets up logs and traces for the whole process. Needs a tokio runtime for traces. What it returns must be kept, and
    /// shut down before the process ends, so that the last spans are sent.
    ///
    /// # Errors
    ///
    /// If they were set up already, or what is wanted cannot be read.
    pub fn install(&self) -> Result<Option<Exporter>, TelemetryError> {
        let wanted = std::env::var("RUST_LOG").ok();
        let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
        let log = match self.format {
            LogFormat::Text => log.boxed(),
            LogFormat::Json => log.json().flatten_event(true).boxed(),
        };
        let log = log.with_filter(self.filter(wanted.as_deref())?);
        let exporter = otlp::exporter(self.otlp_endpoint.as_deref())?;
        let traces = exporter.as_ref().map(|exporter| {
            tracing_opentelemetry::layer()
                .with_tracer(exporter.tracer())
                .with_filter(Targets::new().with_target("plimsoll", LevelFilter::DEBUG))
        });
        tracing_subscriber::registry().with(log).with(traces).try_init()?;
        Ok(exporter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosity_as_klog_counts_it() {
        for (verbosity, expected) in
            [(0, "info"), (1, "info"), (4, "debug"), (5, "debug"), (6, "trace"), (10, "trace"), (-1, "info")]
        {
            assert_eq!(level(verbosity).to_string(), expected, "--v={verbosity}");
        }
    }

    #[test]
    fn rust_log_wins() {
        let telemetry = Telemetry { format: LogFormat::Text, verbosity: Some(4), otlp_endpoint: None };
        assert_eq!(telemetry.filter(Some("error")).unwrap().to_string(), "error");
        assert!(telemetry.filter(Some("")).unwrap().to_string().contains("plimsoll=debug"));
        assert!(telemetry.filter(Some("plimsoll=loud")).is_err());
    }
}
