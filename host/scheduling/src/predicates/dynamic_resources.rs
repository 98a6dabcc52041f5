//! DynamicResources: devices for the claims of pods.

mod booked;
mod shifting;
#[cfg(test)]
mod tests;

use plimsoll_model::{Node, PodSpec};

use super::{Admission, DynamicRule, Predicate, Tracker};
use crate::devices::held::Held;
use crate::devices::pools::Pool;
use crate::devices::problem::{self, Problem, Spot};
use crate::devices::search::{self, Manner, Outcome};
use crate::devices::wants::{self, Wants};
use crate::devices::{ClaimKey, MOST_CONSUMERS};
use crate::facts::Facts;
use crate::oracle::{Place, World};
use crate::refusal::Reason;

/// Claims that have devices can be used on the node; for the others there are devices, together with all pods that have been
/// placed: see [`devices`](crate::devices). An extended resource that the node does not have itself, but that stands for
/// devices of a class, is a claim too.
///
/// Where the peer departs from the scheduler, the scheduler's rule counts: devices that others hold with admin access alone
/// are free, and devices that stand for resources are used up.
pub(crate) struct DynamicResources;

impl Predicate for DynamicResources {
    fn name(&self) -> &'static str {
        "DynamicResources"
    }

    fn admit(&self, facts: &Facts<'_>, pod: &PodSpec) -> Admission {
        if pod.claims.is_empty() {
            return Admission::Anywhere;
        }
        wants::of(facts, pod).map_or_else(Admission::Nowhere, |_| Admission::Anywhere)
    }
}

/// Why a pod cannot use its claims with devices on a node.
fn elsewhere(facts: &Facts<'_>, wants: &Wants, node: &Node) -> Option<Reason> {
    let unusable = |key: &&ClaimKey| {
        let claim = facts.cluster.devices.claims.get(*key).and_then(|claim| claim.allocation.as_ref());
        claim.is_some_and(|allocation| {
            let here = allocation.nodes.as_ref();
            let here = here.is_none_or(|nodes| nodes.matches(&node.labels, Some(node.name), facts.symbols()));
            !here || allocation.devices.iter().any(|device| device.failed)
        })
    };
    let claim = wants.allocated.iter().find(unusable)?;
    Some(Reason::DevicesElsewhere { claim: facts.text(claim.1) })
}

/// How many more consumers a claim may have, if so many pods have it already.
fn vacancies(facts: &Facts<'_>, key: ClaimKey, users: i64) -> u32 {
    let strange = facts.strange_consumers.get(&key).copied().unwrap_or(0);
    let taken = strange.saturating_add(usize::try_from(users).unwrap_or(0));
    u32::try_from(MOST_CONSUMERS.saturating_sub(taken)).unwrap_or(0)
}

/// The claim that keeps a pod from being bound, having no room for another consumer.
fn full(facts: &Facts<'_>, wants: &Wants, users: impl Fn(ClaimKey) -> i64) -> Option<Reason> {
    let made = wants.made.iter().find(|key| {
        let claim = facts.cluster.devices.claims.get(*key);
        claim.is_some_and(|claim| {
            let owner = claim.owner_pod.map(|(_, uid)| uid);
            claim.reserved_for.len() >= MOST_CONSUMERS && !owner.is_some_and(|uid| claim.reserved_for.contains(&uid))
        })
    });
    let claim = made.or_else(|| wants.named.iter().find(|key| vacancies(facts, **key, users(**key)) == 0))?;
    Some(Reason::DeviceClaimFull { claim: facts.text(claim.1) })
}

/// Thoroughly if that can be done, else quickly.
fn solve(facts: &Facts<'_>, problem: &Problem) -> Outcome {
    match search::solve(facts, problem, Manner::Thorough) {
        Outcome::GaveUp => search::solve(facts, problem, Manner::Quick),
        outcome => outcome,
    }
}

/// In the scheduler's words. `here` is the node that is asked about.
fn reason(outcome: Outcome, here: &[Pool]) -> Option<Reason> {
    let is_invalid = |pool: &Pool| pool.standing == crate::devices::pools::Standing::Invalid;
    match outcome {
        Outcome::Possible => None,
        Outcome::Impossible if here.iter().any(is_invalid) => Some(Reason::InvalidPools),
        Outcome::Impossible => Some(Reason::NoDevices),
        Outcome::Faulty(why) => Some(Reason::DeviceFault { why: (*why).into() }),
        Outcome::GaveUp => Some(Reason::DeviceSearchTooLong),
    }
}

impl DynamicRule for DynamicResources {
    fn refuse(&self, world: &World<'_>, pod: &PodSpec, node: &Place) -> Vec<Reason> {
        let facts = &world.facts;
        let Ok(wants) = wants::of(facts, pod) else { return Vec::new() };
        if wants.is_empty() {
            return Vec::new();
        }
        let everyone = || world.places.iter().flat_map(|place| &place.pods).map(|pod| world.spec(pod.spec));
        if wants.picks(&node.node) {
            let mut held = Held::lasting(facts.cluster, &facts.given_back);
            for resident in everyone() {
                for (key, allocation) in wants::held(facts, resident) {
                    held.shift(key, allocation, 1);
                }
            }
            let pools = |place: &Place| facts.inventory.pools(&place.node, place.slices.as_deref(), facts.symbols());
            let residents = |place: &Place| -> Vec<Wants> {
                place.pods.iter().filter_map(|pod| wants::of(facts, world.spec(pod.spec)).ok()).collect()
            };
            let here = (pools(node), residents(node));
            let linked = |of_place: &[Wants]| of_place.iter().any(|wants| problem::is_linked(facts, wants));
            let mut others = Vec::new();
            if problem::is_linked(facts, &wants) || linked(&here.1) {
                for place in world.places.iter().filter(|place| place.node.name != node.node.name) {
                    let of_place = residents(place);
                    if linked(&of_place) {
                        others.push((place, pools(place), of_place));
                    }
                }
            }
            let mut spots: Vec<Spot<'_>> = Vec::new();
            let mut pods: Vec<(&Wants, u32)> = here.1.iter().map(|wants| (wants, 1)).collect();
            pods.push((&wants, 1));
            spots.push(Spot { node: &node.node, pools: &here.0, pods });
            for (place, pools, of_place) in &others {
                let pods = of_place.iter().map(|wants| (wants, 1)).collect();
                spots.push(Spot { node: &place.node, pools, pods });
            }
            let outcome = problem::answer(facts, &held, &spots, |problem| solve(facts, problem));
            if let Some(reason) = reason(outcome, &here.0) {
                return vec![reason];
            }
        }
        if let Some(reason) = elsewhere(facts, &wants, &node.node) {
            return vec![reason];
        }
        let users = |key: ClaimKey| {
            let names_it = |resident: &&PodSpec| wants::named_claims(resident).any(|named| named == key);
            i64::try_from(everyone().filter(names_it).count()).unwrap_or(i64::MAX)
        };
        Vec::from_iter(full(facts, &wants, users))
    }

    fn tracker(&self) -> Box<dyn Tracker> {
        Box::new(booked::Booked::default())
    }
}
