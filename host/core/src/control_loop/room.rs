//! Who takes the room that is there: pending pods on nodes that exist or are on their way.

use plimsoll_scheduling::NodeId;

use super::{Loop, Pending};

/// In which order classes of one priority take the room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// Those that ask for much first: what asks for little finds room beside them.
    Largest,
    /// Those that ask for little first: more of them find room.
    Smallest,
    /// By name.
    Named,
}

/// With more classes than this, one order must do.
const MOST_CLASSES: usize = 256;

/// Nodes that are there, and those that are on their way.
struct Room {
    existing: Vec<NodeId>,
    upcoming: Vec<NodeId>,
}

impl Loop<'_> {
    /// Puts pending pods on nodes that are there or on their way. Where some find room and others do not, it matters who
    /// comes first: several orders are tried, and the one that lets most pods in counts, those of high priority first.
    pub(super) fn place_what_fits(&mut self) {
        if self.pending.is_empty() && self.passive.is_empty() {
            return;
        }
        let room = self.room_there();
        self.snapshot.fork();
        let mut best = (self.take_room(Order::Largest, &room), Order::Largest);
        let mut last = Order::Largest;
        if self.is_contended() {
            for order in [Order::Smallest, Order::Named] {
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
    }

    /// Lets pods whose places depend on where others are use the room on all nodes, those that this loop adds included:
    /// what was refused before may be allowed now.
    pub(super) fn use_room(&mut self) {
        let unsettled = |pending: &Pending| pending.left() > 0 && self.snapshot.is_shifting(pending.class);
        if !self.pending.iter().any(unsettled) {
            return;
        }
        let Room { mut existing, upcoming } = self.room_there();
        existing.extend(upcoming);
        existing.extend(self.groups.iter().flat_map(|group| group.new.iter().copied()));
        for pending in &mut self.pending {
            if pending.left() > 0 && self.snapshot.is_shifting(pending.class) {
                pending.take_room(&mut self.snapshot, &existing);
            }
        }
    }

    /// Nodes in the order of their names, so that the order of the input does not matter.
    fn room_there(&self) -> Room {
        let cluster = self.observation.cluster;
        let mut existing: Vec<NodeId> = (0..cluster.nodes.len()).map(NodeId::new).collect();
        existing.sort_by_key(|node| cluster.nodes.get(node.index()).map(|node| cluster.text(node.name)));
        Room { existing, upcoming: self.groups.iter().flat_map(|group| group.upcoming.iter().copied()).collect() }
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

    /// Places what fits, in an order; returns how many pods of each priority found room, the highest first.
    fn take_room(&mut self, order: Order, room: &Room) -> Vec<u32> {
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
        all.sort_by_key(|pending| std::cmp::Reverse(priority(pending)));
        let mut placed: Vec<(i32, u32)> = Vec::new();
        for pending in all {
            pending.take_room(&mut self.snapshot, &room.existing);
            pending.take_room(&mut self.snapshot, &room.upcoming);
            let priority = priority(pending);
            let count: u32 = pending.placed.iter().map(|&(_, count)| count).sum();
            match placed.last_mut().filter(|(last, _)| *last == priority) {
                Some((_, sum)) => *sum += count,
                None => placed.push((priority, count)),
            }
        }
        placed.into_iter().map(|(_, count)| count).collect()
    }
}
