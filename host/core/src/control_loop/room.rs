//! Who takes the room that is there: pending pods on nodes that exist or are on their way.

use std::cmp::Reverse;

use plimsoll_scheduling::NodeId;

use super::{Loop, Pending};

/// In which order classes of one priority take the room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Those that ask for much first: what asks for little finds room beside them.
    Largest,
    /// Those that ask for little first: more of them find room.
    Smallest,
    /// By name.
    Named,
}

/// Pods that have a place by priority, the highest first.
pub(crate) type Helped = Vec<(Reverse<i32>, u32)>;

/// With more classes than this, one order must do.
const MOST_CLASSES: usize = 256;

impl Order {
    pub(crate) const ALL: &[Self] = &[Self::Largest, Self::Smallest, Self::Named];
    pub(crate) const LARGEST: &[Self] = &[Self::Largest];
}

impl Loop<'_> {
    /// Puts pending pods on nodes that are there or on their way. Where some find room and others do not, it matters who
    /// comes first: several orders are tried, and the one that lets most pods in counts, those of high priority first.
    /// Returns the order that counts.
    pub(crate) fn place_what_fits(&mut self, orders: &[Order]) -> Order {
        let (first, others) = orders.split_first().map_or((Order::Largest, orders), |(first, others)| (*first, others));
        if self.pending.is_empty() && self.passive.is_empty() {
            return first;
        }
        let room = self.room_there();
        self.snapshot.fork();
        let mut best = (self.take_room(first, &room), first);
        let mut last = first;
        if self.is_contended() {
            for &order in others {
                self.start_over();
                let placed = self.take_room(order, &room);
                last = order;
                if placed > best.0 {
                    best = (placed, order);
                }
            }
        }
        if last != best.1 {
            self.start_over();
            self.take_room(best.1, &room);
        }
        self.snapshot.commit();
        best.1
    }

    /// Lets pods whose places depend on where others are use the room on all nodes, those that this loop adds included:
    /// what was refused before may be allowed now.
    pub(super) fn use_room(&mut self) {
        let unsettled = |pending: &Pending| pending.left() > 0 && self.snapshot.is_shifting(pending.class);
        if !self.pending.iter().any(unsettled) {
            return;
        }
        let nodes = self.room_there();
        for pending in &mut self.pending {
            if pending.left() > 0 && self.snapshot.is_shifting(pending.class) {
                pending.take_room(&mut self.snapshot, &nodes);
            }
        }
    }

    /// Gives all pods their places anew, on whatever there is by now. They stay where they are if fewer of those that come
    /// first found one that way, or if `holds` says so. Returns how many found a place, by priority.
    pub(crate) fn place_anew(&mut self, orders: &[Order], holds: impl FnOnce(&mut Self) -> bool) -> Helped {
        let places = |pending: &[Pending]| -> Vec<Vec<(NodeId, u32)>> {
            pending.iter().map(|pending| pending.placed.clone()).collect()
        };
        let before = (places(&self.pending), places(&self.passive));
        let helped_before = self.helped();
        self.snapshot.fork();
        self.take_places_back();
        self.place_what_fits(orders);
        let helped = self.helped();
        if helped >= helped_before && !holds(self) {
            self.snapshot.commit();
            return helped;
        }
        self.snapshot.revert();
        let all = self.pending.iter_mut().chain(&mut self.passive);
        all.zip(before.0.into_iter().chain(before.1)).for_each(|(pending, placed)| pending.placed = placed);
        helped.min(helped_before)
    }

    /// How many pods that groups may grow for have a place.
    pub(crate) fn helped(&self) -> Helped {
        self.count_placed(self.pending.iter())
    }

    /// No pod has a place any more.
    pub(crate) fn take_places_back(&mut self) {
        for pending in self.passive.iter_mut().chain(&mut self.pending) {
            for (node, count) in std::mem::take(&mut pending.placed) {
                self.snapshot.unplace(pending.class, node, count);
            }
        }
    }

    /// Nodes that are there, in the order of their names, so that the order of the input does not matter; then those that
    /// are on their way or that this loop adds.
    fn room_there(&self) -> Vec<NodeId> {
        let cluster = self.observation.cluster;
        let mut nodes: Vec<NodeId> = (0..cluster.nodes.len()).map(NodeId::new).collect();
        nodes.sort_by_key(|node| cluster.nodes.get(node.index()).map(|node| cluster.text(node.name)));
        nodes.extend(self.groups.iter().flat_map(|group| group.upcoming.iter().chain(&group.new).copied()));
        nodes
    }

    /// Whether some pods found room and others did not.
    fn is_contended(&self) -> bool {
        let classes = self.pending.len() + self.passive.len();
        let placed = self.pending.iter().any(|pending| !pending.placed.is_empty());
        let left = self.pending.iter().any(|pending| pending.left() > 0);
        (2..=MOST_CLASSES).contains(&classes) && placed && left
    }

    fn start_over(&mut self) {
        self.snapshot.revert();
        self.snapshot.fork();
        for pending in self.passive.iter_mut().chain(&mut self.pending) {
            pending.placed.clear();
        }
    }

    /// Places what fits, in an order; returns how many pods found room, those that no group grows for included.
    fn take_room(&mut self, order: Order, room: &[NodeId]) -> Helped {
        let cluster = self.observation.cluster;
        let priority = |pending: &Pending| cluster.specs[pending.spec].priority.unwrap_or(0);
        let name = |pending: &Pending| {
            let pod = pending.pods.first().and_then(|&pod| cluster.pods.get(pod));
            pod.map(|pod| (cluster.text(cluster.specs[pod.spec].namespace), &*pod.name))
        };
        let mut all: Vec<&mut Pending> = self.passive.iter_mut().chain(&mut self.pending).collect();
        match order {
            Order::Largest => {}
            Order::Smallest => all.reverse(),
            Order::Named => all.sort_by(|a, b| name(a).cmp(&name(b))),
        }
        all.sort_by_key(|pending| Reverse(priority(pending)));
        for pending in all {
            pending.take_room(&mut self.snapshot, room);
        }
        self.count_placed(self.passive.iter().chain(&self.pending))
    }

    /// How many pods of these classes have a place.
    fn count_placed<'p>(&self, classes: impl Iterator<Item = &'p Pending>) -> Helped {
        let mut helped = Helped::new();
        for pending in classes {
            let priority = Reverse(self.observation.cluster.specs[pending.spec].priority.unwrap_or(0));
            let count: u32 = pending.placed.iter().map(|&(_, count)| count).sum();
            match helped.iter_mut().find(|(of, _)| *of == priority) {
                Some((_, sum)) => *sum += count,
                None => helped.push((priority, count)),
            }
        }
        helped.sort_unstable();
        helped
    }
}
