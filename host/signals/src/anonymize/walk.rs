//! Finds the texts of an object that are renamed.

use serde_json::Value;

use super::names::Names;
use super::special::Context;
use super::words::{ANNOTATIONS, Annotation, DELAY_DELETION, KEPT_FIELDS, KEPT_MAPS};

/// Where the walk is.
#[derive(Clone, Copy)]
struct Place<'k> {
    /// The field that the value stands under; of an item of a list, that of the list.
    field: &'k str,
    /// The field around it.
    around: &'k str,
    /// Whether it is an item of a list.
    in_list: bool,
}

/// Calls somebody for every text of an object that is to be renamed.
pub(super) fn each_text(object: &mut Value, context: &Context, rename: &mut dyn FnMut(&mut String)) {
    walk(object, Place { field: "", around: "", in_list: false }, context, rename);
}

fn walk(value: &mut Value, place: Place<'_>, context: &Context, rename: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => {
            if !KEPT_FIELDS.contains(&place.field) {
                parts(text, place, rename);
            }
        }
        Value::Array(items) => {
            let place = Place { in_list: true, ..place };
            items.iter_mut().for_each(|item| walk(item, place, context, rename));
        }
        Value::Object(fields) => {
            if KEPT_MAPS.contains(&place.field) && !place.in_list {
                return;
            }
            if place.field == "annotations" {
                return annotations(fields, rename);
            }
            if matches!(place.field, "labels" | "matchLabels" | "nodeSelector") && fields.values().all(Value::is_string)
            {
                return labels(fields, context, rename);
            }
            let keeps_values = keeps_values(fields, place, context);
            for (field, value) in fields.iter_mut() {
                if keeps_values && matches!(field.as_str(), "value" | "values") {
                    continue;
                }
                walk(value, Place { field, around: place.field, in_list: false }, context, rename);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text that may be made of names.
fn parts(text: &mut String, place: Place<'_>, rename: &mut dyn FnMut(&mut String)) {
    // A request of a claim, and an alternative within it.
    let between = match (place.field, place.around) {
        ("request", _) | ("requests", "constraints") => "/",
        _ => return rename(text),
    };
    let mut parts: Vec<String> = text.split(between).map(str::to_owned).collect();
    for part in &mut parts {
        rename(part);
    }
    *text = parts.join(between);
}

/// Numbers that are compared by size, and what the autoscaler itself wrote, keep their values.
fn keeps_values(fields: &serde_json::Map<String, Value>, place: Place<'_>, context: &Context) -> bool {
    let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default();
    let own = |key: &str| key == "ToBeDeletedByClusterAutoscaler" || key == "DeletionCandidateOfClusterAutoscaler";
    match place.field {
        "taints" => own(text("key")) || context.compares(text("key")) && is_number(text("value")),
        "tolerations" => own(text("key")) || matches!(text("operator"), "Lt" | "Gt"),
        "matchExpressions" | "matchFields" | "matchLabelExpressions" => matches!(text("operator"), "Lt" | "Gt"),
        _ => false,
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<i64>().is_ok()
}

fn labels(fields: &mut serde_json::Map<String, Value>, context: &Context, rename: &mut dyn FnMut(&mut String)) {
    for (key, value) in fields.iter_mut() {
        let Value::String(value) = value else { continue };
        if context.compares(key) && is_number(value) {
            continue;
        }
        // A volume in several zones has all of them in one label.
        let mut parts: Vec<String> = value.split("__").map(str::to_owned).collect();
        for part in &mut parts {
            rename(part);
        }
        *value = parts.join("__");
    }
}

/// Those that are left have a meaning.
fn annotations(fields: &mut serde_json::Map<String, Value>, rename: &mut dyn FnMut(&mut String)) {
    for (key, value) in fields.iter_mut() {
        let Value::String(value) = value else { continue };
        let known = ANNOTATIONS.iter().find(|(known, _)| known == key).map(|(_, kind)| *kind);
        match known {
            Some(Annotation::Name) => rename(value),
            Some(Annotation::Names) => {
                let mut names: Vec<String> = value.split(',').map(|name| name.trim().to_owned()).collect();
                for name in &mut names {
                    rename(name);
                }
                *value = names.join(",");
            }
            Some(Annotation::Kept) | None => {}
        }
    }
}

/// Renames the ends of annotation keys that are anybody's.
pub(super) fn each_key(object: &mut Value, names: &Names) {
    let Some(Value::Object(annotations)) = object.get_mut("metadata").and_then(|found| found.get_mut("annotations"))
    else {
        return;
    };
    let ends: Vec<String> =
        annotations.keys().filter_map(|key| key.strip_prefix(DELAY_DELETION)).map(str::to_owned).collect();
    for end in ends {
        annotations.remove(&format!("{DELAY_DELETION}{end}"));
        annotations.insert(format!("{DELAY_DELETION}{}", names.of(&end)), Value::String(String::new()));
    }
}
