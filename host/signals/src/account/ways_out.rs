//! What would help pods that nothing helps, as far as it can be told for sure.
//!
//! Only a group of which one thing alone stands in the way says something: what else would be in the way after a change is
//! not known otherwise. A way is what one change does for one of the pods; whether all of them then fit is not said.

use plimsoll_core::observation::{GroupView, Observation};
use plimsoll_core::plan::{GroupReason, NotHelped, amount};
use plimsoll_model::taint::TolerationOperator;
use plimsoll_model::{PodSpec, TaintEffect};
use plimsoll_scheduling::{Reason, Refusal};

/// Most ways that are told.
const MOST: usize = 3;

/// The ways, what needs no change first, then the smallest change.
pub(super) fn of(helpless: &NotHelped, observation: &Observation<'_>) -> Vec<String> {
    let spec = &observation.cluster.specs[helpless.spec];
    let mut ways: Vec<(f64, String)> = helpless
        .reasons
        .iter()
        .filter(|(group, _)| helpless.sole.contains(group))
        .filter_map(|(id, reason)| {
            let group = observation.groups.iter().find(|group| group.cloud.id == *id)?;
            way(group, reason, spec, observation)
        })
        .collect();
    ways.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    ways.dedup_by(|(_, a), (_, b)| a == b);
    ways.into_iter().take(MOST).map(|(_, way)| way).collect()
}

/// A way with its cost: 0 for waiting, up to 1 for giving up part of what is asked for, above that for changes elsewhere.
fn way(
    group: &GroupView<'_>,
    reason: &GroupReason,
    spec: &PodSpec,
    observation: &Observation<'_>,
) -> Option<(f64, String)> {
    let name = &group.cloud.id;
    match reason {
        GroupReason::BackedOff { until, .. } => Some((0.0, format!("wait for {name} until {until}"))),
        GroupReason::NoRoundLeft => Some((0.0, format!("wait for the next loop, in which {name} may be chosen"))),
        GroupReason::Refused(refusal) => refused(name.as_str(), group, refusal, spec, observation),
        GroupReason::AtMaxSize(size) => Some((2.0, format!("raise the greatest size of {name} above {size}"))),
        GroupReason::Limit(limit) => Some((3.0, format!("raise {limit}, so that {name} may grow"))),
        GroupReason::Inactive(state) => Some((4.0, format!("activate {name}, which is {state}"))),
        _ => None,
    }
}

fn refused(
    name: &str,
    group: &GroupView<'_>,
    refusal: &Refusal,
    spec: &PodSpec,
    observation: &Observation<'_>,
) -> Option<(f64, String)> {
    let short = |reason: &Reason| match reason {
        // Nobody gives up most of what it asks for.
        Reason::Insufficient { resource, asked, free, .. } if *free > 0 && free.saturating_mul(2) >= *asked => {
            Some((resource.to_string(), *asked, *free))
        }
        _ => None,
    };
    match refusal.reasons.as_slice() {
        // The scheduler names one taint; there may be more.
        [Reason::UntoleratedTaint { .. }] => {
            let taints = untolerated(group, spec, observation)?;
            Some((1.5, format!("tolerate {} for {name}", taints.join(" and "))))
        }
        reasons => {
            let short: Vec<(String, i64, i64)> = reasons.iter().map(short).collect::<Option<_>>()?;
            let share = |(_, asked, free): &(String, i64, i64)| 1.0 - ratio(*free, *asked);
            let cost = short.iter().map(share).fold(0.0, f64::max);
            let lower = short.iter().map(|(resource, _, free)| format!("{resource} to {}", amount(resource, *free)));
            let lower: Vec<String> = lower.collect();
            (!lower.is_empty()).then(|| (cost, format!("lower {} for {name}", lower.join(" and "))))
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "only orders the ways")]
fn ratio(part: i64, whole: i64) -> f64 {
    part as f64 / whole as f64
}

/// Every taint of a fresh node that a pod does not tolerate. None if it has tolerations that compare numbers: these are not
/// judged here.
fn untolerated(group: &GroupView<'_>, spec: &PodSpec, observation: &Observation<'_>) -> Option<Vec<String>> {
    let compares =
        |operator| matches!(operator, TolerationOperator::Lt | TolerationOperator::Gt | TolerationOperator::Unknown);
    if spec.tolerations.iter().any(|toleration| compares(toleration.operator)) {
        return None;
    }
    let template = group.template.as_ref().ok()?;
    let text = |symbol| observation.cluster.text(symbol);
    let in_the_way = template.node.taints.iter().filter(|taint| {
        taint.effect != TaintEffect::PreferNoSchedule
            && !spec.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    });
    let taints: Vec<String> = in_the_way
        .map(|taint| match text(taint.value) {
            "" => format!("{}:{}", text(taint.key), taint.effect.name()),
            value => format!("{}={value}:{}", text(taint.key), taint.effect.name()),
        })
        .collect();
    (!taints.is_empty()).then_some(taints)
}
