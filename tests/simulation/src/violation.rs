//! What must never happen.

use std::fmt;
use std::time::Duration;

/// What holds whatever fails.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Invariant {
    /// A machine is deleted only after its node was marked, and only a machine that is there.
    DeletesOnlyMarked,
    /// In front of a real cloud's fake: no machine goes that was not named, not even by the cloud's own choice.
    OnlyAskedMachinesGo,
    /// In front of a real cloud's fake: no request is one that a well-written client would not send.
    GoodManners,
    /// No machine is deleted while a pod that the drain rules protect runs on it.
    ProtectedPodsStay,
    /// No node dies that nobody asked for.
    NothingDiesUnasked,
    /// No order to a group of which the last read told nothing, or told it too long ago.
    NoOrderUnread,
    /// What was asked for is counted on until it comes, fails or is late, also if the answer was lost.
    OrdersAreCountedOn,
    /// What the cloud said it cannot make is not left with it, to be made when nobody needs it any more.
    WishesAreTakenBack,
    /// Nothing is asked for twice.
    AskedForOnce,
    /// A key that makes the cloud act at most once stands for one order.
    OneKeyOneOrder,
    /// No order asks for a target outside of what is registered and the maximum, or for a deletion below the minimum.
    TargetsInBounds,
    /// A process that may not write does not.
    NoWriteWithoutLease,
    /// Every pending pod, and every idle node that stays, has a reason.
    EverythingHasAReason,
    /// Calls to the provider and the API server in one loop are bounded.
    CallsBounded,
    /// Once faults have stopped, every pod that can be helped is helped.
    PodsAreHelped,
    /// Once faults have stopped, every node that should go goes.
    IdleNodesGo,
    /// Once faults have stopped, no mark of a removal is left on a node that stays.
    NoMarkLeft,
    /// With nothing new, nothing is decided.
    ComesToRest,
    /// A loop that sees what the one before it saw, and what that one did, decides nothing.
    SecondLoopIsIdle,
    /// A node does not go only to come back.
    NoFlapping,
}

/// An invariant that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// When, since the beginning of the run.
    pub at: Duration,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.at.as_secs() / 60;
        write!(
            f,
            "{:?} at {}h{:02}m{:02}s: {}",
            self.invariant,
            minutes / 60,
            minutes % 60,
            self.at.as_secs() % 60,
            self.seen
        )
    }
}
