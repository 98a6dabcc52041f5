//! Price: prefer the option that is cheapest for what it carries, on nodes of a size that suits the cluster.
//!
//! The rules are those of the Cluster Autoscaler's expander of this name. An option without prices is rejected.

use plimsoll_guest::text::rounded;
use plimsoll_guest::{
    Cost, Expander, GrowthOption, Manifest, PluginError, RankRequest, Score, TemplateShape, Verdict, export_expander,
};

/// Unfitness of a node with accelerators: it should carry only pods that need them.
const ACCELERATOR_UNFITNESS: f64 = 1000.0;
/// How much worse an option is whose group must be made first.
const NEW_GROUP_FACTOR: f64 = 2.0;
/// Number of nodes over which the size of a node stops to matter.
const SUPPRESSION_NODES: f64 = 15.0;
/// Processors of the preferred node, in thousandths of a core, by the largest cluster that it suits.
const PREFERRED_CPU_MILLI: [(u32, f64); 6] =
    [(2, 1000.0), (6, 2000.0), (20, 4000.0), (60, 8000.0), (200, 16000.0), (u32::MAX, 32000.0)];
const ACCELERATOR_RESOURCES: [&str; 5] =
    ["nvidia.com/gpu", "habana.ai/gaudi", "gpu.intel.com/xe", "amd.com/gpu", "microsoft.com/directx"];

/// The expander `price`.
pub struct Price;

impl Expander for Price {
    const MANIFEST: Manifest = Manifest::expander("price", env!("CARGO_PKG_VERSION"));

    fn rank(request: &RankRequest) -> Result<Vec<Verdict>, PluginError> {
        Ok(request.score_each(|option| score(option, request.cluster_nodes)))
    }
}

export_expander!(Price);

fn score(option: &GrowthOption, cluster_nodes: u32) -> Option<Score> {
    let cost = option.cost.as_ref()?;
    let ratio = price_ratio(cost)?;
    let unfitness = if has_accelerator(&option.shape) {
        ACCELERATOR_UNFITNESS
    } else {
        suppressed(unfitness(&option.shape, cluster_nodes)?, option.node_count)
    };
    let value = unfitness * ratio * if option.exists { 1.0 } else { NEW_GROUP_FACTOR };
    let reason = format!(
        "price {} ({} {}/h, {} times the pods' own, unfitness {}{})",
        rounded(value, 2),
        rounded(cost.nodes_micros_per_hour as f64 / 1e6, 2),
        cost.currency,
        rounded(ratio, 2),
        rounded(unfitness, 2),
        if option.exists { "" } else { ", new group" },
    );
    Some(Score::best_low(value).because(reason))
}

/// What the nodes cost over what the pods would cost on nodes that fit exactly, steadied by the price of a small pod.
fn price_ratio(cost: &Cost) -> Option<f64> {
    let small_pod = cost.small_pod_micros_per_hour.unwrap_or(0) as f64;
    let pods = cost.pods_micros_per_hour? as f64 + small_pod;
    (pods > 0.0).then(|| (cost.nodes_micros_per_hour as f64 + small_pod) / pods)
}

/// How far the node is from the size that suits the cluster: 1 is that size, 2 is twice or half of it.
fn unfitness(shape: &TemplateShape, cluster_nodes: u32) -> Option<f64> {
    let (_, preferred) = PREFERRED_CPU_MILLI.into_iter().find(|&(largest, _)| cluster_nodes <= largest)?;
    let offered = shape.capacity.cpu_milli as f64;
    (offered > 0.0).then(|| (preferred / offered).max(offered / preferred))
}

/// The more nodes are added, the less their size matters.
fn suppressed(unfitness: f64, node_count: u32) -> f64 {
    let weight = 1.0 - ((f64::from(node_count) - 1.0) / SUPPRESSION_NODES).tanh();
    (unfitness - 1.0) * weight + 1.0
}

fn has_accelerator(shape: &TemplateShape) -> bool {
    shape.accelerator_model.is_some() || ACCELERATOR_RESOURCES.iter().any(|name| shape.allocatable.extended(name) > 0)
}

#[cfg(test)]
mod tests;
