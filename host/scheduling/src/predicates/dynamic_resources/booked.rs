//! The engine's part of DynamicResources: who is where, and what that came to.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_model::devices::{Allocation, Device, ResourceSlice};
use plimsoll_model::symbol::known;
use plimsoll_model::{Node, Symbol};
use rustc_hash::{FxHashMap, FxHasher};

use super::shifting::Shifting;
use super::{elsewhere, full, reason, solve, vacancies};
use crate::devices::ClaimKey;
use crate::devices::held::Held;
use crate::devices::pools::{Pool, PoolName};
use crate::devices::problem::{self, Problem, Spot};
use crate::devices::search::{self, Manner, Outcome};
use crate::devices::wants::{self, Wants};
use crate::predicates::{Tracker, Verdict};
use crate::refusal::Reason;
use crate::snapshot::base::{Base, ClassId, NodeId, ShapeId};
use crate::snapshot::topology::KeyId;
use crate::table::{Id, Table};

/// What a class wants.
#[derive(Debug)]
struct Info {
    wants: Wants,
    /// Whether its pods may come into each other's way from node to node.
    linked: bool,
    /// Claims that its pods give back when they go.
    held: Vec<ClaimKey>,
    /// Claims that others may use too; each pod is a consumer, in whatever state its other claims are.
    named: Vec<ClaimKey>,
}

impl Info {
    /// Whether what others have matters to its pods.
    fn may_pick(&self) -> bool {
        !self.wants.own.is_empty() || !self.wants.shared.is_empty() || !self.wants.resources.is_empty()
    }
}

/// A node's pools, and a number that is equal for nodes whose devices are alike.
#[derive(Clone, Debug)]
struct View {
    pools: Arc<Vec<Pool>>,
    number: u64,
    /// Of which state of the claims' devices the number is.
    version: u64,
}

/// What was found out.
#[derive(Debug, Default)]
struct Cache {
    views: FxHashMap<NodeId, View>,
    views_of_shapes: FxHashMap<ShapeId, View>,
    numbers: FxHashMap<Vec<u64>, u64>,
    looks: FxHashMap<(Symbol, Device), u64>,
    /// Looks of the devices of a slice, by its address: slices live as long as the cluster or the shapes.
    looks_of_slices: FxHashMap<usize, Arc<[u64]>>,
    /// Whether pods on nodes that are alike can be given their devices.
    answers: FxHashMap<Vec<u64>, bool>,
}

/// Who is where.
#[derive(Default)]
pub(super) struct Booked {
    infos: Table<ClassId, Option<Arc<Info>>>,
    held: Option<Held>,
    /// Pods by claims that they share.
    users: FxHashMap<ClaimKey, i64>,
    /// How many pods that may come into each other's way each node has.
    linked: BTreeMap<NodeId, i64>,
    /// Raised when devices of a pool are given to claims or given back.
    versions: FxHashMap<PoolName, u64>,
    cache: Mutex<Cache>,
    awake: bool,
    shifting: Shifting,
}

impl Booked {
    fn info(&self, class: ClassId) -> Option<&Arc<Info>> {
        self.infos.get(class)?.as_ref()
    }

