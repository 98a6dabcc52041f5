//! Endpoint lookup, for those who ask for it.

use plimsoll_guest::http::Method;
use plimsoll_guest::{Deadline, PluginError, state};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Call, Lenient, Product};
use crate::endpoints;

/// How long an answer is used before the next look.
const LIFETIME_MS: u64 = 3_600_000;

/// What was found, and when.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Found {
    /// Host name.
    pub(super) host: String,
    at_ms: u64,
}

impl Found {
    /// Whether it is time to look again.
    pub(super) fn is_old(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.at_ms) >= LIFETIME_MS
    }

    /// The last good answer of an earlier instance.
    pub(super) fn remembered(product: Product) -> Option<Self> {
        state::get_json::<Self>(&key(product)).filter(|found| endpoints::is_alibaba(&found.host))
    }

    /// Whatever went wrong, the old answer holds for another while.
    pub(super) fn renewed(self, now_ms: u64) -> Self {
        // Looked at again in a minute rather than in an hour.
        Self { at_ms: now_ms.saturating_sub(LIFETIME_MS - 60_000), ..self }
    }
}

fn key(product: Product) -> String {
    format!("endpoint-{}", product.name())
}

/// The question.
pub(super) fn question(product: Product, region: &str) -> Call {
    Call::read(Product::Location, "DescribeEndpoints")
        .at(Method::Get, "/".to_owned())
        .with("Id", region)
        .with("ServiceCode", product.name())
        .with("Type", "openAPI")
}

/// The answer; the field `Protocols` has had several shapes and is not looked at.
pub(super) fn answer(product: Product, value: &Value, now_ms: u64) -> Result<Found, PluginError> {
    let refused = |why: &str| {
        PluginError::transient(format!("the endpoint lookup for {} {why}", product.name())).with_code("no-endpoint")
    };
    if value.truth("Success") == Some(false) {
        return Err(refused("found nothing"));
    }
    let hosts = value.list("Endpoints", "Endpoint").iter().map(|entry| entry.text("Endpoint").to_ascii_lowercase());
    let host = hosts.into_iter().find(|host| !host.is_empty()).ok_or_else(|| refused("found nothing"))?;
    if !endpoints::is_alibaba(&host) {
        return Err(refused(&format!("names {host:?}, which is not below aliyuncs.com")));
    }
    let found = Found { host, at_ms: now_ms };
    // A cache only.
    let _ = state::set_json(&key(product), &found);
    Ok(found)
}

/// Longest time that a lookup may take: there is an answer without it.
pub(super) fn deadline() -> Deadline {
    Deadline::after_ms(3_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn told(endpoint: &Value) -> Value {
        json!({"Success": true, "Endpoints": {"Endpoint": [endpoint]}})
    }

    #[rstest]
    #[case::object(json!({"Endpoint": "ess.aliyuncs.com", "Protocols": {"Protocols": ["HTTP"]}}))]
    #[case::list(json!({"Endpoint": "ESS.aliyuncs.com", "Protocols": ["HTTP", "HTTPS"]}))]
    #[case::number(json!({"Endpoint": "ess.aliyuncs.com", "Protocols": 7}))]
    #[case::misspelt(json!({"Endpoint": "ess.aliyuncs.com", "SerivceCode": "ess"}))]
    fn protocols_may_be_anything(#[case] endpoint: Value) {
        assert_eq!(answer(Product::Ess, &told(&endpoint), 5).unwrap().host, "ess.aliyuncs.com");
        assert!(!Found::remembered(Product::Ess).unwrap().is_old(5));
    }

    #[rstest]
    #[case::failure(json!({"Success": false, "Endpoints": {"Endpoint": [{"Endpoint": "ess.aliyuncs.com"}]}}))]
    #[case::empty(json!({"Success": true, "Endpoints": {"Endpoint": []}}))]
    #[case::foreign(told(&json!({"Endpoint": "ess.evil.example"})))]
    fn useless_answers_are_refused(#[case] value: Value) {
        assert!(answer(Product::Ess, &value, 0).is_err());
    }
}
