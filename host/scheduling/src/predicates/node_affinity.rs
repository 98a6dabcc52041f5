//! NodeAffinity: node selector and required node affinity.

use plimsoll_model::selector::{NodeSelector, NodeSelectorTerm, Operator};
use plimsoll_model::symbol::known;
use plimsoll_model::{Labels, Node, PodSpec, Symbol};

use super::{Admission, Predicate, StaticRule};
use crate::facts::Facts;
use crate::refusal::Reason;

/// The node must have all labels of the pod's node selector, and match some term of its required affinity.
pub(crate) struct NodeAffinity;

/// Whether selector and affinity accept a node (component-helpers `nodeaffinity.GetRequiredNodeAffinity`).
pub(crate) fn accepts(
    facts: &Facts<'_>,
    selector: &Labels,
    affinity: Option<&NodeSelector>,
    labels: &Labels,
    name: Symbol,
) -> bool {
    labels.contains(selector) && affinity.is_none_or(|affinity| affinity.matches(labels, Some(name), facts.symbols()))
}

/// Whether selector and affinity may tell apart two nodes that differ only in name and host-name label.
pub(crate) fn reads_identity(selector: &Labels, affinity: Option<&NodeSelector>) -> bool {
    selector.get(known::HOSTNAME).is_some() || affinity.is_some_and(selector_reads_identity)
}

/// The same for one node selector.
pub(crate) fn selector_reads_identity(selector: &NodeSelector) -> bool {
    selector.terms.iter().any(|term| {
        !term.fields.is_empty() || term.expressions.iter().any(|requirement| requirement.key == known::HOSTNAME)
    })
}

/// Names that a term narrows the nodes to: entries `metadata.name In …`, intersected; none if it has no such entry. The
/// scheduler takes all values of an entry here, even of one that its filter then finds invalid for having two.
fn names(term: &NodeSelectorTerm) -> Option<Vec<Symbol>> {
    let entries = term.fields.iter().filter_map(|field| match &field.operator {
        Operator::In(values) if field.key == known::METADATA_NAME => Some(values.to_vec()),
        _ => None,
    });
    entries.reduce(|mut names, values| {
        names.retain(|name| values.contains(name));
        names
    })
}

impl Predicate for NodeAffinity {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn admit(&self, _facts: &Facts<'_>, pod: &PodSpec) -> Admission {
        let terms = pod.node_affinity.as_ref().map_or(&[][..], |affinity| &affinity.terms);
        // One term without names leaves all nodes open.
        let Some(sets) = terms.iter().map(names).collect::<Option<Vec<_>>>().filter(|sets| !sets.is_empty()) else {
            return Admission::Anywhere;
        };
        let mut union: Vec<Symbol> = sets.into_iter().flatten().collect();
        union.sort_unstable();
        union.dedup();
        match union.is_empty() {
            true => Admission::Nowhere(Reason::AffinityTermsConflict),
            false => Admission::Only(union),
        }
    }
}

impl StaticRule for NodeAffinity {
    fn refuse(&self, facts: &Facts<'_>, pod: &PodSpec, node: &Node) -> Vec<Reason> {
        let accepted = accepts(facts, &pod.node_selector, pod.node_affinity.as_ref(), &node.labels, node.name);
        Vec::from_iter((!accepted).then_some(Reason::NodeAffinity))
    }

    fn reads_identity(&self, _facts: &Facts<'_>, pod: &PodSpec) -> bool {
        reads_identity(&pod.node_selector, pod.node_affinity.as_ref())
    }
}
