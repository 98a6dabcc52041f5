//! `plimsoll.dev/v1alpha1` NodeGroup objects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Number, Value};

use crate::cluster::Cluster;
use crate::convert::{FieldPath, ObjectError, Segment, TemplateObjects, plain};
use crate::group::{Membership, NodeGroup};
use crate::labels::Labels;
use crate::quantity::Quantity;
use crate::template::Template;
use crate::time::go_duration_nanos;

use super::error::{Place, Problem};
use super::warning::Warning;

/// API group of our own objects.
pub(super) const API_GROUP: &str = "plimsoll.dev";
/// API version of node groups.
pub(super) const API_VERSION: &str = "plimsoll.dev/v1alpha1";
/// Kind of node groups.
pub(super) const KIND: &str = "NodeGroup";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Metadata {
    name: String,
    #[serde(default, rename = "labels")]
    _labels: Option<Value>,
    #[serde(default, rename = "annotations")]
    _annotations: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    #[serde(default)]
    min_size: i64,
    max_size: i64,
    target_size: Option<i64>,
    nodes: Option<Vec<String>>,
    node_selector: Option<BTreeMap<String, String>>,
    #[serde(rename = "providerIDs")]
    provider_ids: Option<Vec<String>>,
    template: Option<Value>,
    #[serde(default)]
    template_pods: Vec<Value>,
    #[serde(default)]
    template_resource_slices: Vec<Value>,
    #[serde(default)]
    template_resource_claims: Vec<Value>,
    price_per_hour: Option<Scalar>,
    #[serde(default)]
    options: BTreeMap<String, Scalar>,
    priority: Option<i32>,
}

/// A value that people write with or without quotes.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, a number, true or false")]
enum Scalar {
    Text(String),
    Number(Number),
    Switch(bool),
}

impl Scalar {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
            Self::Switch(switch) => switch.to_string(),
        }
    }
}

/// What an option takes.
#[derive(Clone, Copy)]
enum Takes {
    Share,
    Duration,
    Switch,
}

/// The flags of the peer that groups may override, by their names.
const OPTIONS: [(&str, Takes); 8] = [
    ("scale-down-utilization-threshold", Takes::Share),
    ("scale-down-gpu-utilization-threshold", Takes::Share),
    ("scale-down-unneeded-time", Takes::Duration),
    ("scale-down-unready-time", Takes::Duration),
    ("max-node-provision-time", Takes::Duration),
    ("max-node-startup-time", Takes::Duration),
    ("zero-or-max-node-scaling", Takes::Switch),
    ("ignore-daemonsets-utilization", Takes::Switch),
];

/// Names of all options.
pub(super) fn option_names() -> impl Iterator<Item = &'static str> {
    OPTIONS.into_iter().map(|(name, _)| name)
}

impl Takes {
    fn refuses(self, value: &str) -> Option<&'static str> {
        let (fits, expected) = match self {
            Self::Share => {
                let share = value.parse::<f64>();
                (share.is_ok_and(|share| (0.0..=1.0).contains(&share)), "a share from 0 to 1 such as \"0.5\"")
            }
            Self::Duration => {
                (go_duration_nanos(value).is_some_and(|nanos| nanos >= 0), "a duration such as 10m or 1h30m")
            }
            Self::Switch => (matches!(value, "true" | "false"), "true or false"),
        };
        (!fits).then_some(expected)
    }
}

/// The field, and what is wrong with it.
type Fault = (FieldPath, Problem);

/// Reads a node group. `place` finds the line of a field.
pub(super) fn convert(
    tree: Value,
    cluster: &mut Cluster,
    warnings: &mut Vec<Warning>,
    place: &dyn Fn(&FieldPath) -> Place,
) -> Result<NodeGroup, Fault> {
    let document: Document = serde_path_to_error::deserialize(tree).map_err(|error| {
        let message = plain(&error.inner().to_string());
        (field_path(error.path()), Problem::Shape { message })
    })?;
    let name = document.metadata.name;
    if name.is_empty() {
        let path = [Segment::Key("metadata".into()), Segment::Key("name".into())];
        return Err((path.into_iter().collect(), Problem::EmptyName));
    }
    let mut spec = document.spec;

    let min_size = size(spec.min_size, "minSize")?;
    let max_size = size(spec.max_size, "maxSize")?;
    let target_size = spec.target_size.map(|target| size(target, "targetSize")).transpose()?;
    if max_size < min_size {
        return Err((field("maxSize"), Problem::SizeOrder { min: min_size, max: max_size }));
    }
    if let Some(target) = target_size.filter(|target| *target > max_size) {
        return Err((field("targetSize"), Problem::TargetAboveMax { target, max: max_size }));
    }
    let price_micros_per_hour = spec.price_per_hour.take().map(price).transpose()?;
    let options = std::mem::take(&mut spec.options).into_iter().map(option).collect::<Result<_, _>>()?;
    let template = template(&name, &mut spec, cluster)?;
    if template.as_ref().is_some_and(|template| template.node.allocatable.pods <= 0) {
        warnings.push(Warning::NoPodSlots { group: name.clone(), place: place(&field("template")) });
    }
    Ok(NodeGroup {
        members: members(&spec, cluster)?,
        name,
        min_size,
        max_size,
        target_size,
        template,
        price_micros_per_hour,
        options,
        priority: spec.priority,
    })
}

