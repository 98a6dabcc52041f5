//! Calls into a plug-in, and the ways in which they end without an answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::cloud::{CloudError, ErrorClass, ErrorScope};
use serde::Serialize;

use crate::limits::Limit;
use crate::observer::Outcome;

/// Which call it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// Making an instance, before any call of the contract.
    Start,
    /// First call of every instance.
    Configure,
    /// Check settings and reachability.
    SelfTest,
    /// Read everything.
    Refresh,
    /// Read templates.
    Templates,
    /// More machines.
    IncreaseSize,
    /// Fewer machines that do not exist yet.
    DecreaseTarget,
    /// Delete machines.
    DeleteInstances,
    /// Read prices.
    Prices,
    /// Last call.
    Shutdown,
    /// Score options.
    Rank,
}

impl Call {
    /// Its name in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Configure => "configure",
            Self::SelfTest => "self-test",
            Self::Refresh => "refresh",
            Self::Templates => "templates",
            Self::IncreaseSize => "increase-size",
            Self::DecreaseTarget => "decrease-target",
            Self::DeleteInstances => "delete-instances",
            Self::Prices => "prices",
            Self::Shutdown => "shutdown",
            Self::Rank => "rank",
        }
    }
    /// Whether it may change something in the cloud.
    pub fn is_write(self) -> bool {
        matches!(self, Self::IncreaseSize | Self::DecreaseTarget | Self::DeleteInstances)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a plug-in did when its time was up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Busy {
    /// It computed.
    Computing,
    /// It waited for something outside, such as a server.
    Waiting,
}

/// Why a call gave no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The plug-in itself reported a failure. Its instance stays.
    Plugin(Box<CloudError>),
    /// The plug-in answered, but with something that contradicts itself or the question. Its instance stays.
    Nonsense {
        /// What is wrong with the answer.
        what: String,
    },
    /// The plug-in broke off. Always a bug in it.
    Trap {
        /// What the engine said.
        what: String,
    },
    /// The plug-in took longer than it may.
    Timeout {
        /// How long it may.
        budget: Duration,
        /// What it did when it was stopped.
        busy: Busy,
    },
    /// The plug-in asked for more than it may have, and broke off.
    Limit(Limit),
    /// Something failed on the host's side.
    Host {
        /// What.
        what: String,
    },
    /// Not tried: it failed lately.
    BackingOff {
        /// Failures in a row.
        failures: u32,
        /// Time left.
        wait: Duration,
        /// The last failure.
        last: String,
    },
    /// Not tried: it failed too often.
    Quarantined {
        /// Failures in a row.
        failures: u32,
        /// The last failure.
        last: String,
    },
    /// Not tried: it was shut down.
    Gone,
}

impl Failure {
    /// Whether the instance that failed may be used again.
    pub(crate) fn keeps_instance(&self) -> bool {
        matches!(self, Self::Plugin(_) | Self::Nonsense { .. })
    }
    /// How a call that ended like this is counted.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Plugin(_) => Outcome::PluginError,
            Self::Nonsense { .. } => Outcome::Nonsense,
            Self::Trap { .. } => Outcome::Trap,
            Self::Timeout { .. } => Outcome::Timeout,
            Self::Limit(_) => Outcome::Limit,
            Self::Host { .. } | Self::BackingOff { .. } | Self::Quarantined { .. } | Self::Gone => Outcome::HostError,
        }
    }
    /// Whether the plug-in was called at all; if not, it is resting, or gone, and the host has told of that.
    pub fn was_tried(&self) -> bool {
        !matches!(self, Self::BackingOff { .. } | Self::Quarantined { .. } | Self::Gone)
    }
}

/// A call that got no answer: who, what, why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallError {
    /// Name of the plug-in.
    pub plugin: Arc<str>,
    /// The call that failed. While an instance is being made this is `start` or `configure`, whatever was asked for:
    /// the call that was asked for has not begun then.
    pub call: Call,
    /// Why.
    pub failure: Failure,
}

impl std::error::Error for CallError {}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plugin, call, failure } = self;
        write!(f, "plugin {plugin:?}: ")?;
        match failure {
            Failure::Plugin(error) => write!(f, "{call} reports {}: {error}", class(error.class)),
            Failure::Nonsense { what } => write!(f, "{call} gave an answer that cannot be used: {what}"),
            Failure::Trap { what } => write!(f, "{call} broke off with a bug in the plug-in: {what}"),
            Failure::Timeout { budget, busy } => {
                let busy = match busy {
                    Busy::Computing => "it was still computing",
                    Busy::Waiting => "it was waiting for an answer from outside",
                };
                write!(f, "{call} took longer than {} and was stopped; {busy}", Seconds(*budget))
            }
            Failure::Limit(limit) => {
                write!(f, "{call} was stopped: the plug-in {limit}")?;
                match limit {
                    Limit::Memory { .. } => {
                        write!(f, "; if it really needs that, raise plugins.{plugin}.limits.memory-mib")
                    }
                    _ => Ok(()),
                }
            }
            Failure::Host { what } => write!(f, "{call} failed inside the host: {what}"),
            Failure::BackingOff { failures, wait, last } => write!(
                f,
                "{call} was not tried: failed {} in a row, next start in {}; last failure: {last}",
                times(*failures),
                Seconds(*wait)
            ),
            Failure::Quarantined { failures, last } => write!(
                f,
                "{call} was not tried: quarantined after it failed {} in a row; replace its file or restart the \
                 autoscaler to try again; last failure: {last}",
                times(*failures)
            ),
            Failure::Gone => write!(f, "{call} was not tried: the plug-in has been shut down"),
        }
    }
}

