//! Selectors over labels and nodes, with the rules that say which of them are valid.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::selector::{LabelSelector, NodeSelector, NodeSelectorTerm, Operator, Requirement};
use crate::symbol::{Symbol, Symbols};

use super::syntax::{is_label_value, is_qualified_name};

/// apimachinery `LabelSelectorAsSelector`: one bad requirement makes the whole selector invalid.
pub(super) fn label_selector(selector: &meta::LabelSelector, symbols: &mut Symbols) -> LabelSelector {
    match requirements(selector, symbols) {
        Ok(requirements) => LabelSelector::All(requirements.into()),
        Err(reason) => LabelSelector::Invalid(symbols.intern(&reason)),
    }
}

fn requirements(selector: &meta::LabelSelector, symbols: &mut Symbols) -> Result<Vec<Requirement>, String> {
    let mut found = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        check(key, std::slice::from_ref(value))?;
        found.push(equals(symbols.intern(key), symbols.intern(value)));
    }
    for requirement in selector.match_expressions.iter().flatten() {
        let values = requirement.values.as_deref().unwrap_or_default();
        check(&requirement.key, values)?;
        let operator = set_operator(&requirement.operator, values, symbols).ok_or_else(|| {
            format!("operator {:?} with {} values is not valid in a label selector", requirement.operator, values.len())
        })?;
        found.push(Requirement { key: symbols.intern(&requirement.key), operator });
    }
    Ok(found)
}

fn check(key: &str, values: &[String]) -> Result<(), String> {
    if !is_qualified_name(key) {
        return Err(format!("{key:?} is not a label key"));
    }
    match values.iter().find(|value| !is_label_value(value)) {
        Some(value) => Err(format!("{value:?} is not a label value")),
        None => Ok(()),
    }
}

/// The requirement that a key has one value.
pub(super) fn equals(key: Symbol, value: Symbol) -> Requirement {
    Requirement { key, operator: Operator::In([value].into()) }
}

/// An operator that compares sets, if it takes that many values.
fn set_operator(operator: &str, values: &[String], symbols: &mut Symbols) -> Option<Operator> {
    let mut interned = || values.iter().map(|value| symbols.intern(value)).collect();
    match operator {
        "In" if !values.is_empty() => Some(Operator::In(interned())),
        "NotIn" if !values.is_empty() => Some(Operator::NotIn(interned())),
        "Exists" if values.is_empty() => Some(Operator::Exists),
        "DoesNotExist" if values.is_empty() => Some(Operator::DoesNotExist),
        _ => None,
    }
}

/// component-helpers `nodeaffinity.NewLazyErrorNodeSelector`: a bad requirement makes its term match nothing.
pub(super) fn node_selector(selector: &core::NodeSelector, symbols: &mut Symbols) -> NodeSelector {
    NodeSelector { terms: selector.node_selector_terms.iter().map(|term| node_selector_term(term, symbols)).collect() }
}

fn node_selector_term(term: &core::NodeSelectorTerm, symbols: &mut Symbols) -> NodeSelectorTerm {
    let mut valid = true;
    let mut collect = |requirements: Option<&Vec<core::NodeSelectorRequirement>>, convert: Convert| {
        let mut kept = Vec::new();
        for requirement in requirements.into_iter().flatten() {
            let (operator, sound) = convert(requirement, symbols);
            valid &= sound;
            kept.extend(operator.map(|operator| Requirement { key: symbols.intern(&requirement.key), operator }));
        }
        kept.into()
    };
    let expressions = collect(term.match_expressions.as_ref(), label_requirement);
    let fields = collect(term.match_fields.as_ref(), field_requirement);
    NodeSelectorTerm { expressions, fields, valid }
}

/// The operator as far as it can be read, and whether the requirement is valid.
type Convert = fn(&core::NodeSelectorRequirement, &mut Symbols) -> (Option<Operator>, bool);

fn label_requirement(requirement: &core::NodeSelectorRequirement, symbols: &mut Symbols) -> (Option<Operator>, bool) {
    let values = requirement.values.as_deref().unwrap_or_default();
    let operator = match (requirement.operator.as_str(), values) {
        ("Gt", [bound]) => bound.parse().ok().map(Operator::Gt),
        ("Lt", [bound]) => bound.parse().ok().map(Operator::Lt),
        (operator, values) => set_operator(operator, values, symbols),
    };
    let valid = operator.is_some() && check(&requirement.key, values).is_ok();
    (operator, valid)
}

