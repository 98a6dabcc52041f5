//! Pods on nodes with devices, as one question: is there a way to give each what it asks for?

use std::sync::Arc;

use plimsoll_model::devices::{
    Attribute, Choice, ClaimSpec, ConstraintRule, Device, DeviceCount, DeviceName, DeviceRequest, DeviceSelector,
    DeviceTaintEffect, ResourceSlice,
};
use plimsoll_model::{Node, Quantity, Symbol};
use rustc_hash::FxHashMap;

use super::cel::Answer;
use super::held::Held;
use super::pools::{Pool, PoolName, Standing};
use super::search::Outcome;
use super::wants::Wants;
use super::{ClaimKey, shares};
use crate::facts::Facts;

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

/// Puts a question together.
pub(crate) struct Builder<'a, 'c> {
    facts: &'a Facts<'c>,
    held: &'a Held,
    problem: Problem,
    devices: FxHashMap<(Option<usize>, DeviceName), usize>,
    pools: FxHashMap<(Option<usize>, PoolName), Counters>,
    asks: FxHashMap<DeviceRequest, usize>,
    attributes: FxHashMap<Symbol, usize>,
}

/// Counters of a pool: its number, and where they are among all.
#[derive(Clone, Debug)]
struct Counters {
    pool: usize,
    at: FxHashMap<(Symbol, Symbol), usize>,
}

impl<'a, 'c> Builder<'a, 'c> {
    pub(crate) fn new(facts: &'a Facts<'c>, held: &'a Held) -> Self {
        Self {
            facts,
            held,
            problem: Problem::default(),
            devices: FxHashMap::default(),
            pools: FxHashMap::default(),
            asks: FxHashMap::default(),
            attributes: FxHashMap::default(),
        }
    }

    /// Adds a node with its pools.
    pub(crate) fn side(&mut self, pools: &[Pool]) -> usize {
        let number = self.problem.sides.len();
        let mut side = Side::default();
        for pool in pools {
            if pool.standing != Standing::Usable {
                side.bad_pool = side.bad_pool.or(Some((pool.name, pool.standing)));
                side.has_invalid_pool |= pool.standing == Standing::Invalid;
                continue;
            }
            let scope = pool.local.then_some(number);
            let counters = self.counters(scope, pool);
            for (slice, at) in &pool.devices {
                let device = self.device(scope, pool, &counters, slice, *at);
                side.devices.extend(device);
                let seen_by = device.and_then(|device| self.problem.devices.get_mut(device));
                seen_by.into_iter().for_each(|device| device.seen_by.push(number));
            }
        }
        self.problem.sides.push(side);
        number
    }

    fn counters(&mut self, scope: Option<usize>, pool: &Pool) -> Counters {
        if let Some(known) = self.pools.get(&(scope, pool.name)) {
            return known.clone();
        }
        let mut counters = Counters { pool: self.pools.len(), at: FxHashMap::default() };
        for set in pool.counters() {
            for &(name, amount) in &set.counters {
                counters.at.insert((set.name, name), self.problem.counters.len());
                self.problem.counters.push(amount);
            }
        }
        // Devices that claims have already took theirs, wherever they can be used.
        if !pool.own && !counters.at.is_empty() {
            for device in pool.slices.iter().flat_map(|slice| &slice.devices) {
                let name = device_name(pool, device);
                if !self.held.is_taken(name) && self.held.shares(name).is_empty() {
                    continue;
                }
                for (at, amount) in taken_counters(device, &counters) {
                    let left = self.problem.counters.get_mut(at);
                    left.into_iter().for_each(|left| *left = left.minus(amount));
                }
            }
        }
        self.pools.insert((scope, pool.name), counters.clone());
        counters
    }

    fn device(
        &mut self,
        scope: Option<usize>,
        pool: &Pool,
        counters: &Counters,
        slice: &Arc<ResourceSlice>,
        at: usize,
    ) -> Option<usize> {
        let device = slice.devices.get(at)?;
        let name = device_name(pool, device);
        let next = self.problem.devices.len();
        let number = *self.devices.entry((scope, name)).or_insert(next);
        if number == next {
            let mut consumed = vec![Quantity::default(); device.capacity.len()];
            let shares = if pool.own { &[][..] } else { self.held.shares(name) };
            let driver = self.facts.symbols().text(slice.driver);
            for share in shares {
                shares::add_named(&mut consumed, share, device, driver, self.facts.symbols());
            }
            self.problem.devices.push(Dev {
                slice: slice.clone(),
                at,
                pool: counters.pool,
                taken: !pool.own && self.held.is_taken(name),
                shared: !shares.is_empty(),
                consumed,
                takes: taken_counters(device, counters).collect(),
                seen_by: Vec::new(),
            });
        }
        Some(number)
    }

