//! The oracle's world and the engine's snapshot, moved together.

use plimsoll_model::{Cluster, SpecId, Template};

use crate::oracle::{CLOSED, Place, Resident, World};
use crate::snapshot::base::{ShapeId, fresh_name};
use crate::{Candidates, Gates, NodeId, Phase, Reason, Refusal, Run, Snapshot};

/// Where each node number stands in the world; none if it was removed.
type Map = Vec<Option<usize>>;

/// Both, and what is needed to undo in the world.
pub(crate) struct Mirror<'c> {
    cluster: &'c Cluster,
    gates: Gates,
    pub(crate) snapshot: Snapshot<'c>,
    world: World<'c>,
    map: Map,
    /// What each added node was copied from, by number of the copy.
    copies: Vec<ShapeId>,
    forks: Vec<(Vec<Place>, Map, usize, u64)>,
    skip_cordoned: bool,
}

impl<'c> Mirror<'c> {
    pub(crate) fn new(cluster: &'c Cluster, gates: Gates) -> Self {
        Self {
            cluster,
            gates,
            snapshot: Snapshot::with_gates(cluster, gates),
            world: World::new(cluster, gates),
            map: (0..cluster.nodes.len()).map(Some).collect(),
            copies: Vec::new(),
            forks: Vec::new(),
            skip_cordoned: false,
        }
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.map.len()).map(NodeId::new)
    }

    fn place_at(&mut self, node: NodeId) -> Option<&mut Place> {
        let at = (*self.map.get(node.index())?)?;
        self.world.places.get_mut(at)
    }

    fn class(&mut self, resident: Resident) -> crate::ClassId {
        match resident.terminating {
            true => self.snapshot.terminating_class(resident.spec),
            false => self.snapshot.class(resident.spec),
        }
    }

    pub(crate) fn place(&mut self, resident: Resident, node: NodeId, count: u32) {
        let class = self.class(resident);
        if let Some(place) = self.place_at(node) {
            place.pods.extend((0..count).map(|_| resident));
            self.snapshot.place(class, node, count);
        }
    }

    /// Takes away up to `count` of a pod; in the world, whichever pods of its class come first.
    pub(crate) fn unplace(&mut self, resident: Resident, node: NodeId, count: u32) {
        let class = self.class(resident);
        let Some(place) = self.place_at(node) else { return };
        let pods = std::mem::take(&mut place.pods);
        let mut left = count;
        let mut kept = Vec::new();
        for pod in pods {
            if left > 0 && self.class(pod) == class {
                left -= 1;
            } else {
                kept.push(pod);
            }
        }
        if let Some(place) = self.place_at(node) {
            place.pods = kept;
        }
        self.snapshot.unplace(class, node, count);
    }

    pub(crate) fn add_copy(&mut self, shape: ShapeId, template: &Template) {
        let node = self.snapshot.add_copy(shape);
        assert_eq!(node.index(), self.map.len());
        let name = fresh_name(node);
        self.map.push(Some(self.world.places.len()));
        self.world.places.push(Place::copy_of(template, name));
        self.copies.push(shape);
    }

    pub(crate) fn remove(&mut self, node: NodeId) {
        if self.place_at(node).is_none() {
            return;
        }
        self.snapshot.remove_node(node);
        let Some(at) = self.map[node.index()].take() else { return };
        self.world.places.remove(at);
        for other in self.map.iter_mut().flatten().filter(|other| **other > at) {
            *other -= 1;
        }
    }

    pub(crate) fn close(&mut self, node: NodeId) {
        if let Some(place) = self.place_at(node) {
            place.closed = true;
            self.snapshot.close(node);
        }
    }

    pub(crate) fn set_cordon_policy(&mut self, skip: bool) {
        self.skip_cordoned = skip;
        self.snapshot.set_cordon_policy(skip);
    }

    pub(crate) fn fork(&mut self) {
        self.forks.push((self.world.places.clone(), self.map.clone(), self.copies.len(), self.snapshot.digest()));
        self.snapshot.fork();
    }

    pub(crate) fn commit(&mut self) {
        self.forks.pop();
        self.snapshot.commit();
    }

    /// Undoes both. The digest must be that of the fork, if nothing was prepared in between.
    pub(crate) fn revert(&mut self, prepared: bool) {
        self.snapshot.revert();
        let Some((places, map, copies, digest)) = self.forks.pop() else { return };
        self.world.places = places;
        self.map = map;
        self.copies.truncate(copies);
        if prepared {
            assert_eq!(self.snapshot.digest(), digest, "the state after a revert is not that of the fork");
        }
    }

    /// What the oracle says.
    pub(crate) fn oracle(&self, spec: SpecId, node: NodeId) -> Option<Refusal> {
        let closed = Refusal { predicate: CLOSED, phase: Phase::Filter, reasons: vec![Reason::Closed] };
        match self.map[node.index()] {
            None => Some(closed),
            Some(at) => self.world.refusal(&self.cluster.specs[spec], at),
        }
    }

    /// Asks both about a spec on a node: verdict, reasons and room.
    pub(crate) fn check(&mut self, spec: SpecId, node: NodeId) {
        let expected = self.oracle(spec, node);
        let class = self.snapshot.class(spec);
        let context = || format!("{:?} on {node:?}", self.cluster.specs[spec]);
        assert_eq!(self.snapshot.fits(class, node), expected.is_none(), "fits: {}; oracle {expected:?}", context());
        assert_eq!(self.snapshot.refusal(class, node), expected, "refusal: {}", context());
        let room = self.snapshot.room(class, node);
        let most = 4;
        let one_by_one = self.room(spec, node, most);
        assert_eq!(room.min(most), one_by_one, "room: {}", context());
    }

    /// How many pods the oracle places on a node one after another, up to a number.
    fn room(&mut self, spec: SpecId, node: NodeId, most: u32) -> u32 {
        let mut placed = 0;
        while placed < most && self.oracle(spec, node).is_none() {
            self.place_at(node).unwrap().pods.push(Resident { spec, terminating: false });
            placed += 1;
        }
        for _ in 0..placed {
            self.place_at(node).unwrap().pods.pop();
        }
        placed
    }

    /// Packs with the engine, and one pod at a time with the oracle.
    pub(crate) fn pack(&mut self, spec: SpecId, count: u32, candidates: Candidates<'_>) {
        let list: Vec<NodeId> = match candidates {
            Candidates::All => self.nodes().collect(),
            Candidates::From(first) => self.nodes().filter(|node| *node >= first).collect(),
            Candidates::Of(nodes) => nodes.to_vec(),
        };
        let mut expected: Vec<Run> = Vec::new();
        for _ in 0..count {
            let takes = |node: &&NodeId| {
                let cordoned = self.snapshot.node(**node).unschedulable;
                !(self.skip_cordoned && cordoned) && self.oracle(spec, **node).is_none()
            };
            let Some(&node) = list.iter().find(takes) else { break };
            self.place_at(node).unwrap().pods.push(Resident { spec, terminating: false });
            match expected.iter_mut().find(|run| run.node == node) {
                Some(run) => run.count += 1,
                None => expected.push(Run { node, count: 1 }),
            }
        }
        let class = self.snapshot.class(spec);
        let runs = self.snapshot.pack(class, count, candidates);
        assert_eq!(runs, expected, "pack {count} of {:?}", self.cluster.specs[spec]);
    }

    /// What is on a node, by the engine and by the world.
    pub(crate) fn check_sums(&self, node: NodeId) {
        let Some(at) = self.map[node.index()] else {
            assert!(self.snapshot.pods_on(node).is_empty());
            return;
        };
        let place = &self.world.places[at];
        let pods = self.snapshot.pods_on(node).iter().map(|(_, count)| *count).sum::<u32>();
        assert_eq!(usize::try_from(pods).unwrap(), place.pods.len());
        let cpu = place.pods.iter().map(|pod| self.cluster.specs[pod.spec].requests.cpu_milli).sum::<i64>();
        assert_eq!(self.snapshot.requested(node).cpu_milli, cpu);
        assert_eq!(self.snapshot.free(node).cpu_milli, place.node.allocatable.cpu_milli - cpu);
    }

    /// A snapshot built afresh in the present state, after the same questions, must have the same digest.
    pub(crate) fn check_rebuild(&mut self, specs: &[SpecId], templates: &[Template]) {
        let mut fresh = Mirror::new(self.cluster, self.gates);
        let shapes: Vec<ShapeId> = fresh.prepare_all(specs, templates);
        for copy in &self.copies {
            let node = fresh.snapshot.add_copy(shapes[crate::table::Id::index(*copy)]);
            while let Some(&(class, count)) = fresh.snapshot.pods_on(node).first() {
                fresh.snapshot.unplace(class, node, count);
            }
        }
        for node in self.nodes() {
            match self.map[node.index()] {
                None => fresh.snapshot.remove_node(node),
                Some(at) => {
                    if self.world.places[at].closed {
                        fresh.snapshot.close(node);
                    }
                    for &pod in &self.world.places[at].pods {
                        let class = fresh.class(pod);
                        fresh.snapshot.place(class, node, 1);
                    }
                }
            }
        }
        assert_eq!(fresh.snapshot.digest(), self.snapshot.digest(), "a fresh build of the same state differs");
    }

    /// Makes all classes and asks about each, so that digests compare. Gives the shapes of the templates.
    pub(crate) fn prepare_all(&mut self, specs: &[SpecId], templates: &[Template]) -> Vec<ShapeId> {
        for &spec in specs {
            self.snapshot.class(spec);
            self.snapshot.terminating_class(spec);
        }
        for &spec in specs {
            let class = self.snapshot.class(spec);
            self.snapshot.fits(class, NodeId::new(0));
        }
        templates.iter().map(|template| self.snapshot.shape(template)).collect()
    }
}
