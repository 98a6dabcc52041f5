//! Pods on nodes with devices, as one question: is there a way to give each what it asks for?

mod build;
mod question;

use std::sync::Arc;

use plimsoll_model::devices::{Attribute, Device, DeviceRequest, ResourceSlice};
use plimsoll_model::{Quantity, Symbol};
use rustc_hash::FxHashMap;

use super::pools::{PoolName, Standing};

pub(crate) use question::{Spot, answer, asks, is_linked, takes_all};

/// Why something cannot even be tried.
pub(crate) type Fault = Arc<str>;

/// A device.
#[derive(Debug)]
pub(crate) struct Dev {
    slice: Arc<ResourceSlice>,
    at: usize,
    pool: usize,
    /// Whether a claim has it as a whole.
    pub(crate) taken: bool,
    /// Whether claims have shares of it.
    pub(crate) shared: bool,
    /// What these took, by capacity.
    pub(crate) consumed: Vec<Quantity>,
    /// What it takes from counters.
    pub(crate) takes: Vec<(usize, Quantity)>,
    /// Nodes that can use it.
    pub(crate) seen_by: Vec<usize>,
}

impl Dev {
    pub(crate) fn device(&self) -> Option<&Device> {
        self.slice.devices.get(self.at)
    }

    pub(crate) fn is_shareable(&self) -> bool {
        self.device().is_some_and(|device| device.shareable)
    }

    /// How much there is of a capacity.
    pub(crate) fn capacity(&self, index: usize) -> Quantity {
        let capacity = self.device().and_then(|device| device.capacity.get(index));
        capacity.map_or_else(Quantity::default, |(_, capacity)| capacity.value)
    }
}

/// A node.
#[derive(Debug, Default)]
pub(crate) struct Side {
    /// Devices that it can use, in the order in which they are tried.
    pub(crate) devices: Vec<usize>,
    /// The first pool that is not in order.
    pub(crate) bad_pool: Option<(PoolName, Standing)>,
    /// Whether some pool contradicts itself.
    pub(crate) has_invalid_pool: bool,
}

/// Claims that are given devices together.
#[derive(Debug)]
pub(crate) struct Unit {
    /// The node where it is given devices, or any of these.
    pub(crate) homes: Vec<usize>,
    pub(crate) claims: Vec<Claim>,
}

/// A claim.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) requests: Vec<Vec<Alternative>>,
    /// Rules between its devices: which attribute, and whether its values differ or are the same.
    pub(crate) rules: Vec<(usize, bool)>,
    /// What nobody here understands.
    pub(crate) fault: Option<Fault>,
}

/// One way to meet a request.
#[derive(Debug)]
pub(crate) struct Alternative {
    pub(crate) ask: usize,
    /// Rules that are about it.
    pub(crate) rules: Vec<usize>,
}

/// Which devices will do; equal requests are one.
#[derive(Debug)]
pub(crate) struct Ask {
    request: DeviceRequest,
    pub(crate) fault: Option<Fault>,
    /// How many; none: all.
    pub(crate) count: Option<usize>,
    pub(crate) admin: bool,
    /// What it says of each device.
    pub(crate) fits: Vec<Fit>,
}

/// Whether a device will do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Fit {
    /// It does not match.
    No,
    /// It cannot be said.
    Unclear(Fault),
    /// It matches, but does not have what is asked for of its capacities.
    TooSmall,
    /// It matches, but has a taint.
    Tainted,
    /// It matches; what is taken of each capacity.
    Yes(Box<[Quantity]>),
}

/// The question.
#[derive(Debug, Default)]
pub(crate) struct Problem {
    pub(crate) devices: Vec<Dev>,
    pub(crate) sides: Vec<Side>,
    pub(crate) units: Vec<Unit>,
    pub(crate) asks: Vec<Ask>,
    /// What is left of each counter.
    pub(crate) counters: Vec<Quantity>,
    /// Values of the attributes that rules are about, by device.
    pub(crate) attributes: Vec<Vec<Option<Attribute>>>,
}

impl Ask {
    /// Name of the request, for messages.
    pub(crate) fn name(&self) -> Symbol {
        self.request.name
    }
}

impl Problem {
    /// What tells devices apart as far as this question goes: devices with equal numbers can stand for each other.
    pub(crate) fn kinds(&self) -> Vec<usize> {
        #[derive(PartialEq, Eq, Hash)]
        struct Kind<'p> {
            taken: bool,
            shared: bool,
            shareable: bool,
            consumed: &'p [Quantity],
            capacity: Vec<Quantity>,
            takes: &'p [(usize, Quantity)],
            pool: Option<usize>,
            seen_by: &'p [usize],
            fits: Vec<&'p Fit>,
            attributes: Vec<Option<Attribute>>,
            binds: bool,
            after: Vec<usize>,
        }
        let after = self.unclear_before();
        let mut known: FxHashMap<Kind<'_>, usize> = FxHashMap::default();
        let kinds = self.devices.iter().enumerate().map(|(number, device)| {
            let kind = Kind {
                taken: device.taken,
                shared: device.shared,
                shareable: device.is_shareable(),
                consumed: &device.consumed,
                capacity: (0..device.consumed.len()).map(|index| device.capacity(index)).collect(),
                takes: &device.takes,
                pool: (!device.takes.is_empty()).then_some(device.pool),
                seen_by: &device.seen_by,
                fits: self.asks.iter().filter_map(|ask| ask.fits.get(number)).collect(),
                attributes: self.attributes.iter().map(|values| values.get(number).copied().flatten()).collect(),
                binds: device.device().is_some_and(|device| device.binds_to_node),
                after: after.iter().filter_map(|of_side| of_side.get(&number).copied()).collect(),
            };
            let next = known.len();
            *known.entry(kind).or_insert(next)
        });
        kinds.collect()
    }
    /// How many devices stand before each on a side of which some request cannot say whether they match. Where such a
    /// device ends a search, it matters which of two devices comes before it.
    fn unclear_before(&self) -> Vec<FxHashMap<usize, usize>> {
        if !self.asks.iter().flat_map(|ask| &ask.fits).any(|fit| matches!(fit, Fit::Unclear(_))) {
            return Vec::new();
        }
        let is_unclear =
            |device: usize| self.asks.iter().any(|ask| matches!(ask.fits.get(device), Some(Fit::Unclear(_))));
        let of_side = |side: &Side| {
            let numbered = side.devices.iter().scan(0, |seen, &device| {
                let before = *seen;
                *seen += usize::from(is_unclear(device));
                Some((device, before))
            });
            numbered.collect()
        };
        self.sides.iter().map(of_side).collect()
    }
}
