//! The simulated cloud: pools of machines that boot, run out of stock and are deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::Time;
use plimsoll_provider_simulated::wire;

/// Whether machines of a pool can be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stock {
    /// As many as the pool may have.
    #[default]
    Plenty,
    /// None: a request is refused.
    SoldOut,
    /// None, but the cloud finds out only after it accepted the request.
    SoldOutLate,
    /// None; the cloud takes the request, tells of the failure, and goes on wishing: its target stays above its machines
    /// until the wish is taken back, or machines can be had again.
    Unfulfilled,
    /// This many more.
    Left(u32),
}

/// Machines that a cloud wishes for and does not get.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wish {
    /// Name of the failure that tells of it.
    pub(crate) id: String,
    pub(crate) count: u32,
    pub(crate) since: Time,
    /// Whether an order asked for them; else a machine is to be replaced, or somebody raised the target by hand.
    pub(crate) ordered: bool,
}

/// Where a machine is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MachineState {
    /// Asked for.
    Booting,
    /// It is a node.
    Up,
    /// It is being deleted.
    Deleting,
    /// It will not come up.
    Failed,
}

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Its name in the cloud, which is its node's name too.
    pub id: String,
    /// State.
    pub state: MachineState,
    /// When it was asked for.
    pub asked_at: Time,
    /// Since when it is in its state.
    pub since: Time,
}

/// What a write to the cloud did, kept so that the same key does it once.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Done {
    Size(wire::SizeAnswer),
    Delete(wire::DeleteAnswer),
}

/// A node group of the simulated cloud.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Name.
    pub id: String,
    /// Least size.
    pub min: u32,
    /// Greatest size.
    pub max: u32,
    /// Size that the cloud works towards.
    pub target: u32,
    /// What its machines are.
    pub template: wire::Template,
    /// From the request to a registered node.
    pub boot: Duration,
    /// From a registered node to a ready one.
    pub warm_up: Duration,
    /// Stock.
    pub stock: Stock,
    /// Price of a machine, in millionths per hour.
    pub micros_per_hour: u64,
    /// For the priority expander.
    pub priority: Option<i32>,
    /// Machines.
    pub machines: Vec<Machine>,
    /// So many of the next machines run, but never become nodes.
    pub deaf: u32,
    /// Wishes that are not fulfilled, the oldest first.
    pub(crate) wishes: Vec<Wish>,
    /// So many of the next machines run, but become nodes only after so long.
    pub late: (u32, Duration),
    pub(crate) done: BTreeMap<String, Done>,
    pub(crate) made: u32,
}

impl Pool {
    /// An empty pool.
    pub fn new(id: &str, min: u32, max: u32, template: wire::Template) -> Self {
        Self {
            id: id.to_owned(),
            min,
            max,
            target: 0,
            template,
            boot: Duration::from_secs(40),
            warm_up: Duration::from_secs(10),
            stock: Stock::Plenty,
            micros_per_hour: 0,
            priority: None,
            machines: vec![],
            deaf: 0,
            wishes: vec![],
            late: (0, Duration::ZERO),
            done: BTreeMap::new(),
            made: 0,
        }
    }

    /// So many wishes are taken back, the youngest first.
    pub(crate) fn give_up(&mut self, count: u32) {
        let mut left = count;
        for wish in self.wishes.iter_mut().rev() {
            let given_up = wish.count.min(left);
            wish.count -= given_up;
            left -= given_up;
        }
        self.wishes.retain(|wish| wish.count > 0);
    }

    /// Machines that orders asked it for, and of which it has told that they do not come.
    pub fn unfulfilled(&self) -> u32 {
        self.wishes.iter().filter(|wish| wish.ordered).map(|wish| wish.count).sum()
    }

    /// Whatever else its target is above its machines becomes a wish.
    pub(crate) fn wish_for_the_rest(&mut self, now: Time) {
        let wished: u32 = self.wishes.iter().map(|wish| wish.count).sum();
        let count = self.target.saturating_sub(self.alive().saturating_add(wished));
        if count > 0 {
            self.made += 1;
            let id = format!("{}-owed-{}", self.id, self.made);
            self.wishes.push(Wish { id, count, since: now, ordered: false });
        }
    }

    /// How many machines it has ever asked for.
    pub fn machines_made(&self) -> usize {
        usize::try_from(self.made).unwrap_or(usize::MAX)
    }

    /// Machines that count for the size: all but those that are going or failed.
    pub fn alive(&self) -> u32 {
        let alive =
            self.machines.iter().filter(|machine| matches!(machine.state, MachineState::Booting | MachineState::Up));
        u32::try_from(alive.count()).unwrap_or(u32::MAX)
    }
}
