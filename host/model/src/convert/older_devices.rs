//! Objects of `resource.k8s.io/v1beta1` and `v1beta2` in the form of `v1`.
//!
//! `v1beta2` differs in name alone. In `v1beta1` devices have their fields under `basic`, and requests have those of
//! `exactly` beside their name.

use serde_json::{Map, Value};

const MODERN: &str = "resource.k8s.io/v1";
const MIDDLE: &str = "resource.k8s.io/v1beta2";
const OLDEST: &str = "resource.k8s.io/v1beta1";

/// The API version that an object is read as.
pub(super) fn modern_version(api_version: &str) -> &str {
    if matches!(api_version, OLDEST | MIDDLE) { MODERN } else { api_version }
}

/// An object in its newest form, if the text is one in another.
pub(super) fn modern(text: &str) -> Option<Value> {
    let may_be_old = text.contains(OLDEST) || text.contains(MIDDLE);
    may_be_old.then(|| serde_json::from_str(text).ok())?.map(modernized)
}

/// An object in its newest form.
pub(super) fn modernized(mut value: Value) -> Value {
    let version = value.get("apiVersion").and_then(Value::as_str).unwrap_or(MODERN);
    let is_oldest = version == OLDEST;
    let modern = modern_version(version).to_owned();
    if let Some(version) = value.get_mut("apiVersion") {
        *version = Value::String(modern);
    }
    if let Some(Value::Object(spec)) = value.get_mut("spec").filter(|_| is_oldest) {
        each(spec, "devices", modern_device);
        modern_claim(spec);
        if let Some(Value::Object(inner)) = spec.get_mut("spec") {
            modern_claim(inner);
        }
    }
    value
}

fn each(fields: &mut Map<String, Value>, list: &str, change: impl Fn(&mut Map<String, Value>)) {
    let items = fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut).for_each(change);
}

fn modern_device(device: &mut Map<String, Value>) {
    if let Some(Value::Object(basic)) = device.remove("basic") {
        device.extend(basic);
    }
}

fn modern_claim(spec: &mut Map<String, Value>) {
    let Some(Value::Object(devices)) = spec.get_mut("devices") else { return };
    each(devices, "requests", |request| {
        if request.contains_key("deviceClassName") {
            let exactly = std::mem::take(request);
            let (name, exactly): (Map<_, _>, Map<_, _>) = exactly.into_iter().partition(|(key, _)| key == "name");
            *request = name;
            request.insert("exactly".to_owned(), Value::Object(exactly));
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_stood_elsewhere_in_older_versions_is_moved() {
        for (name, version, old, new) in [
            (
                "a device",
                "v1beta1",
                json!({"devices": [{"name": "d", "basic": {"attributes": {"a": {"int": 1}}}}]}),
                json!({"devices": [{"name": "d", "attributes": {"a": {"int": 1}}}]}),
            ),
            (
                "a request",
                "v1beta1",
                json!({"devices": {"requests": [{"name": "r", "deviceClassName": "c", "count": 2}]}}),
                json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "count": 2}}]}}),
            ),
            (
                "alternatives stay",
                "v1beta1",
                json!({"devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "s"}]}]}}),
                json!({"devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "s"}]}]}}),
            ),
            (
                "a template",
                "v1beta1",
                json!({"spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "c"}]}}}),
                json!({"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}),
            ),
            (
                "a newer version stays",
                "v1beta2",
                json!({"devices": [{"name": "d", "basic": {}}]}),
                json!({"devices": [{"name": "d", "basic": {}}]}),
            ),
        ] {
            let api_version = format!("resource.k8s.io/{version}");
            let value = json!({"apiVersion": api_version, "spec": old});
            assert_eq!(modernized(value)["spec"], new, "{name}");
        }
    }
}