/// A class of failures in the words of the contract.
fn class(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::OutOfResources => "out-of-resources",
        ErrorClass::Quota => "quota",
        ErrorClass::Billing => "billing",
        ErrorClass::Auth => "auth",
        ErrorClass::Config => "config",
        ErrorClass::Throttled => "throttled",
        ErrorClass::Conflict => "conflict",
        ErrorClass::Transient => "transient",
        ErrorClass::NotFound => "not-found",
        ErrorClass::Unsupported => "unsupported",
        ErrorClass::Bootstrap => "bootstrap",
        ErrorClass::Other => "other",
    }
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// A span as people say it.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < Duration::from_secs(1) {
            write!(f, "{} ms", self.0.as_millis())
        } else if self.0.subsec_millis() == 0 {
            write!(f, "{} s", self.0.as_secs())
        } else {
            write!(f, "{:.1} s", self.0.as_secs_f64())
        }
    }
}

impl CallError {
    /// The failure as the loop deals with it. A write that was begun and got no answer may have been carried out: class
    /// transient, outcome unknown. A failure before the write began leaves no doubt.
    pub fn into_cloud_error(self) -> CloudError {
        let message = self.to_string();
        match self.failure {
            Failure::Plugin(error) => *error,
            failure => CloudError {
                class: ErrorClass::Transient,
                scope: ErrorScope::Provider,
                code: String::new(),
                message,
                retry_after: match failure {
                    Failure::BackingOff { wait, .. } => Some(wait),
                    _ => None,
                },
                outcome_unknown: self.call.is_write() && failure.was_tried(),
                request_id: None,
            },
        }
    }

    /// Whether the plug-in reported this itself, as opposed to breaking.
    pub fn is_report(&self) -> bool {
        matches!(self.failure, Failure::Plugin(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(call: Call, failure: Failure) -> CallError {
        CallError { plugin: "utho".into(), call, failure }
    }

    fn reported() -> CloudError {
        CloudError {
            class: ErrorClass::Quota,
            scope: ErrorScope::Provider,
            code: "QuotaExceeded".into(),
            message: "no more than 20 machines".into(),
            retry_after: None,
            outcome_unknown: false,
            request_id: None,
        }
    }

    #[rstest::rstest]
    #[case::plugin(
        Failure::Plugin(Box::new(reported())),
        "refresh reports quota: QuotaExceeded: no more than 20 machines"
    )]
    #[case::nonsense(
        Failure::Nonsense { what: "group \"a\" is listed twice".into() },
        "refresh gave an answer that cannot be used: group \"a\" is listed twice"
    )]
    #[case::trap(
        Failure::Trap { what: "integer divide by zero".into() },
        "refresh broke off with a bug in the plug-in: integer divide by zero"
    )]
    #[case::computing(
        Failure::Timeout { budget: Duration::from_secs(10), busy: Busy::Computing },
        "refresh took longer than 10 s and was stopped; it was still computing"
    )]
    #[case::waiting(
        Failure::Timeout { budget: Duration::from_millis(300), busy: Busy::Waiting },
        "refresh took longer than 300 ms and was stopped; it was waiting for an answer from outside"
    )]
    #[case::memory(
        Failure::Limit(Limit::Memory { limit_bytes: 128 << 20, wanted_bytes: 4 << 30 }),
        "refresh was stopped: the plug-in needed more than 128 MiB of memory; if it really needs that, raise \
         plugins.utho.limits.memory-mib"
    )]
    #[case::handles(
        Failure::Limit(Limit::Handles { limit: 4096 }),
        "refresh was stopped: the plug-in held more than 4096 handles"
    )]
    #[case::backing_off(
        Failure::BackingOff { failures: 3, wait: Duration::from_millis(1500), last: "x".into() },
        "refresh was not tried: failed 3 times in a row, next start in 1.5 s; last failure: x"
    )]
    #[case::quarantined(
        Failure::Quarantined { failures: 10, last: "x".into() },
        "refresh was not tried: quarantined after it failed 10 times in a row; replace its file or restart the \
         autoscaler to try again; last failure: x"
    )]
    #[case::gone(Failure::Gone, "refresh was not tried: the plug-in has been shut down")]
    fn says_who_what_why(#[case] failure: Failure, #[case] expected: &str) {
        assert_eq!(error(Call::Refresh, failure).to_string(), format!("plugin \"utho\": {expected}"));
    }

    #[rstest::rstest]
    #[case::trap_in_a_write(Call::IncreaseSize, Failure::Trap { what: String::new() }, true)]
    #[case::timeout_in_a_write(
        Call::DeleteInstances,
        Failure::Timeout { budget: Duration::ZERO, busy: Busy::Waiting },
        true
    )]
    #[case::nonsense_in_a_write(Call::DecreaseTarget, Failure::Nonsense { what: String::new() }, true)]
    #[case::trap_in_a_read(Call::Refresh, Failure::Trap { what: String::new() }, false)]
    #[case::trap_before_the_write(Call::Configure, Failure::Trap { what: String::new() }, false)]
    #[case::never_sent(Call::IncreaseSize, Failure::Gone, false)]
    fn knows_whether_a_write_may_have_happened(#[case] call: Call, #[case] failure: Failure, #[case] unknown: bool) {
        let error = error(call, failure).into_cloud_error();
        assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Transient, unknown));
    }

    #[test]
    fn a_report_of_the_plugin_is_passed_on_as_it_is() {
        assert_eq!(error(Call::IncreaseSize, Failure::Plugin(Box::new(reported()))).into_cloud_error(), reported());
    }
}