    /// Adds claims that are given devices together, on one of these nodes.
    pub(crate) fn unit<'s>(&mut self, homes: Vec<usize>, specs: impl Iterator<Item = &'s ClaimSpec>) {
        let claims = specs.map(|spec| self.claim(spec)).collect();
        self.problem.units.push(Unit { homes, claims });
    }

    fn claim(&mut self, spec: &ClaimSpec) -> Claim {
        let mut fault: Option<Fault> = None;
        let mut rules = Vec::new();
        for constraint in &spec.constraints {
            let (attribute, differs) = match constraint.rule {
                ConstraintRule::Match(attribute) => (attribute, false),
                ConstraintRule::Distinct(attribute) => (attribute, true),
                ConstraintRule::Unknown => {
                    fault = Some("empty constraint (unsupported constraint type?)".into());
                    continue;
                }
            };
            let next = self.attributes.len();
            rules.push((*self.attributes.entry(attribute).or_insert(next), differs));
        }
        let mut requests = Vec::new();
        for request in &spec.requests {
            let (alternatives, is_list) = match &request.choice {
                Choice::Exactly(only) => (std::slice::from_ref(only), false),
                Choice::FirstAvailable(list) => (&**list, true),
                Choice::Unknown => {
                    fault = Some("a request is neither exact nor a list of alternatives (unsupported type?)".into());
                    continue;
                }
            };
            let alternatives = alternatives.iter().map(|alternative| {
                let known = spec.constraints.iter().filter(|constraint| constraint.rule != ConstraintRule::Unknown);
                let about = known.enumerate().filter(|(_, constraint)| {
                    let named = |name: &Symbol| {
                        let full = |text: &str| {
                            let parts = text.split_once('/');
                            let texts = self.facts.symbols();
                            is_list && parts == Some((texts.text(request.name), texts.text(alternative.name)))
                        };
                        *name == request.name || full(self.facts.symbols().text(*name))
                    };
                    constraint.requests.is_empty() || constraint.requests.iter().any(named)
                });
                let rules = about.map(|(index, _)| index).collect();
                let next = self.asks.len();
                let ask = *self.asks.entry(alternative.clone()).or_insert(next);
                Alternative { ask, rules }
            });
            requests.push(alternatives.collect());
        }
        Claim { requests, rules, fault }
    }

    /// The question, with what each request says of each device.
    pub(crate) fn finish(mut self) -> Problem {
        let mut asks: Vec<(DeviceRequest, usize)> = self.asks.drain().collect();
        asks.sort_unstable_by_key(|(_, number)| *number);
        let facts = self.facts;
        let ask = |(request, _): (DeviceRequest, usize)| {
            let fits = self.problem.devices.iter().map(|device| fit(facts, &request, device)).collect();
            Ask {
                fault: fault(facts, &request),
                count: match request.count {
                    DeviceCount::Exactly(count) => Some(usize::try_from(count.max(0)).unwrap_or(usize::MAX)),
                    DeviceCount::All | DeviceCount::Unknown(_) => None,
                },
                admin: request.admin,
                fits,
                request,
            }
        };
        self.problem.asks = asks.into_iter().map(ask).collect();
        let mut attributes: Vec<(Symbol, usize)> = self.attributes.into_iter().collect();
        attributes.sort_unstable_by_key(|(_, number)| *number);
        let values = attributes
            .into_iter()
            .map(|(name, _)| self.problem.devices.iter().map(|device| attribute(facts, device, name)).collect());
        self.problem.attributes = values.collect();
        self.problem
    }
}

impl Ask {
    /// Name of the request, for messages.
    pub(crate) fn name(&self) -> Symbol {
        self.request.name
    }
}

fn device_name(pool: &Pool, device: &Device) -> DeviceName {
    DeviceName { driver: pool.name.0, pool: pool.name.1, device: device.name }
}

fn taken_counters<'a>(device: &'a Device, counters: &'a Counters) -> impl Iterator<Item = (usize, Quantity)> + 'a {
    device.consumes.iter().flat_map(|set| {
        set.counters.iter().filter_map(|&(name, amount)| Some((*counters.at.get(&(set.name, name))?, amount)))
    })
}

