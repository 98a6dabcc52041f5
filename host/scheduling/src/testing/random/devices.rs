//! Few devices, many who want them: whole, in parts, from counters, with rules and taints, here and everywhere.

use std::sync::Arc;

use plimsoll_model::devices::{
    AllocatedDevice, Allocation, Attribute, Capacity, Choice, ClaimRequest, ClaimSpec, Constraint, ConstraintRule,
    CounterSet, Device, DeviceClass, DeviceCount, DeviceName, DeviceRequest, DeviceSelector, DeviceTaint,
    DeviceTaintEffect, DeviceToleration, Reach, ResourceClaim, ResourceSlice, SharePolicy,
};
use plimsoll_model::pod::ClaimReference;
use plimsoll_model::selector::{NodeSelector, NodeSelectorTerm, Operator, Requirement};
use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, PodSpec, Quantity, Symbol, Symbols};

use super::Dice;

const EXPRESSIONS: [&str; 5] = [
    "device.driver == \"d\"",
    "device.attributes[\"d\"].model == \"a\"",
    "device.attributes[\"d\"].?model.orValue(\"b\") == \"b\"",
    "device.capacity[\"d\"].memory.compareTo(quantity(\"2\")) >= 0",
    "device.attributes[\"d\"].absent",
];

fn units(dice: &mut Dice, most: usize) -> Quantity {
    Quantity::from_units(i64::try_from(1 + dice.below(most)).unwrap())
}

fn device(dice: &mut Dice, symbols: &mut Symbols, name: &str, with_counters: bool) -> Device {
    let mut word = |text: &str| symbols.intern(text);
    let (model, rack, memory, key) = (word("model"), word("d/rack"), word("memory"), word("taint"));
    let texts = [word("a"), word("b")];
    let (set, slots, name) = (word("set"), word("slots"), word(name));
    let mut attributes = Vec::new();
    if !dice.one_in(6) {
        attributes.push((model, Attribute::Text(dice.pick(&texts))));
    }
    if !dice.one_in(4) {
        attributes.push((rack, Attribute::Int(i64::try_from(dice.below(2)).unwrap())));
    }
    let policy = dice.one_in(2).then(|| SharePolicy {
        default: dice.one_in(2).then(|| Quantity::from_units(1)),
        values: if dice.one_in(2) { [1, 2].map(Quantity::from_units).into() } else { Box::default() },
        range: None,
    });
    let taken = CounterSet { name: set, counters: [(slots, units(dice, 2))].into() };
    Device {
        name,
        attributes: attributes.into(),
        capacity: [(memory, Capacity { value: units(dice, 3), policy })].into(),
        nodes: Reach::Unknown,
        consumes: if with_counters { [taken].into() } else { Box::default() },
        taints: (0..usize::from(dice.one_in(5)))
            .map(|_| DeviceTaint { key, value: known::EMPTY, effect: DeviceTaintEffect::NoSchedule })
            .collect(),
        shareable: dice.one_in(4),
        binds_to_node: dice.one_in(8),
        binding_conditions: false,
    }
}

fn slices(dice: &mut Dice, symbols: &mut Symbols, pool: &str, nodes: &Reach) -> Vec<Arc<ResourceSlice>> {
    let with_counters = dice.one_in(4);
    let devices = (0..1 + dice.below(3)).map(|index| device(dice, symbols, &format!("{pool}-{index}"), with_counters));
    let devices: Box<[Device]> = devices.collect();
    let mut word = |text: &str| symbols.intern(text);
    let (set, slots) = (word("set"), word("slots"));
    let slice = |name: Symbol, devices, counters| {
        Arc::new(ResourceSlice {
            name,
            driver: word("d"),
            pool: word(pool),
            generation: 1,
            slices_in_pool: if dice.one_in(12) { 5 } else { 1 + i64::from(with_counters) },
            nodes: nodes.clone(),
            devices,
            counters,
        })
    };
    let mut slice = slice;
    let mut all = vec![slice(known::EMPTY, devices, Box::default())];
    if with_counters {
        let counters = CounterSet { name: set, counters: [(slots, Quantity::from_units(2))].into() };
        all.push(slice(known::TRUE, Box::default(), [counters].into()));
    }
    all
}

