//! Which devices a node can use: slices of the newest generation, pool by pool.

use std::sync::Arc;

use plimsoll_model::devices::{CounterSet, Reach, ResourceSlice};
use plimsoll_model::{Node, Symbol, Symbols};
use rustc_hash::{FxHashMap, FxHashSet};

/// Driver and name of a pool.
pub(crate) type PoolName = (Symbol, Symbol);

/// Slices of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    by_node: FxHashMap<Symbol, Vec<Arc<ResourceSlice>>>,
    /// Those that are not for one node alone.
    wide: Vec<Arc<ResourceSlice>>,
    by_pool: FxHashMap<PoolName, Vec<Arc<ResourceSlice>>>,
    /// Pools with slices for more than one node.
    wide_pools: FxHashSet<PoolName>,
}

/// Whether a pool can be used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Standing {
    /// It can.
    Usable,
    /// Some of its slices are not there yet.
    Incomplete,
    /// It contradicts itself.
    Invalid,
}

/// A pool as one node sees it.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) name: PoolName,
    pub(crate) standing: Standing,
    /// Whether it is for this node alone.
    pub(crate) local: bool,
    /// Whether it is one that a copy of a template brings, whose devices no claim has yet.
    pub(crate) own: bool,
    /// Devices that the node can use: slice and position in it.
    pub(crate) devices: Vec<(Arc<ResourceSlice>, usize)>,
    /// All slices of the pool, for the counters that their devices take from.
    pub(crate) slices: Vec<Arc<ResourceSlice>>,
}

impl Pool {
    /// What its devices share.
    pub(crate) fn counters(&self) -> impl Iterator<Item = &CounterSet> {
        self.slices.iter().flat_map(|slice| &slice.counters)
    }

    fn has_binding_conditions(&self) -> bool {
        self.devices.iter().any(|(slice, at)| slice.devices.get(*at).is_some_and(|device| device.binding_conditions))
    }
}

fn pool_name(slice: &ResourceSlice) -> PoolName {
    (slice.driver, slice.pool)
}

impl Inventory {
    pub(crate) fn new(slices: &[Arc<ResourceSlice>]) -> Self {
        let mut inventory = Self::default();
        for slice in slices {
            let of_pool = inventory.by_pool.entry(pool_name(slice)).or_default();
            let first = of_pool.first().map_or(&slice.nodes, |first| &first.nodes);
            if !matches!(slice.nodes, Reach::Node(_)) || *first != slice.nodes {
                inventory.wide_pools.insert(pool_name(slice));
            }
            of_pool.push(slice.clone());
            match slice.nodes {
                Reach::Node(node) => inventory.by_node.entry(node).or_default().push(slice.clone()),
                _ => inventory.wide.push(slice.clone()),
            }
        }
        inventory
    }

    /// Whether no node has devices but those of its own.
    pub(crate) fn is_local(&self) -> bool {
        self.wide_pools.is_empty()
    }

    /// Slices of pools that several nodes can use.
    pub(crate) fn wide_slices(&self) -> impl Iterator<Item = &Arc<ResourceSlice>> {
        self.wide_pools.iter().filter_map(|name| self.by_pool.get(name)).flatten()
    }

    /// Pools of a node that is listed in the cluster, or of a copy with slices of its own.
    pub(crate) fn pools(&self, node: &Node, own: Option<&[Arc<ResourceSlice>]>, symbols: &Symbols) -> Vec<Pool> {
        let local = own.unwrap_or_else(|| self.by_node.get(&node.name).map_or(&[], Vec::as_slice));
        let mut found: FxHashMap<(PoolName, bool), Vec<Arc<ResourceSlice>>> = FxHashMap::default();
        let wide = self.wide.iter().filter(|slice| is_relevant(slice, node, symbols));
        for (slice, is_own) in local.iter().map(|slice| (slice, own.is_some())).chain(wide.map(|slice| (slice, false)))
        {
            let of_pool = found.entry((pool_name(slice), is_own)).or_default();
            match of_pool.first().map(|first| first.generation.cmp(&slice.generation)) {
                Some(std::cmp::Ordering::Greater) => continue,
                Some(std::cmp::Ordering::Less) => of_pool.clear(),
                _ => {}
            }
            of_pool.push(slice.clone());
        }
        let mut pools: Vec<Pool> = found
            .into_iter()
            .filter_map(|((name, is_own), slices)| {
                let all =
                    if is_own { own.unwrap_or_default() } else { self.by_pool.get(&name).map_or(&[][..], |all| all) };
                let local = is_own || !self.wide_pools.contains(&name);
                pool((name, local, is_own), slices, all, node, symbols)
            })
            .collect();
        // Names decide, so that drivers can say what is to be taken first.
        let texts = |pool: &Pool| (symbols.text(pool.name.0), symbols.text(pool.name.1));
        pools.sort_by(|one, other| {
            let last = |pool: &Pool| pool.has_binding_conditions();
            last(one).cmp(&last(other)).then_with(|| texts(one).cmp(&texts(other)))
        });
        pools
    }
}

