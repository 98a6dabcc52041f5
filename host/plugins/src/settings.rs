//! Settings of a plug-in: what the operator gave, checked against what the manifest declares, with its defaults.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The settings that the plug-in will see.
///
/// Only the plain part of JSON Schema is used: `properties` with `type`, `enum` and `default`, and `required`.
///
/// # Errors
/// One line for each setting that is wrong.
pub(crate) fn resolve(
    schema: Option<&Value>,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Vec<String>> {
    let Some(schema) = schema else { return Ok(given.clone()) };
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let known = || {
        let names: Vec<_> = properties.keys().map(String::as_str).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let mut settings = BTreeMap::new();
    let mut problems = vec![];
    for (key, value) in given {
        match properties.get(key) {
            None => problems.push(format!("it has no setting {key:?}; its settings are: {}", known())),
            Some(property) => match check(property, value) {
                Ok(()) => drop(settings.insert(key.clone(), value.clone())),
                Err(expected) => problems.push(format!("its setting {key:?} is {value:?}; expected {expected}")),
            },
        }
    }
    for (key, property) in properties {
        if let (false, Some(default)) = (given.contains_key(key), property.get("default")) {
            settings.insert(key.clone(), text(default));
        }
    }
    for required in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !settings.contains_key(required) && !given.contains_key(required) {
            problems.push(format!("its setting {required:?} is required and missing"));
        }
    }
    if problems.is_empty() { Ok(settings) } else { Err(problems) }
}

fn check(property: &Value, value: &str) -> Result<(), String> {
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        let choices: Vec<_> = choices.iter().map(text).collect();
        if !choices.iter().any(|choice| choice == value) {
            return Err(format!("one of {}", choices.join(", ")));
        }
    }
    let (fits, expected) = match property.get("type").and_then(Value::as_str) {
        Some("integer") => (value.parse::<i64>().is_ok(), "a whole number"),
        Some("number") => (value.parse::<f64>().is_ok_and(f64::is_finite), "a number"),
        Some("boolean") => (value.parse::<bool>().is_ok(), "true or false"),
        _ => (true, ""),
    };
    if fits { Ok(()) } else { Err(expected.to_owned()) }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        serde_json::json!({
            "type": "object",
            "properties": {
                "dc": {"type": "string", "enum": ["innoida", "inmumbai"]},
                "page-size": {"type": "integer", "default": 100},
                "strict": {"type": "boolean"},
            },
            "required": ["dc"],
        })
    }

    #[rstest::rstest]
    #[case::defaults(&[("dc", "innoida")], Ok(vec![("dc", "innoida"), ("page-size", "100")]))]
    #[case::all(
        &[("dc", "innoida"), ("page-size", "7"), ("strict", "true")],
        Ok(vec![("dc", "innoida"), ("page-size", "7"), ("strict", "true")])
    )]
    #[case::missing(&[], Err("its setting \"dc\" is required and missing"))]
    #[case::choice(&[("dc", "mars")], Err("its setting \"dc\" is \"mars\"; expected one of innoida, inmumbai"))]
    #[case::kind(
        &[("dc", "innoida"), ("page-size", "many")],
        Err("its setting \"page-size\" is \"many\"; expected a whole number")
    )]
    #[case::boolean(
        &[("dc", "innoida"), ("strict", "yes")],
        Err("its setting \"strict\" is \"yes\"; expected true or false")
    )]
    #[case::unknown(
        &[("dc", "innoida"), ("pagesize", "7")],
        Err("it has no setting \"pagesize\"; its settings are: dc, page-size, strict")
    )]
    fn checks(#[case] given: &[(&str, &str)], #[case] expected: Result<Vec<(&str, &str)>, &str>) {
        let owned = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let found = resolve(Some(&schema()), &owned(given));
        match expected {
            Ok(expected) => assert_eq!(found, Ok(owned(&expected))),
            Err(expected) => assert_eq!(found, Err(vec![expected.to_owned()])),
        }
    }

    #[test]
    fn without_a_schema_everything_is_passed_on() {
        let given = BTreeMap::from([("any".to_owned(), "thing".to_owned())]);
        assert_eq!(resolve(None, &given), Ok(given));
    }
}