/// Devices of a node yet to come.
pub(super) fn of_template(dice: &mut Dice, cluster: &mut Cluster) -> Vec<Arc<ResourceSlice>> {
    let node = Reach::Node(known::EMPTY);
    if dice.one_in(4) { Vec::new() } else { slices(dice, &mut cluster.symbols, "own", &node) }
}

fn request(dice: &mut Dice, symbols: &mut Symbols, name: &str) -> DeviceRequest {
    let mut word = |text: &str| symbols.intern(text);
    let (name, memory) = (word(name), word("memory"));
    let class = word(if dice.one_in(20) { "absent" } else { "class" });
    let selectors = (0..usize::from(dice.one_in(2))).map(|_| {
        let last = if dice.one_in(8) { EXPRESSIONS.len() } else { EXPRESSIONS.len() - 1 };
        DeviceSelector::Cel(word(EXPRESSIONS[dice.below(last)]))
    });
    let selectors = selectors.collect();
    DeviceRequest {
        name,
        class,
        selectors,
        count: if dice.one_in(6) { DeviceCount::All } else { DeviceCount::Exactly(1 + i64::from(dice.one_in(3))) },
        admin: dice.one_in(10),
        tolerations: (0..usize::from(dice.one_in(2)))
            .map(|_| DeviceToleration { key: known::EMPTY, value: None, effect: known::EMPTY, known: true })
            .collect(),
        capacity: (0..usize::from(dice.one_in(4))).map(|_| (memory, units(dice, 3))).collect(),
        derives_attributes: false,
    }
}

fn claim_spec(dice: &mut Dice, symbols: &mut Symbols) -> ClaimSpec {
    let requests = (0..1 + usize::from(dice.one_in(4))).map(|index| {
        let name = format!("r{index}");
        let choice = match dice.below(5) {
            0 => Choice::FirstAvailable(["x", "y"].map(|name| request(dice, symbols, name)).into()),
            _ => Choice::Exactly(request(dice, symbols, &name)),
        };
        ClaimRequest { name: symbols.intern(&name), choice }
    });
    let requests = requests.collect();
    let constraints = (0..usize::from(dice.one_in(4))).map(|_| {
        let attribute = symbols.intern("d/rack");
        let rule = if dice.one_in(2) { ConstraintRule::Match(attribute) } else { ConstraintRule::Distinct(attribute) };
        Constraint { requests: Box::default(), rule }
    });
    ClaimSpec { requests, constraints: constraints.collect() }
}

/// Slices for some of the nodes and for several, a class, and claims in all states.
pub(super) fn add(dice: &mut Dice, cluster: &mut Cluster, nodes: &[Symbol]) {
    let symbols = &mut cluster.symbols;
    let gpu = symbols.intern("example.com/gpu");
    let everything = DeviceSelector::Cel(symbols.intern(EXPRESSIONS[0]));
    let class = DeviceClass {
        selectors: [everything].into(),
        extended_resource: dice.one_in(2).then_some(gpu),
        created_at: None,
    };
    cluster.devices.classes.insert(symbols.intern("class"), class);
    for (index, &node) in nodes.iter().enumerate() {
        if !dice.one_in(3) {
            let of_node = slices(dice, symbols, &format!("p{index}"), &Reach::Node(node));
            cluster.devices.slices.extend(of_node);
        }
    }
    if dice.one_in(3) {
        let zone = Requirement { key: known::ZONE, operator: Operator::In([symbols.intern("a")].into()) };
        let term = NodeSelectorTerm { expressions: [zone].into(), fields: Box::default(), valid: true };
        let some = Reach::Selector(NodeSelector { terms: [term].into() });
        let reach = if dice.one_in(2) { Reach::All } else { some };
        let wide = slices(dice, symbols, "wide", &reach);
        cluster.devices.slices.extend(wide);
    }
    for index in 0..3 {
        let spec = claim_spec(dice, &mut cluster.symbols);
        let spec = cluster.devices.specs.intern(spec);
        let name = cluster.symbols.intern(&format!("shared{index}"));
        let allocation = dice.one_in(2).then(|| allocation(dice, cluster, nodes));
        let claim = ResourceClaim {
            spec,
            deleting: dice.one_in(10),
            owner_pod: None,
            allocation,
            reserved_for: if dice.one_in(6) { vec![known::TRUE; 255].into() } else { Box::default() },
        };
        cluster.devices.claims.insert((known::DEFAULT, name), claim);
    }
}

