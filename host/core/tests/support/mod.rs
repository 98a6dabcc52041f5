//! Scenes for loop tests: clusters written as YAML, a cloud that says what it is told to say.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_core::cloud::{
    Capabilities, CloudError, DeleteOutcome, DeleteStatus, ErrorClass, ErrorScope, Group, GroupId, Instance,
    InstanceId, InstanceState, NodeMatch, NodeTemplate, SizeOutcome, Snapshot,
};
use plimsoll_core::observation::{CloudView, prepare};
use plimsoll_core::plan::{NodeVerdict, Place, PodOutcome};
use plimsoll_core::ranking::{RankRequest, Ranking, Verdict};
use plimsoll_core::{Action, Loop, Memory, Observation, Outcome, Plan, Settings, Step};
use plimsoll_model::read::Reader;
use plimsoll_model::{Cluster, Template, Time};

/// A cluster, a cloud, settings and memory, between loops.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) snapshot: Snapshot,
    pub(crate) templates: BTreeMap<GroupId, Template>,
    /// What the provider says of the next node of each group.
    pub(crate) provided: BTreeMap<GroupId, Result<Vec<NodeTemplate>, CloudError>>,
    pub(crate) settings: Settings,
    pub(crate) memory: Memory,
    pub(crate) now: Time,
    /// What the cloud says to increases of a group; accepted if it has nothing to say.
    pub(crate) increases: BTreeMap<String, Vec<Result<u32, ErrorClass>>>,
    /// What refused increases are about, if not the provider.
    pub(crate) scope: Option<ErrorScope>,
    /// What the cloud says to deletions, one after the other; accepted if it has nothing to say.
    pub(crate) deletes: Vec<ErrorClass>,
    /// What the cloud says to lower targets; accepted if it has nothing to say.
    pub(crate) decreases: Vec<ErrorClass>,
    /// Actions that were carried out, in words.
    pub(crate) done: Vec<String>,
    /// Those of them that are evictions, with the seconds that each pod has.
    pub(crate) graces: Vec<u64>,
    /// Whether each mark was taken off together with the cordon.
    pub(crate) uncordoned: Vec<bool>,
    /// Questions that were asked, by expander.
    pub(crate) asked: Vec<(String, RankRequest)>,
}

/// What a loop said, with names.
pub(crate) struct Told {
    pub(crate) plan: Plan,
    pub(crate) cluster: Cluster,
}

