//! Rules of RBAC: those of the chart, one right at a time, and what the API server's audit log says was used.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

/// One right: a verb on a resource.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Right {
    /// API group; empty for the core.
    pub group: String,
    /// Resource, with its subresource if there is one.
    pub resource: String,
    /// Verb.
    pub verb: String,
    /// Whether it holds in one namespace alone.
    pub namespaced: bool,
}

impl Right {
    /// As the API server names the resource in its complaints.
    pub fn complaint(&self) -> String {
        format!("cannot {} resource \"{}\" in API group \"{}\"", self.verb, self.resource, self.group)
    }
}

/// The objects of a file with several.
///
/// # Errors
/// It is no YAML.
pub fn objects(yaml: &str) -> anyhow::Result<Vec<Value>> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml)?;
    Ok(all.into_iter().filter(|object| !object.is_null()).collect())
}

fn texts<'a>(rule: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    rule.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn kind(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

/// All rights that the Roles and ClusterRoles among these objects give.
pub fn given(objects: &[Value]) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for object in objects.iter().filter(|object| matches!(kind(object), "Role" | "ClusterRole")) {
        for rule in object.get("rules").and_then(Value::as_array).into_iter().flatten() {
            for group in texts(rule, "apiGroups") {
                for resource in texts(rule, "resources") {
                    for verb in texts(rule, "verbs") {
                        let [group, resource, verb] = [group, resource, verb].map(str::to_owned);
                        rights.insert(Right { group, resource, verb, namespaced: kind(object) == "Role" });
                    }
                }
            }
        }
    }
    rights
}

/// The same objects without one right.
pub fn without(objects: &[Value], right: &Right) -> Vec<Value> {
    let mut objects = objects.to_vec();
    let namespaced = if right.namespaced { "Role" } else { "ClusterRole" };
    for object in objects.iter_mut().filter(|object| kind(object) == namespaced) {
        let rules = object.get_mut("rules").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        let kept: Vec<Value> = rules.iter().flat_map(|rule| split(rule, right)).collect();
        if let Some(fields) = object.as_object_mut() {
            fields.insert("rules".to_owned(), kept.into());
        }
    }
    objects
}

/// A rule without a right: one for its other resources, and one for its other verbs.
fn split(rule: &Value, right: &Right) -> Vec<Value> {
    let names = |key| texts(rule, key).map(str::to_owned).collect::<Vec<_>>();
    let (groups, resources, verbs) = (names("apiGroups"), names("resources"), names("verbs"));
    if !(groups.contains(&right.group) && resources.contains(&right.resource) && verbs.contains(&right.verb)) {
        return vec![rule.clone()];
    }
    let others = |all: &[String], one: &String| all.iter().filter(|name| *name != one).cloned().collect::<Vec<_>>();
    let mut parts = vec![
        json!({"apiGroups": groups, "resources": others(&resources, &right.resource), "verbs": verbs}),
        json!({"apiGroups": groups, "resources": [right.resource], "verbs": others(&verbs, &right.verb)}),
    ];
    if let Some(names) = rule.get("resourceNames") {
        for part in &mut parts {
            if let Some(fields) = part.as_object_mut() {
                fields.insert("resourceNames".to_owned(), names.clone());
            }
        }
    }
    let empty = |part: &Value, key: &str| texts(part, key).next().is_none();
    parts.retain(|part| !empty(part, "resources") && !empty(part, "verbs"));
    parts
}

/// The policy with which the API server writes down what a ServiceAccount asks.
pub fn audit_policy(user: &str) -> String {
    json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [user]}, {"level": "None"}],
    })
    .to_string()
}

/// What was asked: rights that were used, and requests that were refused for want of one.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// Used rights.
    pub used: BTreeSet<Right>,
    /// Refused requests.
    pub refused: Vec<String>,
}

impl Audit {
    /// Read an audit log. Whether a right is of a Role shows in `given`, which knows the same verb on the same resource.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(log: &Path, given: &BTreeSet<Right>) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(log).with_context(|| log.display().to_string())?;
        let mut audit = Self::default();
        for line in text.lines() {
            // The last line may be half written.
            let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
            let word = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            if event.pointer("/responseStatus/code").and_then(Value::as_u64) == Some(403) {
                audit.refused.push(format!("{} {}", word("/verb"), word("/requestURI")));
                continue;
            }
            let mut resource = word("/objectRef/resource");
            if let Some(sub) = event.pointer("/objectRef/subresource").and_then(Value::as_str) {
                resource = format!("{resource}/{sub}");
            }
            let right = |namespaced| Right {
                group: word("/objectRef/apiGroup"),
                resource: resource.clone(),
                verb: word("/verb"),
                namespaced,
            };
            audit.used.extend([true, false].map(right).into_iter().filter(|right| given.contains(right)));
        }
        Ok(audit)
    }
}

#[cfg(test)]
mod tests {
    use super::{Right, given, objects, without};

    const ROLES: &str = "
kind: ClusterRole
rules:
  - {apiGroups: [''], resources: [pods, nodes], verbs: [list, watch]}
---
kind: Role
rules:
  - {apiGroups: [''], resources: [configmaps], resourceNames: [a], verbs: [get, update]}
";

    #[test]
    fn each_right_can_be_taken_away_alone() {
        let objects = objects(ROLES).unwrap();
        let all = given(&objects);
        assert_eq!(all.len(), 6);
        for right in &all {
            let mut rest = all.clone();
            rest.remove(right);
            assert_eq!(given(&without(&objects, right)), rest, "{right:?}");
        }
        let get = Right { group: String::new(), resource: "configmaps".into(), verb: "get".into(), namespaced: true };
        let role = without(&objects, &get).pop().unwrap();
        assert_eq!(role["rules"][0]["resourceNames"][0], "a");
    }
}