    fn users(&self, key: ClaimKey) -> i64 {
        self.users.get(&key).copied().unwrap_or(0)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        // What it holds is right or absent, whatever happened to another thread.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether pods placed on other nodes may make room for pods of a class.
    fn shifts(&self, info: &Info) -> bool {
        info.may_pick() && self.shifting.concerns(!info.held.is_empty())
    }

    fn note_change(&mut self, allocation: &Allocation) {
        for device in &allocation.devices {
            *self.versions.entry((device.device.driver, device.device.pool)).or_default() += 1;
        }
    }

    /// A node's pools, as they are now.
    fn view(&self, base: &Base<'_>, cache: &mut Cache, node: NodeId) -> View {
        // Without wide pools all copies of a shape are alike.
        let shape = base.shape_of(node).filter(|_| base.facts.inventory.is_local());
        let known = match shape {
            Some(shape) => cache.views_of_shapes.get(&shape),
            None => cache.views.get(&node),
        };
        let version = |pools: &[Pool]| {
            let foreign = pools.iter().filter(|pool| !pool.own);
            foreign.map(|pool| self.versions.get(&pool.name).copied().unwrap_or(0)).sum::<u64>()
        };
        let pools = match known {
            Some(view) if view.version == version(&view.pools) => return view.clone(),
            Some(view) => view.pools.clone(),
            None => {
                let listed = base.named_node(node);
                Arc::new(base.facts.inventory.pools(&listed, base.own_slices(node), base.facts.symbols()))
            }
        };
        let number = self.number(cache, &pools);
        let view = View { version: version(&pools), number, pools };
        match shape {
            Some(shape) => cache.views_of_shapes.insert(shape, view.clone()),
            None => cache.views.insert(node, view.clone()),
        };
        view
    }

    fn number(&self, cache: &mut Cache, pools: &[Pool]) -> u64 {
        let mut content = Vec::new();
        for pool in pools {
            content.push(u64::MAX);
            content.push(pool.standing as u64);
            if !pool.local {
                content.extend([index(pool.name.0), index(pool.name.1)]);
            }
            for (slice, at) in &pool.devices {
                let looks = cache.looks(slice);
                content.push(looks.get(*at).copied().unwrap_or(0));
                content.push(self.state(pool, slice, *at));
            }
            if pool.counters().next().is_some() {
                let mut hasher = FxHasher::default();
                pool.counters().for_each(|set| set.hash(&mut hasher));
                for slice in &pool.slices {
                    (0..slice.devices.len()).for_each(|at| self.state(pool, slice, at).hash(&mut hasher));
                }
                content.push(hasher.finish());
            }
        }
        let next = u64::try_from(cache.numbers.len()).unwrap_or(u64::MAX);
        *cache.numbers.entry(content).or_insert(next)
    }

    /// What claims have of a device.
    fn state(&self, pool: &Pool, slice: &ResourceSlice, at: usize) -> u64 {
        let (Some(held), Some(device)) = (self.held.as_ref().filter(|_| !pool.own), slice.devices.get(at)) else {
            return 0;
        };
        let name = plimsoll_model::devices::DeviceName { driver: pool.name.0, pool: pool.name.1, device: device.name };
        let shares = held.shares(name);
        if shares.is_empty() {
            return u64::from(held.is_taken(name));
        }
        let mut sums: Vec<(Symbol, plimsoll_model::Quantity)> = Vec::new();
        for (capacity, amount) in shares.iter().flatten() {
            match sums.iter_mut().find(|(name, _)| name == capacity) {
                Some((_, sum)) => *sum = sum.plus(*amount),
                None => sums.push((*capacity, *amount)),
            }
        }
        sums.sort_unstable();
        let mut hasher = FxHasher::default();
        (held.is_taken(name), sums).hash(&mut hasher);
        hasher.finish() | 2
    }

    /// Nodes that matter for pods of a class on a node, this one first.
    fn nodes(&self, info: &Info, node: NodeId) -> Vec<NodeId> {
        let mut nodes = vec![node];
        if info.linked || self.linked.contains_key(&node) {
            nodes.extend(self.linked.keys().copied().filter(|other| *other != node));
        }
        nodes
    }

    /// Pods on a node that are to be given devices.
    fn pods<'s>(&'s self, base: &Base<'_>, node: NodeId) -> impl Iterator<Item = (ClassId, &'s Info, u32)> {
        let node_of = base.node(node);
        let mut pods: Vec<_> = base.runs[node]
            .iter()
            .filter_map(|&(class, count)| Some((class, self.info(class)?.as_ref(), count)))
            .filter(|(_, info, _)| info.wants.picks(node_of))
            .collect();
        pods.sort_unstable_by_key(|(class, ..)| *class);
        pods.into_iter()
    }

    /// Whether so many more pods of a class can be given devices on a node.
    fn is_possible(&self, base: &Base<'_>, class: ClassId, info: &Info, node: NodeId, more: u32) -> bool {
        if !info.wants.picks(base.node(node)) {
            return true;
        }
        let cache = &mut *self.cache();
        let nodes = self.nodes(info, node);
        let mut key = Vec::with_capacity(8);
        let mut views = Vec::with_capacity(nodes.len());
        for &other in &nodes {
            let view = self.view(base, cache, other);
            key.extend([u64::MAX, view.number]);
            for (class, info, count) in self.pods(base, other) {
                key.extend([number(class), u64::from(count)]);
                key.extend(left_to_devices(&info.wants, base.node(other)));
            }
            views.push(view);
        }
        key.extend([u64::MAX - 1, number(class), u64::from(more)]);
        key.extend(left_to_devices(&info.wants, base.node(node)));
        if let Some(answer) = cache.answers.get(&key) {
            return *answer;
        }
        let quick = |problem: &Problem| search::solve(&base.facts, problem, Manner::Quick);
        let answer = self.answer(base, &nodes, &views, (info, more), quick) == Outcome::Possible;
        cache.answers.insert(key, answer);
        answer
    }

