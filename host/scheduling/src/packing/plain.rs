//! Pods that only resources keep apart: arithmetic on runs of equal nodes, without touching the snapshot.

mod blocks;

use super::order::{self, Weights};
use super::search::Search;
use super::{Bin, Limits, NodeRun, Packed};
use crate::snapshot::Snapshot;
use crate::snapshot::base::Count;
use crate::table::Id;
use blocks::{Block, Link, MOST_STATES, Row, State, fits, room, take};

/// What is to be packed, as numbers.
pub(super) struct Plan<'a> {
    bins: Vec<Template>,
    items: Vec<Item>,
    limits: Limits<'a>,
    peer_order: Vec<usize>,
    /// At least so many nodes are needed for all items that fit some template.
    least_nodes: u32,
}

struct Template {
    /// What is left on a fresh node.
    row: Row,
    most: u32,
    size: u32,
}

struct Item {
    demand: Row,
    count: u32,
    /// Templates that take it, if there is room.
    allowed: Vec<bool>,
}

/// One way through a packing.
struct Attempt<'p> {
    plan: &'p Plan<'p>,
    /// All runs in their order.
    blocks: Vec<Block>,
    links: Vec<Link>,
    left: Vec<u32>,
    opened: u32,
    opened_of: Vec<u32>,
}

impl<'a> Plan<'a> {
    /// None if something but resources may keep one of the pods from a fresh node.
    pub(super) fn new(snapshot: &mut Snapshot<'_>, bins: &[Bin], pods: &[Count], limits: Limits<'a>) -> Option<Self> {
        if pods.iter().any(|&(class, _)| snapshot.has_checks(class)) {
            return None;
        }
        let mut dims: Vec<_> =
            pods.iter().flat_map(|&(class, _)| snapshot.base.class(class).demand.iter().map(|&(dim, _)| dim)).collect();
        dims.sort_unstable();
        dims.dedup();
        let templates: Vec<Template> = bins
            .iter()
            .map(|bin| {
                let row = snapshot.base.shape_row(bin.shape);
                let row = dims.iter().map(|dim| row.get(dim.index()).copied().unwrap_or(0)).collect();
                Template { row, most: bin.most, size: bin.size }
            })
            .collect();
        let items = pods.iter().map(|&(class, count)| {
            let allowed = bins.iter().map(|bin| snapshot.shape_statically_fits(class, bin.shape)).collect();
            let demand = &snapshot.base.class(class).demand;
            let amount = |dim| demand.iter().find(|asked| asked.0 == dim).map_or(0, |asked| asked.1);
            Item { demand: dims.iter().map(|&dim| amount(dim)).collect(), count, allowed }
        });
        let items: Vec<Item> = items.collect();
        let least_nodes = least_nodes(&templates, &items);
        let peer_order = order::peer(snapshot, bins, pods);
        Some(Self { bins: templates, items, limits, peer_order, least_nodes })
    }

    /// The best of several ways.
    pub(super) fn best(&self) -> Packed {
        let backwards = self.peer_order.iter().rev().copied().collect();
        let orders = vec![self.peer_order.clone(), backwards, self.by_size()];
        let mut search = Search::new(self.limits, orders, false);
        let patterns: [&dyn Fn() -> Weights; 2] =
            [&|| Weights::scarce(&self.largest_row(), self.demands()), &|| Weights::even(&self.largest_row())];
        let mut patterns = patterns.iter();
        // Each pattern uses up an item or nearly so, and looks at all of them a few times.
        let work_of_patterns = self.items.len() * self.items.len() / 2;
        while let Some((order, _)) = search.next() {
            let packed = self.first_fit(&order);
            let mut perfect = self.is_perfect(&packed);
            // Every item looks at every run of nodes, which takes a few nanoseconds.
            let work = packed.nodes.len() * (self.items.len() / 16 + 1);
            search.learn(order, packed, work);
            if !perfect
                && search.affords(work_of_patterns)
                && let Some(weights) = patterns.next()
            {
                let packed = self.patterns(&weights());
                perfect = self.is_perfect(&packed);
                search.learn(self.peer_order.clone(), packed, work_of_patterns);
            }
            if perfect {
                break;
            }
        }
        search.best()
    }

    fn fits_any(&self, item: usize) -> bool {
        (0..self.bins.len()).any(|bin| self.room(bin, item) > 0)
    }

    /// How many of an item a fresh node of a template takes.
    fn room(&self, bin: usize, item: usize) -> u32 {
        let (Some(template), Some(item)) = (self.bins.get(bin), self.items.get(item)) else { return 0 };
        if item.allowed.get(bin).copied().unwrap_or(false) { room(&template.row, &item.demand) } else { 0 }
    }

    /// Whether what fills a node of one template fills one of another just as well.
    fn alike(&self, bin: usize, other: usize, pattern: &[(usize, u32)]) -> bool {
        let row = |bin: usize| self.bins.get(bin).map(|bin| &bin.row);
        bin == other || (row(bin) == row(other) && pattern.iter().all(|&(item, _)| self.room(other, item) > 0))
    }

