//! Putting a question together.

use std::sync::Arc;

use plimsoll_model::devices::{
    Attribute, Choice, ClaimSpec, ConstraintRule, Device, DeviceCount, DeviceName, DeviceRequest, DeviceSelector,
    DeviceTaintEffect, ResourceSlice,
};
use plimsoll_model::{Quantity, Symbol};
use rustc_hash::FxHashMap;

use super::super::cel::Answer;
use super::super::held::Held;
use super::super::pools::{Pool, PoolName, Standing};
use super::super::shares;
use super::{Alternative, Ask, Claim, Dev, Fault, Fit, Problem, Side, Unit};
use crate::facts::Facts;

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
