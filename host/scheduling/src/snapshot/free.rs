//! What is left on each node, as rows of numbers, and an index that skips nodes that are too full.

use plimsoll_model::Symbol;
use smallvec::SmallVec;

use super::base::NodeId;
use crate::table::{Id, ids};

ids! {
    /// A resource that some pod asks for.
    pub(crate) Dim;
}

impl Dim {
    pub(crate) const CPU: Self = Self(0);
    pub(crate) const MEMORY: Self = Self(1);
    pub(crate) const STORAGE: Self = Self(2);
    pub(crate) const PODS: Self = Self(3);
    const NATIVE: usize = 4;

    /// The `index`-th scalar resource.
    pub(crate) fn scalar(index: usize) -> Self {
        Self::at(Self::NATIVE + index)
    }
}

/// What one pod of a class takes: resources with amounts that are not zero, always one pod among them.
pub(crate) type Demand = SmallVec<[(Dim, i64); 4]>;

/// Nodes of one block share an upper bound of what is left on any of them.
const BLOCK: usize = 64;

/// What is left on each node. Sums wrap around like those of the scheduler, so that taking back is exact even after an
/// overflow.
#[derive(Debug)]
pub(crate) struct Free {
    /// Scalar resources that some pod asks for, by symbol.
    pub(crate) scalars: Box<[Symbol]>,
    width: usize,
    rows: Vec<i64>,
    /// Per block of nodes and resource: nothing in the block has more left. May be too high, never too low; so undo need
    /// not restore it.
    most: Vec<i64>,
}

#[allow(
    clippy::indexing_slicing,
    reason = "node numbers are this snapshot's, and rows have the width of all resources"
)]
impl Free {
    pub(crate) fn new(scalars: Box<[Symbol]>) -> Self {
        let width = Dim::NATIVE + scalars.len();
        Self { scalars, width, rows: Vec::new(), most: Vec::new() }
    }

    /// Adds the next node with what is left on it.
    pub(crate) fn push(&mut self, row: &[i64]) {
        debug_assert_eq!(row.len(), self.width);
        let node = self.rows.len() / self.width;
        self.rows.extend_from_slice(row);
        if node.is_multiple_of(BLOCK) && self.most.len() / self.width == node / BLOCK {
            self.most.extend_from_slice(row);
        }
        self.raise(node);
    }

    pub(crate) fn pop(&mut self) {
        self.rows.truncate(self.rows.len() - self.width);
    }

    pub(crate) fn row(&self, node: NodeId) -> &[i64] {
        let at = node.index() * self.width;
        &self.rows[at..at + self.width]
    }

    pub(crate) fn get(&self, node: NodeId, dim: Dim) -> i64 {
        self.rows[node.index() * self.width + dim.index()]
    }

    /// Takes what `count` pods ask for; gives it back if negative.
    pub(crate) fn take(&mut self, node: NodeId, demand: &Demand, count: i64) {
        let row = &mut self.rows[node.index() * self.width..][..self.width];
        for &(dim, amount) in demand {
            row[dim.index()] = row[dim.index()].wrapping_sub(amount.wrapping_mul(count));
        }
        if count < 0 {
            self.raise(node.index());
        }
    }

    fn raise(&mut self, node: usize) {
        let row = &self.rows[node * self.width..][..self.width];
        let most = &mut self.most[node / BLOCK * self.width..][..self.width];
        for (most, &left) in most.iter_mut().zip(row) {
            *most = left.max(*most);
        }
    }

    /// How many pods with this demand fit one after another.
    pub(crate) fn room(&self, node: NodeId, demand: &Demand) -> u32 {
        room(self.row(node), demand)
    }

    pub(crate) fn fits(&self, node: NodeId, demand: &Demand) -> bool {
        fits(self.row(node), demand)
    }

    /// The first node at or after `from` in whose block the demand may fit.
    pub(crate) fn skip(&self, from: NodeId, demand: &Demand) -> NodeId {
        let mut node = from.index();
        let nodes = self.rows.len() / self.width;
        while node < nodes {
            let block = node / BLOCK;
            if fits(&self.most[block * self.width..][..self.width], demand) {
                break;
            }
            node = (block + 1) * BLOCK;
        }
        NodeId::at(node.min(nodes))
    }

    /// Whether a node is the last one of its block.
    pub(crate) fn ends_block(node: NodeId) -> bool {
        (node.index() + 1).is_multiple_of(BLOCK)
    }

    /// Lowers the bound of the node's block to what is really left there.
    pub(crate) fn tighten(&mut self, node: NodeId) {
        let block = node.index() / BLOCK;
        let first = block * BLOCK * self.width;
        let last = self.rows.len().min(first + BLOCK * self.width);
        let most = &mut self.most[block * self.width..][..self.width];
        most.fill(i64::MIN);
        for row in self.rows[first..last].chunks_exact(self.width) {
            for (most, &left) in most.iter_mut().zip(row) {
                *most = left.max(*most);
            }
        }
    }
}

#[allow(clippy::indexing_slicing, reason = "rows have the width of all resources")]
fn fits(row: &[i64], demand: &Demand) -> bool {
    demand.iter().all(|&(dim, amount)| row[dim.index()] >= amount)
}

/// How many pods with this demand fit into a row one after another.
#[allow(clippy::indexing_slicing, reason = "rows have the width of all resources")]
pub(crate) fn room(row: &[i64], demand: &Demand) -> u32 {
    let each =
        demand.iter().map(|&(dim, amount)| if row[dim.index()] < amount { 0 } else { row[dim.index()] / amount });
    u32::try_from(each.min().unwrap_or(0)).unwrap_or(u32::MAX)
}
