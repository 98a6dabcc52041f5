//! `estimate` and `dra-estimate`: how many nodes of one template a list of pods needs.
//!
//! The answer need not be the peer's, only never worse: no fewer pods, and as many pods on no more nodes. Every placement
//! is checked by the oracle, step by step.

use anyhow::{Context, ensure};
use plimsoll_model::convert::{Kind, TemplateObjects};
use plimsoll_model::{Cluster, Symbol, Template};
use plimsoll_scheduling::oracle::{Place, Resident, World};
use plimsoll_scheduling::packing::{Bin, Effort, Limits, Packed, Target, estimate};
use plimsoll_scheduling::{Count, Gates, NodeId, Snapshot};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use crate::Outcome;
use crate::case::{self, Case};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Expect {
    nodes: u32,
    #[serde(default)]
    scheduled: FxHashMap<String, u64>,
    #[serde(default)]
    existing_nodes_counted: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    max_size: u32,
    #[serde(default)]
    target_size: u32,
    template: TemplateParts,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TemplateParts {
    node: Value,
    #[serde(default)]
    pods: Vec<Value>,
    #[serde(default)]
    resource_slices: Vec<Value>,
    #[serde(default)]
    resource_claims: Vec<Value>,
}

#[derive(Debug, Deserialize)]
struct Replicated {
    pod: Value,
    count: u32,
    /// Claims of each of these pods.
    #[serde(default)]
    claims: Vec<Value>,
}

/// What the notes say where the peer gives the devices behind extended resources to any number of pods.
const OVERBOOKED: &str = "does not book the devices of extended resources";

pub(crate) fn run(case: &Case) -> anyhow::Result<Outcome> {
    let mut cluster = case.cluster()?;
    let group = case.node_groups.first().context("no node group")?;
    let group: Group = serde_json::from_value(group.clone()).context("nodeGroups[0]")?;
    let objects = TemplateObjects {
        node: group.template.node,
        pods: group.template.pods,
        resource_slices: group.template.resource_slices,
        resource_claims: group.template.resource_claims,
    };
    let template = cluster.template_from_values("template", objects)?;
    let pending = case.cluster.get("replicatedPods").and_then(Value::as_array).context("no replicatedPods")?;
    let mut specs = Vec::new();
    for entry in pending {
        let entry: Replicated = serde_json::from_value(entry.clone()).context("replicatedPods")?;
        for claim in entry.claims {
            Kind::ResourceClaim.import_value(claim, &mut cluster).context("replicatedPods[].claims")?;
        }
        specs.push((case::pod(&mut cluster, entry.pod).context("replicatedPods")?.spec, entry.count));
    }

    let places: FxHashMap<Symbol, usize> = cluster.nodes.iter().map(|node| node.name).zip(0..).collect();
    let mut world = World::new(&cluster, Gates::default());
    let mut snapshot = Snapshot::new(&cluster);
    for pod in &cluster.pods {
        let Some(&at) = pod.counts_on().and_then(|node| places.get(&node)) else { continue };
        let class = snapshot.class(pod.held);
        snapshot.place(class, NodeId::new(at), 1);
        world.places.get_mut(at).into_iter().for_each(|place| {
            place.pods.push(Resident { spec: pod.held, terminating: pod.deletion.is_some() });
        });
    }
    let left_in_group = group.max_size.saturating_sub(group.target_size);
    let existing = u32::try_from(cluster.nodes.len())?;
    let in_total = case.number("max-nodes-total").filter(|&most| most > 0).map(|most| most.saturating_sub(existing));
    let at_once = case.number("max-nodes-per-scaleup").unwrap_or(1000);
    let most = left_in_group.min(at_once).min(in_total.unwrap_or(u32::MAX));
    let bins = [Bin { shape: snapshot.shape(&template), most, size: group.target_size }];
    let pods: Vec<Count> = specs.iter().map(|&(spec, count)| (snapshot.class(spec), count)).collect();
    let limits = Limits { effort: Effort::Thorough, ..Limits::default() };
    let packed = estimate(&mut snapshot, &bins, &pods, limits);
    // The first estimate builds counters; a second one must leave everything as it is.
    let before = snapshot.digest();
    let again = estimate(&mut snapshot, &bins, &pods, limits);
    ensure!(before == snapshot.digest(), "the estimate changed the snapshot");
    ensure!(packed == again, "two estimates differ");

    let mut differences = Vec::new();
    if let Err(error) = replay(&cluster, &mut world, &template, &packed, &specs, most) {
        differences.push(format!("{error:#}"));
    }
    if case.note.contains(OVERBOOKED) {
        return Ok(match Outcome::of(&differences) {
            Outcome::Passed { .. } => Outcome::passed(Some("checked by the oracle alone, the peer overbooks")),
            failed @ Outcome::Failed { .. } => failed,
        });
    }
    let ours = (packed.pod_count(), packed.node_count());
    let answers = if case.expect_any_of.is_empty() { std::slice::from_ref(&case.expect) } else { &case.expect_any_of };
    let mut better = false;
    for answer in answers {
        let expect: Expect = serde_json::from_value(answer.clone()).context("expect")?;
        let peer = (expect.scheduled.values().sum::<u64>(), expect.nodes.saturating_sub(expect.existing_nodes_counted));
        better |= ours.0 > peer.0 || (ours.0 == peer.0 && ours.1 < peer.1);
        if ours.0 < peer.0 || (ours.0 == peer.0 && ours.1 > peer.1) {
            differences.push(format!(
                "peer places {} pods on {} new nodes, we {} on {} ({:?})",
                peer.0, peer.1, ours.0, ours.1, packed.placed
            ));
        }
    }
    Ok(match Outcome::of(&differences) {
        Outcome::Passed { .. } => Outcome::passed(better.then_some("better than the peer")),
        failed @ Outcome::Failed { .. } => failed,
    })
}

/// Takes all steps in the oracle's world: each pod must fit when it is placed.
fn replay(
    cluster: &Cluster,
    world: &mut World<'_>,
    template: &Template,
    packed: &Packed,
    specs: &[(plimsoll_model::SpecId, u32)],
    most: u32,
) -> anyhow::Result<()> {
    ensure!(packed.node_count() <= most, "{} new nodes, at most {most} are allowed", packed.node_count());
    let existing = cluster.nodes.len();
    let mut placed = vec![0; specs.len()];
    let mut nodes = 0;
    for step in packed.steps() {
        let at = match step.target {
            Target::Existing(node) => node.index(),
            Target::New(node) => {
                if node == nodes {
                    // Far from the numbers that the snapshot gives, so that nothing but being unlike others counts.
                    let name = Symbol::nameless(1_000_000 + node);
                    world.places.push(Place::copy_of(template, name));
                    nodes += 1;
                }
                existing + usize::try_from(node)?
            }
        };
        let &(spec, _) = specs.get(step.entry).context("a step of no entry")?;
        for _ in 0..step.count {
            if let Some(refusal) = world.refusal(&cluster.specs[spec], at) {
                anyhow::bail!("entry {} does not fit {:?}: {refusal:?}", step.entry, step.target);
            }
            let place = world.places.get_mut(at).context("no such place")?;
            place.pods.push(Resident { spec, terminating: false });
        }
        placed.get_mut(step.entry).into_iter().for_each(|placed| *placed += step.count);
    }
    ensure!(nodes == packed.node_count(), "{nodes} nodes have pods, {} were counted", packed.node_count());
    ensure!(placed == packed.placed, "steps place {placed:?}, counted were {:?}", packed.placed);
    let too_many = specs.iter().zip(&placed).any(|((_, wanted), placed)| placed > wanted);
    ensure!(!too_many, "more pods were placed than there are");
    Ok(())
}
