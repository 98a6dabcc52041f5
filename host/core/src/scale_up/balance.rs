//! Growth of one group that is shared with those like it, where a loop chooses one option only (the peer's way).
//!
//! The chosen group is packed as if all nodes were its own; then the nodes are handed out, the smallest group first, and
//! the pods are packed once more, now onto the nodes that really come. Where more choices follow in the same loop, like
//! groups are packed together from the start, which knows of zones; see [`super::options`].

use plimsoll_scheduling::ClassId;
use plimsoll_scheduling::packing::{Bin, Limits, Packed, Packer};

use crate::control_loop::Loop;
use crate::observation::GroupIndex;

impl Loop<'_> {
    /// Whether growth is shared after it is packed.
    pub(crate) fn shares_afterwards(&self) -> bool {
        self.settings.balance_similar_node_groups && self.goes_step_by_step()
    }

    /// Packs pods onto nodes of the first of these groups, as many as all of them may get, and shares the nodes out.
    pub(crate) fn share(
        &mut self,
        groups: &[(GroupIndex, Bin)],
        wanted: &[(ClassId, u32)],
        packer: &mut Packer,
    ) -> Packed {
        let Some(&(main, bin)) = groups.first() else { return Packed::default() };
        let together = groups.iter().map(|(_, bin)| bin.most).fold(0, u32::saturating_add);
        let set: Vec<GroupIndex> = groups.iter().map(|&(group, _)| group).collect();
        let most = self.most_nodes(&set).unwrap_or(bin.most).min(together);
        let limits = Limits { aim: self.aim(), ..Limits::default() };
        let alone = packer.estimate(&mut self.snapshot, &[Bin { most, ..bin }], wanted, limits);
        let sizes: Vec<(u32, u32)> = groups.iter().map(|(_, bin)| (bin.size, bin.most)).collect();
        let bins: Vec<Bin> = level(&sizes, alone.node_count())
            .into_iter()
            .zip(groups)
            .map(|(share, &(_, bin))| Bin { most: share, ..bin })
            .collect();
        let helped: Vec<(ClassId, u32)> =
            wanted.iter().zip(&alone.placed).map(|(&(class, _), &placed)| (class, placed)).collect();
        let shared = packer.estimate(&mut self.snapshot, &bins, &helped, Limits::default());
        let fits_alone = self.room(main).is_some_and(|room| alone.node_count() <= room);
        if shared.pod_count() < alone.pod_count() && fits_alone { alone } else { shared }
    }

    /// Whether everything that a fresh node of one group takes, one of another takes too.
    pub(crate) fn takes_the_same(&self, group: GroupIndex, other: GroupIndex) -> bool {
        let taken = self.fitted.iter().filter(|(by, _)| *by == group);
        { taken }.all(|&(_, class)| self.fitted.contains(&(other, class)))
    }
}

/// How many of `nodes` each group gets, given its size and how many it can take: always the smallest, and of several that
/// which was the smallest at first, so that they are filled level by level (the peer's order).
fn level(groups: &[(u32, u32)], nodes: u32) -> Vec<u32> {
    let mut shares = vec![0; groups.len()];
    for _ in 0..nodes {
        let open = groups.iter().zip(&mut shares).filter(|((_, most), share)| **share < *most);
        let smallest = open.min_by_key(|((size, _), share)| (size.saturating_add(**share), *size));
        let Some((_, share)) = smallest else { break };
        *share += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_groups_are_filled_level_by_level() {
        for (name, groups, nodes, expected) in [
            ("equal ones take turns, the first begins", vec![(1, 9), (1, 9)], 3, vec![2, 1]),
            ("the smaller one catches up and goes on", vec![(4, 9), (1, 9)], 4, vec![0, 4]),
            ("then they take turns", vec![(4, 9), (1, 9)], 6, vec![1, 5]),
            ("a full one leaves its share to the others", vec![(0, 1), (5, 9)], 3, vec![1, 2]),
            ("no more than fit", vec![(0, 1), (0, 1)], 5, vec![1, 1]),
            ("nobody", vec![], 2, vec![]),
        ] {
            assert_eq!(level(&groups, nodes), expected, "{name}");
        }
    }
}
