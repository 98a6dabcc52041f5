//! Expanders: which of several ways to grow is best.

use crate::bindings::contract::types::KeyValue;
use crate::bindings::expander::ranking::{
    Cost, ExtendedAmount, GrowthOption, PodClass, RankRequest, Resources, TemplateShape, Usage, Verdict,
};
use crate::{Manifest, PluginError};

/// What the author of an expander writes. Export it with [`export_expander!`](crate::export_expander).
///
/// An expander is a pure function: each call meets a fresh instance, and the same request must give the same answer. It
/// has no clock, no randomness and no network; a seed comes with each request.
pub trait Expander {
    /// Name and version, and the node labels that it wishes to see.
    const MANIFEST: Manifest;

    /// Scores the options: the higher the better. An option without a verdict is rejected; an empty answer leaves the
    /// choice to the next expander, and so do equal scores. [`RankRequest::score_each`] is the usual way.
    ///
    /// # Errors
    /// The question cannot be answered, for instance because a setting is wrong; the next expander decides.
    fn rank(request: &RankRequest) -> Result<Vec<Verdict>, PluginError>;
}

/// How good an option is, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct Score {
    value: f64,
    reason: Option<String>,
}

impl Score {
    /// The higher the better.
    pub fn best_high(value: f64) -> Self {
        Self { value, reason: None }
    }

    /// The lower the better, as with prices or waste.
    pub fn best_low(value: f64) -> Self {
        Self::best_high(-value)
    }

    /// With a reason for people, a few words without a full stop.
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }
}

impl RankRequest {
    /// A verdict for each option that gets a score; the others are rejected. A score that is not finite would void the
    /// whole answer, so it counts as none and is logged.
    pub fn score_each(&self, mut score: impl FnMut(&GrowthOption) -> Option<Score>) -> Vec<Verdict> {
        let mut verdict = |(index, option): (u32, &GrowthOption)| {
            let Score { value, reason } = score(option)?;
            if !value.is_finite() {
                crate::log::write(crate::log::Level::Warn, "a score is not finite", &[("group", &option.group)]);
                return None;
            }
            // Minus zero becomes zero: equal scores are equal bit by bit.
            Some(Verdict { index, score: value + 0.0, reason })
        };
        (0u32..).zip(&self.options).filter_map(&mut verdict).collect()
    }

    /// The pods that an option helps: class and count.
    pub fn pods_of<'a>(&'a self, option: &'a GrowthOption) -> impl Iterator<Item = (&'a PodClass, u32)> {
        option.pods.iter().filter_map(|pods| {
            let class = self.pod_classes.get(usize::try_from(pods.class_index).ok()?)?;
            Some((class, pods.count))
        })
    }

    /// A question for tests: options, in an empty cluster.
    pub fn about(options: Vec<GrowthOption>) -> Self {
        Self { options, pod_classes: vec![], cluster_nodes: 0, seed: 0, deadline_ms: 1000, attributes: vec![] }
    }
}

impl GrowthOption {
    /// How many pods it helps.
    pub fn pod_count(&self) -> u64 {
        self.pods.iter().map(|pods| u64::from(pods.count)).sum()
    }

    /// An option for tests: a group that exists and grows by so many nodes of some capacity.
    pub fn growing(group: impl Into<String>, node_count: u32, capacity: Resources) -> Self {
        Self {
            group: group.into(),
            node_count,
            target_size: 0,
            max_size: u32::MAX,
            pods: vec![],
            shape: TemplateShape { allocatable: capacity.clone(), capacity, ..TemplateShape::default() },
            usage: Usage::default(),
            cost: None,
            priority: None,
            exists: true,
            similar: vec![],
            attributes: vec![],
        }
    }
}

impl Resources {
    /// Processors in thousandths of a core and memory in bytes.
    pub fn new(cpu_milli: u64, memory_bytes: u64) -> Self {
        Self { cpu_milli, memory_bytes, ..Self::default() }
    }

    /// How much there is of an extended resource, such as `nvidia.com/gpu`.
    pub fn extended(&self, name: &str) -> u64 {
        self.extended.iter().find(|amount| amount.name == name).map_or(0, |amount| amount.count)
    }

    /// The same with an extended resource.
    pub fn with_extended(mut self, name: impl Into<String>, count: u64) -> Self {
        self.extended.push(ExtendedAmount { name: name.into(), count });
        self
    }
}

impl Default for Resources {
    /// Nothing.
    fn default() -> Self {
        Self { cpu_milli: 0, memory_bytes: 0, ephemeral_storage_bytes: 0, extended: vec![] }
    }
}

impl Default for Usage {
    /// Nothing wanted, nothing offered.
    fn default() -> Self {
        let nothing = Resources::default;
        Self { wanted: nothing(), offered: nothing(), wasted: nothing(), wasted_cpu_micro: 0, wasted_memory_micro: 0 }
    }
}

impl Default for TemplateShape {
    /// A Linux machine on amd64 with nothing in it.
    fn default() -> Self {
        Self {
            instance_type: String::new(),
            arch: "amd64".to_owned(),
            os: "linux".to_owned(),
            region: String::new(),
            zone: None,
            capacity: Resources::default(),
            allocatable: Resources::default(),
            accelerator_model: None,
            spot: false,
            labels: Vec::<KeyValue>::new(),
        }
    }
}

impl TemplateShape {
    /// Value of a node label that the manifest wished for.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|label| label.key == key).map(|label| label.value.as_str())
    }
}

impl Cost {
    /// What nodes cost, and what their pods would cost on nodes that fit exactly. Millionths of a currency per hour.
    pub fn new(nodes_micros_per_hour: u64, pods_micros_per_hour: Option<u64>) -> Self {
        Self {
            currency: "USD".to_owned(),
            nodes_micros_per_hour,
            pods_micros_per_hour,
            small_pod_micros_per_hour: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_options() -> RankRequest {
        RankRequest::about(["a", "b"].map(|group| GrowthOption::growing(group, 1, Resources::default())).into())
    }

    #[test]
    fn options_without_a_score_get_no_verdict() {
        let verdicts =
            two_options().score_each(|option| (option.group == "b").then(|| Score::best_high(1.0).because("b")));
        assert_eq!(verdicts, [Verdict { index: 1, score: 1.0, reason: Some("b".into()) }]);
    }

    #[test]
    fn scores_that_are_not_finite_are_dropped_and_logged() {
        let verdicts =
            two_options().score_each(|option| Some(Score::best_low(if option.group == "a" { f64::NAN } else { 2.0 })));
        assert_eq!(verdicts, [Verdict { index: 1, score: -2.0, reason: None }]);
        assert_eq!(crate::testing::logged().first().unwrap().fields, [("group".to_owned(), "a".to_owned())]);
    }

    #[test]
    fn zero_has_one_sign() {
        let verdicts = two_options().score_each(|_| Some(Score::best_low(0.0)));
        assert!(verdicts.iter().all(|verdict| verdict.score.to_bits() == 0.0f64.to_bits()), "{verdicts:?}");
    }
}
