//! Priorities of node groups: patterns over names become lists of new names.

use std::collections::BTreeMap;

use plimsoll_core::priorities::{CONFIG_MAP, Priorities};
use serde_json::Value;

use super::AnonymizeError;
use super::names::Names;
use super::special::Context;

/// Rewrites the ConfigMap of priorities, so that every group has the priority that it had. False if an object is another.
pub(super) fn rewrite(object: &mut Value, context: &Context, names: &Names) -> Result<bool, AnonymizeError> {
    let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    if text(object, "kind") != "ConfigMap" || text(&metadata, "name") != CONFIG_MAP {
        return Ok(false);
    }
    let namespace = text(&metadata, "namespace");
    let data = object.get("data").and_then(|data| data.get("priorities")).and_then(Value::as_str);
    let data = match data {
        Some(found) if !found.trim().is_empty() => Some(rewritten(found, &namespace, context, names)?),
        _ => None,
    };
    let Value::Object(fields) = object else { return Ok(false) };
    fields.retain(|field, _| matches!(field.as_str(), "apiVersion" | "kind"));
    let mut metadata = serde_json::json!({ "name": CONFIG_MAP });
    if let Some(metadata) = metadata.as_object_mut().filter(|_| !namespace.is_empty()) {
        metadata.insert("namespace".to_owned(), Value::String(names.of(&namespace)));
    }
    fields.insert("metadata".to_owned(), metadata);
    fields.insert(
        "data".to_owned(),
        data.map_or_else(|| serde_json::json!({}), |text| serde_json::json!({"priorities": text})),
    );
    Ok(true)
}

fn rewritten(text: &str, namespace: &str, context: &Context, names: &Names) -> Result<String, AnonymizeError> {
    let priorities = Priorities::parse(text, namespace)?;
    let mut groups: BTreeMap<i32, Vec<String>> = BTreeMap::new();
    for group in &context.groups {
        if let Some(priority) = priorities.of(group) {
            groups.entry(priority).or_default().push(format!("^{}$", names.of(group)));
        }
    }
    if groups.is_empty() {
        // No group has a priority, and there are priorities all the same.
        groups.insert(0, vec!["^$".to_owned()]);
    }
    let lines = groups.into_iter().map(|(priority, patterns)| {
        let patterns: Vec<String> = patterns.into_iter().map(|pattern| format!("  - '{pattern}'\n")).collect();
        format!("{priority}:\n{}", patterns.concat())
    });
    Ok(lines.collect())
}
