//! Which pods come first.

use smallvec::SmallVec;

use super::Bin;
use crate::snapshot::Snapshot;
use crate::snapshot::base::{ClassId, Count};
use crate::table::Id;

/// Positions 0 to `len - 1` by score, the highest first; equal ones as they are.
pub(super) fn sorted(len: usize, score: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut scored: Vec<(f64, usize)> = (0..len).map(|index| (score(index), index)).collect();
    scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    scored.into_iter().map(|(_, index)| index).collect()
}

/// The peer's order: share of cpu plus share of memory, the largest first.
pub(super) fn peer(snapshot: &Snapshot<'_>, bins: &[Bin], pods: &[Count]) -> Vec<usize> {
    sorted(pods.len(), |entry| pods.get(entry).map_or(0.0, |&(class, _)| peer_score(snapshot, bins, class)))
}

#[allow(clippy::cast_precision_loss, reason = "the peer reckons in floating point too")]
fn peer_score(snapshot: &Snapshot<'_>, bins: &[Bin], class: ClassId) -> f64 {
    let Some(bin) = bins.first() else { return 0.0 };
    let offered = &snapshot.base.shapes[bin.shape].node.allocatable;
    let asked = snapshot.base.spec(class).of_containers();
    let share = |asked: i64, offered: i64| if offered > 0 { asked as f64 / offered as f64 } else { 0.0 };
    share(asked.cpu_milli, offered.cpu_milli) + share(asked.memory_bytes, offered.memory_bytes)
}

/// The largest share of any resource of the first template, the largest first.
pub(super) fn by_size(snapshot: &Snapshot<'_>, bins: &[Bin], pods: &[Count]) -> Vec<usize> {
    let row = bins.first().map_or(&[][..], |bin| snapshot.base.shape_row(bin.shape));
    let weights = Weights::even(row);
    sorted(pods.len(), |entry| {
        let demand = pods.get(entry).map(|&(class, _)| &snapshot.base.class(class).demand);
        let shares = demand.into_iter().flatten().map(|&(dim, amount)| weights.share_of(dim.index(), amount));
        shares.fold(0.0, f64::max)
    })
}

/// How much resources count beside each other.
pub(super) struct Weights {
    /// One over what a node offers.
    share: SmallVec<[f64; 6]>,
    weight: SmallVec<[f64; 6]>,
}

#[allow(clippy::cast_precision_loss, reason = "scores only rank")]
impl Weights {
    /// All resources alike.
    pub(super) fn even(offered: &[i64]) -> Self {
        let share = offered.iter().map(|&offered| if offered > 0 { 1.0 / offered as f64 } else { 0.0 });
        Self { share: share.collect(), weight: offered.iter().map(|_| 1.0).collect() }
    }

    /// The more of a resource is asked for, the more it counts.
    pub(super) fn scarce<'d>(offered: &[i64], demands: impl Iterator<Item = (&'d [i64], u32)>) -> Self {
        let mut weights = Self::even(offered);
        weights.weight.fill(0.0);
        for (demand, count) in demands {
            for ((weight, share), &asked) in weights.weight.iter_mut().zip(&weights.share).zip(demand) {
                *weight += asked as f64 * share * f64::from(count);
            }
        }
        weights
    }

    /// The share of a node that an amount of one resource is.
    fn share_of(&self, dim: usize, amount: i64) -> f64 {
        self.share.get(dim).map_or(0.0, |share| amount as f64 * share)
    }

    /// The largest share of a node that a demand asks for.
    pub(super) fn largest_share(&self, demand: &[i64]) -> f64 {
        demand.iter().zip(&self.share).map(|(&asked, share)| asked as f64 * share).fold(0.0, f64::max)
    }

    /// What is left on a node, ready to be multiplied with demands.
    pub(super) fn scaled(&self, row: &[i64]) -> SmallVec<[f64; 6]> {
        let parts = row.iter().zip(&self.share).zip(&self.weight);
        parts.map(|((&left, share), weight)| left as f64 * share * share * weight).collect()
    }

    /// How well a demand uses what is left: high if it asks for what there is much of.
    pub(super) fn dot(scaled: &[f64], demand: &[i64]) -> f64 {
        scaled.iter().zip(demand).map(|(left, &asked)| left * asked as f64).sum()
    }
}
