//! Which ways through a packing are tried, and which was the best.

use super::greedy::Reuse;
use super::{Aim, Effort, Limits, Packed};

/// A search through orders of the pods: those that are given (the peer's first), then the peer's with one entry last or
/// first, then random changes to the best one. Where existing nodes may be reused, each order is tried with every way of
/// doing that.
pub(super) struct Search {
    orders: Vec<Vec<usize>>,
    best: Option<Packed>,
    aim: Aim,
    /// An order that came to something as good as the best.
    order: Vec<usize>,
    ways: &'static [Reuse],
    tried: usize,
    /// Work that may still be done. One unit is about a tenth of a microsecond.
    budget: usize,
    dice: u64,
}

const QUICK: usize = 2_000;
const THOROUGH: usize = 200_000;

/// Tries beyond this find hardly anything.
const MOST_TRIES: usize = 400;

/// So many entries are tried alone at either end.
const ALONE: usize = 16;

impl Search {
    pub(super) fn new(limits: Limits<'_>, orders: Vec<Vec<usize>>, reuse: bool) -> Self {
        let ways = if reuse { &[Reuse::First, Reuse::Last, Reuse::Not][..] } else { &[Reuse::Not] };
        let budget = if limits.effort == Effort::Quick { QUICK } else { THOROUGH };
        Self {
            orders,
            best: None,
            aim: limits.aim,
            order: Vec::new(),
            ways,
            tried: 0,
            budget,
            dice: 0x9E37_79B9_7F4A_7C15,
        }
    }

    /// The best packing of all that were learned.
    pub(super) fn best(self) -> Packed {
        self.best.unwrap_or_default()
    }

    /// A number from 0 to `bound - 1` (xorshift; the same ones every time).
    fn below(&mut self, bound: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        usize::try_from(self.dice % u64::try_from(bound.max(1)).unwrap_or(1)).unwrap_or(0)
    }

    /// Whether there is budget for so much work.
    pub(super) fn affords(&self, work: usize) -> bool {
        work <= self.budget
    }

    /// What to try next: an order, and when to try existing nodes. The very first try is always made.
    pub(super) fn next(&mut self) -> Option<(Vec<usize>, Reuse)> {
        let peer = self.orders.first()?;
        let turn = self.tried / self.ways.len();
        let spent = self.budget == 0 || self.tried >= MOST_TRIES;
        if (spent && self.tried > 0) || (turn > 0 && peer.len() < 2) {
            return None;
        }
        let way = self.ways.get(self.tried % self.ways.len()).copied().unwrap_or(Reuse::Not);
        self.tried += 1;
        let alone = peer.len().min(ALONE);
        let order = match (self.orders.get(turn), turn.saturating_sub(self.orders.len())) {
            (Some(order), _) => order.clone(),
            (None, turn) if turn < alone => moved(peer, turn, peer.len()),
            (None, turn) if turn < 2 * alone => moved(peer, turn - alone, 0),
            (None, _) => {
                let entries = peer.len();
                let (from, to) = (self.below(entries), self.below(entries));
                moved(&self.order, from, to)
            }
        };
        Some((order, way))
    }

    /// What a try came to, and how much work it was.
    pub(super) fn learn(&mut self, order: Vec<usize>, packed: Packed, work: usize) {
        self.budget = self.budget.saturating_sub(work);
        // Of equal packings the first is kept, but the search goes on from the last, so as not to stand still.
        match &mut self.best {
            // The first is the peer's.
            Some(best) if self.aim == Aim::PeersPods && !packed.covers(best) => {}
            Some(best) if best.better_than(&packed) => {}
            Some(best) if !packed.better_than(best) => self.order = order,
            best => {
                *best = Some(packed);
                self.order = order;
            }
        }
    }
}

/// The order with one entry in another position.
fn moved(order: &[usize], from: usize, to: usize) -> Vec<usize> {
    let mut order = order.to_vec();
    if from < order.len() {
        let entry = order.remove(from);
        order.insert(to.min(order.len()), entry);
    }
    order
}