/// The path that `serde_path_to_error` found.
fn field_path(path: &serde_path_to_error::Path) -> FieldPath {
    use serde_path_to_error::Segment as Step;
    path.iter()
        .filter_map(|step| match step {
            Step::Seq { index } => Some(Segment::Index(*index)),
            Step::Map { key } => Some(Segment::Key(key.clone().into())),
            Step::Enum { .. } | Step::Unknown => None,
        })
        .collect()
}

fn field(name: &'static str) -> FieldPath {
    [Segment::Key("spec".into()), Segment::Key(name.into())].into_iter().collect()
}

/// No cloud has a group of more machines; a larger number is a mistake, and would only cost memory.
const MOST_MACHINES: u32 = 1_000_000;

fn size(found: i64, name: &'static str) -> Result<u32, Fault> {
    let size = u32::try_from(found).ok().filter(|size| *size <= MOST_MACHINES);
    size.ok_or((field(name), Problem::Size { field: name, found }))
}

fn price(price: Scalar) -> Result<u64, Fault> {
    let found = price.into_text();
    match found.parse::<Quantity>() {
        Ok(price) if !price.is_negative() => Ok(price.micros()),
        Ok(_) => Err((field("pricePerHour"), Problem::Price { found, error: None })),
        Err(error) => Err((field("pricePerHour"), Problem::Price { found, error: Some(error) })),
    }
}

fn option((name, value): (String, Scalar)) -> Result<(String, String), Fault> {
    let path = || field("options").segments().iter().cloned().chain([Segment::Key(name.clone().into())]).collect();
    let Some((_, takes)) = OPTIONS.into_iter().find(|(known, _)| *known == name) else {
        let nearest = nearest_option(&name);
        return Err((path(), Problem::UnknownOption { name, nearest }));
    };
    let found = value.into_text();
    match takes.refuses(&found) {
        Some(expected) => Err((path(), Problem::OptionValue { found, expected })),
        None => Ok((name, found)),
    }
}

/// The option whose name is most like a text, if any is much like it.
fn nearest_option(text: &str) -> Option<&'static str> {
    const LIKENESS: f64 = 0.8;
    let likeness = |name: &str| strsim::normalized_levenshtein(text, name);
    let nearest = option_names().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(nearest) >= LIKENESS).then_some(nearest)
}

fn members(spec: &Spec, cluster: &mut Cluster) -> Result<Membership, Fault> {
    let given = [
        ("nodes", spec.nodes.is_some()),
        ("nodeSelector", spec.node_selector.is_some()),
        ("providerIDs", spec.provider_ids.is_some()),
    ];
    let mut given = given.into_iter().filter(|(_, is_given)| *is_given);
    if let (Some((first, _)), Some((second, _))) = (given.next(), given.next()) {
        return Err((field(second), Problem::TwoMemberships { first, second }));
    }
    let symbols = &mut cluster.symbols;
    Ok(if let Some(nodes) = &spec.nodes {
        Membership::Names(nodes.iter().map(|name| symbols.intern(name)).collect())
    } else if let Some(selector) = &spec.node_selector {
        let pairs = selector.iter().map(|(key, value)| (symbols.intern(key), symbols.intern(value)));
        Membership::Selector(Labels::new(pairs))
    } else if let Some(ids) = &spec.provider_ids {
        Membership::ProviderIds(ids.clone())
    } else {
        Membership::Nothing
    })
}

fn template(name: &str, spec: &mut Spec, cluster: &mut Cluster) -> Result<Option<Template>, Fault> {
    let objects = TemplateObjects {
        node: spec.template.take().unwrap_or_default(),
        pods: std::mem::take(&mut spec.template_pods),
        resource_slices: std::mem::take(&mut spec.template_resource_slices),
        resource_claims: std::mem::take(&mut spec.template_resource_claims),
    };
    if objects.node.is_null() {
        let parts = [
            ("templatePods", &objects.pods),
            ("templateResourceSlices", &objects.resource_slices),
            ("templateResourceClaims", &objects.resource_claims),
        ];
        return match parts.into_iter().find(|(_, part)| !part.is_empty()) {
            None => Ok(None),
            Some((name, _)) => Err((field(name), Problem::PodsWithoutTemplate { field: name })),
        };
    }
    match cluster.admit_template(name, objects).map_err(|error| error.under("spec")) {
        Ok(template) => Ok(Some(template)),
        Err(ObjectError::Shape { path, message }) => Err((path, Problem::Shape { message })),
        Err(ObjectError::Value(error)) => Err((error.path, error.flaw.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_options_are_recognised() {
        for (text, nearest) in [
            ("scale-down-utilisation-threshold", Some("scale-down-utilization-threshold")),
            ("scaledown-unneeded-time", Some("scale-down-unneeded-time")),
            ("zero-or-max-node-scalin", Some("zero-or-max-node-scaling")),
            ("expander", None),
            ("", None),
        ] {
            assert_eq!(nearest_option(text), nearest, "{text:?}");
        }
    }

    #[test]
    fn values_of_options() {
        for (takes, good, bad) in [
            (Takes::Share, &["0", "0.5", "1"][..], &["", "x", "-0.1", "1.1", "NaN", "50%"][..]),
            (Takes::Duration, &["0", "10m", "1h30m"], &["10", "-5m", "10 m", ""]),
            (Takes::Switch, &["true", "false"], &["yes", "1", ""]),
        ] {
            for value in good {
                assert!(takes.refuses(value).is_none(), "{value:?} was refused");
            }
            for value in bad {
                assert!(takes.refuses(value).is_some(), "{value:?} was accepted");
            }
        }
    }
}