impl Scene {
    /// From YAML documents: Kubernetes objects and node groups. Waits count as over.
    pub(crate) fn new(yaml: &str) -> Self {
        let mut reader = Reader::default();
        reader.add("scene.yaml", yaml.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let input = reader.finish().unwrap_or_else(|error| panic!("{error}"));
        let now = Time::from_millis(1_800_000_000_000);
        let mut memory = Memory::default();
        let mut snapshot = Snapshot { groups: vec![], complete: true };
        let mut templates = BTreeMap::new();
        for group in input.node_groups {
            let nodes = group.nodes_in(&input.cluster);
            let count = u32::try_from(nodes.len()).unwrap();
            let target = group.target_size.unwrap_or(count);
            let id = GroupId::from(group.name.as_str());
            let mut made = Group::sized(id.clone(), group.min_size, group.max_size, target);
            made.observed_at = now;
            made.options.priority = group.priority;
            made.instances =
                nodes.iter().map(|&node| instance(input.cluster.text(input.cluster.nodes[node].name))).collect();
            memory.ledger.assume(&id, target.saturating_sub(count), target, now, Duration::from_secs(900));
            if let Some(template) = group.template {
                templates.insert(id, template);
            }
            snapshot.groups.push(made);
        }
        let settings = Settings { waits_elapsed: true, ..Settings::default() };
        Self {
            cluster: input.cluster,
            snapshot,
            templates,
            provided: BTreeMap::new(),
            settings,
            memory,
            now,
            increases: BTreeMap::new(),
            scope: None,
            deletes: vec![],
            decreases: vec![],
            done: vec![],
            graces: vec![],
            uncordoned: vec![],
            asked: vec![],
        }
    }

    /// One loop.
    pub(crate) fn turn(&mut self) -> Told {
        self.turn_with(least_waste)
    }

    /// One loop, with an expander of the test's own.
    pub(crate) fn turn_with(&mut self, rank: impl Fn(&str, &RankRequest) -> Ranking) -> Told {
        let mut capabilities = Capabilities::default();
        capabilities.features.decrease_target = true;
        let view = CloudView {
            snapshot: &self.snapshot,
            capabilities: &capabilities,
            templates: &self.provided,
            fixed_templates: &self.templates,
            prices: None,
        };
        let prepared = prepare(self.now, &mut self.cluster, view, &self.settings, &mut self.memory.templates);
        let cluster = self.cluster.clone();
        let observation = Observation::new(prepared, &cluster, view, &self.settings);
        let mut turn = Loop::new(&observation, &self.settings, &mut self.memory);
        loop {
            match turn.next() {
                Step::Rank { expander, request } => {
                    let ranking = rank(&expander, &request);
                    self.asked.push((expander, request));
                    turn.ranked(ranking);
                }
                Step::Act(action) => {
                    let mut outcome = carry_out(&action, &mut self.increases, &mut self.deletes, &mut self.decreases);
                    if let (Outcome::Size(Err(error)), Some(scope)) = (&mut outcome, &self.scope) {
                        error.scope = scope.clone();
                    }
                    self.done.push(words(&action, &cluster));
                    match &action {
                        Action::Evict { pods, .. } => {
                            self.graces.extend(pods.iter().map(|eviction| eviction.grace.as_secs()));
                        }
                        Action::Untaint { uncordon, .. } => self.uncordoned.push(*uncordon),
                        _ => {}
                    }
                    turn.acted(outcome);
                }
                Step::Done => break,
            }
        }
        let plan = turn.into_plan();
        Told { plan, cluster }
    }
}

fn instance(node: &str) -> Instance {
    Instance::new(node, by_name(node), InstanceState::Running)
}

/// How a machine is known as a node: by the node's name.
pub(crate) fn by_name(node: &str) -> NodeMatch {
    NodeMatch::NodeName(node.to_owned())
}

/// The default expander's rule, natively: the less waste of cpu and memory, the better.
pub(crate) fn least_waste(_: &str, request: &RankRequest) -> Ranking {
    let verdict = |(index, option): (u32, &plimsoll_core::ranking::GrowthOption)| {
        let nodes = f64::from(option.node_count);
        let waste = |all: u64, wanted: u64| (all as f64 * nodes - wanted as f64) / (all as f64 * nodes).max(1.0);
        let capacity = &option.shape.capacity;
        let wanted = &option.usage.wanted;
        let score = -waste(capacity.cpu_milli, wanted.cpu_milli) - waste(capacity.memory_bytes, wanted.memory_bytes);
        Verdict { index, score, reason: None }
    };
    Ok((0..).zip(&request.options).map(verdict).collect())
}

pub(crate) fn error(class: ErrorClass, outcome_unknown: bool) -> CloudError {
    CloudError {
        class,
        scope: ErrorScope::Provider,
        code: "Test".into(),
        message: format!("{class:?}"),
        retry_after: None,
        outcome_unknown,
        request_id: None,
    }
}

fn carry_out(
    action: &Action,
    increases: &mut BTreeMap<String, Vec<Result<u32, ErrorClass>>>,
    deletes: &mut Vec<ErrorClass>,
    decreases: &mut Vec<ErrorClass>,
) -> Outcome {
    match action {
        Action::Increase { group, delta, expected_target, .. } => {
            let says = increases.get_mut(group.as_str()).filter(|says| !says.is_empty()).map(|says| says.remove(0));
            Outcome::Size(match says.unwrap_or(Ok(*delta)) {
                Ok(accepted) => Ok(SizeOutcome {
                    target_size: expected_target + accepted,
                    accepted,
                    activity: None,
                    confirmed: true,
                    shortfall: (accepted < *delta).then(|| error(ErrorClass::OutOfResources, false)),
                }),
                Err(class) => Err(error(class, class == ErrorClass::Transient)),
            })
        }
        Action::DecreaseTarget { .. } if !decreases.is_empty() => Outcome::Size(Err(error(decreases.remove(0), false))),
        Action::DecreaseTarget { delta, expected_target, .. } => Outcome::Size(Ok(SizeOutcome {
            target_size: expected_target - delta,
            accepted: *delta,
            activity: None,
            confirmed: true,
            shortfall: None,
        })),
        Action::Delete { .. } if !deletes.is_empty() => Outcome::Delete(Err(error(deletes.remove(0), false))),
        Action::Delete { instances, expected_target, .. } => Outcome::Delete(Ok(DeleteOutcome {
            target_size: expected_target - u32::try_from(instances.len()).unwrap(),
            results: instances.iter().map(|id| (id.clone(), DeleteStatus::Accepted)).collect(),
            activity: None,
        })),
        Action::Taint { .. } | Action::Untaint { .. } | Action::Evict { .. } => Outcome::Api(Ok(())),
    }
}

fn words(action: &Action, cluster: &Cluster) -> String {
    let node = |index: &usize| cluster.text(cluster.nodes[*index].name).to_owned();
    match action {
        Action::Increase { group, delta, .. } => format!("increase {group} +{delta}"),
        Action::DecreaseTarget { group, delta, .. } => format!("decrease {group} -{delta}"),
        Action::Delete { instances, .. } => {
            let names: Vec<&str> = instances.iter().map(InstanceId::as_str).collect();
            format!("delete {}", names.join(" "))
        }
        Action::Taint { node: index, .. } => format!("taint {}", node(index)),
        Action::Untaint { node: index, .. } => format!("untaint {}", node(index)),
        Action::Evict { pods, .. } => {
            let names: Vec<String> =
                pods.iter().map(|eviction| cluster.pod_name(&cluster.pods[eviction.pod])).collect();
            format!("evict {}", names.join(" "))
        }
    }
}

impl Told {
    /// Nodes asked for, by group.
    pub(crate) fn growth(&self) -> BTreeMap<String, u32> {
        self.plan.scale_up.iter().map(|growth| (growth.group.to_string(), growth.to - growth.from)).collect()
    }