    /// Whether no packing can be better.
    fn is_perfect(&self, packed: &Packed) -> bool {
        let mut items = self.items.iter().zip(&packed.placed).enumerate();
        let all = items.all(|(index, (item, placed))| *placed == item.count || !self.fits_any(index));
        all && packed.node_count() <= self.least_nodes
    }

    fn largest_row(&self) -> Row {
        let rows = self.bins.iter().map(|bin| bin.row.clone());
        rows.reduce(|one, other| one.iter().zip(&other).map(|(one, other)| *one.max(other)).collect())
            .unwrap_or_default()
    }

    fn demands(&self) -> impl Iterator<Item = (&[i64], u32)> {
        self.items.iter().map(|item| (&item.demand[..], item.count))
    }

    /// Items by their largest share of a node, the largest first.
    fn by_size(&self) -> Vec<usize> {
        let weights = Weights::even(&self.largest_row());
        order::sorted(self.items.len(), |item| {
            self.items.get(item).map_or(0.0, |item| weights.largest_share(&item.demand))
        })
    }

    fn first_fit(&self, order: &[usize]) -> Packed {
        let mut attempt = Attempt::new(self);
        order.iter().for_each(|&item| attempt.serve(item));
        attempt.packed()
    }

    fn patterns(&self, weights: &Weights) -> Packed {
        let mut attempt = Attempt::new(self);
        attempt.fill_by_patterns(weights);
        attempt.packed()
    }
}

/// Each resource by itself: the sum of what is asked for over the most that a node offers.
fn least_nodes(bins: &[Template], items: &[Item]) -> u32 {
    let dims = bins.first().map_or(0, |bin| bin.row.len());
    let needs = (0..dims).map(|dim| {
        let asked = items.iter().filter(|item| {
            let mut templates = bins.iter().zip(&item.allowed);
            templates.any(|(bin, allowed)| *allowed && fits(&bin.row, &item.demand))
        });
        let asked: i128 =
            asked.map(|item| i128::from(item.demand.get(dim).copied().unwrap_or(0)) * i128::from(item.count)).sum();
        let offered = bins.iter().filter_map(|bin| bin.row.get(dim)).copied().max().unwrap_or(0);
        if offered <= 0 { 0 } else { (asked + i128::from(offered) - 1) / i128::from(offered) }
    });
    needs.max().map_or(0, |nodes| u32::try_from(nodes).unwrap_or(u32::MAX))
}

impl<'p> Attempt<'p> {
    fn new(plan: &'p Plan<'p>) -> Self {
        Self {
            plan,
            blocks: Vec::new(),
            links: Vec::new(),
            left: plan.items.iter().map(|item| item.count).collect(),
            opened: 0,
            opened_of: vec![0; plan.bins.len()],
        }
    }

    /// First fit for one item: onto the nodes that are there, in their order, then onto new ones.
    fn serve(&mut self, index: usize) {
        let plan = self.plan;
        let Some(item) = plan.items.get(index) else { return };
        let mut left = self.left.get(index).copied().unwrap_or(0);
        let mut at = 0;
        while left > 0
            && let Some(block) = self.blocks.get_mut(at)
        {
            if fits(&block.most, &item.demand) {
                left = block.serve(index, (&item.demand, &item.allowed), left, &mut self.links);
                if let Some(second) = block.cut() {
                    at += 1;
                    self.blocks.insert(at, second);
                }
            }
            at += 1;
        }
        let rooms: Vec<u32> = (0..plan.bins.len()).map(|bin| plan.room(bin, index)).collect();
        let mut full = vec![0; rooms.len()];
        let mut last = None;
        while left > 0 {
            let Some(bin) = self.next_bin(|bin| rooms.get(bin).is_some_and(|room| *room > 0)) else { break };
            self.count_node(bin);
            let count = rooms.get(bin).map_or(left, |room| *room).min(left);
            left -= count;
            match rooms.get(bin) == Some(&count) {
                true => full.get_mut(bin).into_iter().for_each(|nodes| *nodes += 1),
                false => last = Some((bin, count)),
            }
        }
        for (bin, (&nodes, &room)) in full.iter().zip(&rooms).enumerate() {
            self.push_fresh(bin, nodes, &[(index, room)]);
        }
        if let Some((bin, count)) = last {
            self.push_fresh(bin, 1, &[(index, count)]);
        }
        self.left.get_mut(index).into_iter().for_each(|of_item| *of_item = left);
    }

