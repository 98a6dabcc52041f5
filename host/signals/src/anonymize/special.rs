//! What is special about some objects: which parts are left out, and texts that are made of others.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::priorities::CONFIG_MAP;
use plimsoll_model::convert::Kind;
use serde_json::{Map, Value};

use super::names::Names;
use super::words::{ANNOTATIONS, Annotation, DELAY_DELETION, EMPTIED, LEFT_OUT, OWNERS, is_harmless};

/// API version of our own objects.
const OURS: &str = "plimsoll.dev/v1alpha1";

/// An object without what no decision hangs on; none if none hangs on the object.
pub(super) fn reduced(mut object: Value) -> Option<Value> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
    if version == OURS {
        // Labels and annotations of our own objects mean nothing.
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.retain(|field, _| field == "name");
        }
        if kind == "NodeGroup" {
            object.get_mut("spec").into_iter().for_each(reduce);
        }
        return matches!(kind.as_str(), "NodeGroup" | "LoopState").then_some(object);
    }
    let is_read = match Kind::find(&version, &kind) {
        Some(Kind::Unneeded) | None => matches!(kind.as_str(), "LimitRange" | "RuntimeClass"),
        Some(Kind::ConfigMap) => {
            let data = object.get_mut("data").and_then(Value::as_object_mut);
            data.into_iter().for_each(|data| data.retain(|key, _| key == "priorities"));
            name_of(&object) == CONFIG_MAP
        }
        Some(_) => true,
    };
    is_read.then(|| {
        reduce(&mut object);
        object
    })
}

fn name_of(object: &Value) -> &str {
    object.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str).unwrap_or_default()
}

fn reduce(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(reduce),
        Value::Object(fields) => {
            fields.retain(|field, _| !LEFT_OUT.contains(&field.as_str()) || EMPTIED.contains(&field.as_str()));
            for (field, value) in fields.iter_mut() {
                match (field.as_str(), &mut *value) {
                    // Keys of labels may be like the names of fields.
                    ("labels" | "matchLabels" | "nodeSelector", Value::Object(pairs))
                        if pairs.values().all(Value::is_string) => {}
                    ("annotations", Value::Object(annotations)) => {
                        annotations.retain(|key, value| has_a_meaning(key, value))
                    }
                    ("ownerReferences", Value::Array(owners)) => owners.iter_mut().for_each(owner),
                    ("awsElasticBlockStore", Value::Object(disk)) => volume_id(disk),
                    (field, value) if EMPTIED.contains(&field) => *value = Value::Object(Map::new()),
                    (_, value) => reduce(value),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn has_a_meaning(key: &str, value: &Value) -> bool {
    if key.starts_with(DELAY_DELETION) {
        return true;
    }
    let known = ANNOTATIONS.iter().find(|(known, _)| *known == key);
    match known {
        Some((_, Annotation::Kept)) => value.as_str().is_some_and(is_harmless),
        Some(_) => true,
        None => false,
    }
}

/// The loop tells few kinds of owners apart; the others are one.
fn owner(owner: &mut Value) {
    let Value::Object(fields) = owner else { return };
    let is_known = fields.get("kind").and_then(Value::as_str).is_some_and(|kind| OWNERS.contains(&kind));
    let group = fields.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let is_common = matches!(group, "v1" | "apps/v1" | "batch/v1");
    if !is_known {
        fields.insert("kind".to_owned(), Value::String("Custom".to_owned()));
    }
    if !is_common {
        fields.insert("apiVersion".to_owned(), Value::String("example.com/v1".to_owned()));
    }
}

/// `aws://zone/vol-1` and `vol-1` are the same volume.
fn volume_id(disk: &mut Map<String, Value>) {
    if let Some(Value::String(id)) = disk.get_mut("volumeID")
        && let Some(rest) = id.strip_prefix("aws://")
    {
        *id = rest.trim_end_matches('/').rsplit('/').next().unwrap_or(rest).to_owned();
    }
}

/// What must be known of all objects before one of them is rewritten.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// Label keys whose values are compared by size somewhere.
    compared: BTreeSet<String>,
    /// Names that Kubernetes makes of a pod's and a volume's name, with these.
    made: BTreeMap<String, (String, String)>,
    /// Ends of annotation keys.
    ends: BTreeSet<String>,
    /// Names of node groups.
    pub(super) groups: BTreeSet<String>,
}

impl Context {
    pub(super) fn of(objects: &[Value]) -> Self {
        let mut context = Self::default();
        for object in objects {
            context.compare(object);
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
            match kind {
                "Pod" => context.ephemeral(object),
                "NodeGroup" => {
                    context.groups.insert(name_of(object).to_owned());
                }
                "LoopState" => context.groups.extend(super::state::groups(object)),
                _ => {}
            }
            let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations"));
            let keys = annotations.and_then(Value::as_object).into_iter().flat_map(|found| found.keys());
            context.ends.extend(keys.filter_map(|key| key.strip_prefix(DELAY_DELETION)).map(str::to_owned));
        }
        context
    }

    fn compare(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.compare(item)),
            Value::Object(fields) => {
                let operator = fields.get("operator").and_then(Value::as_str);
                if let (Some("Gt" | "Lt"), Some(Value::String(key))) = (operator, fields.get("key")) {
                    self.compared.insert(key.clone());
                }
                fields.values().for_each(|value| self.compare(value));
            }
            _ => {}
        }
    }

    /// Claims of ephemeral volumes are named after the pod and the volume.
    fn ephemeral(&mut self, pod: &Value) {
        let volumes = pod.get("spec").and_then(|spec| spec.get("volumes")).and_then(Value::as_array);
        for volume in volumes.into_iter().flatten().filter(|volume| volume.get("ephemeral").is_some()) {
            let volume = volume.get("name").and_then(Value::as_str).unwrap_or_default();
            let pod = name_of(pod);
            self.made.insert(format!("{pod}-{volume}"), (pod.to_owned(), volume.to_owned()));
        }
    }

    /// Whether values of a label key are compared by size.
    pub(super) fn compares(&self, key: &str) -> bool {
        self.compared.contains(key)
    }

    /// Texts that need new names and stand nowhere by themselves.
    pub(super) fn texts(&self) -> BTreeSet<String> {
        let parts = self.made.values().flat_map(|(pod, volume)| [pod, volume]);
        parts.chain(&self.ends).chain(&self.groups).cloned().collect()
    }

    /// The new name of a text.
    pub(super) fn renamed(&self, text: &str, names: &Names) -> String {
        match self.made.get(text) {
            Some((pod, volume)) => format!("{}-{}", names.of(pod), names.of(volume)),
            None => names.of(text),
        }
    }
}