    /// Nodes that go, sorted.
    pub(crate) fn going(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.plan.scale_down.iter().map(|removal| Place::Node(removal.node).name(&self.cluster)).collect();
        names.sort();
        names
    }

    /// What becomes of a pod: a word, and where.
    pub(crate) fn pod(&self, name: &str) -> String {
        let found = self.plan.pods.iter().find(|(pod, _)| self.cluster.pod_name(&self.cluster.pods[*pod]) == name);
        let Some((_, outcome)) = found else { return "not told of".to_owned() };
        match outcome {
            PodOutcome::FitsExisting(place) => format!("existing {}", place.name(&self.cluster)),
            PodOutcome::FitsUpcoming(place) => format!("upcoming {}", place.name(&self.cluster)),
            PodOutcome::ScaleUp(place) => format!("new {}", place.name(&self.cluster)),
            PodOutcome::NotHelped => "not helped".to_owned(),
            PodOutcome::Ignored(reason) => format!("ignored: {reason}"),
        }
    }

    /// Why a pod is not helped, by group.
    pub(crate) fn reasons(&self, name: &str) -> BTreeMap<String, String> {
        let pod = |&pod: &usize| self.cluster.pod_name(&self.cluster.pods[pod]) == name;
        let class = self.plan.not_helped.iter().find(|class| class.pods.iter().any(pod)).expect("the pod is helped");
        class.reasons.iter().map(|(group, reason)| (group.to_string(), reason.to_string())).collect()
    }

