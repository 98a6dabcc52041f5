//! Runs of equal new nodes, in blocks.

use smallvec::SmallVec;

/// Amounts of the resources that matter, in one order.
pub(super) type Row = SmallVec<[i64; 6]>;

/// A run of equal new nodes. What is left on each is a row of [`Block`].
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) bin: usize,
    pub(super) nodes: u32,
    /// Last link of the list of pods on each node.
    pub(super) pods: Option<usize>,
}

/// Pods on the nodes of a run, as a list that runs share after they were split.
pub(super) struct Link {
    pub(super) item: usize,
    pub(super) count: u32,
    pub(super) before: Option<usize>,
}

/// Runs next to each other, so that many of them can be passed over at once.
pub(super) struct Block {
    pub(super) states: Vec<State>,
    /// What is left on a node of each state, row after row.
    rows: Vec<i64>,
    /// At least the most that is left of each resource on any of these nodes.
    pub(super) most: Row,
}

/// A block with more runs than this becomes two.
pub(super) const MOST_STATES: usize = 24;

/// How many pods of a demand fit a row.
pub(super) fn room(row: &[i64], demand: &[i64]) -> u32 {
    let each = row.iter().zip(demand).filter(|(_, asked)| **asked > 0);
    let most = each.map(|(left, asked)| if left < asked { 0 } else { left / asked }).min().unwrap_or(i64::MAX);
    u32::try_from(most).unwrap_or(u32::MAX)
}

pub(super) fn fits(row: &[i64], demand: &[i64]) -> bool {
    row.iter().zip(demand).all(|(left, asked)| *asked == 0 || left >= asked)
}

pub(super) fn take(row: &mut [i64], demand: &[i64], count: u32) {
    for (left, asked) in row.iter_mut().zip(demand) {
        *left -= asked * i64::from(count);
    }
}

impl State {
    /// Puts pods of an item on each of its nodes.
    pub(super) fn put(&mut self, item: usize, count: u32, links: &mut Vec<Link>) {
        if count > 0 {
            links.push(Link { item, count, before: self.pods });
            self.pods = Some(links.len() - 1);
        }
    }
}

impl Block {
    /// A block with one run.
    pub(super) fn of(state: State, row: Row) -> Self {
        Self { states: vec![state], rows: row.to_vec(), most: row }
    }

    fn width(&self) -> usize {
        self.most.len()
    }

    pub(super) fn push(&mut self, state: State, row: &[i64]) {
        self.states.push(state);
        self.rows.extend_from_slice(row);
        self.most.iter_mut().zip(row).for_each(|(most, left)| *most = *left.max(most));
    }

    fn row(&self, at: usize) -> &[i64] {
        self.rows.get(at * self.width()..(at + 1) * self.width()).unwrap_or_default()
    }

    /// First fit for so many pods of an item; gives how many are left.
    pub(super) fn serve(
        &mut self,
        index: usize,
        (demand, allowed): (&[i64], &[bool]),
        pods: u32,
        links: &mut Vec<Link>,
    ) -> u32 {
        let width = self.width();
        let mut left = pods;
        let mut at = 0;
        while left > 0
            && let Some(&State { bin, nodes, .. }) = self.states.get(at)
        {
            if fits(self.row(at), demand) && allowed.get(bin).copied().unwrap_or(false) {
                // Full nodes first, then one that takes the rest.
                let room = room(self.row(at), demand).min(left);
                let full = (left / room).min(nodes);
                self.split(at, full);
                take(self.rows.get_mut(at * width..(at + 1) * width).unwrap_or_default(), demand, room);
                self.states.get_mut(at).into_iter().for_each(|state| state.put(index, room, links));
                left -= full * room;
            }
            at += 1;
        }
        if left < pods {
            self.look_again();
        }
        left
    }

    /// Leaves only so many nodes in a state, the others becoming the next one.
    fn split(&mut self, at: usize, nodes: u32) {
        let width = self.width();
        let Some(state) = self.states.get_mut(at).filter(|state| nodes > 0 && nodes < state.nodes) else { return };
        let rest = State { nodes: state.nodes - nodes, ..*state };
        state.nodes = nodes;
        self.states.insert(at + 1, rest);
        let row: Row = self.row(at).into();
        self.rows.splice((at + 1) * width..(at + 1) * width, row);
    }

    /// Takes the second half of a block that has grown too large.
    pub(super) fn cut(&mut self) -> Option<Self> {
        let half = self.states.len() / 2;
        if self.states.len() <= MOST_STATES {
            return None;
        }
        let rows = self.rows.split_off(half * self.width());
        let mut second = Self { states: self.states.split_off(half), rows, most: self.most.clone() };
        self.look_again();
        second.look_again();
        Some(second)
    }

    /// Reckons the most that is left from what is left.
    fn look_again(&mut self) {
        let Self { rows, most, .. } = self;
        most.fill(i64::MIN);
        for row in rows.chunks_exact(most.len().max(1)) {
            most.iter_mut().zip(row).for_each(|(most, left)| *most = *left.max(most));
        }
    }
}