/// Fields take In and NotIn with exactly one value. Longer lists are kept, because the scheduler's look at node names
/// before filtering reads them although the term is invalid.
fn field_requirement(requirement: &core::NodeSelectorRequirement, symbols: &mut Symbols) -> (Option<Operator>, bool) {
    let values = requirement.values.as_deref().unwrap_or_default();
    let operator = set_operator(&requirement.operator, values, symbols);
    let valid = values.len() == 1 && matches!(operator, Some(Operator::In(_) | Operator::NotIn(_)));
    (operator, valid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::labels::Labels;
    use crate::symbol::known;

    #[test]
    fn label_selectors() {
        for (name, selector, labels, matches) in [
            ("empty matches all", json!({}), json!({}), true),
            (
                "labels and expressions are both needed",
                json!({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}),
                json!({"a": "1"}),
                false,
            ),
            (
                "not in an absent key",
                json!({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["x"]}]}),
                json!({}),
                true,
            ),
            (
                "in",
                json!({"matchExpressions": [{"key": "b", "operator": "In", "values": ["x", "y"]}]}),
                json!({"b": "y"}),
                true,
            ),
            (
                "does not exist",
                json!({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}),
                json!({"b": "y"}),
                false,
            ),
        ] {
            let mut symbols = Symbols::default();
            let converted = label_selector(&serde_json::from_value(selector).unwrap(), &mut symbols);
            let labels: std::collections::BTreeMap<String, String> = serde_json::from_value(labels).unwrap();
            let labels = Labels::new(labels.iter().map(|(k, v)| (symbols.intern(k), symbols.intern(v))));
            assert_eq!(converted.matches(&labels, &symbols), matches, "{name}");
        }
    }

    #[test]
    fn bad_label_selectors_say_why() {
        for (selector, reason) in [
            (json!({"matchLabels": {"a b": "1"}}), "\"a b\" is not a label key"),
            (json!({"matchLabels": {"a": "{x}"}}), "\"{x}\" is not a label value"),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
                "operator \"In\" with 0 values is not valid in a label selector",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}),
                "operator \"Exists\" with 1 values is not valid in a label selector",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
                "operator \"Gt\" with 1 values is not valid in a label selector",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "in", "values": ["1"]}]}),
                "operator \"in\" with 1 values is not valid in a label selector",
            ),
        ] {
            let mut symbols = Symbols::default();
            match label_selector(&serde_json::from_value(selector).unwrap(), &mut symbols) {
                LabelSelector::Invalid(found) => assert_eq!(symbols.text(found), reason),
                LabelSelector::All(all) => panic!("{reason}: was taken as {all:?}"),
            }
        }
    }

    #[test]
    fn node_selector_terms() {
        let term = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let field = |operator: &str, values: &[&str]| json!({"matchFields": [{"key": "metadata.name", "operator": operator, "values": values}]});
        for (name, terms, matches) in [
            ("no term", json!([]), false),
            ("empty term", json!([{}]), false),
            ("greater, leading zero", json!([term("gen", "Gt", &["0204"])]), true),
            ("less", json!([term("gen", "Lt", &["206"])]), false),
            ("greater than a negative number is invalid", json!([term("gen", "Gt", &["-5"])]), false),
            ("greater than two numbers is invalid", json!([term("gen", "Gt", &["1", "2"])]), false),
            ("greater than a word is invalid", json!([term("gen", "Gt", &["x"])]), false),
            ("not in with an illegal value", json!([term("pool", "NotIn", &["{{.bad-value.}}"])]), false),
            ("not in on an absent key", json!([term("absent", "NotIn", &["x"])]), true),
            ("illegal key", json!([term("a b", "DoesNotExist", &[])]), false),
            ("unknown operator", json!([term("pool", "Is", &["blue"])]), false),
            ("exists with values", json!([term("pool", "Exists", &["blue"])]), false),
            ("first invalid, second true", json!([term("a b", "Exists", &[]), term("pool", "In", &["blue"])]), true),
            ("name in", json!([field("In", &["n1"])]), true),
            ("name not in", json!([field("NotIn", &["n1"])]), false),
            ("two names in one entry", json!([field("In", &["n1", "n2"])]), false),
            ("name exists", json!([field("Exists", &[])]), false),
        ] {
            let mut symbols = Symbols::default();
            let selector: core::NodeSelector = serde_json::from_value(json!({"nodeSelectorTerms": terms})).unwrap();
            let converted = node_selector(&selector, &mut symbols);
            let labels = [("gen", "0206"), ("pool", "blue")].map(|(k, v)| (symbols.intern(k), symbols.intern(v)));
            let node = symbols.intern("n1");
            assert_eq!(converted.matches(&Labels::new(labels), Some(node), &symbols), matches, "{name}");
        }
    }

    #[test]
    fn names_of_invalid_field_terms_are_kept() {
        let mut symbols = Symbols::default();
        let selector: core::NodeSelector = serde_json::from_value(json!({"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1", "n2"]}]}
        ]}))
        .unwrap();
        let converted = node_selector(&selector, &mut symbols);
        let names = [symbols.intern("n1"), symbols.intern("n2")];
        assert!(!converted.terms[0].valid);
        assert_eq!(
            *converted.terms[0].fields,
            [Requirement { key: known::METADATA_NAME, operator: Operator::In(names.into()) }]
        );
    }
}
