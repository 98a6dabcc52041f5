//! Pages by number, with the twists that paging can have.

use serde_json::{Map, Value, json};

use crate::faults::Twist;

/// One page of a list.
///
/// `twists` may repeat an entry across pages, lose one, or announce a wrong total.
pub(super) fn page(name: &str, entries: Vec<Value>, number: Option<i64>, size: Option<i64>, twists: &[Twist]) -> Value {
    let (number, size) = (number.unwrap_or(1), size.unwrap_or(10));
    let (page, step) = (usize::try_from(number).unwrap_or(1), usize::try_from(size).unwrap_or(10));
    let mut total = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    let mut from = page.saturating_sub(1).saturating_mul(step);
    let mut take = step;
    for twist in twists {
        match twist {
            Twist::DuplicateAcrossPages if page > 1 => from = from.saturating_sub(1),
            Twist::MissingAcrossPages if page > 1 => {
                from += 1;
                take = take.saturating_sub(1);
            }
            Twist::WrongTotal(by) => total += i64::from(*by),
            _ => {}
        }
    }
    let shown: Vec<Value> = entries.into_iter().skip(from).take(take).collect();
    let mut body = Map::new();
    body.insert("TotalCount".to_owned(), json!(total.max(0)));
    body.insert("PageNumber".to_owned(), json!(number));
    body.insert("PageSize".to_owned(), json!(size));
    body.insert(name.to_owned(), Value::Array(shown));
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::page;
    use crate::faults::Twist;

    #[rstest]
    #[case::first(1, &[], json!([0, 1, 2]), 5)]
    #[case::last(2, &[], json!([3, 4]), 5)]
    #[case::beyond(3, &[], json!([]), 5)]
    #[case::repeated(2, &[Twist::DuplicateAcrossPages], json!([2, 3, 4]), 5)]
    #[case::lost(2, &[Twist::MissingAcrossPages], json!([4]), 5)]
    #[case::wrong_total(1, &[Twist::WrongTotal(-2)], json!([0, 1, 2]), 3)]
    fn pages(#[case] number: i64, #[case] twists: &[Twist], #[case] shown: serde_json::Value, #[case] total: i64) {
        let entries = (0..5).map(|entry| json!(entry)).collect();
        let body = page("List", entries, Some(number), Some(3), twists);
        assert_eq!((&body["List"], &body["TotalCount"]), (&shown, &json!(total)));
    }
}
