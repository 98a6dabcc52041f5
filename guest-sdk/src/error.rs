//! Failures that a plug-in expects, made in one line each.
//!
//! ```
//! use std::time::Duration;
//! use plimsoll_guest::{ErrorClass, PluginError};
//!
//! let error = PluginError::out_of_resources("no ecs.g7.xlarge left")
//!     .with_code("OperationDenied.NoStock")
//!     .in_zone("cn-hangzhou-h")
//!     .with_retry_after(Duration::from_secs(300));
//! assert_eq!(error.class, ErrorClass::OutOfResources);
//! assert_eq!(error.summary(), "OperationDenied.NoStock: no ecs.g7.xlarge left");
//! ```

use std::time::Duration;

use crate::bindings::contract::types::{ErrorClass, ErrorScope, PluginError};
use crate::http;

impl PluginError {
    /// A failure of a class, about the whole provider, with no code and no advice when to try again.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            scope: ErrorScope::Provider,
            code: String::new(),
            message: message.into(),
            retry_after_ms: None,
            outcome_unknown: false,
            request_id: None,
        }
    }

    /// The cloud has no machines left: the host tries elsewhere and backs off here.
    pub fn out_of_resources(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::OutOfResources, message)
    }

    /// A limit that only a human or time lifts.
    pub fn quota(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Quota, message)
    }

    /// Balance or arrears: the host stops all growth of this provider.
    pub fn billing(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Billing, message)
    }

    /// Credentials or permissions.
    pub fn auth(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Auth, message)
    }

    /// The group or the plug-in is set up wrongly; trying again is pointless until that changes.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Config, message)
    }

    /// Asked too often; says nothing about the group.
    pub fn throttled(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Throttled, message)
    }

    /// Another activity runs, or the expected target was stale: the host reads again.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Conflict, message)
    }

    /// The target is not what the host believed.
    pub fn stale_target(group: &str, expected: u32, found: u32) -> Self {
        Self::conflict(format!("group {group} has target {found}, expected {expected}; read it again"))
            .with_code("stale-target")
            .for_group(group)
    }

    /// Network, server error, or an answer that could not be decoded.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Transient, message)
    }

    /// The named thing does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::NotFound, message)
    }

    /// This provider cannot do that; name the deed, such as `an atomic increase`.
    pub fn unsupported(deed: &str) -> Self {
        Self::new(ErrorClass::Unsupported, format!("{deed} is not supported by this provider")).with_code("unsupported")
    }

    /// The machine exists but did not become a node.
    pub fn bootstrap(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Bootstrap, message)
    }

    /// Anything else, told apart by a code.
    pub fn other(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Other, message).with_code(code)
    }

    /// With the cloud's own code, verbatim.
    pub fn with_code(self, code: impl Into<String>) -> Self {
        Self { code: code.into(), ..self }
    }

    /// About something; the host backs off no wider than this.
    pub fn about(self, scope: ErrorScope) -> Self {
        Self { scope, ..self }
    }

    /// About one node group.
    pub fn for_group(self, group: impl Into<String>) -> Self {
        self.about(ErrorScope::Group(group.into()))
    }

    /// About one machine.
    pub fn for_instance(self, instance: impl Into<String>) -> Self {
        self.about(ErrorScope::Instance(instance.into()))
    }

    /// About one machine type.
    pub fn for_instance_type(self, instance_type: impl Into<String>) -> Self {
        self.about(ErrorScope::InstanceType(instance_type.into()))
    }

    /// About one zone.
    pub fn in_zone(self, zone: impl Into<String>) -> Self {
        self.about(ErrorScope::Zone(zone.into()))
    }

    /// Not worth trying again before so much time has passed.
    pub fn with_retry_after(self, delay: Duration) -> Self {
        Self { retry_after_ms: Some(u32::try_from(delay.as_millis()).unwrap_or(u32::MAX)), ..self }
    }

    /// It may have been carried out although no good answer arrived. The host reads again before it repeats the write.
    pub fn with_unknown_outcome(self) -> Self {
        Self { outcome_unknown: true, ..self }
    }

    /// With the cloud's id of the failed request, for its support desk.
    pub fn with_request_id(self, request_id: impl Into<String>) -> Self {
        Self { request_id: Some(request_id.into()), ..self }
    }

    /// Code and message in one line, for logs. (`Display` prints the whole record.)
    pub fn summary(&self) -> String {
        if self.code.is_empty() { self.message.clone() } else { format!("{}: {}", self.code, self.message) }
    }
}

/// The class follows from what happened to the request, or from the status of the answer. A cloud with error bodies of
/// its own looks at [`http::Error::response`] first.
impl From<http::Error> for PluginError {
    fn from(error: http::Error) -> Self {
        let class = match error.failure() {
            http::Failure::Denied(_) | http::Failure::Invalid(_) => ErrorClass::Config,
            http::Failure::NotSent(_) | http::Failure::Lost(_) | http::Failure::TooLarge { .. } => {
                ErrorClass::Transient
            }
            http::Failure::Undecodable(_) => ErrorClass::Transient,
            http::Failure::Status(response) => class_of_status(response.status()),
        };
        let retry_after = error.response().and_then(http::Response::retry_after);
        Self {
            code: error.code(),
            retry_after_ms: retry_after.map(|delay| u32::try_from(delay.as_millis()).unwrap_or(u32::MAX)),
            outcome_unknown: error.outcome_unknown(),
            ..Self::new(class, error.to_string())
        }
    }
}

fn class_of_status(status: u16) -> ErrorClass {
    match status {
        401 | 403 => ErrorClass::Auth,
        402 => ErrorClass::Billing,
        404 | 410 => ErrorClass::NotFound,
        405 | 501 => ErrorClass::Unsupported,
        409 | 412 => ErrorClass::Conflict,
        429 => ErrorClass::Throttled,
        408 | 500.. => ErrorClass::Transient,
        _ => ErrorClass::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::unauthenticated(401, ErrorClass::Auth)]
    #[case::forbidden(403, ErrorClass::Auth)]
    #[case::arrears(402, ErrorClass::Billing)]
    #[case::missing(404, ErrorClass::NotFound)]
    #[case::no_such_deed(501, ErrorClass::Unsupported)]
    #[case::conflict(409, ErrorClass::Conflict)]
    #[case::precondition(412, ErrorClass::Conflict)]
    #[case::too_many(429, ErrorClass::Throttled)]
    #[case::server(500, ErrorClass::Transient)]
    #[case::gateway(504, ErrorClass::Transient)]
    #[case::wrong_question(400, ErrorClass::Other)]
    #[case::redirect(302, ErrorClass::Other)]
    fn class_follows_from_the_status(#[case] status: u16, #[case] class: ErrorClass) {
        assert_eq!(class_of_status(status), class);
    }

    #[test]
    fn long_delays_are_capped() {
        let error = PluginError::throttled("slow down").with_retry_after(Duration::MAX);
        assert_eq!(error.retry_after_ms, Some(u32::MAX));
    }

    #[test]
    fn summary_leaves_out_an_empty_code() {
        assert_eq!(PluginError::quota("no addresses left").summary(), "no addresses left");
    }
}
