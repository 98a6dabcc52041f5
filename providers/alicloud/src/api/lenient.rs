//! Answers are read with patience: numbers come as text, lists as `null`, and the same list in two shapes.

use serde_json::Value;

/// Members of a JSON object, whatever type the cloud gave them this time.
pub(crate) trait Lenient {
    /// A member that is there and is neither `null` nor an empty text.
    fn member(&self, key: &str) -> Option<&Value>;
    /// As text; empty if it is missing.
    fn text(&self, key: &str) -> String;
    /// As a whole number; none if it is missing or no number.
    fn integer(&self, key: &str) -> Option<i64>;
    /// As a number of things; none if it is missing, no number or negative.
    fn count(&self, key: &str) -> Option<u32>;
    /// As a number.
    fn decimal(&self, key: &str) -> Option<f64>;
    /// As a truth value; none if it is missing.
    fn truth(&self, key: &str) -> Option<bool>;
    /// A list: `{"outer": {"inner": […]}}`, or `{"outer": […]}` in newer versions; empty if it is missing.
    fn list(&self, outer: &str, inner: &str) -> &[Value];
    /// A list of texts, as above.
    fn texts(&self, outer: &str, inner: &str) -> Vec<String>;
}

impl Lenient for Value {
    fn member(&self, key: &str) -> Option<&Value> {
        self.get(key).filter(|value| !value.is_null() && value.as_str() != Some(""))
    }

    fn text(&self, key: &str) -> String {
        self.member(key).map(as_text).unwrap_or_default()
    }

    fn integer(&self, key: &str) -> Option<i64> {
        match self.member(key)? {
            Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|number| number as i64)),
            Value::String(text) => text.trim().parse().ok(),
            Value::Bool(truth) => Some(i64::from(*truth)),
            _ => None,
        }
    }

    fn count(&self, key: &str) -> Option<u32> {
        self.integer(key).and_then(|number| u32::try_from(number).ok())
    }

    fn decimal(&self, key: &str) -> Option<f64> {
        match self.member(key)? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    fn truth(&self, key: &str) -> Option<bool> {
        match self.member(key)? {
            Value::Bool(truth) => Some(*truth),
            Value::Number(number) => Some(number.as_i64() != Some(0)),
            Value::String(text) => match text.trim() {
                "1" => Some(true),
                "0" => Some(false),
                text if text.eq_ignore_ascii_case("true") => Some(true),
                text if text.eq_ignore_ascii_case("false") => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    fn list(&self, outer: &str, inner: &str) -> &[Value] {
        match self.get(outer) {
            Some(Value::Array(list)) => list,
            Some(Value::Object(object)) => match object.get(inner) {
                Some(Value::Array(list)) => list,
                Some(one @ Value::Object(_)) => std::slice::from_ref(one),
                _ => &[],
            },
            _ => &[],
        }
    }

    fn texts(&self, outer: &str, inner: &str) -> Vec<String> {
        self.list(outer, inner).iter().map(as_text).filter(|text| !text.is_empty()).collect()
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::number(json!({"a": 3}), "3", Some(3), Some(true))]
    #[case::text(json!({"a": "3"}), "3", Some(3), None)]
    #[case::float(json!({"a": 3.0}), "3.0", Some(3), Some(true))]
    #[case::truth(json!({"a": true}), "true", Some(1), Some(true))]
    #[case::truth_as_text(json!({"a": "False"}), "False", None, Some(false))]
    #[case::one_as_text(json!({"a": "1"}), "1", Some(1), Some(true))]
    #[case::null(json!({"a": null}), "", None, None)]
    #[case::empty(json!({"a": ""}), "", None, None)]
    #[case::missing(json!({}), "", None, None)]
    #[case::list(json!({"a": []}), "", None, None)]
    #[case::not_an_object(json!(7), "", None, None)]
    fn members(#[case] value: Value, #[case] text: &str, #[case] integer: Option<i64>, #[case] truth: Option<bool>) {
        assert_eq!((value.text("a").as_str(), value.integer("a"), value.truth("a")), (text, integer, truth));
    }

    #[test]
    fn counts_are_not_negative() {
        assert_eq!(json!({"a": -1}).count("a"), None);
        assert_eq!(json!({"a": "0.5"}).decimal("a"), Some(0.5));
    }

    #[rstest]
    #[case::nested(json!({"Tags": {"Tag": ["x", "y"]}}), 2)]
    #[case::plain(json!({"Tags": ["x"]}), 1)]
    #[case::null(json!({"Tags": null}), 0)]
    #[case::inner_null(json!({"Tags": {"Tag": null}}), 0)]
    #[case::empty_text(json!({"Tags": ""}), 0)]
    #[case::missing(json!({}), 0)]
    fn lists(#[case] value: Value, #[case] length: usize) {
        assert_eq!(value.texts("Tags", "Tag").len(), length);
    }
}
