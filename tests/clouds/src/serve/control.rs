//! `/_ctl/`: time, journal, faults and state, for tests that are outside the process.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer;
use crate::fake::Cloud;
use crate::faults::Rule;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    ms: u64,
}

/// Answer a request for `/_ctl/{what}`.
pub(super) fn answer(cloud: &mut dyn Cloud, method: &Method, what: &str, query: &str, body: &Bytes) -> Response<Bytes> {
    let result = match (method.as_str(), what) {
        ("POST", "advance") => read::<Advance>(body).map(|advance| {
            cloud.advance(Duration::from_millis(advance.ms));
            now(cloud)
        }),
        ("GET", "now") => Ok(now(cloud)),
        ("GET", "journal") => Ok(json!(cloud.journal())),
        ("GET", "violations") => Ok(json!(cloud.journal().violations())),
        ("GET", "nodes") => Ok(json!(cloud.nodes())),
        ("GET", "state" | "dump") => Ok(cloud.dump()),
        ("GET", "faults") => Ok(json!(cloud.faults().rules())),
        ("POST", "faults") => read::<Rule>(body).map(|rule| {
            cloud.faults().add(rule);
            json!(cloud.faults().rules())
        }),
        ("DELETE", "faults") => {
            match query.strip_prefix("name=") {
                Some(name) => cloud.faults().remove(name),
                None => cloud.faults().clear(),
            }
            Ok(json!(cloud.faults().rules()))
        }
        ("POST", "console") => read::<Value>(body).and_then(|order| cloud.console(&order)).map(|()| now(cloud)),
        _ => {
            let known =
                "GET now, journal, violations, nodes, state, faults; POST advance, faults, console; DELETE faults";
            return answer::json(404, &json!({"error": format!("no {method} /_ctl/{what}; there are {known}")}));
        }
    };
    match result {
        Ok(body) => answer::json(200, &body),
        Err(error) => answer::json(400, &json!({"error": error})),
    }
}

fn now(cloud: &dyn Cloud) -> Value {
    json!({"now": cloud.now(), "text": cloud.now().seconds()})
}

fn read<T: for<'a> Deserialize<'a>>(body: &Bytes) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("the body cannot be read as JSON: {error}"))
}
