//! The node groups of an account.

use plimsoll_core::observation::{GroupView, Observation};
use plimsoll_core::plan::{self, Plan};
use plimsoll_model::Template;

use super::Group;

/// All groups, by name.
pub(super) fn all(plan: &Plan, observation: &Observation<'_>) -> Vec<Group> {
    observation.groups.iter().map(|group| one(group, plan, observation)).collect()
}

fn one(group: &GroupView<'_>, plan: &Plan, observation: &Observation<'_>) -> Group {
    let cloud = group.cloud;
    let is_ready = |&&node: &&usize| observation.readiness.get(node).is_none_or(|state| state.ready);
    let upcoming = plan.upcoming.iter().find(|(id, _)| *id == cloud.id);
    let closed = plan.skipped.iter().find(|(id, _)| *id == cloud.id).map(|(_, reason)| reason.to_string());
    // When no pod needs a node nobody asks which groups could grow; what can be seen without asking is told all the same.
    let unread = cloud.error.as_ref().map(|error| plan::GroupReason::Unreadable(error.clone()).to_string());
    let full = (cloud.target_size >= cloud.max_size).then(|| plan::GroupReason::AtMaxSize(cloud.max_size).to_string());
    Group {
        group: cloud.id.to_string(),
        min: cloud.min_size,
        max: cloud.max_size,
        target: cloud.target_size,
        nodes: group.nodes.len(),
        ready: group.nodes.iter().filter(is_ready).count(),
        upcoming: upcoming.map_or(0, |&(_, count)| count),
        closed: closed.or(unread).or(full),
        template: match &group.template {
            Ok(template) => Ok(in_words(template, observation)),
            Err(problem) => Err(problem.to_string()),
        },
        price_micros_per_hour: group.price_micros_per_hour,
    }
}

/// What pods may use of a fresh node, less what it starts with.
fn in_words(template: &Template, observation: &Observation<'_>) -> String {
    let cluster = observation.cluster;
    let taken = template
        .pods
        .iter()
        .fold(plimsoll_model::Resources::default(), |sum, pod| sum.plus(&cluster.specs[pod.spec].requests));
    let free = template.node.allocatable.minus(&taken);
    let mut parts = vec![
        format!("cpu {}", plan::amount("cpu", free.cpu_milli)),
        format!("memory {}", plan::amount("memory", free.memory_bytes)),
        format!("pods {}", free.pods),
    ];
    let scalars = free.scalars.iter().filter(|(_, amount)| *amount > 0);
    parts.extend(scalars.map(|&(name, amount)| format!("{} {amount}", cluster.text(name))));
    parts.join(", ")
}
