//! Values in whatever form the API gives them today: numbers with and without quotes, truth as `"1"`, empty maps as `[]`.

use serde_json::Value;

/// Text that is not empty; a number counts as text.
pub(crate) fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// An identifier: text other than `0`, which stands for "none yet".
pub(crate) fn identifier(value: Option<&Value>) -> Option<String> {
    text(value).filter(|text| text != "0")
}

/// A whole number from zero on.
pub(crate) fn whole(value: Option<&Value>) -> Option<u32> {
    let text = text(value)?;
    // Some back ends write every number as a floating point one.
    let digits = text.split_once('.').map_or(text.as_str(), |(whole, fraction)| {
        if fraction.bytes().all(|digit| digit == b'0') { whole } else { text.as_str() }
    });
    digits.parse().ok()
}

/// A truth value.
pub(crate) fn truth(value: Option<&Value>) -> Option<bool> {
    match value? {
        Value::Bool(truth) => Some(*truth),
        other => match text(Some(other))?.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Some(true),
            "0" | "false" | "no" | "off" => Some(false),
            _ => None,
        },
    }
}

/// A map by key; an empty list is an empty map. A list of objects is a map by their `id`.
pub(crate) fn map(value: Option<&Value>) -> Option<Vec<(String, &Value)>> {
    match value? {
        Value::Object(entries) => Some(entries.iter().map(|(key, value)| (key.clone(), value)).collect()),
        Value::Array(entries) => entries.iter().map(|entry| Some((text(entry.get("id"))?, entry))).collect(),
        _ => None,
    }
}

/// A list; a map stands for the list of its values, as lists with gaps are written so.
pub(crate) fn list(value: Option<&Value>) -> Option<Vec<&Value>> {
    match value? {
        Value::Array(entries) => Some(entries.iter().collect()),
        Value::Object(entries) => Some(entries.values().collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::number(json!(3), Some(3))]
    #[case::quoted(json!("3"), Some(3))]
    #[case::padded(json!(" 3 "), Some(3))]
    #[case::floating(json!(3.0), Some(3))]
    #[case::quoted_floating(json!("3.00"), Some(3))]
    #[case::zero(json!(0), Some(0))]
    #[case::half(json!(2.5), None)]
    #[case::negative(json!(-1), None)]
    #[case::quoted_negative(json!("-1"), None)]
    #[case::empty(json!(""), None)]
    #[case::null(json!(null), None)]
    #[case::truth(json!(true), None)]
    #[case::word(json!("three"), None)]
    #[case::too_large(json!(5_000_000_000_u64), None)]
    #[case::list(json!([3]), None)]
    fn whole_numbers(#[case] value: Value, #[case] expected: Option<u32>) {
        assert_eq!(whole(Some(&value)), expected);
    }

    #[rstest]
    #[case::truth(json!(true), Some(true))]
    #[case::quoted(json!("true"), Some(true))]
    #[case::one(json!("1"), Some(true))]
    #[case::number(json!(1), Some(true))]
    #[case::untruth(json!(false), Some(false))]
    #[case::zero(json!("0"), Some(false))]
    #[case::empty(json!(""), None)]
    #[case::word(json!("perhaps"), None)]
    #[case::null(json!(null), None)]
    fn truth_values(#[case] value: Value, #[case] expected: Option<bool>) {
        assert_eq!(truth(Some(&value)), expected);
    }

    #[rstest]
    #[case::text(json!("wrk-9f"), Some("wrk-9f"))]
    #[case::number(json!(1300123), Some("1300123"))]
    #[case::none_yet(json!("0"), None)]
    #[case::none_yet_as_number(json!(0), None)]
    #[case::empty(json!(""), None)]
    #[case::null(json!(null), None)]
    fn identifiers(#[case] value: Value, #[case] expected: Option<&str>) {
        assert_eq!(identifier(Some(&value)).as_deref(), expected);
    }

    #[rstest]
    #[case::object(json!({"a": 1, "b": 2}), Some(&["a", "b"][..]))]
    #[case::empty_object(json!({}), Some(&[][..]))]
    #[case::empty_list(json!([]), Some(&[][..]))]
    #[case::list_of_objects(json!([{"id": "a"}, {"id": 7}]), Some(&["a", "7"][..]))]
    #[case::list_of_strangers(json!([1, 2]), None)]
    #[case::null(json!(null), None)]
    #[case::text(json!(""), None)]
    fn maps(#[case] value: Value, #[case] keys: Option<&[&str]>) {
        let found = map(Some(&value)).map(|entries| entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>());
        assert_eq!(found, keys.map(|keys| keys.iter().map(|&key| key.to_owned()).collect()));
    }

    #[rstest]
    #[case::list(json!([1, 2]), Some(2))]
    #[case::list_with_gaps(json!({"0": 1, "2": 2}), Some(2))]
    #[case::empty(json!([]), Some(0))]
    #[case::null(json!(null), None)]
    #[case::text(json!("none"), None)]
    fn lists(#[case] value: Value, #[case] length: Option<usize>) {
        assert_eq!(list(Some(&value)).map(|entries| entries.len()), length);
    }

    #[test]
    fn what_is_missing_is_nothing() {
        assert_eq!((text(None), whole(None), truth(None)), (None, None, None));
        assert!(map(None).is_none() && list(None).is_none());
    }
}
