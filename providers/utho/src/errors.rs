//! From what Utho answers to classes of failure.
//!
//! Utho gives no error codes: there is the HTTP status, and in the body `{"status": "error", "message": "…"}`, with any
//! status, 200 included. The status decides where it says something; else the words of the message do.

use std::collections::BTreeMap;

use plimsoll_guest::http::Response;
use plimsoll_guest::{ErrorClass, PluginError};
use serde_json::Value;

/// Words of a message and the class that they mean. The first that is found decides.
const WORDS: &[(&str, ErrorClass)] = &[
    ("unauthorized", ErrorClass::Auth),
    ("unauthorised", ErrorClass::Auth),
    ("invalid api key", ErrorClass::Auth),
    ("valid api key", ErrorClass::Auth),
    ("rate limit", ErrorClass::Throttled),
    ("too many requests", ErrorClass::Throttled),
    ("invalid cluster id", ErrorClass::NotFound),
    ("not found", ErrorClass::NotFound),
    ("insufficient", ErrorClass::Billing),
    ("balance", ErrorClass::Billing),
    ("credit", ErrorClass::Billing),
    ("credits", ErrorClass::Billing),
    ("limit", ErrorClass::Quota),
    ("limits", ErrorClass::Quota),
    ("quota", ErrorClass::Quota),
    ("stock", ErrorClass::OutOfResources),
    ("not available", ErrorClass::OutOfResources),
    ("unavailable", ErrorClass::OutOfResources),
    ("capacity", ErrorClass::OutOfResources),
];

/// Words that the operator added, and the class that they mean. They are asked before [`WORDS`].
pub(crate) type OwnWords = BTreeMap<String, ErrorClass>;

/// Names of classes, as the operator writes them.
pub(crate) fn class_named(name: &str) -> Option<ErrorClass> {
    Some(match name {
        "out-of-resources" => ErrorClass::OutOfResources,
        "quota" => ErrorClass::Quota,
        "billing" => ErrorClass::Billing,
        "auth" => ErrorClass::Auth,
        "config" => ErrorClass::Config,
        "throttled" => ErrorClass::Throttled,
        "conflict" => ErrorClass::Conflict,
        "transient" => ErrorClass::Transient,
        "not-found" => ErrorClass::NotFound,
        "other" => ErrorClass::Other,
        _ => return None,
    })
}

/// The body if the answer is a success, else what went wrong. A success is a 2xx answer that is a JSON object and says
/// `success`, or that says nothing and `lenient` is set.
pub(crate) fn judge(response: Response, own: &OwnWords, lenient: bool) -> Result<Value, PluginError> {
    let status = response.status();
    let body: Option<Value> = response.json().ok().filter(Value::is_object);
    let said = body.as_ref().and_then(|body| body.get("status")).and_then(Value::as_str).unwrap_or_default();
    let silent = said.is_empty();
    let refused = !(silent || said.eq_ignore_ascii_case("success"));
    match body {
        Some(body) if response.is_success() && !refused && (lenient || !silent) => Ok(body),
        Some(body) if refused || !response.is_success() => Err(refusal(response, &body, own)),
        // A page of some gateway proves nothing, not even with status 404. Statuses that gateways do not invent stand.
        None if !response.is_success() && !matches!(status, 404 | 410) => Err(response
            .success()
            .err()
            .map_or_else(|| PluginError::transient("an answer was both good and bad"), PluginError::from)),
        _ => Err(undecodable(&response, "expected a JSON object with \"status\": \"success\"")),
    }
}

/// An answer that says nothing about what happened.
pub(crate) fn undecodable(response: &Response, expected: &str) -> PluginError {
    let (status, excerpt) = (response.status(), response.excerpt());
    PluginError::transient(format!("cannot read the answer: {expected}; status {status}, body: {excerpt}"))
        .with_code("undecodable")
}

/// What the cloud says went wrong.
fn refusal(response: Response, body: &Value, own: &OwnWords) -> PluginError {
    let status = response.status();
    let message = message(body);
    let class = class(status, &message, own);
    let code = if response.is_success() { "status-error".to_owned() } else { status.to_string() };
    let text = if message.is_empty() { response.excerpt() } else { message };
    let mut error = PluginError::new(class, text).with_code(code);
    // Behind a gateway the server may have acted before it failed.
    error.outcome_unknown = status >= 500 || status == 408;
    match response.retry_after() {
        Some(delay) => error.with_retry_after(delay),
        None => error,
    }
}

/// The text of an error body, in any of the shapes that are known.
fn message(body: &Value) -> String {
    let plain = |body: &Value| ["message", "long_message", "error"].iter().find_map(|key| text_of(body.get(*key)));
    let listed = || body.get("errors").and_then(|errors| errors.get(0)).and_then(plain);
    plain(body).or_else(listed).unwrap_or_default()
}

