//! The contract's records of a question to an expander, to and from the host's.

use std::time::Duration;

use plimsoll_core::ranking as core;

use super::bindings::ranking;
use super::cloud::{millis, to_attributes};

impl From<&core::Amounts> for ranking::Resources {
    fn from(given: &core::Amounts) -> Self {
        let amount = |(name, count): &(String, u64)| ranking::ExtendedAmount { name: name.clone(), count: *count };
        Self {
            cpu_milli: given.cpu_milli,
            memory_bytes: given.memory_bytes,
            ephemeral_storage_bytes: given.ephemeral_storage_bytes,
            extended: given.extended.iter().map(amount).collect(),
        }
    }
}

fn shape(given: &core::Shape, wanted_labels: &[String]) -> ranking::TemplateShape {
    let wanted: Vec<_> = given.labels.iter().filter(|(key, _)| wanted_labels.contains(key)).cloned().collect();
    ranking::TemplateShape {
        instance_type: given.instance_type.clone(),
        arch: given.arch.clone(),
        os: given.os.clone(),
        region: given.region.clone(),
        zone: given.zone.clone(),
        capacity: (&given.capacity).into(),
        allocatable: (&given.allocatable).into(),
        accelerator_model: given.accelerator_model.clone(),
        spot: given.spot,
        labels: to_attributes(&wanted),
    }
}

impl From<&core::Usage> for ranking::Usage {
    fn from(given: &core::Usage) -> Self {
        Self {
            wanted: (&given.wanted).into(),
            offered: (&given.offered).into(),
            wasted: (&given.wasted).into(),
            wasted_cpu_micro: given.wasted_cpu_micro,
            wasted_memory_micro: given.wasted_memory_micro,
        }
    }
}

fn option(given: &core::GrowthOption, wanted_labels: &[String]) -> ranking::GrowthOption {
    let cost = |cost: &core::Cost| ranking::Cost {
        currency: cost.currency.clone(),
        nodes_micros_per_hour: cost.nodes_micros_per_hour,
        pods_micros_per_hour: cost.pods_micros_per_hour,
        small_pod_micros_per_hour: cost.small_pod_micros_per_hour,
    };
    let similar = |group: &core::SimilarGroup| ranking::SimilarGroup {
        group: group.group.to_string(),
        target_size: group.target_size,
        max_size: group.max_size,
        share: group.share,
    };
    let pods = |&(class_index, count): &(u32, u32)| ranking::ClassCount { class_index, count };
    ranking::GrowthOption {
        group: given.group.to_string(),
        node_count: given.node_count,
        target_size: given.target_size,
        max_size: given.max_size,
        pods: given.pods.iter().map(pods).collect(),
        shape: shape(&given.shape, wanted_labels),
        usage: (&given.usage).into(),
        cost: given.cost.as_ref().map(cost),
        priority: given.priority,
        exists: given.exists,
        similar: given.similar.iter().map(similar).collect(),
        attributes: vec![],
    }
}

/// The question, with those node labels that the expander asked for, and how long the host waits.
pub(super) fn request(given: &core::RankRequest, wanted_labels: &[String], deadline: Duration) -> ranking::RankRequest {
    let class = |class: &core::PodClass| ranking::PodClass {
        label: class.label.clone(),
        pending: class.pending,
        requests: (&class.requests).into(),
        priority: class.priority,
    };
    ranking::RankRequest {
        options: given.options.iter().map(|given| option(given, wanted_labels)).collect(),
        pod_classes: given.pod_classes.iter().map(class).collect(),
        cluster_nodes: given.cluster_nodes,
        seed: given.seed,
        deadline_ms: millis(deadline),
        attributes: vec![],
    }
}

impl From<ranking::Verdict> for core::Verdict {
    fn from(given: ranking::Verdict) -> Self {
        Self { index: given.index, score: given.score, reason: given.reason.as_deref().map(crate::log::line) }
    }
}
