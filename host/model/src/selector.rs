//! Selectors over labels and nodes. Validity is judged once, on the way in; what is invalid is kept as such, because
//! Kubernetes gives it a meaning of its own in each place.

use serde::{Deserialize, Serialize};

use crate::labels::Labels;
use crate::symbol::{Symbol, Symbols};

/// How one requirement compares a label.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Operator {
    /// The key is there and its value is one of these.
    In(Box<[Symbol]>),
    /// The key is absent, or its value is none of these.
    NotIn(Box<[Symbol]>),
    /// The key is there.
    Exists,
    /// The key is absent.
    DoesNotExist,
    /// The key is there and its value, a base-10 integer, is greater. Node selectors only.
    Gt(i64),
    /// The key is there and its value, a base-10 integer, is less. Node selectors only.
    Lt(i64),
}

/// One requirement of a selector.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Requirement {
    /// Label key.
    pub key: Symbol,
    /// Comparison.
    pub operator: Operator,
}

impl Requirement {
    /// Whether labels meet it. `symbols` is needed for the numeric operators.
    pub fn matches(&self, labels: &Labels, symbols: &Symbols) -> bool {
        self.operator.matches(labels.get(self.key), symbols)
    }
}

impl Operator {
    /// Whether a value (none: the key is absent) meets it.
    pub fn matches(&self, value: Option<Symbol>, symbols: &Symbols) -> bool {
        let number = || value.and_then(|value| symbols.text(value).parse::<i64>().ok());
        match self {
            Operator::In(values) => value.is_some_and(|value| values.contains(&value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(&value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt(bound) => number().is_some_and(|number| number > *bound),
            Operator::Lt(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// `metav1.LabelSelector`: which pods or namespaces are meant. An absent selector is `None` around this and matches
/// nothing; an empty one matches everything.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum LabelSelector {
    /// All of these hold.
    All(Box<[Requirement]>),
    /// It cannot be read as a selector; Kubernetes reports an error. The text says why.
    Invalid(Symbol),
}

impl LabelSelector {
    /// Whether labels match; an invalid selector matches nothing.
    pub fn matches(&self, labels: &Labels, symbols: &Symbols) -> bool {
        match self {
            Self::All(requirements) => requirements.iter().all(|requirement| requirement.matches(labels, symbols)),
            Self::Invalid(_) => false,
        }
    }
    /// Whether it is the empty selector, which matches everything.
    pub fn is_everything(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }
}

/// One term of a node selector: all requirements hold.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct NodeSelectorTerm {
    /// Over labels.
    pub expressions: Box<[Requirement]>,
    /// Over fields: key `metadata.name`, operators In and NotIn with one value.
    pub fields: Box<[Requirement]>,
    /// False: some requirement is invalid, so the term matches nothing (the others of the selector still work).
    pub valid: bool,
}

impl NodeSelectorTerm {
    /// Whether a node with these labels and this name matches (Kubernetes `nodeaffinity.nodeSelectorTerm.match`). An
    /// empty term matches nothing. `name` none: fields are ignored.
    pub fn matches(&self, labels: &Labels, name: Option<Symbol>, symbols: &Symbols) -> bool {
        self.valid
            && !(self.expressions.is_empty() && self.fields.is_empty())
            && self.expressions.iter().all(|requirement| requirement.matches(labels, symbols))
            && name.is_none_or(|name| {
                self.fields.iter().all(|field| field.operator.matches(field_value(field, name), symbols))
            })
    }
}

/// A field other than the name reads as the empty string.
fn field_value(field: &Requirement, name: Symbol) -> Option<Symbol> {
    Some(if field.key == crate::symbol::known::METADATA_NAME { name } else { crate::symbol::known::EMPTY })
}

/// A node selector: any term matches. Without terms it matches nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct NodeSelector {
    /// The terms.
    pub terms: Box<[NodeSelectorTerm]>,
}

impl NodeSelector {
    /// Whether a node matches; see [`NodeSelectorTerm::matches`].
    pub fn matches(&self, labels: &Labels, name: Option<Symbol>, symbols: &Symbols) -> bool {
        self.terms.iter().any(|term| term.matches(labels, name, symbols))
    }
}
