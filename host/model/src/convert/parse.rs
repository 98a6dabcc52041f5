//! JSON → the types of Kubernetes.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::{FieldPath, Segment};
use super::objects::ObjectError;
use super::wording::json_message;

/// Straight into the type; if that fails, once more with amounts that were written as numbers turned into text, as
/// Kubernetes forgives them. Only one kind of deserializer ever meets these types: they are so large that another would
/// double the work of the compiler. That is also why the path of an error is found by its position.
pub(super) fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, ObjectError> {
    serde_json::from_str(text).or_else(|error| match serde_json::from_str(text) {
        Ok(value) => from_value(value),
        Err(_) => Err(shape_error(&error, text)),
    })
}

pub(super) fn from_value<T: DeserializeOwned>(mut value: Value) -> Result<T, ObjectError> {
    amounts_as_text(&mut value);
    let text = value.to_string();
    serde_json::from_str(&text).map_err(|error| shape_error(&error, &text))
}

fn shape_error(error: &serde_json::Error, text: &str) -> ObjectError {
    let line_start = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let at = (line_start + error.column()).saturating_sub(1);
    let (path, found) = path_at(text, at);
    let message = match path.segments().last() {
        Some(Segment::Key(key)) if is_time(key) => {
            format!("expected a time such as 2026-01-31T12:00:00Z, found {}", found.trim_ascii())
        }
        _ => json_message(error),
    };
    ObjectError::Shape { path, message }
}

/// Whether a field is a point in time.
fn is_time(key: &str) -> bool {
    key.ends_with("Timestamp") || (key.ends_with("Time") && key != "Time")
}

/// The innermost value that a position of a JSON text is part of, or that follows at once: where the parser was when it
/// refused a value, which is after a value that it has read, and before an object or list that it only looked at. (A list
/// in place of an object is refused after its bracket; if another list or object follows there, the path is one too deep.)
/// With its text.
fn path_at(text: &str, at: usize) -> (FieldPath, &str) {
    let holds = |value: &RawValue| {
        let start = (value.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let follows = || {
            value.get().starts_with(['{', '['])
                && text.get(at + 1..start).is_some_and(|between| between.trim_ascii().is_empty())
        };
        (start..start + value.get().len()).contains(&at) || follows()
    };
    let mut path = Vec::new();
    let mut inner = text;
    loop {
        let found = match inner.bytes().next() {
            Some(b'{') => serde_json::from_str::<BTreeMap<String, &RawValue>>(inner).ok().and_then(|fields| {
                let field = fields.into_iter().find(|(_, value)| holds(value));
                field.map(|(key, value)| (Segment::Key(key.into()), value))
            }),
            Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(inner).ok().and_then(|items| {
                let item = items.into_iter().enumerate().find(|(_, value)| holds(value));
                item.map(|(index, value)| (Segment::Index(index), value))
            }),
            _ => None,
        };
        let Some((segment, value)) = found else { return (path.into_iter().collect(), inner) };
        path.push(segment);
        inner = value.get();
    }
}

/// Numbers where Kubernetes takes amounts become text: `cpu: 4` means `cpu: "4"`. The `count` of volumes that a CSINode
/// gives as its `allocatable` is the one number there that stays one.
fn amounts_as_text(value: &mut Value) {
    const LISTS: [&str; 8] = [
        "requests",
        "limits",
        "capacity",
        "allocatable",
        "overhead",
        "allocatedResources",
        "counters",
        "consumedCapacity",
    ];
    const SINGLE: [&str; 2] = ["capacity", "maximumVolumeSize"];
    const NUMBER: &str = "count";
    fn to_text(value: &mut Value) {
        if let Value::Number(number) = value {
            *value = Value::String(number.to_string());
        }
    }
    /// Amounts of devices are objects, all of whose numbers are amounts.
    fn every_number(value: &mut Value) {
        match value {
            Value::Object(fields) => fields.values_mut().for_each(every_number),
            Value::Array(items) => items.iter_mut().for_each(every_number),
            other => to_text(other),
        }
    }
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::Object(amounts) if LISTS.contains(&key.as_str()) => {
                        let amounts = amounts.iter_mut().filter(|(name, _)| *name != NUMBER);
                        amounts.for_each(|(_, amount)| every_number(amount));
                    }
                    Value::Number(_) if SINGLE.contains(&key.as_str()) => to_text(value),
                    _ => amounts_as_text(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(amounts_as_text),
        _ => {}
    }
}
