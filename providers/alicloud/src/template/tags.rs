//! Labels, taints and resources by tag.

use plimsoll_guest::{Quantity, Taint, TaintEffect, log};

const PREFIX: &str = "k8s.io/cluster-autoscaler/node-template/";

/// What tags say about a node.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Told {
    pub(super) labels: Vec<(String, String)>,
    pub(super) taints: Vec<Taint>,
    pub(super) resources: Vec<Quantity>,
}

/// Reads tags; what cannot be meant is logged and left out. `legacy`: plain tags are labels, if they can be.
pub(super) fn read(tags: &[(String, String)], legacy: bool) -> Told {
    let mut told = Told::default();
    for (key, value) in tags {
        let Some(rest) = key.strip_prefix(PREFIX) else {
            if legacy && is_key(key) && is_value(value) {
                told.labels.push((key.clone(), value.clone()));
            }
            continue;
        };
        let understood = match rest.split_once('/') {
            Some(("label", name)) if is_key(name) && is_value(value) => {
                told.labels.push((name.to_owned(), value.clone()));
                true
            }
            Some(("taint", name)) if is_key(name) => taint(name, value).map(|taint| told.taints.push(taint)).is_some(),
            Some(("resources", name)) if is_key(name) && is_quantity(value) => {
                told.resources.push(Quantity::new(name, value.trim()));
                true
            }
            _ => false,
        };
        if !understood {
            log::warn(&format!(
                "tag {key:?} = {value:?} is passed over; expected {PREFIX}label/KEY = VALUE, {PREFIX}taint/KEY = VALUE:EFFECT, \
                 or {PREFIX}resources/NAME = QUANTITY"
            ));
        }
    }
    told
}

fn taint(key: &str, text: &str) -> Option<Taint> {
    let (value, effect) = text.rsplit_once(':')?;
    let effect = match effect {
        "NoSchedule" => TaintEffect::NoSchedule,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        _ => return None,
    };
    is_value(value).then(|| Taint::new(key, value, effect))
}

/// A label key: a name, with a domain in front of a slash if there is one.
fn is_key(key: &str) -> bool {
    let (domain, name) = key.rsplit_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    let is_domain = |domain: &str| {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        domain.len() <= 253 && !domain.is_empty() && domain.chars().all(legal) && framed(domain)
    };
    !name.is_empty() && is_value(name) && domain.is_none_or(is_domain)
}

/// A label value: at most 63 characters, letters or digits at both ends.
fn is_value(value: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    value.len() <= 63 && value.chars().all(legal) && (value.is_empty() || framed(value))
}

fn framed(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

fn is_quantity(text: &str) -> bool {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = text.get(digits.len()..).unwrap_or_default();
    let number =
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.') && digits.matches('.').count() < 2;
    number
        && digits != "."
        && ["", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].contains(&suffix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn one(key: &str, value: &str, legacy: bool) -> Told {
        read(&[(key.to_owned(), value.to_owned())], legacy)
    }

    #[test]
    fn prefixed_tags_are_read() {
        let label =
            one("k8s.io/cluster-autoscaler/node-template/label/aliyun.accelerator/nvidia_name", "Tesla-V100", false);
        assert_eq!(label.labels, [("aliyun.accelerator/nvidia_name".to_owned(), "Tesla-V100".to_owned())]);
        let taint = one("k8s.io/cluster-autoscaler/node-template/taint/dedicated", "gpu:NoExecute", false);
        assert_eq!(taint.taints, [Taint::new("dedicated", "gpu", TaintEffect::NoExecute)]);
        let bare = one("k8s.io/cluster-autoscaler/node-template/taint/dedicated", ":PreferNoSchedule", false);
        assert_eq!(bare.taints, [Taint::new("dedicated", "", TaintEffect::PreferNoSchedule)]);
        let resource = one("k8s.io/cluster-autoscaler/node-template/resources/ephemeral-storage", "100Gi", false);
        assert_eq!(resource.resources, [Quantity::new("ephemeral-storage", "100Gi")]);
    }

    #[rstest]
    #[case("k8s.io/cluster-autoscaler/node-template/taint/dedicated", "NoSchedule")]
    #[case("k8s.io/cluster-autoscaler/node-template/taint/dedicated", "gpu:Never")]
    #[case("k8s.io/cluster-autoscaler/node-template/label/-bad", "x")]
    #[case("k8s.io/cluster-autoscaler/node-template/label/good", "no spaces")]
    #[case("k8s.io/cluster-autoscaler/node-template/resources/x", "many")]
    #[case("k8s.io/cluster-autoscaler/node-template/resources/x", "1.2.3")]
    #[case("k8s.io/cluster-autoscaler/node-template/colour/x", "red")]
    fn what_cannot_be_meant_is_logged(#[case] key: &str, #[case] value: &str) {
        plimsoll_guest::testing::logged();
        assert_eq!(one(key, value, true), Told::default());
        assert!(plimsoll_guest::testing::logged()[0].message.contains(key));
    }

    #[rstest]
    #[case("workload_type", "cpu", true)]
    #[case("example.com/team", "a", true)]
    #[case("acs:autoscaling:scalingGroupId", "asg-1", false)]
    #[case("名字", "x", false)]
    #[case("cost centre", "7", false)]
    #[case("note", "two words", false)]
    fn plain_tags_are_labels_only_if_wished_and_legal(#[case] key: &str, #[case] value: &str, #[case] legal: bool) {
        assert_eq!(one(key, value, true).labels.len(), usize::from(legal));
        assert!(one(key, value, false).labels.is_empty());
    }
}
