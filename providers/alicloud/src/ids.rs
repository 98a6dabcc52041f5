//! How machines are named: `cn-hangzhou.i-bp1abc`, `alicloud://cn-hangzhou.i-bp1abc`, and what is not ours.

use plimsoll_guest::NodeMatch;

/// Prefix that Alibaba's cloud controller manager accepts in front.
const SCHEME: &str = "alicloud://";

/// The instance id in a `spec.providerID`, or in an id given by the host; none if the machine is not one of this
/// region's. Nodes of other clouds, virtual nodes and `ack-hybrid://` nodes are none of ours, and no error.
pub(crate) fn instance_of(id: &str, region: &str) -> Option<String> {
    let rest = id.strip_prefix(SCHEME).unwrap_or(id);
    let instance = match rest.split_once('.') {
        Some((found, instance)) if found == region => instance,
        Some(_) => return None,
        None if id == rest => rest,
        None => return None,
    };
    is_instance(instance).then(|| instance.to_owned())
}

fn is_instance(id: &str) -> bool {
    id.strip_prefix("i-").is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

/// Every spelling under which a machine's node may be registered.
pub(crate) fn matches(region: &str, instance: &str) -> Vec<NodeMatch> {
    let plain = format!("{region}.{instance}");
    vec![NodeMatch::ProviderId(format!("{SCHEME}{plain}")), NodeMatch::ProviderId(plain)]
}

/// Beginnings of the provider ids of this region.
pub(crate) fn prefixes(region: &str) -> Vec<String> {
    vec![format!("{region}.i-"), format!("{SCHEME}{region}.i-")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("cn-hangzhou.i-bp1abc", Some("i-bp1abc"))]
    #[case::with_scheme("alicloud://cn-hangzhou.i-bp1abc", Some("i-bp1abc"))]
    #[case::bare("i-bp1abc", Some("i-bp1abc"))]
    #[case::other_region("cn-beijing.i-bp1abc", None)]
    #[case::hybrid("ack-hybrid://cn-hangzhou.i-bp1abc", None)]
    #[case::hybrid_bare("ack-hybrid://node-7", None)]
    #[case::container("cn-hangzhou.eci-bp1abc", None)]
    #[case::virtual_node("virtual-kubelet-cn-hangzhou-h", None)]
    #[case::other_cloud("aws:///us-east-1a/i-0abc", None)]
    #[case::scheme_without_region("alicloud://i-bp1abc", None)]
    #[case::capitals("cn-hangzhou.i-BP1", None)]
    #[case::no_instance("cn-hangzhou.i-", None)]
    #[case::dots("cn-hangzhou.i-a.b", None)]
    #[case::empty("", None)]
    fn provider_ids(#[case] id: &str, #[case] instance: Option<&str>) {
        assert_eq!(instance_of(id, "cn-hangzhou").as_deref(), instance);
    }

    #[test]
    fn both_spellings_match_and_have_a_known_prefix() {
        let prefixes = prefixes("cn-hangzhou");
        let matches = matches("cn-hangzhou", "i-1");
        assert_eq!(matches.len(), 2);
        for entry in matches {
            let NodeMatch::ProviderId(id) = entry else { panic!("only provider ids") };
            assert!(prefixes.iter().any(|prefix| id.starts_with(prefix)), "{id}");
            assert_eq!(instance_of(&id, "cn-hangzhou").as_deref(), Some("i-1"));
        }
    }
}
