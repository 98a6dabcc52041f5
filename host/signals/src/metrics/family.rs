//! What is known of a metric family before it has any value.

/// Type of a family, as in the text format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by size.
    Histogram,
    /// Quantiles.
    Summary,
}

impl Kind {
    /// Its name in the text format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Summary => "summary",
        }
    }
}

/// How a family stands to the Go autoscaler's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// The same name, type, labels and meaning; the text says what little differs.
    Same(&'static str),
    /// It has it, and here it would mean nothing; the text says why.
    NotApplicable(&'static str),
    /// It does not have it.
    New,
}

/// When a family is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Always.
    Always,
    /// With this flag.
    Flag(&'static str),
    /// Never.
    Never,
}

/// A metric family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Family {
    /// Name as Prometheus shows it.
    pub name: &'static str,
    /// Type.
    pub kind: Kind,
    /// Label names.
    pub labels: &'static [&'static str],
    /// What it means.
    pub help: &'static str,
    /// How it stands to the Go autoscaler's.
    pub peer: Peer,
    /// When it is there.
    pub when: When,
}