fn attribute(facts: &Facts<'_>, device: &Dev, name: Symbol) -> Option<Attribute> {
    let symbols = facts.symbols();
    let driver = symbols.text(device.slice.driver);
    let attributes = &device.device()?.attributes;
    let exact = attributes.iter().find(|(own, _)| *own == name);
    let same = || attributes.iter().find(|(own, _)| shares::same_name(*own, name, driver, symbols));
    exact.or_else(same).map(|(_, value)| *value)
}

/// What keeps a request from being tried at all.
fn fault(facts: &Facts<'_>, request: &DeviceRequest) -> Option<Fault> {
    let name = facts.symbols().text(request.name);
    let class_name = facts.symbols().text(request.class);
    let Some(class) = facts.cluster.devices.classes.get(&request.class) else {
        return Some(
            format!(
                "request {name}: could not retrieve device class {class_name}: DeviceClass {class_name:?} not found"
            )
            .into(),
        );
    };
    if class.selectors.iter().chain(&request.selectors).any(|selector| *selector == DeviceSelector::Unknown) {
        return Some(format!("request {name}: CEL expression empty (unsupported selector type?)").into());
    }
    if request.derives_attributes {
        return Some(format!("request {name}: derived attributes are not supported").into());
    }
    match request.count {
        DeviceCount::Unknown(mode) => {
            Some(format!("request {name}: unsupported count mode {}", facts.symbols().text(mode)).into())
        }
        DeviceCount::Exactly(_) | DeviceCount::All => None,
    }
}

fn fit(facts: &Facts<'_>, request: &DeviceRequest, found: &Dev) -> Fit {
    let (Some(device), Some(class)) = (found.device(), facts.cluster.devices.classes.get(&request.class)) else {
        return Fit::No;
    };
    let driver = found.slice.driver;
    for selector in class.selectors.iter().chain(&request.selectors) {
        let DeviceSelector::Cel(expression) = *selector else { return Fit::No };
        match facts.selectors.ask(expression, driver, device, facts.symbols()) {
            Answer::Yes => {}
            Answer::No => return Fit::No,
            Answer::Error(error) => {
                let text = |name| facts.symbols().text(name);
                let place = format!("{}/{}/{}", text(driver), text(found.slice.pool), text(device.name));
                return Fit::Unclear(format!("selector on device {place}: CEL error: {error}").into());
            }
        }
    }
    let Some(taken) = shares::taken(request, device, facts.symbols().text(driver), facts.symbols()) else {
        return Fit::TooSmall;
    };
    let repels = |effect| matches!(effect, DeviceTaintEffect::NoSchedule | DeviceTaintEffect::NoExecute);
    let tolerated = |taint: &plimsoll_model::devices::DeviceTaint| {
        request.tolerations.iter().any(|toleration| tolerates(facts, toleration, taint))
    };
    if device.taints.iter().any(|taint| repels(taint.effect) && !tolerated(taint)) {
        return Fit::Tainted;
    }
    Fit::Yes(taken)
}

fn tolerates(
    facts: &Facts<'_>,
    toleration: &plimsoll_model::devices::DeviceToleration,
    taint: &plimsoll_model::devices::DeviceTaint,
) -> bool {
    use plimsoll_model::symbol::known::EMPTY;
    let effect = match taint.effect {
        DeviceTaintEffect::NoSchedule => "NoSchedule",
        DeviceTaintEffect::NoExecute => "NoExecute",
        DeviceTaintEffect::Other(other) => facts.symbols().text(other),
    };
    toleration.known
        && (toleration.effect == EMPTY || facts.symbols().text(toleration.effect) == effect)
        && (toleration.key == EMPTY || toleration.key == taint.key)
        && toleration.value.is_none_or(|value| value == taint.value)
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
        }
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
            };
            let next = known.len();
            *known.entry(kind).or_insert(next)
        });
        kinds.collect()
    }
}

/// Pods on one node.
pub(crate) struct Spot<'x> {
    /// The node.
    pub(crate) node: &'x Node,
    /// What it can use.
    pub(crate) pools: &'x [Pool],
    /// What its pods want, and how many of each there are.
    pub(crate) pods: Vec<(&'x Wants, u32)>,
}

