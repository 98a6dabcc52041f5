//! The parts of the loop.

/// A part of the loop, in this order. Options and increases may take turns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// The ledger is settled, and pods are put where they fit already.
    Begin,
    /// Removals under way go on.
    Removals,
    /// Options are packed and ranked.
    Options,
    /// The cloud is asked for machines.
    Increases,
    /// Groups below their least size are filled.
    MinSizes,
    /// Nodes that nobody needs are looked for.
    ScaleDown,
    /// Nodes that go are marked.
    Taints,
    /// The plan is written.
    Report,
    /// Nothing is left.
    Done,
}

impl Phase {
    /// Its name, as in metrics and traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Removals => "removals",
            Self::Options => "options",
            Self::Increases => "increases",
            Self::MinSizes => "min-sizes",
            Self::ScaleDown => "scale-down",
            Self::Taints => "taints",
            Self::Report => "report",
            Self::Done => "done",
        }
    }
}
