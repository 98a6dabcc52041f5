//! Priorities of node groups, as the peer reads them from its ConfigMap.

use std::collections::BTreeMap;

use plimsoll_model::Cluster;
use regex::Regex;

/// Name of the ConfigMap.
pub const CONFIG_MAP: &str = "cluster-autoscaler-priority-expander";
/// Key in it.
const KEY: &str = "priorities";

/// Patterns by priority: a group has the highest priority of which a pattern matches anywhere in its id.
#[derive(Clone, Debug, Default)]
pub struct Priorities {
    /// Highest first.
    patterns: Vec<(i32, Regex)>,
}

/// Why the ConfigMap cannot be used. The chain goes on without priorities.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PriorityError {
    /// The key is missing.
    #[error(
        "ConfigMap {namespace}/{CONFIG_MAP} has no key \"{KEY}\"; expected a map of priorities to lists of patterns"
    )]
    NoKey {
        /// Its namespace.
        namespace: String,
    },
    /// The value is no map of priorities.
    #[error("ConfigMap {namespace}/{CONFIG_MAP}, key \"{KEY}\": {problem}; expected, for example, \"50: [spot-.*]\"")]
    Unreadable {
        /// Its namespace.
        namespace: String,
        /// What is wrong.
        problem: String,
    },
    /// A pattern is no regular expression.
    #[error(
        "ConfigMap {namespace}/{CONFIG_MAP}, priority {priority}: {pattern:?} is not a regular expression: {problem}"
    )]
    Pattern {
        /// Its namespace.
        namespace: String,
        /// The priority that it stands under.
        priority: i32,
        /// The pattern.
        pattern: String,
        /// What is wrong.
        problem: String,
    },
}

impl Priorities {
    /// From the ConfigMap in a namespace; none if there is no such ConfigMap.
    ///
    /// # Errors
    ///
    /// If it is there and cannot be used.
    pub fn find(cluster: &Cluster, namespace: &str) -> Result<Option<Self>, PriorityError> {
        let named = |map: &&plimsoll_model::cluster::ConfigMap| {
            cluster.text(map.name) == CONFIG_MAP && cluster.text(map.namespace) == namespace
        };
        let Some(map) = cluster.config_maps.iter().find(named) else { return Ok(None) };
        let text = map.data.iter().find(|(key, _)| key == KEY).map(|(_, text)| text.as_str());
        match text.filter(|text| !text.trim().is_empty()) {
            Some(text) => Self::parse(text, namespace).map(Some),
            None => Err(PriorityError::NoKey { namespace: namespace.to_owned() }),
        }
    }

    /// From the text of the key.
    ///
    /// # Errors
    ///
    /// If it is no map of whole numbers to lists of regular expressions.
    pub fn parse(text: &str, namespace: &str) -> Result<Self, PriorityError> {
        let map: BTreeMap<i32, Vec<String>> = serde_saphyr::from_str(text).map_err(|error| {
            let problem = error.to_string().lines().next().unwrap_or_default().to_owned();
            PriorityError::Unreadable { namespace: namespace.to_owned(), problem }
        })?;
        let mut patterns = Vec::new();
        for (priority, texts) in map.into_iter().rev() {
            for pattern in texts {
                let regex = Regex::new(&pattern).map_err(|error| PriorityError::Pattern {
                    namespace: namespace.to_owned(),
                    priority,
                    pattern: pattern.clone(),
                    problem: error.to_string().lines().last().unwrap_or_default().trim().to_owned(),
                })?;
                patterns.push((priority, regex));
            }
        }
        Ok(Self { patterns })
    }

    /// All priorities of which a pattern matches a group, highest first. The lowest priority for whatever is left, as
    /// operators write it, does not count for a group that has another.
    pub fn all_of(&self, group: &str) -> Vec<i32> {
        let lowest = self.patterns.last().map(|(priority, _)| *priority);
        let of_the_rest = |priority: i32, pattern: &Regex| Some(priority) == lowest && is_catch_all(pattern);
        let mut priorities: Vec<i32> = vec![];
        for (priority, pattern) in self.patterns.iter().filter(|(_, pattern)| pattern.is_match(group)) {
            if priorities.is_empty() || !of_the_rest(*priority, pattern) {
                priorities.push(*priority);
            }
        }
        priorities.dedup();
        priorities
    }

    /// Highest priority of a group; none if no pattern matches it.
    pub fn of(&self, group: &str) -> Option<i32> {
        self.patterns.iter().find(|(_, pattern)| pattern.is_match(group)).map(|(priority, _)| *priority)
    }
}

/// Whether a pattern is one of those that match any group and are written to do so.
fn is_catch_all(pattern: &Regex) -> bool {
    let text = pattern.as_str();
    let text = text.strip_prefix('^').unwrap_or(text);
    let text = text.strip_suffix('$').unwrap_or(text);
    matches!(text, "" | ".*" | ".+" | "(.*)" | ".*?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_match_counts() {
        let priorities = Priorities::parse("10:\n  - .*\n50:\n  - spot.*\n-3: [never]\n", "kube-system").unwrap();
        assert_eq!(priorities.of("spot-a"), Some(50));
        assert_eq!(priorities.of("my-spot-a"), Some(50), "patterns match anywhere");
        assert_eq!(priorities.of("od-b"), Some(10));
        assert_eq!(priorities.all_of("od-b"), [10]);
        assert_eq!(priorities.all_of("never-spot"), [50, 10, -3]);
        let only = Priorities::parse("5: [^a$]", "kube-system").unwrap();
        assert_eq!(only.of("b"), None);
    }

    #[test]
    fn the_lowest_priority_for_whatever_is_left_is_no_overlap() {
        for (name, text, expected) in [
            ("all the others", "10: ['.*']\n50: [spot]\n", &[50][..]),
            ("the same with anchors", "10: ['^.+$']\n50: [spot]\n", &[50]),
            ("all, and this one too", "10: ['.*', '^spot']\n50: [spot]\n", &[50, 10]),
            ("all, but not the lowest", "10: [never]\n20: ['.*']\n50: [spot]\n", &[50, 20]),
            ("nothing else", "10: ['.*']\n", &[10]),
        ] {
            assert_eq!(Priorities::parse(text, "kube-system").unwrap().all_of("spot-a"), expected, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        for (name, text, expected) in [
            ("no map", "- a\n- b\n", "expected, for example"),
            ("no numbers", "high: [a]\n", "expected, for example"),
            ("no list", "10: a\n", "expected, for example"),
            ("bad pattern", "10: ['(']\n", "\"(\" is not a regular expression"),
        ] {
            let error = Priorities::parse(text, "kube-system").unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
}
