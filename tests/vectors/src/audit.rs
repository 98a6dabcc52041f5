//! Checks every placement of a plan by the oracle, without the code that made it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use plimsoll_core::plan::{Place as Where, PodOutcome, ScaleDown};
use plimsoll_core::{Plan, Settings};
use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Pod, SpecId, Symbol};
use plimsoll_scheduling::Gates;
use plimsoll_scheduling::oracle::{Place, Resident, World};

use crate::scene::{Scene, Turn};

/// A pod that is to be on a place.
struct Wanted {
    pod: String,
    spec: SpecId,
    at: usize,
}

/// Whether every pod that the plan places fits where it is said to go: when new nodes come one by one as they are needed,
/// or else when all of them are there before the first pod is bound. A pod that does not fit yet is tried again after the
/// others, since some only fit once others are there.
///
/// # Errors
///
/// The first pod that does not fit.
pub(crate) fn growth(scene: &Scene, turn: &Turn) -> anyhow::Result<()> {
    grow(scene, turn, Arrival::OneByOne).or_else(|error| grow(scene, turn, Arrival::First).map_err(|_| error))
}

/// When new nodes come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    OneByOne,
    First,
}

fn grow(scene: &Scene, turn: &Turn, arrival: Arrival) -> anyhow::Result<()> {
    let cluster = &scene.cluster;
    let mut world = populated(cluster, &scene.settings);
    // What is still starting is no place yet: not even one that spreading looks at.
    let mut existing: Vec<Option<usize>> = Vec::new();
    let mut places = Vec::new();
    for (node, place) in std::mem::take(&mut world.places).into_iter().enumerate() {
        let stays = !turn.starting.contains(&node);
        existing.push(stays.then_some(places.len()));
        places.extend(stays.then_some(place));
    }
    world.places = places;
    // Nodes that are on their way come first; the others follow one by one, when they are needed.
    let mut coming: BTreeMap<(String, u32), usize> = BTreeMap::new();
    let mut upcoming = Vec::new();
    let mut new = Vec::new();
    for (group, template) in &turn.templates {
        let before = turn.plan.upcoming.iter().find(|(of, _)| of == group).map_or(0, |&(_, count)| count);
        let asked = turn.increases.get(group.as_str()).copied().unwrap_or(0);
        let key = |number: u32| (group.to_string(), number);
        upcoming.extend((0..before).map(|number| (key(number), template)));
        new.extend((before..before + asked).map(|number| (key(number), template)));
    }
    let first_new = world.places.len() + upcoming.len();
    let mut fresh = Vec::new();
    for (at, (key, template)) in (world.places.len()..).zip(upcoming.into_iter().chain(new)) {
        let place = Place::copy_of(template, Symbol::nameless(1_000_000 + u32::try_from(at)?));
        if at < first_new || arrival == Arrival::First {
            world.places.push(place)
        } else {
            fresh.push(place)
        }
        coming.insert(key, at);
    }
    let mut waiting = Vec::new();
    for (index, outcome) in &turn.plan.pods {
        let pod = cluster.pods.get(*index).context("no such pod")?;
        let place = match outcome {
            // It counts where it is nominated from the start.
            PodOutcome::FitsExisting(_) if pod.nominated_node.is_some() => continue,
            PodOutcome::FitsExisting(place) | PodOutcome::FitsUpcoming(place) | PodOutcome::ScaleUp(place) => place,
            PodOutcome::NotHelped | PodOutcome::Ignored(_) => continue,
        };
        let name = cluster.pod_name(pod);
        let at = match place {
            Where::Node(node) => {
                let known = existing.get(*node).copied().flatten();
                known.with_context(|| format!("{name} is on a node that is not there yet"))?
            }
            Where::New(group, number) => {
                let known = coming.get(&(group.to_string(), *number));
                *known.with_context(|| format!("{name} is on {group}#{number}, which nobody asked for"))?
            }
        };
        waiting.push(Wanted { pod: name, spec: pod.spec, at });
    }
    place_all(cluster, &mut world, waiting, fresh)
}

/// Whether every pod that moves fits where it goes: when nodes go one after the other, or else when all of them are closed
/// at once.
///
/// # Errors
///
/// The first pod that does not fit.
pub(crate) fn removals(scene: &Scene, plan: &Plan, removals: &[ScaleDown]) -> anyhow::Result<()> {
    let one_by_one: Vec<&[ScaleDown]> = removals.chunks(1).collect();
    remove(scene, plan, &one_by_one).or_else(|_| remove(scene, plan, &[removals]))
}

