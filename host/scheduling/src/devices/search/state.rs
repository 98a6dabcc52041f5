//! Devices in the midst of a search: who has them, and what is left.

use plimsoll_model::Quantity;
use plimsoll_model::devices::Attribute;

use super::super::problem::{Alternative, Claim};
use super::{Cursor, Pick, Search};

#[allow(
    clippy::indexing_slicing,
    reason = "numbers of devices, units, claims and requests are those of the one problem"
)]
impl Search<'_> {
    /// Whether two devices can stand for each other in the present state.
    pub(super) fn is_like(&self, at: Cursor, one: usize, other: usize) -> bool {
        let picked = |device: usize| {
            self.picks.iter().rev().take_while(|pick| pick.unit == at.unit).any(|pick| pick.device == device)
        };
        self.kinds[one] == self.kinds[other]
            && self.used[one] == self.used[other]
            && (self.sharers[one] > 0) == (self.sharers[other] > 0)
            && self.consumed[one] == self.consumed[other]
            && !picked(one)
            && !picked(other)
    }

    /// Whether nobody has the device, or this does not matter.
    pub(super) fn is_free(&self, at: Cursor, device: usize, admin: bool) -> bool {
        let shareable = self.problem.devices[device].is_shareable();
        let mut of_unit = self.picks.iter().rev().take_while(|pick| pick.unit == at.unit);
        if admin {
            return shareable || !of_unit.any(|pick| pick.device == device && pick.claim == at.claim);
        }
        !self.problem.devices[device].taken
            && !self.used[device]
            && (shareable || !of_unit.any(|pick| pick.device == device && pick.admin))
    }

    /// Whether enough is left of the capacities of a device. A claim with admin access may have come before all others that
    /// have no devices yet, so only those that have matter to it.
    pub(super) fn has_left(&self, device: usize, share: &[Quantity], admin: bool) -> bool {
        let found = &self.problem.devices[device];
        let consumed = if admin { &found.consumed } else { &self.consumed[device] };
        let mut sums = consumed.iter().zip(share).enumerate();
        !found.is_shareable() || sums.all(|(index, (taken, amount))| taken.plus(*amount) <= found.capacity(index))
    }

    /// Whether enough is left of the counters that a device takes from; for admin access as above.
    pub(super) fn has_counters(&self, device: usize, admin: bool) -> bool {
        let found = &self.problem.devices[device];
        let counters = if admin { &self.problem.counters } else { &self.counters };
        let counts_already = found.is_shareable() && (found.shared || (!admin && self.sharers[device] > 0));
        counts_already || found.takes.iter().all(|&(counter, amount)| counters[counter] >= amount)
    }

    /// Whether the rules of a claim let a device join those that it has.
    pub(super) fn obeys(&self, at: Cursor, claim: &Claim, chosen: &Alternative, device: usize) -> bool {
        chosen.rules.iter().all(|&rule| {
            let (attribute, differs) = claim.rules[rule];
            let values = &self.problem.attributes[attribute];
            let Some(value) = values[device] else { return false };
            let of_claim = self.picks.iter().rev().take_while(|pick| (pick.unit, pick.claim) == (at.unit, at.claim));
            let mut others =
                of_claim.filter(|pick| claim.requests[pick.request][pick.alternative].rules.contains(&rule));
            others.all(|pick| {
                let same = value != Attribute::Other && values[pick.device] == Some(value);
                same != differs
            })
        })
    }

    pub(super) fn pick(&mut self, at: Cursor, device: usize, share: &[Quantity], admin: bool) {
        let found = &self.problem.devices[device];
        let alternative = at.alternative.unwrap_or(0);
        let Cursor { unit, claim, request, .. } = at;
        self.picks.push(Pick { unit, claim, device, admin, request, alternative });
        if admin {
            return;
        }
        if found.is_shareable() {
            if !found.shared && self.sharers[device] == 0 {
                self.take_counters(device, 1);
            }
            self.sharers[device] += 1;
            for (sum, amount) in self.consumed[device].iter_mut().zip(share) {
                *sum = sum.plus(*amount);
            }
        } else {
            self.take_counters(device, 1);
            self.used[device] = true;
        }
    }

    pub(super) fn put_back(&mut self, device: usize, share: &[Quantity], admin: bool) {
        self.picks.pop();
        if admin {
            return;
        }
        let found = &self.problem.devices[device];
        if found.is_shareable() {
            self.sharers[device] -= 1;
            for (sum, amount) in self.consumed[device].iter_mut().zip(share) {
                *sum = sum.minus(*amount);
            }
            if !found.shared && self.sharers[device] == 0 {
                self.take_counters(device, -1);
            }
        } else {
            self.used[device] = false;
            self.take_counters(device, -1);
        }
    }

    pub(super) fn take_counters(&mut self, device: usize, sign: i8) {
        for &(counter, amount) in &self.problem.devices[device].takes {
            let left = &mut self.counters[counter];
            *left = if sign > 0 { left.minus(amount) } else { left.plus(amount) };
        }
    }
}
