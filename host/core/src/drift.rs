//! Whether groups keep what their templates promise: a node came, and it is not what the template says.
//!
//! A template that promises too much makes the loop add nodes that its pods do not fit on. Nothing is decided here; the
//! plan tells of it.

use std::fmt;

use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Node, Symbol, Taint};

use crate::words::amount;

/// How a node that came differs from the one that was promised. Keys, values and amounts as people write them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// Pods may use less of a resource.
    Less {
        /// The resource.
        resource: String,
        /// Allocatable of the template, in base units (cpu in thousandths of a core).
        promised: i64,
        /// Allocatable of the node.
        came: i64,
    },
    /// A label has another value, or is not there.
    Label {
        /// Key.
        key: String,
        /// Value in the template.
        promised: String,
        /// Value on the node, if it has the label.
        came: Option<String>,
    },
    /// A taint of the template is not on the node.
    TaintMissing(String),
    /// A taint of the node is not in the template.
    TaintAdded(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Less { resource, promised, came } => {
                write!(f, "{resource} {} instead of {}", amount(resource, *came), amount(resource, *promised))
            }
            Self::Label { key, promised, came: Some(came) } => write!(f, "label {key}={came} instead of {promised}"),
            Self::Label { key, promised, came: None } => write!(f, "no label {key}={promised}"),
            Self::TaintMissing(taint) => write!(f, "no taint {taint}"),
            Self::TaintAdded(taint) => write!(f, "taint {taint}"),
        }
    }
}

/// Machines of one type differ by what their kernels keep for themselves: so small a part of bytes is no difference.
const BYTES_TOLERANCE: i64 = 100;

/// What a template promised and a node of its group does not have. Both are without what belongs to one machine alone
/// (names, passing taints). What the node has beyond the promise is told of taints only: it does pods no harm otherwise.
pub(crate) fn between(promised: &Node, came: &Node, cluster: &Cluster) -> Vec<Difference> {
    let mut found = Vec::new();
    let (wanted, given) = (&promised.allocatable, &came.allocatable);
    let mut compare = |resource: &str, promised: i64, came: i64, tolerated: i64| {
        if came < promised - tolerated {
            found.push(Difference::Less { resource: resource.to_owned(), promised, came });
        }
    };
    compare("cpu", wanted.cpu_milli, given.cpu_milli, 0);
    compare("memory", wanted.memory_bytes, given.memory_bytes, wanted.memory_bytes / BYTES_TOLERANCE);
    let (disk, disk_given) = (wanted.ephemeral_storage_bytes, given.ephemeral_storage_bytes);
    compare("ephemeral-storage", disk, disk_given, disk / BYTES_TOLERANCE);
    compare("pods", wanted.pods, given.pods, 0);
    for &(name, amount) in &wanted.scalars {
        compare(cluster.text(name), amount, given.scalar(name), 0);
    }
    found.extend(labels(promised, came, cluster));
    found.extend(taints(promised, came, cluster));
    found
}

fn labels(promised: &Node, came: &Node, cluster: &Cluster) -> Vec<Difference> {
    let text = |symbol: Symbol| cluster.text(symbol).to_owned();
    let of_machine = |key: Symbol| key == known::HOSTNAME || key == known::TEMPLATE_NODE;
    let differing =
        promised.labels.iter().filter(|&(key, value)| !of_machine(key) && came.labels.get(key) != Some(value));
    let mut found: Vec<_> = differing
        .map(|(key, value)| Difference::Label {
            key: text(key),
            promised: text(value),
            came: came.labels.get(key).map(text),
        })
        .collect();
    found.sort_by_cached_key(ToString::to_string);
    found
}

fn taints(promised: &Node, came: &Node, cluster: &Cluster) -> Vec<Difference> {
    let text = |taint: &Taint| match cluster.text(taint.value) {
        "" => format!("{}:{}", cluster.text(taint.key), taint.effect.name()),
        value => format!("{}={value}:{}", cluster.text(taint.key), taint.effect.name()),
    };
    let missing = promised.taints.iter().filter(|taint| !came.taints.contains(taint));
    let added = came.taints.iter().filter(|taint| !promised.taints.contains(taint));
    missing
        .map(|taint| Difference::TaintMissing(text(taint)))
        .chain(added.map(|taint| Difference::TaintAdded(text(taint))))
        .collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{Labels, Resources, TaintEffect};

    use super::*;

    fn node(cluster: &mut Cluster, cpu_milli: i64, memory_bytes: i64, labels: &[(&str, &str)], taint: &str) -> Node {
        let symbols = &mut cluster.symbols;
        let taints = match taint {
            "" => vec![],
            key => {
                vec![Taint { key: symbols.intern(key), value: known::EMPTY, effect: TaintEffect::NoSchedule }]
            }
        };
        let labels = labels.iter().map(|(key, value)| (symbols.intern(key), symbols.intern(value)));
        let labels = Labels::new(labels.collect::<Vec<_>>());
        let allocatable = Resources { cpu_milli, memory_bytes, pods: 110, ..Resources::default() };
        Node { allocatable, labels, taints: taints.into(), ..Node::bare(symbols.intern("n")) }
    }

    #[test]
    fn what_was_promised_and_did_not_come() {
        let cluster = &mut Cluster::default();
        let promised = node(cluster, 4000, 16 << 30, &[("pool", "a"), ("kubernetes.io/hostname", "t")], "dedicated");
        let same: &[(&str, &str)] = &[("pool", "a"), ("kubernetes.io/hostname", "n1"), ("more", "x")];
        for (name, cpu, memory, labels, taint, expected) in [
            ("the same, and more", 4000, 16 << 30, same, "dedicated", &[][..]),
            ("more is no harm", 8000, 32 << 30, same, "dedicated", &[]),
            ("a little memory for the kernel", 4000, (16 << 30) - (100 << 20), same, "dedicated", &[]),
            ("less cpu", 3920, 16 << 30, same, "dedicated", &["cpu 3.92 instead of 4"]),
            ("less memory", 4000, 14 << 30, same, "dedicated", &["memory 14Gi instead of 16Gi"]),
            ("no label", 4000, 16 << 30, &[], "dedicated", &["no label pool=a"]),
            ("another label", 4000, 16 << 30, &[("pool", "b")], "dedicated", &["label pool=b instead of a"]),
            ("no taint", 4000, 16 << 30, same, "", &["no taint dedicated:NoSchedule"]),
            ("another taint", 4000, 16 << 30, same, "x", &["no taint dedicated:NoSchedule", "taint x:NoSchedule"]),
        ] {
            let came = node(cluster, cpu, memory, labels, taint);
            let found: Vec<String> = between(&promised, &came, cluster).iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}