    fn answer(
        &self,
        base: &Base<'_>,
        nodes: &[NodeId],
        views: &[View],
        (info, more): (&Info, u32),
        solve: impl Fn(&Problem) -> Outcome,
    ) -> Outcome {
        let bare = Held::default();
        let listed: Vec<_> = nodes.iter().map(|&node| base.node(node)).collect();
        let spots: Vec<Spot<'_>> = nodes
            .iter()
            .zip(views)
            .zip(listed)
            .enumerate()
            .map(|(position, ((&node, view), listed))| {
                let mut pods: Vec<(&Wants, u32)> =
                    self.pods(base, node).map(|(_, info, count)| (&info.wants, count)).collect();
                if position == 0 {
                    pods.push((&info.wants, more));
                }
                Spot { node: listed, pools: &view.pools, pods }
            })
            .collect();
        problem::answer(&base.facts, self.held.as_ref().unwrap_or(&bare), &spots, solve)
    }

    fn refused(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Option<Reason> {
        let info = self.info(class)?;
        if info.wants.picks(base.node(node)) && !self.is_possible(base, class, info, node, 1) {
            let cache = &mut *self.cache();
            let nodes = self.nodes(info, node);
            let views: Vec<View> = nodes.iter().map(|&other| self.view(base, cache, other)).collect();
            let outcome = self.answer(base, &nodes, &views, (info, 1), |problem| solve(&base.facts, problem));
            let here = views.first().map_or(&[][..], |view| &view.pools);
            return reason(outcome, here).or(Some(Reason::DeviceSearchTooLong));
        }
        elsewhere(&base.facts, &info.wants, &base.named_node(node))
            .or_else(|| full(&base.facts, &info.wants, |key| self.users(key)))
    }
}

impl Cache {
    /// Numbers of the devices of a slice: equal for devices that differ in nothing but name.
    fn looks(&mut self, slice: &Arc<ResourceSlice>) -> Arc<[u64]> {
        let address = Arc::as_ptr(slice) as usize;
        if let Some(looks) = self.looks_of_slices.get(&address) {
            return looks.clone();
        }
        let looks = slice.devices.iter().map(|device| {
            let nameless = Device { name: known::EMPTY, ..device.clone() };
            let next = u64::try_from(self.looks.len()).unwrap_or(u64::MAX);
            *self.looks.entry((slice.driver, nameless)).or_insert(next)
        });
        let looks: Arc<[u64]> = looks.collect();
        self.looks_of_slices.insert(address, looks.clone());
        looks
    }
}

/// Which of the resources that stand for devices a node does not have itself, as numbers for a key; nodes with devices that
/// are alike may differ in it.
fn left_to_devices(wants: &Wants, node: &Node) -> impl Iterator<Item = u64> {
    wants.missing(node).map(|(name, ..)| (u64::MAX >> 1) + index(*name))
}

fn index(symbol: Symbol) -> u64 {
    u64::try_from(symbol.index()).unwrap_or(u64::MAX)
}

fn number(class: ClassId) -> u64 {
    u64::try_from(class.index()).unwrap_or(u64::MAX)
}

impl Tracker for Booked {
    fn meet(&mut self, base: &Base<'_>, class: ClassId) -> bool {
        let facts = &base.facts;
        let spec = base.spec(class);
        if spec.claims.is_empty() && facts.classes_of_resources.is_empty() {
            return false;
        }
        let wants = wants::of(facts, spec).unwrap_or_default();
        let held: Vec<ClaimKey> = wants::held(facts, spec).map(|(key, _)| key).collect();
        let named: Vec<ClaimKey> = wants::named_claims(spec).collect();
        if wants.is_empty() && held.is_empty() && named.is_empty() {
            return false;
        }
        self.held.get_or_insert_with(|| Held::lasting(facts.cluster, &facts.given_back));
        let linked = problem::is_linked(facts, &wants);
        let changed = self.shifting.meet(base, &wants, linked);
        *self.infos.grown(class) = Some(Arc::new(Info { wants, linked, held, named }));
        self.awake = true;
        changed
    }

