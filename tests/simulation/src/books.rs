//! The simulation's own books: what the cloud told the process, and what the process asked of it. The rules about orders are
//! checked against these, not against anything that the core says of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_model::Time;
use plimsoll_model::symbol::known;
use plimsoll_sim::World;
use plimsoll_sim::cloud::{MachineState, Pool};

use crate::violation::Invariant;

/// An order on the strength of an older answer breaks a rule.
const FRESH: Duration = Duration::from_secs(300);
/// Machines that were asked for are counted on for at least so long: a little less than the core's patience.
const COUNTED_ON: Duration = Duration::from_secs(14 * 60);
/// Machines of others have become nodes, or never will, after so long.
const FOREIGN: Duration = Duration::from_secs(2 * 3600);
/// A machine whose deletion was accepted is not asked for again sooner.
const ASKED_AGAIN: Duration = Duration::from_secs(290);

/// Wishes that will not be fulfilled are taken back within this time. Failures are told by a read, and taken back in a loop.
const TAKEN_BACK: Duration = Duration::from_secs(20 * 60);

/// What was broken, and what was seen.
pub(crate) type Finding = (Invariant, String);

/// What the cloud told, and what it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// Of when the last answer to a read is, by group. A group is missing if that answer told nothing of it.
    told: BTreeMap<String, Time>,
    /// What the last answer said about machines that are being deleted.
    going: BTreeSet<String>,
    /// Orders by their key.
    keys: BTreeMap<String, String>,
    /// Machines that orders brought and that are no nodes yet, by group, with the time of the order.
    under_way: BTreeMap<String, Vec<(String, Time)>>,
    /// Machines that orders brought, or that were there from the beginning.
    own: BTreeSet<String>,
    /// When the deletion of a machine was last accepted.
    deleted: BTreeMap<String, Time>,
    /// Nodes that others took away.
    taken: BTreeSet<String>,
    /// Since when wishes of a pool are left with the cloud, although nothing keeps the process from taking them back.
    wished: BTreeMap<String, Time>,
}

