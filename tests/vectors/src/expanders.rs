//! The expanders of this repository, called natively instead of as components.

use plimsoll_core::cloud::Attributes;
use plimsoll_core::ranking::{self as core, Ranking, RankingFailure};
use plimsoll_expander_least_nodes::LeastNodes;
use plimsoll_expander_least_waste::LeastWaste;
use plimsoll_expander_most_pods::MostPods;
use plimsoll_expander_price::Price;
use plimsoll_expander_priority::Priority;
use plimsoll_guest::{self as guest, Expander};

/// Asks the expander of this name.
pub(crate) fn rank(name: &str, request: &core::RankRequest) -> Ranking {
    let ask = match name {
        "least-nodes" => LeastNodes::rank,
        "least-waste" => LeastWaste::rank,
        "most-pods" => MostPods::rank,
        "price" => Price::rank,
        "priority" => Priority::rank,
        _ => {
            let reason = "it is none of those in the cases".to_owned();
            return Err(RankingFailure::Missing { name: name.to_owned(), reason });
        }
    };
    let failed = |error| RankingFailure::Failed { name: name.to_owned(), reason: format!("{error:?}") };
    let verdicts = ask(&told(request)).map_err(failed)?;
    let verdict =
        |verdict: guest::Verdict| core::Verdict { index: verdict.index, score: verdict.score, reason: verdict.reason };
    Ok(verdicts.into_iter().map(verdict).collect())
}

fn told(request: &core::RankRequest) -> guest::RankRequest {
    let class = |class: &core::PodClass| guest::PodClass {
        label: class.label.clone(),
        pending: class.pending,
        requests: amounts(&class.requests),
        priority: class.priority,
    };
    guest::RankRequest {
        options: request.options.iter().map(option).collect(),
        pod_classes: request.pod_classes.iter().map(class).collect(),
        cluster_nodes: request.cluster_nodes,
        seed: request.seed,
        deadline_ms: u32::try_from(request.deadline.as_millis()).unwrap_or(u32::MAX),
        attributes: vec![],
    }
}

fn option(option: &core::GrowthOption) -> guest::GrowthOption {
    let shape = &option.shape;
    let usage = &option.usage;
    let similar = |group: &core::SimilarGroup| guest::SimilarGroup {
        group: group.group.to_string(),
        target_size: group.target_size,
        max_size: group.max_size,
        share: group.share,
    };
    let cost = |cost: &core::Cost| guest::Cost {
        currency: cost.currency.clone(),
        nodes_micros_per_hour: cost.nodes_micros_per_hour,
        pods_micros_per_hour: cost.pods_micros_per_hour,
        small_pod_micros_per_hour: cost.small_pod_micros_per_hour,
    };
    guest::GrowthOption {
        group: option.group.to_string(),
        node_count: option.node_count,
        target_size: option.target_size,
        max_size: option.max_size,
        pods: option.pods.iter().map(|&(class_index, count)| guest::ClassCount { class_index, count }).collect(),
        shape: guest::TemplateShape {
            instance_type: shape.instance_type.clone(),
            arch: shape.arch.clone(),
            os: shape.os.clone(),
            region: shape.region.clone(),
            zone: shape.zone.clone(),
            capacity: amounts(&shape.capacity),
            allocatable: amounts(&shape.allocatable),
            accelerator_model: shape.accelerator_model.clone(),
            spot: shape.spot,
            labels: labels(&shape.labels),
        },
        usage: guest::Usage {
            wanted: amounts(&usage.wanted),
            offered: amounts(&usage.offered),
            wasted: amounts(&usage.wasted),
            wasted_cpu_micro: usage.wasted_cpu_micro,
            wasted_memory_micro: usage.wasted_memory_micro,
        },
        cost: option.cost.as_ref().map(cost),
        priority: option.priority,
        exists: option.exists,
        similar: option.similar.iter().map(similar).collect(),
        attributes: vec![],
    }
}

fn amounts(amounts: &core::Amounts) -> guest::Resources {
    let one = |(name, count): &(String, u64)| guest::ExtendedAmount { name: name.clone(), count: *count };
    guest::Resources {
        cpu_milli: amounts.cpu_milli,
        memory_bytes: amounts.memory_bytes,
        ephemeral_storage_bytes: amounts.ephemeral_storage_bytes,
        extended: amounts.extended.iter().map(one).collect(),
    }
}

fn labels(labels: &Attributes) -> Vec<guest::KeyValue> {
    labels.iter().map(|(key, value)| guest::KeyValue { key: key.clone(), value: value.clone() }).collect()
}
