//! A request, as both ends see it.

use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use super::{Class, DecreaseOrder, DeleteOrder, Failure, IncreaseOrder, StateQuery, TemplatesQuery};

/// Everything that can be asked of the simulated cloud.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// Whether it is there.
    Health,
    /// Groups and machines.
    State(StateQuery),
    /// What groups would create.
    Templates(TemplatesQuery),
    /// What machines cost.
    Prices,
    /// More machines for a group.
    Increase(String, IncreaseOrder),
    /// Fewer wishes of a group.
    DecreaseTarget(String, DecreaseOrder),
    /// Fewer machines of a group.
    DeleteInstances(String, DeleteOrder),
}

impl Call {
    /// Reads a request.
    ///
    /// # Errors
    /// There is no such page, or its body is not what it should be; the failure is the answer to send.
    pub fn parse(method: &str, path_and_query: &str, body: &[u8]) -> Result<Self, Failure> {
        let path = path_and_query.split('?').next().unwrap_or_default();
        let parts: Vec<_> = path.split('/').skip(1).collect();
        match (method, parts.as_slice()) {
            ("GET", ["v1", "health"]) => Ok(Self::Health),
            ("GET", ["v1", "prices"]) => Ok(Self::Prices),
            ("POST", ["v1", "state"]) => read(body).map(Self::State),
            ("POST", ["v1", "templates"]) => read(body).map(Self::Templates),
            ("POST", ["v1", "groups", group, "increase"]) => Ok(Self::Increase(decode(group)?, read(body)?)),
            ("POST", ["v1", "groups", group, "decrease-target"]) => {
                Ok(Self::DecreaseTarget(decode(group)?, read(body)?))
            }
            ("POST", ["v1", "groups", group, "delete-instances"]) => {
                Ok(Self::DeleteInstances(decode(group)?, read(body)?))
            }
            _ => Err(Failure::new(
                Class::NotFound,
                "no-such-page",
                format!("the simulated cloud has no {method} {path}"),
            )),
        }
    }
}

fn decode(segment: &str) -> Result<String, Failure> {
    let bad = |_| Failure::new(Class::Other, "bad-path", format!("{segment:?} is not UTF-8"));
    percent_decode_str(segment).decode_utf8().map(std::borrow::Cow::into_owned).map_err(bad)
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::new(Class::Other, "bad-body", format!("cannot read the body: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::health("GET", "/v1/health", "", Call::Health)]
    #[case::query_is_ignored("GET", "/v1/prices?x=1", "", Call::Prices)]
    #[case::state("POST", "/v1/state", "{}", Call::State(StateQuery::default()))]
    #[case::group_is_decoded(
        "POST",
        "/v1/groups/a%2Fb%20c/increase",
        r#"{"key":"k","delta":1,"expected-target":2}"#,
        Call::Increase("a/b c".into(), IncreaseOrder { key: "k".into(), delta: 1, expected_target: 2, ..Default::default() })
    )]
    fn requests_are_read(#[case] method: &str, #[case] path: &str, #[case] body: &str, #[case] expected: Call) {
        assert_eq!(Call::parse(method, path, body.as_bytes()), Ok(expected));
    }

    #[rstest]
    #[case::other_page("GET", "/v2/health", "", Class::NotFound, "no-such-page")]
    #[case::other_method("DELETE", "/v1/state", "{}", Class::NotFound, "no-such-page")]
    #[case::deeper("POST", "/v1/groups/a/b/increase", "{}", Class::NotFound, "no-such-page")]
    #[case::relative("GET", "v1/health", "", Class::NotFound, "no-such-page")]
    #[case::empty("GET", "", "", Class::NotFound, "no-such-page")]
    #[case::not_json("POST", "/v1/state", "state", Class::Other, "bad-body")]
    #[case::field_missing("POST", "/v1/groups/a/increase", r#"{"key":"k"}"#, Class::Other, "bad-body")]
    #[case::negative(
        "POST",
        "/v1/groups/a/decrease-target",
        r#"{"key":"k","delta":-1,"expected-target":2}"#,
        Class::Other,
        "bad-body"
    )]
    #[case::not_utf8("POST", "/v1/groups/%FF/increase", "{}", Class::Other, "bad-path")]
    fn other_requests_are_refused(
        #[case] method: &str,
        #[case] path: &str,
        #[case] body: &str,
        #[case] class: Class,
        #[case] code: &str,
    ) {
        let failure = Call::parse(method, path, body.as_bytes()).unwrap_err();
        assert_eq!((failure.class, failure.code.as_str()), (class, code));
    }
}