fn remove(scene: &Scene, plan: &Plan, steps: &[&[ScaleDown]]) -> anyhow::Result<()> {
    let cluster = &scene.cluster;
    let mut world = populated(cluster, &scene.settings);
    // Pending pods that found room come first.
    let mut waiting = Vec::new();
    for (index, outcome) in &plan.pods {
        if let (PodOutcome::FitsExisting(Where::Node(node)), Some(pod)) = (outcome, cluster.pods.get(*index))
            && pod.nominated_node.is_none()
        {
            waiting.push(Wanted { pod: cluster.pod_name(pod), spec: pod.spec, at: *node });
        }
    }
    place_all(cluster, &mut world, waiting, vec![])?;
    for step in steps {
        let mut waiting = Vec::new();
        for removal in *step {
            let place = world.places.get_mut(removal.node).context("no such node")?;
            place.closed = true;
            for (index, to) in &removal.moves {
                let pod = cluster.pods.get(*index).context("no such pod")?;
                let resident = resident(pod);
                if let Some(at) = place.pods.iter().position(|other| *other == resident) {
                    place.pods.swap_remove(at);
                }
                match to {
                    Where::Node(at) => waiting.push(Wanted { pod: cluster.pod_name(pod), spec: pod.spec, at: *at }),
                    Where::New(group, number) => anyhow::bail!("a pod moves to {group}#{number}"),
                }
            }
        }
        place_all(cluster, &mut world, waiting, vec![])?;
    }
    Ok(())
}

fn resident(pod: &Pod) -> Resident {
    Resident { spec: pod.held, terminating: pod.deletion.is_some() }
}

/// All nodes with the pods that count there.
fn populated<'c>(cluster: &'c Cluster, settings: &Settings) -> World<'c> {
    let mut world = World::new(cluster, Gates::default());
    for pod in &cluster.pods {
        let expendable = cluster.specs[pod.spec]
            .priority
            .is_some_and(|priority| priority < settings.expendable_pods_priority_cutoff);
        let gone = pod.is_terminal() || (pod.node.is_none() && pod.deletion.is_some());
        let at = pod.counts_on().and_then(|name| cluster.nodes.iter().position(|node| node.name == name));
        if let Some(place) = at.filter(|_| !expendable && !gone).and_then(|at| world.places.get_mut(at)) {
            place.pods.push(resident(pod));
        }
    }
    world
}

/// Places pods in any order in which they fit. When none of those that are left does, a fresh node is added: the first
/// that helps one of them, whose place then is the next.
fn place_all(
    cluster: &Cluster,
    world: &mut World<'_>,
    mut waiting: Vec<Wanted>,
    fresh: Vec<Place>,
) -> anyhow::Result<()> {
    let existing = world.places.len();
    let mut fresh: Vec<(usize, Place)> = (existing..).zip(fresh).collect();
    let mut places: BTreeMap<usize, usize> = (0..existing).map(|at| (at, at)).collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|wanted| {
            let Some(&at) = places.get(&wanted.at) else { return true };
            if world.refusal(&cluster.specs[wanted.spec], at).is_some() {
                return true;
            }
            let place = world.places.get_mut(at);
            place.into_iter().for_each(|place| place.pods.push(Resident { spec: wanted.spec, terminating: false }));
            false
        });
        if waiting.len() < before {
            continue;
        }
        let zones: BTreeSet<Option<Symbol>> =
            world.places.iter().map(|place| place.node.labels.get(known::ZONE)).collect();
        let mut helps = |(number, place): &(usize, Place)| {
            world.places.push(place.clone());
            let last = world.places.len() - 1;
            let mut here = waiting.iter().filter(|wanted| wanted.at == *number);
            let fits = here.any(|wanted| world.refusal(&cluster.specs[wanted.spec], last).is_none());
            world.places.pop();
            fits
        };
        // The first node of a zone changes what even means there: the later it comes, the better.
        let in_old_zone = |(_, place): &(usize, Place)| {
            let zone = place.node.labels.get(known::ZONE);
            zones.contains(&zone)
        };
        let next = fresh
            .iter()
            .position(|place| in_old_zone(place) && helps(place))
            .or_else(|| fresh.iter().position(&mut helps))
            .or((!fresh.is_empty()).then_some(0));
        if let Some((number, place)) = next.map(|next| fresh.remove(next)) {
            places.insert(number, world.places.len());
            world.places.push(place);
        } else if let Some(first) = waiting.first() {
            let refusal = places.get(&first.at).map(|&at| world.refusal(&cluster.specs[first.spec], at));
            anyhow::bail!("pod {} does not fit place {}: {refusal:?}; {before} pods do not", first.pod, first.at);
        }
    }
    Ok(())
}
