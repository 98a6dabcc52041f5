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

#[cfg(test)]
mod tests {
    use crate::testing::Scene;

    fn scene() -> Scene {
        let mut scene = Scene::new();
        scene.node("n1", "{metadata: {labels: {foo: bar, level: \"0206\"}}}");
        scene.node("n2", "{metadata: {labels: {foo: other}}}");
        scene
    }

    #[test]
    fn selector_and_affinity_must_both_accept_the_node() {
        let required = |terms: &str| {
            format!(
                "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: {terms}}}}}}}"
            )
        };
        let expression = |text: &str| required(&format!("[{{matchExpressions: [{text}]}}]"));
        for (name, spec, expected) in [
            ("nothing asked for", String::new(), vec!["n1", "n2"]),
            ("selector", "nodeSelector: {foo: bar}".into(), vec!["n1"]),
            ("selector on an absent key", "nodeSelector: {none: x}".into(), vec![]),
            ("no terms", required("[]"), vec![]),
            ("an empty term", required("[{}]"), vec![]),
            ("affinity without required terms", "affinity: {nodeAffinity: {}}".into(), vec!["n1", "n2"]),
            ("In", expression("{key: foo, operator: In, values: [bar, x]}"), vec!["n1"]),
            ("NotIn", expression("{key: foo, operator: NotIn, values: [bar]}"), vec!["n2"]),
            ("NotIn on an absent key", expression("{key: none, operator: NotIn, values: [bar]}"), vec!["n1", "n2"]),
            ("Exists", expression("{key: level, operator: Exists}"), vec!["n1"]),
            ("DoesNotExist", expression("{key: level, operator: DoesNotExist}"), vec!["n2"]),
            ("Gt", expression("{key: level, operator: Gt, values: [\"0204\"]}"), vec!["n1"]),
            ("Lt", expression("{key: level, operator: Lt, values: [\"206\"]}"), vec![]),
            ("Gt on what is no number", expression("{key: foo, operator: Gt, values: [\"1\"]}"), vec![]),
            ("an illegal value", expression("{key: foo, operator: NotIn, values: [\"{{.bad.}}\"]}"), vec![]),
            (
                "an invalid term beside a good one",
                required(
                    "[{matchExpressions: [{key: foo, operator: In}]}, {matchExpressions: [{key: foo, operator: Exists}]}]",
                ),
                vec!["n1", "n2"],
            ),
            (
                "selector and affinity apart",
                format!("nodeSelector: {{foo: bar}}, {}", expression("{key: foo, operator: In, values: [other]}")),
                vec![],
            ),
            (
                "a field and an expression in one term",
                required(
                    "[{matchFields: [{key: metadata.name, operator: In, values: [n2]}], matchExpressions: [{key: foo, operator: In, values: [bar]}]}]",
                ),
                vec![],
            ),
            (
                "the same as two terms",
                required(
                    "[{matchFields: [{key: metadata.name, operator: In, values: [n2]}]}, {matchExpressions: [{key: foo, operator: In, values: [bar]}]}]",
                ),
                vec!["n1", "n2"],
            ),
            (
                "a node by name",
                required("[{matchFields: [{key: metadata.name, operator: In, values: [n2]}]}]"),
                vec!["n2"],
            ),
            (
                "all nodes but one",
                required("[{matchFields: [{key: metadata.name, operator: NotIn, values: [n2]}]}]"),
                vec!["n1"],
            ),
        ] {
            let mut scene = scene();
            let pod = scene.pod(&format!("{{spec: {{{spec}}}}}"));
            assert_eq!(scene.fitting(pod), expected, "{name}");
        }
    }

    #[test]
    fn names_narrow_the_nodes_before_they_are_looked_at() {
        let required = |terms: &str| {
            format!(
                "{{spec: {{affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: {terms}}}}}}}}}}}"
            )
        };
        let name = |node: &str| format!("{{key: metadata.name, operator: In, values: [{node}]}}");
        for (case, terms, expected) in [
            ("another node", format!("[{{matchFields: [{}]}}]", name("n2")), "NodeAffinity: "),
            (
                "two names in one term",
                format!("[{{matchFields: [{}, {}]}}]", name("n1"), name("n2")),
                "NodeAffinity (everywhere): pod affinity terms conflict",
            ),
            ("two terms", format!("[{{matchFields: [{}]}}, {{matchFields: [{}]}}]", name("n1"), name("n2")), ""),
            (
                "two values in one entry narrow, but never match",
                "[{matchFields: [{key: metadata.name, operator: In, values: [n1, n2]}]}]".into(),
                "NodeAffinity: node(s) didn't match Pod's node affinity/selector",
            ),
        ] {
            let mut scene = scene();
            let pod = scene.pod(&required(&terms));
            assert_eq!(scene.verdict(pod), expected, "{case}");
        }
    }

    #[test]
    fn a_wished_node_outside_the_named_ones_leaves_none() {
        let mut scene = scene();
        let named = "{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: \
             [{matchFields: [{key: metadata.name, operator: In, values: [n2]}]}]}}}}}";
        let pod = scene.pod_with(named, |cluster, spec| spec.node_name = Some(cluster.symbols.intern("n1")));
        let expected = " (everywhere): node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] simultaneously";
        assert_eq!(scene.verdict(pod), expected);
    }
}
