//! Soft taints that are on nodes already: after a restart without memory they tell since when a node is unneeded.

use plimsoll_model::Node;
use plimsoll_model::symbol::known;

use crate::control_loop::Loop;

impl Loop<'_> {
    /// Since when a node is unneeded by its mark, in milliseconds since the epoch. It only counts in the first loop of a
    /// process that has no memory of those before, and if it is not older than the operator allows.
    pub(super) fn marked_since_ms(&self, node: &Node) -> Option<i64> {
        let most = self.settings.node_deletion_candidate_ttl;
        let taint = node.taint(known::DELETION_CANDIDATE).filter(|_| !most.is_zero() && !self.memory.played)?;
        let seconds: i64 = self.observation.cluster.text(taint.value).parse().ok()?;
        let since = plimsoll_model::Time::from_millis(seconds.checked_mul(1000)?);
        (since <= self.at() && self.at().since(since) <= most).then_some(since.millis())
    }
}
