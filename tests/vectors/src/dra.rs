//! `dra`: like `predicates`, for pods with claims to devices.
//!
//! Where the peer departs from the scheduler, the case is compared with the peer's reading where there is one, and else
//! with what the scheduler would do:
//!
//! * The peer counts devices that others hold with admin access as in use. Such cases are compared as if it were so.
//! * The peer cannot book a pod with a claim that was deliberately not made, nor one with a claim and with a resource that
//!   stands for devices, though its filters let them in. The scheduler can.

use anyhow::Context;
use serde_json::Value;

use crate::Outcome;
use crate::case::Case;
use crate::predicates::compare;

/// What the notes say where the peer counts devices that others hold with admin access.
const ADMIN_ACCESS: &str = "hold only with admin access";

pub(crate) fn run(case: &Case) -> anyhow::Result<Outcome> {
    let peer_cannot_book = peer_cannot_book(case);
    let same_any = |expected: bool, found: bool| found == expected || (peer_cannot_book && found && !expected);
    if !case.note.contains(ADMIN_ACCESS) {
        return compare(case, same_any);
    }
    let mut case = case.clone();
    let claims = case.cluster.get_mut("resourceClaims").and_then(Value::as_array_mut).context("no resourceClaims")?;
    for claim in claims {
        let results = claim.pointer_mut("/status/allocation/devices/results").and_then(Value::as_array_mut);
        for result in results.into_iter().flatten().filter_map(Value::as_object_mut) {
            result.remove("adminAccess");
        }
    }
    compare(&case, same_any)
}

fn peer_cannot_book(case: &Case) -> bool {
    let list =
        |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let not_made =
        list(&case.pod, "/status/resourceClaimStatuses").iter().any(|status| status.get("resourceClaimName").is_none());
    let has_claims = !list(&case.pod, "/spec/resourceClaims").is_empty();
    let names: Vec<String> = case
        .cluster
        .get("deviceClasses")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .flat_map(|class| {
            let explicit = class.pointer("/spec/extendedResourceName").and_then(Value::as_str);
            let name = class.pointer("/metadata/name").and_then(Value::as_str);
            let implicit = name.map(|name| format!("deviceclass.resource.kubernetes.io/{name}"));
            explicit.map(str::to_owned).into_iter().chain(implicit)
        })
        .collect();
    let asks = ["/spec/containers", "/spec/initContainers"].into_iter().any(|containers| {
        list(&case.pod, containers).iter().any(|container| {
            let requests = container.pointer("/resources/requests").and_then(Value::as_object);
            requests.is_some_and(|requests| names.iter().any(|name| requests.contains_key(name)))
        })
    });
    not_made || (has_claims && asks)
}
