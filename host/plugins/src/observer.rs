//! What plug-ins do, as data: for events, metrics and the demo. Everything here also goes to `tracing`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::call::Call;
use crate::egress::Denial;

/// How important a message of a plug-in is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Every step.
    Trace,
    /// For the author.
    Debug,
    /// For the operator.
    Info,
    /// The operator should look.
    Warn,
    /// Something failed.
    Error,
}

/// Something that the host noticed about a plug-in.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// It wrote to its log.
    Log {
        /// Its name.
        plugin: String,
        /// How important it is.
        level: Level,
        /// The text, escaped and cut.
        message: String,
        /// More about it.
        fields: Vec<(String, String)>,
    },
    /// It asked for something on the network that it was not granted.
    Denied {
        /// What, and which entry would allow it.
        denial: Denial,
    },
    /// A call got no usable answer, through no wish of the plug-in: trap, time-out, limit, nonsense.
    CallFailed {
        /// Its name.
        plugin: String,
        /// Which call.
        call: Call,
        /// The whole story in one line.
        reason: String,
    },
    /// It started, for the first time or after a failure.
    Started {
        /// Its name.
        plugin: String,
        /// Which start of this plug-in it is; the first is 1.
        start: u32,
        /// How long instantiation and configuration took.
        #[serde(skip)]
        took: Duration,
    },
    /// It failed and is not called before this much time has passed.
    BackingOff {
        /// Its name.
        plugin: String,
        /// Failures in a row.
        failures: u32,
        /// The pause.
        pause: Duration,
    },
    /// It gave an answer again after it had failed.
    Recovered {
        /// Its name.
        plugin: String,
        /// Failures in a row before.
        failures: u32,
    },
    /// It failed too often and is not called any more until its file is replaced.
    Quarantined {
        /// Its name.
        plugin: String,
        /// Failures in a row.
        failures: u32,
        /// The last one.
        reason: String,
    },
    /// A file or an embedded plug-in is now in use.
    Loaded {
        /// Its name.
        plugin: String,
        /// Where it came from: a path, or `built in`.
        origin: String,
        /// Digest of its bytes, in hex.
        sha256: String,
    },
    /// A file cannot be used. What is in use stays in use.
    Rejected {
        /// Its name.
        plugin: String,
        /// Where it came from.
        origin: String,
        /// Why, for people; may have several lines.
        reason: String,
    },
    /// Its file is gone; another source serves instead, or none.
    FellBack {
        /// Its name.
        plugin: String,
        /// What serves now; none if nothing does.
        to: Option<String>,
        /// Why.
        reason: String,
    },
    /// Works, but the operator should know.
    Warning {
        /// Its name.
        plugin: String,
        /// What.
        message: String,
    },
}

/// How a call ended, for counting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// With an answer.
    Ok,
    /// With a failure that the plug-in reported.
    PluginError,
    /// With an answer that cannot be used.
    Nonsense,
    /// It took too long.
    Timeout,
    /// It broke off.
    Trap,
    /// It ran into a limit.
    Limit,
    /// The host failed.
    HostError,
}

impl Outcome {
    /// Its name as a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::PluginError => "plugin-error",
            Self::Nonsense => "nonsense",
            Self::Timeout => "timeout",
            Self::Trap => "trap",
            Self::Limit => "limit",
            Self::HostError => "host-error",
        }
    }
}

/// One call that was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Called {
    /// Name of the plug-in.
    pub plugin: String,
    /// Which call.
    pub call: Call,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took. Real time, so it differs between runs that are otherwise the same.
    #[serde(skip)]
    pub took: Duration,
    /// How long it was busy of that: its own work and what the host did while it looked on, such as handing it the bytes of
    /// a response. Signing, sending and waiting for a cloud are not in it. Real time as well.
    #[serde(skip)]
    pub inside: Duration,
}

/// How a request of a plug-in to the network ended, for counting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestOutcome {
    /// With a whole response, whatever its status.
    Answered,
    /// The host did not let it out.
    Denied,
    /// It should have been signed, and there was no key.
    NoCredential,
    /// It or its response was too large, or packed where it must not be.
    Cut,
    /// It took too long.
    TimedOut,
    /// The network failed.
    NetworkError,
    /// The plug-in did not wait for the end of the response.
    Abandoned,
}