fn text_of(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn class(status: u16, message: &str, own: &OwnWords) -> ErrorClass {
    let message = message.to_lowercase();
    if let Some((_, class)) = own.iter().find(|(words, _)| says(&message, &words.to_lowercase())) {
        return *class;
    }
    match status {
        401 | 403 => return ErrorClass::Auth,
        402 => return ErrorClass::Billing,
        404 => return ErrorClass::NotFound,
        429 | 503 => return ErrorClass::Throttled,
        408 | 500.. => return ErrorClass::Transient,
        _ => {}
    }
    WORDS.iter().find(|(words, _)| says(&message, words)).map_or(ErrorClass::Other, |(_, class)| *class)
}

/// Whether whole words occur: a load balancer is no balance.
fn says(message: &str, words: &str) -> bool {
    let inside = |edge: Option<char>| edge.is_some_and(char::is_alphanumeric);
    !words.is_empty()
        && message.match_indices(words).any(|(at, found)| {
            let before = message.get(..at).and_then(|text| text.chars().next_back());
            let after = message.get(at + found.len()..).and_then(|text| text.chars().next());
            !inside(before) && !inside(after)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::response;
    use plimsoll_guest::http::Answer;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::unauthenticated(401, "nothing known", ErrorClass::Auth)]
    #[case::forbidden(403, "", ErrorClass::Auth)]
    #[case::words_of_auth(200, "Unauthorized access. Please provide a valid API key.", ErrorClass::Auth)]
    #[case::invalid_key(200, "Invalid API key", ErrorClass::Auth)]
    #[case::missing(404, "gone", ErrorClass::NotFound)]
    #[case::words_of_missing(200, "Node not found", ErrorClass::NotFound)]
    #[case::no_cluster(200, "Invalid Cluster ID or access denied", ErrorClass::NotFound)]
    #[case::no_load_balancer(200, "Load balancer not found", ErrorClass::NotFound)]
    #[case::unpaid(402, "pay", ErrorClass::Billing)]
    #[case::insufficient(200, "Insufficient funds", ErrorClass::Billing)]
    #[case::balance(200, "Your balance is too low", ErrorClass::Billing)]
    #[case::credit(400, "No credit left", ErrorClass::Billing)]
    #[case::limit(200, "Server limit reached", ErrorClass::Quota)]
    #[case::quota(422, "Quota exceeded", ErrorClass::Quota)]
    #[case::stock(200, "Plan is out of stock", ErrorClass::OutOfResources)]
    #[case::not_available(200, "Plan not available in this zone", ErrorClass::OutOfResources)]
    #[case::capacity(200, "No capacity in inmumbaizone2", ErrorClass::OutOfResources)]
    #[case::too_many(429, "slow down", ErrorClass::Throttled)]
    #[case::rate_limit(200, "API rate limit exceeded", ErrorClass::Throttled)]
    #[case::overloaded(503, "try later", ErrorClass::Throttled)]
    #[case::server(500, "boom", ErrorClass::Transient)]
    #[case::gateway(504, "", ErrorClass::Transient)]
    #[case::status_outweighs_words(500, "out of stock", ErrorClass::Transient)]
    #[case::unknown(200, "Something else", ErrorClass::Other)]
    #[case::bad_request(400, "count must be a number", ErrorClass::Other)]
    #[case::balancer_is_no_balance(200, "The load balancer is busy", ErrorClass::Other)]
    #[case::unlimited_is_no_limit(200, "unlimited", ErrorClass::Other)]
    fn classes(#[case] status: u16, #[case] message: &str, #[case] expected: ErrorClass) {
        let answer = Answer::json(status, &json!({"status": "error", "message": message}));
        let error = judge(response(answer), &OwnWords::new(), false).unwrap_err();
        assert_eq!(error.class, expected);
        let code = if status == 200 { "status-error".to_owned() } else { status.to_string() };
        assert_eq!(error.code, code);
        assert!(error.message.contains(message), "{}", error.message);
        assert_eq!(error.outcome_unknown, status >= 500);
    }

    #[rstest]
    #[case::page_of_a_gateway(502, ErrorClass::Transient, "502")]
    #[case::page_with_status_200(200, ErrorClass::Transient, "undecodable")]
    #[case::page_that_claims_absence(404, ErrorClass::Transient, "undecodable")]
    #[case::page_of_refusal(401, ErrorClass::Auth, "401")]
    #[case::page_of_throttling(429, ErrorClass::Throttled, "429")]
    #[case::redirect(302, ErrorClass::Other, "302")]
    fn pages_that_are_no_json(#[case] status: u16, #[case] expected: ErrorClass, #[case] code: &str) {
        for body in ["<html>no</html>", "", "[]", "\"success\"", "{\"status\":"] {
            let error = judge(response(Answer::text(status, body)), &OwnWords::new(), true).unwrap_err();
            assert_eq!((error.class, error.code.as_str()), (expected, code), "{body}");
        }
    }

    #[test]
    fn the_other_shape_of_errors_is_read_as_well() {
        let body = json!({"errors": [{"message": "Quota exceeded", "code": "x"}]});
        let error = judge(response(Answer::json(400, &body)), &OwnWords::new(), false).unwrap_err();
        assert_eq!((error.class, error.message.as_str()), (ErrorClass::Quota, "Quota exceeded"));
    }

    #[test]
    fn success_must_be_said_where_it_matters() {
        let silent = || response(Answer::json(200, &json!({"id": "1"})));
        assert!(judge(silent(), &OwnWords::new(), true).is_ok());
        assert_eq!(judge(silent(), &OwnWords::new(), false).unwrap_err().code, "undecodable");
        let good = response(Answer::json(201, &json!({"status": "Success"})));
        assert!(judge(good, &OwnWords::new(), false).is_ok());
        let claimed = response(Answer::json(500, &json!({"status": "success"})));
        assert_eq!(judge(claimed, &OwnWords::new(), false).unwrap_err().class, ErrorClass::Transient);
    }

    #[test]
    fn the_operator_may_name_classes() {
        let own = OwnWords::from([("Sold Out".to_owned(), ErrorClass::OutOfResources)]);
        let answer = Answer::json(500, &json!({"status": "error", "message": "plan is sold out today"}));
        assert_eq!(judge(response(answer), &own, false).unwrap_err().class, ErrorClass::OutOfResources);
    }

    #[test]
    fn a_wish_to_wait_is_passed_on() {
        let answer = Answer::json(429, &json!({"status": "error", "message": "slow"})).with_header("retry-after", "9");
        assert_eq!(judge(response(answer), &OwnWords::new(), false).unwrap_err().retry_after_ms, Some(9000));
    }
}
