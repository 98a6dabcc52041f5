//! `predicates`: one pod, all nodes, the verdict of all filters on each.

use std::collections::BTreeMap;

use anyhow::Context;
use plimsoll_model::{Cluster, SpecId, Symbol};
use plimsoll_scheduling::oracle::{Resident, World};
use plimsoll_scheduling::{Candidates, Gates, NodeId, Phase, Refusal, Snapshot};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use crate::Outcome;
use crate::case::{self, Case};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Expect {
    nodes: BTreeMap<String, Verdict>,
    any_node: bool,
}

#[derive(Debug, PartialEq, Eq, Default, Deserialize)]
struct Verdict {
    fits: bool,
    #[serde(default)]
    plugin: String,
    #[serde(default)]
    phase: String,
    #[serde(default)]
    reasons: Vec<String>,
    /// The plug-in did not refuse but failed; what it said is not significant.
    #[serde(default)]
    error: String,
}

impl Verdict {
    fn of(refusal: Option<&Refusal>) -> Self {
        // What would only keep the pod from being bound is no refusal by a filter.
        let refusal = refusal.filter(|refusal| refusal.phase != Phase::Reserve);
        let Some(refusal) = refusal else { return Self { fits: true, ..Self::default() } };
        let phase = match refusal.phase {
            Phase::PreFilter => "PreFilter",
            Phase::NodeSet => "PreFilterNodeSet",
            Phase::Filter => "Filter",
            Phase::Reserve => "Reserve",
        };
        let reasons = refusal.reasons.iter().map(ToString::to_string).collect();
        Self { fits: false, plugin: refusal.predicate.to_owned(), phase: phase.to_owned(), reasons, ..Self::default() }
            .sorted()
    }

    /// Whether this is what was expected.
    fn meets(&self, expected: &Self) -> bool {
        match expected.error.as_str() {
            "" => self == expected,
            _ => (self.fits, &self.plugin, &self.phase) == (false, &expected.plugin, &expected.phase),
        }
    }

    fn sorted(mut self) -> Self {
        self.reasons.sort();
        self
    }
}

pub(crate) fn run(case: &Case) -> anyhow::Result<Outcome> {
    compare(case, |expected, found| expected == found)
}

/// Compares all verdicts; `same_any` says whether an answer to the question for any node is as expected.
pub(crate) fn compare(case: &Case, same_any: impl Fn(bool, bool) -> bool) -> anyhow::Result<Outcome> {
    let mut cluster = case.cluster()?;
    let spec = pod_to_place(case, &mut cluster)?;
    let expect: Expect = serde_json::from_value(case.expect.clone()).context("expect")?;
    let places: FxHashMap<Symbol, usize> = cluster.nodes.iter().map(|node| node.name).zip(0..).collect();

    let mut world = World::new(&cluster, Gates::default());
    let mut snapshot = Snapshot::new(&cluster);
    for pod in &cluster.pods {
        let Some(&at) = pod.counts_on().and_then(|node| places.get(&node)) else { continue };
        let terminating = pod.deletion.is_some();
        let class = if terminating { snapshot.terminating_class(pod.held) } else { snapshot.class(pod.held) };
        snapshot.place(class, NodeId::new(at), 1);
        if let Some(place) = world.places.get_mut(at) {
            place.pods.push(Resident { spec: pod.held, terminating });
        }
    }

    let class = snapshot.class(spec);
    let mut differences = Vec::new();
    for (name, expected) in expect.nodes {
        let expected = expected.sorted();
        let node = cluster.symbols.find(&name).and_then(|name| places.get(&name));
        let &at = node.with_context(|| format!("expect.nodes names {name}, which is no node"))?;
        let oracle = Verdict::of(world.refusal(&cluster.specs[spec], at).as_ref());
        let engine = Verdict::of(snapshot.refusal(class, NodeId::new(at)).as_ref());
        let binds = snapshot.fits(class, NodeId::new(at));
        let refused = snapshot.refusal(class, NodeId::new(at));
        let fits = binds || refused.is_some_and(|refusal| refusal.phase == Phase::Reserve);
        if !oracle.meets(&expected) {
            differences.push(format!("{name}: peer {expected:?}, oracle {oracle:?}"));
        }
        if !engine.meets(&expected) || fits != expected.fits {
            differences.push(format!("{name}: peer {expected:?}, engine {engine:?}, fits {fits}"));
        }
    }
    snapshot.set_cordon_policy(true);
    let any_node = !snapshot.pack(class, 1, Candidates::All).is_empty();
    if !same_any(expect.any_node, any_node) {
        differences.push(format!("any node: peer {}, engine {any_node}", expect.any_node));
    }
    Ok(Outcome::of(&differences))
}

/// The pod to place. Its `spec.nodeName` is a wish here, not the place where it runs.
fn pod_to_place(case: &Case, cluster: &mut Cluster) -> anyhow::Result<SpecId> {
    let mut object = case.pod.clone();
    let wish = object.get_mut("spec").and_then(Value::as_object_mut).and_then(|spec| spec.remove("nodeName"));
    let pod = case::pod(cluster, object).context("pod")?;
    // It is known to the cluster, but nowhere.
    cluster.pods.push(plimsoll_model::Pod { node: None, nominated_node: None, ..pod.clone() });
    let Some(wish) = wish else { return Ok(pod.spec) };
    let name = wish.as_str().context("pod.spec.nodeName is no text")?;
    let mut spec = cluster.specs[pod.spec].clone();
    spec.node_name = Some(cluster.symbols.intern(name));
    Ok(cluster.specs.intern(spec))
}