impl RequestOutcome {
    /// Its name as a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Denied => "denied",
            Self::NoCredential => "no-credential",
            Self::Cut => "cut",
            Self::TimedOut => "timed-out",
            Self::NetworkError => "network-error",
            Self::Abandoned => "abandoned",
        }
    }
}

/// One request of a plug-in that is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Requested {
    /// Name of the plug-in.
    pub plugin: String,
    /// The entry of `hosts` that covers it, or `not granted`: so there are never more hosts than the operator wrote.
    pub host: String,
    /// The credential slot that it named.
    pub credential: Option<String>,
    /// HTTP status of the response, if the head of one came.
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: RequestOutcome,
    /// From the first check to the end of the response. Real time.
    #[serde(skip)]
    pub took: Duration,
}

/// Who wants to know. Called from within calls of plug-ins: must be quick and must not block.
pub trait Observer: Send + Sync {
    /// Takes note.
    fn notice(&self, event: Event);
    /// Counts a call; every call is told, those that failed as well.
    fn called(&self, _call: Called) {}
    /// Counts a request to the network; every request is told once, when it is over.
    fn requested(&self, _request: Requested) {}
}

/// Nobody wants to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Observer for Nobody {
    fn notice(&self, _event: Event) {}
}

/// Keeps everything in order, up to a number of events; then the oldest are forgotten.
#[derive(Debug)]
pub struct Recorder {
    events: Mutex<std::collections::VecDeque<Event>>,
    most: usize,
}

impl Recorder {
    /// Keeps at most so many events.
    pub fn new(most: usize) -> Self {
        Self { events: Mutex::default(), most }
    }
    /// Hands out what was kept and forgets it.
    pub fn take(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new(10_000)
    }
}

impl Observer for Recorder {
    fn notice(&self, event: Event) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() == self.most {
            events.pop_front();
        }
        events.push_back(event);
    }
}

/// Tells the observer and the host's own log.
pub(crate) fn announce(observer: &dyn Observer, event: Event) {
    match &event {
        Event::Log { plugin, level, message, fields } => {
            let fields = fields.iter().map(|(key, value)| format!(" {key}={value}")).collect::<String>();
            match level {
                Level::Trace => tracing::trace!(target: "plugin", %plugin, "{message}{fields}"),
                Level::Debug => tracing::debug!(target: "plugin", %plugin, "{message}{fields}"),
                Level::Info => tracing::info!(target: "plugin", %plugin, "{message}{fields}"),
                Level::Warn => tracing::warn!(target: "plugin", %plugin, "{message}{fields}"),
                Level::Error => tracing::error!(target: "plugin", %plugin, "{message}{fields}"),
            }
        }
        Event::Denied { denial } => tracing::warn!("{denial}"),
        Event::CallFailed { reason, .. } => tracing::warn!("{reason}"),
        Event::Started { plugin, start, took } => tracing::info!(%plugin, start, ?took, "plug-in started"),
        Event::BackingOff { plugin, failures, pause } => {
            tracing::warn!(%plugin, failures, ?pause, "plug-in is not called before the pause is over");
        }
        Event::Recovered { plugin, failures } => tracing::info!(%plugin, failures, "plug-in serves again"),
        Event::Quarantined { plugin, failures, reason } => {
            tracing::error!(%plugin, failures, "plug-in is quarantined until its file is replaced: {reason}");
        }
        Event::Loaded { plugin, origin, sha256 } => tracing::info!(%plugin, %origin, %sha256, "plug-in loaded"),
        Event::Rejected { plugin, origin, reason } => tracing::warn!(%plugin, %origin, "{reason}"),
        Event::FellBack { plugin, to, reason } => {
            tracing::warn!(%plugin, to = to.as_deref().unwrap_or("nothing"), "{reason}");
        }
        Event::Warning { plugin, message } => tracing::warn!(%plugin, "{message}"),
    }
    observer.notice(event);
}