impl Books {
    /// A read said this of these groups, and nothing of the others.
    pub(crate) fn told<'a>(&mut self, groups: impl Iterator<Item = &'a str>, of: Time) {
        self.told = groups.map(|group| (group.to_owned(), of)).collect();
    }

    /// A read told nothing.
    pub(crate) fn told_nothing(&mut self) {
        self.told.clear();
    }

    /// A read listed these machines as being deleted.
    pub(crate) fn told_going(&mut self, machines: BTreeSet<String>) {
        self.going = machines;
    }

    /// These machines were there from the beginning.
    pub(crate) fn begin_with(&mut self, machines: impl Iterator<Item = String>) {
        self.own.extend(machines);
    }

    /// Nothing is known any more of what is on its way to a group: others have a hand in it.
    pub(crate) fn muddle(&mut self, group: &str) {
        self.under_way.remove(group);
    }

    /// The same for all groups.
    pub(crate) fn muddle_all(&mut self) {
        self.under_way.clear();
    }

    /// Others have taken this node away.
    pub(crate) fn taken(&mut self, node: Option<String>) {
        self.taken.extend(node);
    }

    /// Whether anybody asked for the end of a node.
    pub(crate) fn check_gone(&self, node: &str) -> Option<Finding> {
        let asked = self.taken.contains(node) || self.deleted.contains_key(node);
        (!asked).then(|| (Invariant::NothingDiesUnasked, format!("{node} is gone")))
    }

    /// Whether an order may be given to a group at all.
    pub(crate) fn check_told(&self, group: &str, now: Time, clock_is_off: bool) -> Option<Finding> {
        match self.told.get(group) {
            None => Some((Invariant::NoOrderUnread, format!("{group}: the last read told nothing of it"))),
            Some(of) if !clock_is_off && now.since(*of) > FRESH => {
                let age = now.since(*of).as_secs();
                Some((Invariant::NoOrderUnread, format!("{group}: the last read is {age}s old")))
            }
            Some(_) => None,
        }
    }

    /// Whether the key of an order was used for another one.
    pub(crate) fn check_key(&mut self, key: &str, order: String) -> Option<Finding> {
        let first = self.keys.entry(key.to_owned()).or_insert_with(|| order.clone());
        (*first != order).then(|| (Invariant::OneKeyOneOrder, format!("{key} means {first:?}, and now {order:?}")))
    }

    /// Whether a group is asked for more machines than there are pods that could want them, those on their way included.
    pub(crate) fn check_need(&self, world: &World, pool: &Pool, delta: u32) -> Option<Finding> {
        let coming = self.coming(world, pool)?;
        let cluster = &world.cluster;
        let leaving: BTreeSet<_> =
            cluster.nodes.iter().filter(|node| node.taint(known::TO_BE_DELETED).is_some()).map(|n| n.name).collect();
        let wants = |pod: &&plimsoll_model::Pod| match pod.node {
            None => pod.deletion.is_none(),
            Some(node) => leaving.contains(&node),
        };
        let pods = u32::try_from(cluster.pods.iter().filter(wants).count()).unwrap_or(u32::MAX);
        let below_min = pool.min.saturating_sub(pool.target);
        let seen = format!("{}: {delta} more for {pods} pods that have no place, while {coming} are coming", pool.id);
        (delta + coming > pods + below_min).then_some((Invariant::AskedForOnce, seen))
    }

    /// Machines on their way to a pool that the process asked for and should count on. None while machines come to it that
    /// somebody else asked for: nobody can tell them apart.
    fn coming(&self, world: &World, pool: &Pool) -> Option<u32> {
        let cluster = &world.cluster;
        let is_foreign = |machine: &plimsoll_sim::cloud::Machine| {
            !self.own.contains(&machine.id) && world.now().since(machine.asked_at) < FOREIGN
        };
        if pool.machines.iter().any(is_foreign) {
            return None;
        }
        let under_way = |(id, at): &&(String, Time)| {
            let alive = pool
                .machines
                .iter()
                .any(|machine| machine.id == *id && matches!(machine.state, MachineState::Booting | MachineState::Up));
            let name = cluster.symbols.find(id);
            let is_node = cluster.nodes.iter().any(|node| Some(node.name) == name);
            alive && !is_node && world.now().since(*at) < COUNTED_ON
        };
        let of_pool = self.under_way.get(&pool.id).into_iter().flatten();
        u32::try_from(of_pool.filter(under_way).count()).ok()
    }

    /// An order brought these machines.
    pub(crate) fn brought(&mut self, group: &str, machines: Vec<String>, now: Time) {
        self.own.extend(machines.iter().cloned());
        let under_way = self.under_way.entry(group.to_owned()).or_default();
        under_way.retain(|(_, at)| now.since(*at) < COUNTED_ON);
        under_way.extend(machines.into_iter().map(|id| (id, now)));
    }

    /// Whether the process counts on what it asked for: `counted` machines of a pool.
    pub(crate) fn check_counted(&self, world: &World, pool: &Pool, counted: u32) -> Option<Finding> {
        let coming = self.coming(world, pool)?;
        let seen = format!("{}: {coming} machines that were asked for are coming, {counted} are counted on", pool.id);
        (counted < coming).then_some((Invariant::OrdersAreCountedOn, seen))
    }

    /// Whether the deletion of a machine was accepted a moment ago, and the last read said so.
    pub(crate) fn check_deletion(&self, machine: &str, now: Time) -> Option<Finding> {
        let ago = self.deleted.get(machine).map(|at| now.since(*at)).filter(|ago| *ago < ASKED_AGAIN)?;
        let seen = format!("{machine} was to be deleted {}s ago", ago.as_secs());
        self.going.contains(machine).then_some((Invariant::AskedForOnce, seen))
    }

    /// Whether a pool has wishes for longer than a process needs that nothing keeps from taking them back. Those that the
    /// pool needs for its minimum may stay.
    pub(crate) fn check_wishes(&mut self, pool: &Pool, now: Time, undisturbed: bool) -> Option<Finding> {
        let needless = pool.unfulfilled().min(pool.target.saturating_sub(pool.alive().max(pool.min)));
        if needless == 0 || !undisturbed {
            self.wished.remove(&pool.id);
            return None;
        }
        let since = *self.wished.entry(pool.id.clone()).or_insert(now);
        let seen = format!("{}: {needless} machines are wished for since {}s", pool.id, now.since(since).as_secs());
        (now.since(since) > TAKEN_BACK).then_some((Invariant::WishesAreTakenBack, seen))
    }

    /// The deletion of a machine was accepted.
    pub(crate) fn deleted(&mut self, machine: &str, now: Time) {
        self.deleted.insert(machine.to_owned(), now);
    }
}
