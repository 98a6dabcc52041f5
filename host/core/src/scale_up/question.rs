//! What an expander is told of an option.

use plimsoll_model::pod::OfContainers;
use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Node, PodSpec, Resources};

use crate::cloud::UnitPrice;
use crate::observation::{GroupView, Observation};
use crate::ranking::{Amounts, Cost, Shape, Usage};

/// Amounts with names instead of symbols. Negative amounts do not occur in what is told and read as 0.
pub(crate) fn amounts(resources: &Resources, cluster: &Cluster) -> Amounts {
    let positive = |amount: i64| u64::try_from(amount).unwrap_or(0);
    let mut extended: Vec<(String, u64)> =
        resources.scalars.iter().map(|&(name, amount)| (cluster.text(name).to_owned(), positive(amount))).collect();
    extended.sort();
    Amounts {
        cpu_milli: positive(resources.cpu_milli),
        memory_bytes: positive(resources.memory_bytes),
        ephemeral_storage_bytes: positive(resources.ephemeral_storage_bytes),
        extended,
    }
}

/// The node that a group would add.
pub(crate) fn shape(node: &Node, group: &GroupView<'_>, observation: &Observation<'_>) -> Shape {
    let cluster = observation.cluster;
    let label = |key| node.labels.get(key).map(|value| cluster.text(value).to_owned());
    let accelerator = observation.accelerators.label.and_then(|key| node.labels.get(key));
    let mut labels: Vec<(String, String)> =
        node.labels.iter().map(|(key, value)| (cluster.text(key).to_owned(), cluster.text(value).to_owned())).collect();
    labels.sort();
    Shape {
        instance_type: label(known::INSTANCE_TYPE).unwrap_or_default(),
        arch: label(known::ARCH).unwrap_or_default(),
        os: label(known::OS).unwrap_or_default(),
        region: label(known::REGION).unwrap_or_default(),
        zone: label(known::ZONE),
        capacity: amounts(&node.capacity, cluster),
        allocatable: amounts(&node.allocatable, cluster),
        accelerator_model: accelerator.map(|model| cluster.text(model).to_owned()),
        spot: group.cloud.instances.first().is_some_and(|instance| instance.spot),
        labels,
    }
}

/// What a pod is told to ask for. Of processors and memory its containers count and nothing else, as in the peer's
/// expanders.
pub(crate) fn asked(spec: &PodSpec) -> Resources {
    let OfContainers { cpu_milli, memory_bytes } = spec.of_containers();
    Resources { cpu_milli, memory_bytes, ..spec.requests.clone() }
}

/// How well pods that are told to ask for `wanted`, and take up `used`, fill `count` nodes that offer `allocatable` after
/// `taken` (their DaemonSet pods).
pub(crate) fn usage(
    (wanted, used): (&Resources, &Resources),
    node: &Node,
    taken: &Resources,
    count: u32,
    cluster: &Cluster,
) -> Usage {
    let offered = node.allocatable.minus(taken).times(i64::from(count));
    let wasted = offered.minus(used);
    let share = |wasted: i64, offered: i64| {
        if offered <= 0 {
            return 0;
        }
        let micro = i128::from(wasted.max(0)) * 1_000_000 / i128::from(offered);
        u32::try_from(micro).unwrap_or(u32::MAX)
    };
    Usage {
        wasted_cpu_micro: share(wasted.cpu_milli, offered.cpu_milli),
        wasted_memory_micro: share(wasted.memory_bytes, offered.memory_bytes),
        wanted: amounts(wanted, cluster),
        offered: amounts(&offered, cluster),
        wasted: amounts(&wasted, cluster),
    }
}

/// Half a core and 500 MiB: the pod whose price steadies the price expander's ratio (the peer's figure).
const SMALL_POD: (i64, i64) = (500, 500 << 20);

/// What an option costs; none if the node has no price.
pub(crate) fn cost(
    wanted: &Resources,
    count: u32,
    group: &GroupView<'_>,
    observation: &Observation<'_>,
) -> Option<Cost> {
    let each = group.price_micros_per_hour?;
    let book = observation.prices;
    let units = book.map_or(&[][..], |book| &book.units);
    let small = Resources { cpu_milli: SMALL_POD.0, memory_bytes: SMALL_POD.1, ..Resources::default() };
    Some(Cost {
        currency: book.map_or_else(String::new, |book| book.currency.clone()),
        nodes_micros_per_hour: each.saturating_mul(u64::from(count)),
        pods_micros_per_hour: pods_price(wanted, units, group, observation.cluster),
        small_pod_micros_per_hour: pods_price(&small, units, group, observation.cluster),
    })
}

/// Price of amounts by unit prices; none if the provider prices no units.
fn pods_price(wanted: &Resources, units: &[UnitPrice], group: &GroupView<'_>, cluster: &Cluster) -> Option<u64> {
    let node = &group.template.as_ref().ok()?.node;
    let applies = |unit: &&UnitPrice| {
        unit.selector.iter().all(|(key, value)| {
            let pair = cluster.symbols.find(key).zip(cluster.symbols.find(value));
            pair.is_some_and(|(key, value)| node.labels.get(key) == Some(value))
        })
    };
    if units.is_empty() {
        return None;
    }
    let mut total: u128 = 0;
    for unit in units.iter().filter(applies) {
        // Amount in thousandths of the priced unit: a core, a GiB, a device.
        let milli_units = match unit.resource_name.as_str() {
            "cpu" => i128::from(wanted.cpu_milli),
            "memory" => (i128::from(wanted.memory_bytes) * 1000) >> 30,
            "ephemeral-storage" => (i128::from(wanted.ephemeral_storage_bytes) * 1000) >> 30,
            name => cluster.symbols.find(name).map_or(0, |name| i128::from(wanted.scalar(name)) * 1000),
        };
        let milli_units = u128::try_from(milli_units).unwrap_or(0);
        total += milli_units * u128::from(unit.micros_per_hour) / 1000;
    }
    Some(u64::try_from(total).unwrap_or(u64::MAX))
}