/// Whether a slice is one for a node, or has counters, which matter everywhere.
fn is_relevant(slice: &ResourceSlice, node: &Node, symbols: &Symbols) -> bool {
    match &slice.nodes {
        _ if !slice.counters.is_empty() => true,
        Reach::EachDevice => slice.devices.iter().any(|device| reaches(&device.nodes, node, symbols)),
        reach => reaches(reach, node, symbols),
    }
}

/// Whether devices can be used on a node.
pub(crate) fn reaches(reach: &Reach, node: &Node, symbols: &Symbols) -> bool {
    match reach {
        Reach::Node(name) => *name == node.name,
        Reach::All => true,
        Reach::Selector(selector) => selector.matches(&node.labels, Some(node.name), symbols),
        Reach::EachDevice | Reach::Unknown => false,
    }
}

fn pool(
    (name, local, own): (PoolName, bool, bool),
    mut slices: Vec<Arc<ResourceSlice>>,
    all: &[Arc<ResourceSlice>],
    node: &Node,
    symbols: &Symbols,
) -> Option<Pool> {
    let (generation, wanted) = slices.first().map(|first| (first.generation, first.slices_in_pool))?;
    let complete = |slices: usize| i64::try_from(slices) == Ok(wanted);
    let mut of_pool = slices.clone();
    if !complete(slices.len()) {
        let same_pool = || all.iter().filter(|slice| pool_name(slice) == name);
        if same_pool().any(|slice| slice.generation > generation) {
            // The newer one has nothing for this node.
            return None;
        }
        of_pool = same_pool().filter(|slice| slice.generation == generation).cloned().collect();
        if !complete(of_pool.len()) {
            let standing = Standing::Incomplete;
            return Some(Pool { name, standing, local, own, devices: Vec::new(), slices: Vec::new() });
        }
    }
    slices.sort_by_key(|slice| symbols.text(slice.name).to_owned());
    let with_devices = || slices.iter().filter(|slice| slice.counters.is_empty());
    let mut names = FxHashSet::default();
    let unique = with_devices().flat_map(|slice| &slice.devices).all(|device| names.insert(device.name));
    let standing = if unique && has_counters(&slices, &of_pool) { Standing::Usable } else { Standing::Invalid };
    if standing == Standing::Invalid {
        return Some(Pool { name, standing, local, own, devices: Vec::new(), slices: Vec::new() });
    }
    let usable = |slice: &ResourceSlice, at: usize| {
        slice.nodes != Reach::EachDevice
            || slice.devices.get(at).is_some_and(|device| reaches(&device.nodes, node, symbols))
    };
    let devices = with_devices().flat_map(|slice| (0..slice.devices.len()).map(move |at| (slice.clone(), at)));
    let devices = devices.filter(|(slice, at)| usable(slice, *at)).collect();
    Some(Pool { name, standing, local, own, devices, slices: of_pool })
}

/// Whether each counter that a device takes from is there once. Counters are those of slices that the node sees.
fn has_counters(seen: &[Arc<ResourceSlice>], of_pool: &[Arc<ResourceSlice>]) -> bool {
    let mut sets: FxHashMap<Symbol, &CounterSet> = FxHashMap::default();
    if !seen.iter().flat_map(|slice| &slice.counters).all(|set| sets.insert(set.name, set).is_none()) {
        return false;
    }
    let is_there = |taken: &CounterSet| {
        let set = sets.get(&taken.name);
        let has = |name: &Symbol| set.is_some_and(|set| set.counters.iter().any(|(counter, _)| counter == name));
        set.is_some() && taken.counters.iter().all(|(name, _)| has(name))
    };
    of_pool.iter().flat_map(|slice| &slice.devices).flat_map(|device| &device.consumes).all(is_there)
}