    /// How many pods became what.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for (_, outcome) in &self.plan.pods {
            let word = match outcome {
                PodOutcome::FitsExisting(_) => "existing",
                PodOutcome::FitsUpcoming(_) => "upcoming",
                PodOutcome::ScaleUp(_) => "new",
                PodOutcome::NotHelped => "not helped",
                PodOutcome::Ignored(_) => "ignored",
            };
            *counts.entry(word).or_default() += 1;
        }
        counts
    }

    /// What is said of a node: outcome and codes.
    pub(crate) fn node(&self, name: &str) -> String {
        let verdict = self.verdict(name);
        let mut text = verdict.outcome.name().to_owned();
        for reason in &verdict.reasons {
            text = format!("{text} {}", reason.code());
        }
        text
    }

    /// All reasons of a node, in words.
    pub(crate) fn why(&self, name: &str) -> Vec<String> {
        self.verdict(name).reasons.iter().map(|reason| reason.describe(&self.cluster)).collect()
    }

    fn verdict(&self, name: &str) -> &NodeVerdict {
        let node = |verdict: &&NodeVerdict| Place::Node(verdict.node).name(&self.cluster) == name;
        self.plan.nodes.iter().find(node).unwrap_or_else(|| panic!("nothing is said of node {name}"))
    }
}

/// A node as YAML. `extra` is more of its spec or metadata, in flow style, such as `labels: {a: b}`.
pub(crate) fn node(name: &str, cpu: &str, memory: &str, labels: &str) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}, {labels}}}}}, \
         status: {{allocatable: {{cpu: '{cpu}', memory: {memory}, pods: '110'}}, \
         capacity: {{cpu: '{cpu}', memory: {memory}, pods: '110'}}, \
         conditions: [{{type: Ready, status: 'True', lastTransitionTime: '2020-01-01T00:00:00Z'}}]}}}}\n"
    )
}

/// A group of such nodes without any.
pub(crate) fn empty_group(name: &str, max: u32, cpu: &str, memory: &str, labels: &str) -> String {
    format!(
        "---\n{{apiVersion: plimsoll.dev/v1alpha1, kind: NodeGroup, metadata: {{name: {name}}}, spec: {{minSize: 0, \
         maxSize: {max}, template: {{metadata: {{labels: {{{labels}}}}}, status: {{allocatable: {{cpu: '{cpu}', \
         memory: {memory}, pods: '110'}}, capacity: {{cpu: '{cpu}', memory: {memory}, pods: '110'}}}}}}}}}}\n"
    )
}

/// A group that owns nodes by name.
pub(crate) fn group_of(name: &str, min: u32, max: u32, nodes: &[&str]) -> String {
    format!(
        "---\n{{apiVersion: plimsoll.dev/v1alpha1, kind: NodeGroup, metadata: {{name: {name}}}, \
         spec: {{minSize: {min}, maxSize: {max}, nodes: [{}]}}}}\n",
        nodes.join(", ")
    )
}

/// A pod of a ReplicaSet, pending or on a node.
pub(crate) fn pod(name: &str, cpu: &str, on: Option<&str>, more: &str) -> String {
    let status = match on {
        Some(_) => "{phase: Running}".to_owned(),
        None => {
            "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}".to_owned()
        }
    };
    let place = on.map_or(String::new(), |node| format!("nodeName: {node}, "));
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{namespace: shop, name: {name}, \
         ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}}]}}, \
         spec: {{{place}{more}containers: [{{name: c, resources: {{requests: {{cpu: '{cpu}', memory: 100Mi}}}}}}]}}, status: {status}}}\n"
    )
}

/// The ReplicaSet that those pods belong to.
pub(crate) const WEB: &str =
    "---\n{apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: shop, name: web}, spec: {replicas: 3}}\n";

/// Several documents as one.
pub(crate) fn all(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect()
}
