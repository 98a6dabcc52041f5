//! Selectors that say something: each operator with as many values as it takes.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use super::super::error::{Flaw, Within};
use super::super::syntax::{is_label_value, is_qualified_name};
use super::{Checked, each, each_of, word};

const SET_OPERATORS: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist"];
const NODE_OPERATORS: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
const FIELD_OPERATORS: &[&str] = &["In", "NotIn"];
const FIELDS: &[&str] = &["metadata.name"];

pub(super) fn label_selector(selector: Option<&meta::LabelSelector>) -> Checked {
    let Some(selector) = selector else { return Ok(()) };
    for (key, value) in selector.match_labels.iter().flatten() {
        label_key(key).and_then(|()| label_value(value)).key(key).field("matchLabels")?;
    }
    let requirement = |requirement: &meta::LabelSelectorRequirement| {
        label_key(&requirement.key).field("key")?;
        let values = requirement.values.as_deref().unwrap_or_default();
        operator(&requirement.operator, values, SET_OPERATORS)?;
        each(values, |value| label_value(value)).field("values")
    };
    each_of(selector.match_expressions.as_ref(), requirement).field("matchExpressions")
}

pub(super) fn node_selector(selector: Option<&core::NodeSelector>) -> Checked {
    let Some(selector) = selector else { return Ok(()) };
    let by_label = |requirement: &core::NodeSelectorRequirement| {
        label_key(&requirement.key).field("key")?;
        operator(&requirement.operator, requirement.values.as_deref().unwrap_or_default(), NODE_OPERATORS)
    };
    let by_field = |requirement: &core::NodeSelectorRequirement| {
        word(&requirement.key, FIELDS).field("key")?;
        let values = requirement.values.as_deref().unwrap_or_default();
        operator(&requirement.operator, values, FIELD_OPERATORS)?;
        takes(&requirement.operator, values, "exactly one value", values.len() == 1)
    };
    let term = |term: &core::NodeSelectorTerm| {
        each_of(term.match_expressions.as_ref(), by_label).field("matchExpressions")?;
        each_of(term.match_fields.as_ref(), by_field).field("matchFields")
    };
    each(&selector.node_selector_terms, term).field("nodeSelectorTerms")
}

fn operator(operator: &str, values: &[String], known: &'static [&'static str]) -> Checked {
    word(operator, known).field("operator")?;
    match operator {
        "Exists" | "DoesNotExist" => takes(operator, values, "no values", values.is_empty()),
        "Gt" | "Lt" => {
            let number = matches!(values, [bound] if bound.parse::<i64>().is_ok());
            takes(operator, values, "exactly one whole number", number)
        }
        _ => takes(operator, values, "one value or more", !values.is_empty()),
    }
}

fn takes(operator: &str, values: &[String], expected: &'static str, fits: bool) -> Checked {
    if fits {
        return Ok(());
    }
    let flaw = Flaw::Values { operator: operator.to_owned(), found: values.join(", "), expected };
    Err(flaw.into()).field("values")
}

fn label_key(key: &str) -> Checked {
    if is_qualified_name(key) { Ok(()) } else { Err(Flaw::LabelKey(key.to_owned()).into()) }
}

fn label_value(value: &str) -> Checked {
    if is_label_value(value) { Ok(()) } else { Err(Flaw::LabelValue(value.to_owned()).into()) }
}