/// Whether the pods of all these nodes can be given their devices. The last ones of the first node are those that are to
/// come. Others that cannot be given any, even if there were nobody else, have none and are in nobody's way.
pub(crate) fn answer(
    facts: &Facts<'_>,
    held: &Held,
    spots: &[Spot<'_>],
    solve: impl Fn(&Problem) -> Outcome,
) -> Outcome {
    let outcome = solve(&question(facts, held, spots));
    if outcome == Outcome::Possible {
        return outcome;
    }
    let mut left: Vec<Spot<'_>> = Vec::new();
    let mut dropped = false;
    for (number, spot) in spots.iter().enumerate() {
        let coming = if number == 0 { spot.pods.len().saturating_sub(1) } else { usize::MAX };
        let alone = |wants| {
            let pods = vec![(wants, 1)];
            solve(&question(facts, held, &[Spot { node: spot.node, pools: spot.pools, pods }])) == Outcome::Possible
        };
        let stay = spot.pods.iter().enumerate().filter(|(index, (wants, _))| *index == coming || alone(*wants));
        let pods: Vec<(&Wants, u32)> = stay.map(|(_, pod)| *pod).collect();
        dropped |= pods.len() < spot.pods.len();
        left.push(Spot { node: spot.node, pools: spot.pools, pods });
    }
    if dropped { solve(&question(facts, held, &left)) } else { outcome }
}

/// All of it as one question.
fn question(facts: &Facts<'_>, held: &Held, spots: &[Spot<'_>]) -> Problem {
    let devices = &facts.cluster.devices;
    let mut builder = Builder::new(facts, held);
    let mut homes: Vec<(ClaimKey, Vec<usize>)> = Vec::new();
    let mut sides = Vec::new();
    for spot in spots {
        let side = builder.side(spot.pools);
        sides.push(side);
        for key in spot.pods.iter().flat_map(|(wants, _)| &wants.shared) {
            match homes.iter_mut().find(|(claim, _)| claim == key) {
                Some((_, of_claim)) if of_claim.contains(&side) => {}
                Some((_, of_claim)) => of_claim.push(side),
                None => homes.push((*key, vec![side])),
            }
        }
    }
    for (key, homes) in homes {
        let spec = devices.claims.get(&key).map(|claim| &devices.specs[claim.spec]);
        builder.unit(homes, spec.into_iter());
    }
    let mut units = Vec::new();
    for (spot, &side) in spots.iter().zip(&sides) {
        for (wants, count) in &spot.pods {
            let for_resources = wants.claim_for_resources(spot.node);
            if wants.own.is_empty() && for_resources.is_none() {
                continue;
            }
            let takes_all = wants.own.iter().any(|spec| takes_all(&devices.specs[*spec]));
            units.push((takes_all, &wants.own, side, for_resources, *count));
        }
    }
    // Who wants all comes last: all is what others leave, where devices are given in parts. The order is always the same.
    units.sort_by_key(|(takes_all, own, side, ..)| (*takes_all, *own, *side));
    for (_, own, side, for_resources, count) in &units {
        for _ in 0..*count {
            let own = own.iter().map(|spec| &devices.specs[*spec]);
            builder.unit(vec![*side], own.chain(for_resources));
        }
    }
    builder.finish()
}

/// Whether some request of a claim is for all devices that match.
fn takes_all(spec: &ClaimSpec) -> bool {
    spec.requests.iter().any(|request| match &request.choice {
        Choice::Exactly(only) => only.count == DeviceCount::All,
        Choice::FirstAvailable(list) => list.iter().any(|alternative| alternative.count == DeviceCount::All),
        Choice::Unknown => false,
    })
}

/// Whether pods may use devices that other nodes can use too, or share a claim with pods elsewhere.
pub(crate) fn is_linked(facts: &Facts<'_>, wants: &Wants) -> bool {
    if !wants.shared.is_empty() {
        return true;
    }
    if facts.inventory.is_local() {
        return false;
    }
    let specs = wants.own.iter().map(|spec| &facts.cluster.devices.specs[*spec]);
    let requests = specs.flat_map(|spec| &spec.requests).flat_map(|request| match &request.choice {
        Choice::Exactly(only) => std::slice::from_ref(only),
        Choice::FirstAvailable(list) => list,
        Choice::Unknown => &[],
    });
    let classes = wants.resources.iter().map(|(_, class, _)| (*class, &[][..]));
    let asked = requests.map(|request| (request.class, &*request.selectors)).chain(classes);
    let may_match = |(class, selectors): (Symbol, &[DeviceSelector]), slice: &ResourceSlice, device: &Device| {
        let class = facts.cluster.devices.classes.get(&class);
        class.is_none_or(|class| {
            class.selectors.iter().chain(selectors).all(|selector| match *selector {
                DeviceSelector::Cel(text) => {
                    facts.selectors.ask(text, slice.driver, device, facts.symbols()) != Answer::No
                }
                DeviceSelector::Unknown => true,
            })
        })
    };
    let asked: Vec<_> = asked.collect();
    facts
        .inventory
        .wide_slices()
        .any(|slice| slice.devices.iter().any(|device| asked.iter().any(|&asked| may_match(asked, slice, device))))
}
