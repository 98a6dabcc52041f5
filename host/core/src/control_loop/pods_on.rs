//! Pods by the node that they are on.

use plimsoll_model::{Cluster, Symbol};

use crate::observation::NodeIndex;
use crate::plan::PodIndex;

/// Pods by the node that they are on, in the order of their numbers: one list for all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodsOn {
    /// By node: where its pods start; one more than there are nodes.
    starts: Vec<usize>,
    pods: Vec<PodIndex>,
}

impl PodsOn {
    /// From pairs of a node and something on it, which come by increasing number within each node: the list of all, and
    /// the things in the same order.
    pub(super) fn new<T: Copy + Default>(nodes: usize, pairs: &[(NodeIndex, PodIndex, T)]) -> (Self, Vec<T>) {
        let mut starts = vec![0; nodes + 1];
        for &(node, ..) in pairs {
            if let Some(start) = starts.get_mut(node + 1) {
                *start += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut pods = vec![0; pairs.len()];
        let mut things = vec![T::default(); pairs.len()];
        for &(node, pod, thing) in pairs {
            let Some(at) = next.get_mut(node) else { continue };
            if let (Some(slot), Some(of_thing)) = (pods.get_mut(*at), things.get_mut(*at)) {
                (*slot, *of_thing) = (pod, thing);
            }
            *at += 1;
        }
        (Self { starts, pods }, things)
    }

    /// The pods on a node.
    pub(crate) fn get(&self, node: NodeIndex) -> &[PodIndex] {
        self.pods.get(self.range(node)).unwrap_or_default()
    }

    pub(super) fn range(&self, node: NodeIndex) -> std::ops::Range<usize> {
        let at = |node: usize| self.starts.get(node).copied().unwrap_or_default();
        at(node)..at(node + 1)
    }
}

/// Nodes by name, for looking up many.
pub(super) struct NodesByName(Vec<u32>);

impl NodesByName {
    const NONE: u32 = u32::MAX;

    /// Of two nodes with one name the last counts, of which there are none in a real cluster.
    pub(super) fn new(cluster: &Cluster) -> Self {
        let mut nodes = vec![Self::NONE; cluster.symbols.len()];
        for (number, node) in (0..).zip(&cluster.nodes) {
            if let Some(slot) = nodes.get_mut(node.name.index()) {
                *slot = number;
            }
        }
        Self(nodes)
    }

    pub(super) fn get(&self, name: Symbol) -> Option<NodeIndex> {
        let number = self.0.get(name.index()).copied().filter(|number| *number != Self::NONE)?;
        usize::try_from(number).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_listed_by_node() {
        let (on, things) = PodsOn::new(3, &[(2, 0, 'a'), (0, 1, 'b'), (2, 3, 'c'), (0, 7, 'd')]);
        assert_eq!(on.get(0), [1, 7]);
        assert!(on.get(1).is_empty());
        assert_eq!(on.get(2), [0, 3]);
        assert!(on.get(3).is_empty());
        assert_eq!(things, ['b', 'd', 'a', 'c']);
    }
}
