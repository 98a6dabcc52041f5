//! Checks what `plimsoll simulate --output json` answers, without the code that made the answer.
//!
//! Every pod that the plan gives a place is put there in a world of the naive oracle, one by one. A pod that does not fit
//! yet is tried again after the others, since some only fit once others are there.

use anyhow::{Context, ensure};
use plimsoll_model::read::Input;
use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Node, SpecId, Symbol, Template};
use plimsoll_scheduling::Gates;
use plimsoll_scheduling::oracle::{Place, Resident, World};
use rustc_hash::FxHashMap;
use serde::Deserialize;

/// The parts of a plan that can be checked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Groups that grow.
    pub scale_up: Vec<Growth>,
    /// Every pod that had no node.
    pub pods: Vec<PodVerdict>,
}

/// A group that grows.
#[derive(Debug, Deserialize)]
pub struct Growth {
    /// The group.
    pub group: String,
    /// Its size before.
    pub from: u32,
    /// Its size after.
    pub to: u32,
    /// Pods that go to the new nodes, `namespace/name`.
    pub pods: Vec<String>,
}

/// What becomes of a pod.
#[derive(Debug, Deserialize)]
pub struct PodVerdict {
    /// `namespace/name`.
    pub pod: String,
    /// `fits-existing`, `fits-upcoming`, `scale-up`, `not-helped` or `ignored`.
    pub outcome: String,
    /// A node, or `GROUP#I`.
    #[serde(default)]
    pub on: Option<String>,
    /// Why it is not helped.
    #[serde(default)]
    pub reasons: Vec<serde_json::Value>,
}

/// What a correct plan comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Pods that a new node helps.
    pub helped: usize,
    /// New nodes asked for.
    pub nodes: u32,
    /// Pods that nothing helps.
    pub left_over: usize,
}

/// Checks a plan against what it was made from.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn check(input: &Input, plan: &Plan) -> anyhow::Result<Summary> {
    let cluster = &input.cluster;
    let mut world = World::new(cluster, Gates::default());
    let mut places: FxHashMap<String, usize> =
        cluster.nodes.iter().enumerate().map(|(at, node)| (cluster.text(node.name).to_owned(), at)).collect();
    for pod in &cluster.pods {
        let at = pod.counts_on().and_then(|node| places.get(cluster.text(node))).copied();
        let place = at.and_then(|at| world.places.get_mut(at));
        place.into_iter().for_each(|place| {
            place.pods.push(Resident { spec: pod.held, terminating: pod.deletion.is_some() });
        });
    }
    let nodes = add_new_nodes(input, plan, &mut world, &mut places)?;
    let specs: FxHashMap<String, SpecId> = cluster.pods.iter().map(|pod| (cluster.pod_name(pod), pod.spec)).collect();
    let mut waiting: Vec<(&PodVerdict, SpecId, usize)> = Vec::new();
    for verdict in &plan.pods {
        let spec = specs.get(&verdict.pod).with_context(|| format!("pod {} is not in the input", verdict.pod))?;
        match (&verdict.on, verdict.outcome.as_str()) {
            (Some(on), "fits-existing" | "fits-upcoming" | "scale-up") => {
                let at = places.get(on).with_context(|| format!("pod {} is on {on}, which is nowhere", verdict.pod))?;
                waiting.push((verdict, *spec, *at));
            }
            (None, "not-helped") => ensure!(!verdict.reasons.is_empty(), "no reason for pod {}", verdict.pod),
            (None, "ignored") => {}
            (on, outcome) => anyhow::bail!("pod {} is {outcome} on {on:?}", verdict.pod),
        }
    }
    place_all(cluster, &mut world, waiting)?;
    Ok(Summary {
        helped: plan.pods.iter().filter(|pod| pod.outcome == "scale-up").count(),
        nodes,
        left_over: plan.pods.iter().filter(|pod| pod.outcome == "not-helped").count(),
    })
}

/// Adds `GROUP#0`, `GROUP#1`, … and checks the sizes. Returns how many nodes were asked for.
fn add_new_nodes(
    input: &Input,
    plan: &Plan,
    world: &mut World<'_>,
    places: &mut FxHashMap<String, usize>,
) -> anyhow::Result<u32> {
    let mut nodes = 0;
    for growth in &plan.scale_up {
        let group = input.node_groups.iter().find(|group| group.name == growth.group);
        let group = group.with_context(|| format!("group {} is not in the input", growth.group))?;
        ensure!(
            growth.to <= group.max_size,
            "{} grows to {}, its greatest size is {}",
            group.name,
            growth.to,
            group.max_size
        );
        ensure!(growth.from < growth.to, "{} grows from {} to {}", group.name, growth.from, growth.to);
        let template = group.template.as_ref();
        let template = template.with_context(|| format!("group {} has no template in the input", group.name))?;
        for number in 0..growth.to - growth.from {
            let at = world.places.len();
            world.places.push(fresh(template, u32::try_from(at)?));
            places.insert(format!("{}#{number}", growth.group), at);
        }
        nodes += growth.to - growth.from;
    }
    Ok(nodes)
}

/// A new node. Its name is like no other.
fn fresh(template: &Template, number: u32) -> Place {
    let name = Symbol::nameless(1_000_000 + number);
    let labels = template.node.labels.with(known::HOSTNAME, name);
    let mut place = Place::new(Node { name, labels, ..template.node.clone() });
    place.pods = template.pods.iter().map(|pod| Resident { spec: pod.spec, terminating: false }).collect();
    place
}

fn place_all(
    cluster: &Cluster,
    world: &mut World<'_>,
    mut waiting: Vec<(&PodVerdict, SpecId, usize)>,
) -> anyhow::Result<()> {
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|&(_, spec, at)| {
            if world.refusal(&cluster.specs[spec], at).is_some() {
                return true;
            }
            let place = world.places.get_mut(at);
            place.into_iter().for_each(|place| place.pods.push(Resident { spec, terminating: false }));
            false
        });
        if waiting.len() == before
            && let Some(&(verdict, spec, at)) = waiting.first()
        {
            let refusal = world.refusal(&cluster.specs[spec], at);
            anyhow::bail!("pod {} does not fit {:?}: {refusal:?}; {before} pods do not", verdict.pod, verdict.on);
        }
    }
    Ok(())
}