fn allocation(dice: &mut Dice, cluster: &mut Cluster, nodes: &[Symbol]) -> Allocation {
    let at = dice.below(nodes.len());
    let mut word = |text: &str| cluster.symbols.intern(text);
    let device = DeviceName {
        driver: word("d"),
        pool: word(&format!("p{at}")),
        device: word(&format!("p{at}-{}", dice.below(2))),
    };
    let shared = dice.one_in(3);
    let consumed = if shared { [(word("memory"), Quantity::from_units(1))].into() } else { Box::default() };
    let field =
        Requirement { key: known::METADATA_NAME, operator: Operator::In(nodes.get(at).copied().into_iter().collect()) };
    let term = NodeSelectorTerm { expressions: Box::default(), fields: [field].into(), valid: true };
    Allocation {
        nodes: (!dice.one_in(4)).then(|| NodeSelector { terms: [term].into() }),
        devices: [AllocatedDevice { device, admin: dice.one_in(5), shared, consumed, failed: dice.one_in(10) }].into(),
    }
}

/// Gives a pod claims, and perhaps a request for the resource that stands for devices.
pub(super) fn claim(dice: &mut Dice, cluster: &mut Cluster, spec: &mut PodSpec) {
    if dice.one_in(6) {
        let gpu = cluster.symbols.intern("example.com/gpu");
        spec.requests = std::mem::take(&mut spec.requests).with_scalars([(gpu, 1)]);
    }
    if dice.one_in(3) {
        return;
    }
    spec.namespace = known::DEFAULT;
    let claims = (0..1 + usize::from(dice.one_in(4))).map(|_| {
        let shared = cluster.symbols.intern(&format!("shared{}", dice.below(3)));
        match dice.below(8) {
            0 | 1 => ClaimReference::Named(shared),
            2 if dice.one_in(4) => ClaimReference::Named(known::KUBE_SYSTEM),
            2 if dice.one_in(4) => ClaimReference::Awaited { pod: known::TRUE },
            3 => ClaimReference::Fresh { like: Some(shared), template: None },
            4 => ClaimReference::Unneeded,
            _ => own(dice, cluster),
        }
    });
    spec.claims = claims.collect();
}

/// A claim that was made for a pod.
fn own(dice: &mut Dice, cluster: &mut Cluster) -> ClaimReference {
    let spec = claim_spec(dice, &mut cluster.symbols);
    let spec = cluster.devices.specs.intern(spec);
    let claim = cluster.symbols.intern(&format!("own{}", cluster.devices.claims.len()));
    let (pod, pod_uid) = (known::TRUE, known::EMPTY);
    let owner_pod = (!dice.one_in(12)).then_some((pod, pod_uid));
    let made = ResourceClaim { spec, deleting: false, owner_pod, allocation: None, reserved_for: Box::default() };
    cluster.devices.claims.insert((known::DEFAULT, claim), made);
    ClaimReference::Made { claim, pod, pod_uid }
}