    fn prepare(&mut self, base: &mut Base<'_>, class: ClassId) -> bool {
        let Some(info) = self.info(class).cloned() else { return false };
        self.shifting.prepare(base, &info.wants, info.may_pick(), !info.held.is_empty());
        !info.wants.is_empty()
    }

    fn is_awake(&self) -> bool {
        self.awake
    }

    fn moved(&mut self, base: &Base<'_>, class: ClassId, node: NodeId, delta: i64) {
        let Some(info) = self.info(class).cloned() else { return };
        for key in &info.held {
            let claim = base.facts.cluster.devices.claims.get(key);
            let Some(allocation) = claim.and_then(|claim| claim.allocation.as_ref()) else { continue };
            if self.held.as_mut().is_some_and(|held| held.shift(*key, allocation, delta)) {
                self.note_change(allocation);
            }
        }
        self.shifting.note_move();
        for key in &info.named {
            let users = self.users.entry(*key).or_default();
            *users += delta;
            if *users == 0 {
                self.users.remove(key);
            }
        }
        if info.linked {
            let pods = self.linked.entry(node).or_default();
            *pods += delta;
            if *pods == 0 {
                self.linked.remove(&node);
            }
        }
    }

    fn node_undone(&mut self, base: &Base<'_>, node: NodeId) {
        base.runs[node].iter().for_each(|&(class, count)| self.moved(base, class, node, -i64::from(count)));
        // The number may be given to another node.
        self.cache().views.remove(&node);
    }

    fn verdict(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Verdict {
        let Some(info) = self.info(class) else { return Verdict::Fits };
        let refused = full(&base.facts, &info.wants, |key| self.users(key)).is_some()
            || (!info.wants.allocated.is_empty()
                && elsewhere(&base.facts, &info.wants, &base.named_node(node)).is_some());
        if refused {
            Verdict::Never
        } else if self.is_possible(base, class, info, node, 1) {
            Verdict::Fits
        } else if self.shifts(info) {
            Verdict::NotNow(None)
        } else {
            Verdict::Never
        }
    }

    fn room(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> u32 {
        let Some(info) = self.info(class) else { return u32::MAX };
        let named = info.wants.named.iter().map(|&key| vacancies(&base.facts, key, self.users(key)));
        let room = named.min().unwrap_or(u32::MAX);
        if !info.wants.picks(base.node(node)) {
            return room;
        }
        // No more than resources allow; so many that fit, and so many that do not.
        let most = base.free.room(node, &base.class(class).demand).min(room);
        let (mut fits, mut fails) = (0, most.saturating_add(1));
        let mut next = 1;
        while fits + 1 < fails {
            let more = next.clamp(fits + 1, fails - 1);
            if self.is_possible(base, class, info, node, more) {
                fits = more;
                // Where more pods can make room, each must fit beside those before it.
                next = if self.shifting.is_fickle() { more + 1 } else { more.saturating_mul(2) };
            } else {
                fails = more;
                next = fits + (fails - fits) / 2;
            }
        }
        fits
    }

    fn reasons(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Vec<Reason> {
        Vec::from_iter(self.refused(base, class, node))
    }

    fn shifting_keys(&self, class: ClassId, keys: &mut Vec<KeyId>) {
        keys.extend(self.shifting.key().filter(|_| self.info(class).is_some_and(|info| self.shifts(info))));
    }

    fn epoch(&self, class: ClassId, _keys: &[KeyId]) -> u64 {
        if self.info(class).is_some_and(|info| self.shifts(info)) { self.shifting.moves() } else { 0 }
    }

    fn digest(&self, _base: &Base<'_>, state: &mut dyn Hasher) {
        let held = self.held.iter().flat_map(Held::users);
        let mut users: Vec<_> = self.users.iter().map(|(key, users)| (*key, *users)).chain(held).collect();
        users.sort_unstable();
        for ((namespace, name), users) in users {
            state.write_u64(index(namespace));
            state.write_u64(index(name));
            state.write_i64(users);
        }
        for (node, pods) in &self.linked {
            state.write_usize(node.index());
            state.write_i64(*pods);
        }
    }
}