    fn push_fresh(&mut self, bin: usize, nodes: u32, pods: &[(usize, u32)]) {
        let plan = self.plan;
        let Some(template) = plan.bins.get(bin).filter(|_| nodes > 0) else { return };
        let mut row = template.row.clone();
        let mut state = State { bin, nodes, pods: None };
        for &(item, count) in pods {
            let demand = plan.items.get(item).map_or(&[][..], |item| &item.demand);
            take(&mut row, demand, count);
            state.put(item, count, &mut self.links);
        }
        match self.blocks.last_mut().filter(|block| block.states.len() < MOST_STATES / 2) {
            Some(block) => block.push(state, &row),
            None => self.blocks.push(Block::of(state, row)),
        }
    }

    /// The template of the smallest group that may still grow and is usable.
    fn next_bin(&self, usable: impl Fn(usize) -> bool) -> Option<usize> {
        if !self.plan.limits.allow(self.opened) {
            return None;
        }
        let bins = self.plan.bins.iter().zip(&self.opened_of).enumerate();
        let open = bins.filter(|(index, (bin, opened))| **opened < bin.most && usable(*index));
        let sizes = open.map(|(index, (bin, opened))| (bin.size.saturating_add(*opened), index));
        sizes.min().map(|(_, index)| index)
    }

    fn count_node(&mut self, bin: usize) {
        self.opened += 1;
        self.opened_of.get_mut(bin).into_iter().for_each(|opened| *opened += 1);
    }

    /// Node after node: a fresh one is filled with whatever uses best what is left on it, and then repeated while there
    /// are pods for another one like it.
    fn fill_by_patterns(&mut self, weights: &Weights) {
        let plan = self.plan;
        loop {
            let left = &self.left;
            let usable = |bin: usize| {
                let mut items = plan.items.iter().zip(left).enumerate();
                items.any(|(index, (_, left))| *left > 0 && plan.room(bin, index) > 0)
            };
            let Some(bin) = self.next_bin(usable) else { break };
            let pattern = self.pattern(bin, weights);
            let times = pattern.iter().map(|&(item, count)| self.left.get(item).map_or(0, |left| left / count)).min();
            let mut nodes = vec![0; plan.bins.len()];
            for _ in 0..times.unwrap_or(0) {
                let alike = |other: usize| plan.alike(bin, other, &pattern);
                let Some(bin) = self.next_bin(alike) else { break };
                self.count_node(bin);
                nodes.get_mut(bin).into_iter().for_each(|nodes| *nodes += 1);
            }
            let all: u32 = nodes.iter().sum();
            if all == 0 {
                break;
            }
            for &(item, count) in &pattern {
                self.left.get_mut(item).into_iter().for_each(|left| *left -= count * all);
            }
            for (bin, nodes) in nodes.into_iter().enumerate() {
                self.push_fresh(bin, nodes, &pattern);
            }
        }
    }

    /// What a fresh node of a template is best filled with, of what is left.
    fn pattern(&self, bin: usize, weights: &Weights) -> Vec<(usize, u32)> {
        let Some(template) = self.plan.bins.get(bin) else { return Vec::new() };
        let mut row = template.row.clone();
        // Left of each item, by position; items that no longer fit are dropped.
        let items = self.plan.items.iter().enumerate().zip(&self.left);
        let mut open: Vec<(usize, &Item, u32)> = items
            .filter(|((_, item), left)| **left > 0 && item.allowed.get(bin).copied().unwrap_or(false))
            .map(|((index, item), left)| (index, item, *left))
            .collect();
        let mut pattern: Vec<(usize, u32)> = Vec::new();
        loop {
            let mut best: Option<(f64, usize)> = None;
            let scaled = weights.scaled(&row);
            let mut at = 0;
            while let Some(&(_, item, left)) = open.get(at) {
                if left == 0 || !fits(&row, &item.demand) {
                    open.swap_remove(at);
                    continue;
                }
                let score = Weights::dot(&scaled, &item.demand);
                if best.is_none_or(|(best, _)| score > best) {
                    best = Some((score, at));
                }
                at += 1;
            }
            let Some((index, item, left)) = best.and_then(|(_, at)| open.get_mut(at)) else { break };
            *left -= 1;
            take(&mut row, &item.demand, 1);
            match pattern.iter_mut().find(|(in_pattern, _)| in_pattern == index) {
                Some((_, count)) => *count += 1,
                None => pattern.push((*index, 1)),
            }
        }
        pattern
    }

    fn packed(self) -> Packed {
        let placed = self.plan.items.iter().zip(&self.left).map(|(item, left)| item.count - left).collect();
        let nodes = self.blocks.iter().flat_map(|block| &block.states).map(|state| {
            let mut pods: Vec<(usize, u32)> = Vec::new();
            let mut at = state.pods;
            while let Some(link) = at.and_then(|at| self.links.get(at)) {
                match pods.iter_mut().find(|(item, _)| *item == link.item) {
                    Some((_, count)) => *count += link.count,
                    None => pods.push((link.item, link.count)),
                }
                at = link.before;
            }
            pods.sort_unstable();
            NodeRun { bin: state.bin, nodes: state.nodes, pods }
        });
        Packed { nodes: nodes.collect(), placed, ..Packed::default() }
    }
}
