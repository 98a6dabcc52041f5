//! Which groups are ours: `--nodes=min:max:id`, and rules for finding them by tag.

use plimsoll_guest::PluginError;

/// A group that the operator named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GroupSpec {
    /// Least size.
    pub(crate) min: u32,
    /// Greatest size.
    pub(crate) max: u32,
    /// Id of the scaling group or node pool; never its name.
    pub(crate) id: String,
}

/// A rule: groups that carry all of these tags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TagRule {
    /// Key, and the value that it must have if there is one.
    pub(crate) tags: Vec<(String, Option<String>)>,
}

/// Reads `min:max:id`.
///
/// # Errors
/// Class `config`, code `bad-node-group`; the texts are those that operators know from the peer.
pub(crate) fn parse_group(text: &str) -> Result<GroupSpec, PluginError> {
    let bad = |why: String| {
        let message =
            format!("failed to parse node group spec: {why}; expected min:max:id as in 0:10:asg-bp1abc, got {text:?}");
        PluginError::config(message).with_code("bad-node-group")
    };
    let mut parts = text.trim().splitn(3, ':');
    let (Some(min), Some(max), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(bad(format!("wrong nodes configuration: {text}")));
    };
    let size = |which: &str, text: &str| {
        text.parse::<i64>().map_err(|_| bad(format!("failed to set {which} size: {text}, expected integer")))
    };
    let (min, max) = (size("min", min)?, size("max", max)?);
    let invalid = |why: &str| bad(format!("invalid node group spec: {why}"));
    let (Ok(min), Ok(max)) = (u32::try_from(min), u32::try_from(max)) else {
        return Err(invalid(if min < 0 {
            "min size must be >= 0"
        } else {
            "max size must be greater or equal to min size"
        }));
    };
    if max < min {
        return Err(invalid("max size must be greater or equal to min size"));
    }
    if id.trim().is_empty() {
        return Err(invalid("name must not be blank"));
    }
    Ok(GroupSpec { min, max, id: id.trim().to_owned() })
}

/// Reads `asg:tag=KEY[=VALUE],…`.
///
/// # Errors
/// Class `config`, code `bad-discovery`.
pub(crate) fn parse_rule(text: &str) -> Result<TagRule, PluginError> {
    let tags = text.trim().strip_prefix("asg:").and_then(|rest| rest.strip_prefix("tag="));
    let rule = tags.map(|tags| TagRule { tags: tags.split(',').map(tag).filter(|(key, _)| !key.is_empty()).collect() });
    rule.filter(|rule| !rule.tags.is_empty() && rule.tags.len() <= 20).ok_or_else(|| {
        let message =
            format!("{text:?} is no rule for finding scaling groups; expected asg:tag=KEY[=VALUE],… with 1 to 20 tags");
        PluginError::config(message).with_code("bad-discovery")
    })
}

/// Reads `KEY[=VALUE]`.
pub(crate) fn tag(text: &str) -> (String, Option<String>) {
    match text.trim().split_once('=') {
        Some((key, value)) => (key.trim().to_owned(), Some(value.trim().to_owned())),
        None => (text.trim().to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("0:10:asg-1", 0, 10, "asg-1")]
    #[case("1:1:np31da", 1, 1, "np31da")]
    #[case(" 2:3:asg:odd ", 2, 3, "asg:odd")]
    fn good_groups(#[case] text: &str, #[case] min: u32, #[case] max: u32, #[case] id: &str) {
        assert_eq!(parse_group(text).unwrap(), GroupSpec { min, max, id: id.into() });
    }

    #[rstest]
    #[case("asg-1", "wrong nodes configuration: asg-1")]
    #[case("1:asg-1", "wrong nodes configuration: 1:asg-1")]
    #[case("a:1:asg-1", "failed to set min size: a, expected integer")]
    #[case("1:b:asg-1", "failed to set max size: b, expected integer")]
    #[case("-1:1:asg-1", "min size must be >= 0")]
    #[case("2:1:asg-1", "max size must be greater or equal to min size")]
    #[case("0:99999999999:asg-1", "max size must be greater or equal to min size")]
    #[case("0:1:", "name must not be blank")]
    fn bad_groups(#[case] text: &str, #[case] why: &str) {
        let error = parse_group(text).unwrap_err();
        assert!(error.message.contains(why), "{}", error.message);
        assert!(error.message.starts_with("failed to parse node group spec: "), "{}", error.message);
    }

    #[test]
    fn rules() {
        let rule = parse_rule("asg:tag=k8s.io/cluster-autoscaler/enabled,owner=team-a").unwrap();
        let expected =
            [("k8s.io/cluster-autoscaler/enabled".to_owned(), None), ("owner".to_owned(), Some("team-a".to_owned()))];
        assert_eq!(rule.tags, expected);
        for bad in ["tag=a", "asg:tag=", "mig:namePrefix=a", "asg:tag=,", ""] {
            assert_eq!(parse_rule(bad).unwrap_err().code, "bad-discovery", "{bad}");
        }
    }
}
