//! A case as a cluster and a cloud between loops, and one loop over it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use plimsoll_core::cloud::{
    Capabilities, DeleteOutcome, DeleteStatus, Group, GroupId, Instance, InstanceState, NodeMatch, PriceBook,
    SizeOutcome, Snapshot, TemplatePrice, UnitPrice,
};
use plimsoll_core::observation::{CloudView, NodeIndex, prepare};
use plimsoll_core::{Action, Loop, Memory, Observation, Outcome, Plan, Settings, Step};
use plimsoll_model::convert::{Kind, TemplateObjects};
use plimsoll_model::{Cluster, Template, Time};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::case::{Case, TemplateValues};
use crate::{expanders, options};

/// The label of the cloud that the cases were recorded with.
pub(crate) const ACCELERATOR_LABEL: &str = "example.com/accelerator";

/// Prices of a core and a GiB for an hour, in millionths: what a pod costs in the cases.
const CORE_MICROS_PER_HOUR: u64 = 30_000;
const GIB_MICROS_PER_HOUR: u64 = 4_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GroupValues {
    id: String,
    min_size: u32,
    max_size: u32,
    target_size: u32,
    #[serde(default)]
    template: Option<TemplateValues>,
    #[serde(default)]
    nodes: Vec<String>,
    #[serde(default)]
    unregistered_instances: Vec<Value>,
    #[serde(default)]
    scale_up_request: Option<Request>,
    #[serde(default)]
    options: Map<String, Value>,
    #[serde(default)]
    price_per_hour: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Request {
    delta: u32,
    time: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Replicated {
    pod: Value,
    count: u32,
}

#[derive(Debug, Deserialize)]
struct PerNode {
    pod: Value,
    nodes: Vec<String>,
}

/// A cluster, a cloud, settings and memory, between loops.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) settings: Settings,
    pub(crate) snapshot: Snapshot,
    /// The entry of the case that each pod comes from: `namespace/name`.
    pub(crate) entries: Vec<String>,
    templates: BTreeMap<GroupId, Template>,
    prices: Option<PriceBook>,
    memory: Memory,
}

/// What one loop decided, and what it went by.
pub(crate) struct Turn {
    pub(crate) plan: Plan,
    /// Nodes that were asked for, by group.
    pub(crate) increases: BTreeMap<String, u32>,
    /// Templates by group; none where nobody knows what it would create.
    pub(crate) templates: BTreeMap<GroupId, Template>,
    /// Nodes that are not ready yet: what comes to them is counted on copies of their templates.
    pub(crate) starting: BTreeSet<NodeIndex>,
    /// Nodes that are ready.
    pub(crate) ready: usize,
}

impl Scene {
    /// From a case, without any loop having run.
    ///
    /// # Errors
    ///
    /// If something in it cannot be read.
    pub(crate) fn new(case: &Case) -> anyhow::Result<Self> {
        let (cluster, entries) = cluster(case)?;
        let mut scene = Self {
            cluster,
            settings: options::settings(&case.options)?,
            snapshot: Snapshot { groups: vec![], complete: true },
            entries,
            templates: BTreeMap::new(),
            prices: None,
            memory: Memory::default(),
        };
        scene.cluster.symbols.intern(ACCELERATOR_LABEL);
        let mut prices = Vec::new();
        for values in &case.node_groups {
            let values: GroupValues = serde_json::from_value(values.clone()).context("nodeGroups")?;
            let id = GroupId::from(values.id.as_str());
            if let Some(price) = values.price_per_hour {
                let micros_per_hour = micros(price);
                prices.push(TemplatePrice { group: id.clone(), template_key: String::new(), micros_per_hour });
            }
            scene.add_group(id, values)?;
        }
        let unit = |name: &str, micros_per_hour| UnitPrice {
            resource_name: name.to_owned(),
            micros_per_hour,
            selector: vec![],
        };
        scene.prices = (!prices.is_empty()).then(|| PriceBook {
            currency: String::new(),
            valid_until: None,
            templates: prices,
            units: vec![unit("cpu", CORE_MICROS_PER_HOUR), unit("memory", GIB_MICROS_PER_HOUR)],
        });
        Ok(scene)
    }

    fn add_group(&mut self, id: GroupId, values: GroupValues) -> anyhow::Result<()> {
        let mut group = Group::sized(id.clone(), values.min_size, values.max_size, values.target_size);
        group.options = options::of_group(&values.options)?;
        let running = values.nodes.iter().map(|node| instance(&format!("vec://{node}"), InstanceState::Running));
        let creating = values.unregistered_instances.iter().map(|listed| {
            let id = listed.as_str().or_else(|| listed.get("id")?.as_str());
            Ok(instance(id.context("unregisteredInstances: an instance without id")?, InstanceState::Creating))
        });
        group.instances = running.map(Ok).chain(creating).collect::<anyhow::Result<_>>()?;
        if let Some(request) = values.scale_up_request {
            let at = Time::parse(&request.time).with_context(|| format!("scaleUpRequest.time: {}", request.time))?;
            let patience = self.settings.max_node_provision_time;
            self.memory.ledger.assume(&id, request.delta, values.target_size, at, patience);
        }
        if let Some(template) = values.template {
            let objects = TemplateObjects { node: template.node, pods: template.pods, ..TemplateObjects::default() };
            self.templates.insert(id, self.cluster.template_from_values(&values.id, objects)?);
        }
        self.snapshot.groups.push(group);
        Ok(())
    }

    /// The cloud has the sizes that a loop asked for. No machine becomes a node yet.
    pub(crate) fn grant(&mut self, turn: &Turn) {
        for group in &mut self.snapshot.groups {
            group.target_size += turn.increases.get(group.id.as_str()).copied().unwrap_or(0);
        }
    }

    /// One loop, in which everything that is asked for is granted.
    pub(crate) fn turn(&mut self, at: Time) -> Turn {
        let capabilities =
            Capabilities { accelerator_label: Some(ACCELERATOR_LABEL.to_owned()), ..Capabilities::default() };
        let nothing = BTreeMap::new();
        for group in &mut self.snapshot.groups {
            group.observed_at = at;
        }
        let view = CloudView {
            snapshot: &self.snapshot,
            capabilities: &capabilities,
            templates: &nothing,
            fixed_templates: &BTreeMap::new(),
            prices: self.prices.as_ref(),
        };
        // A good node of the group comes before what the cloud says. The first look finds out which groups have one: it
        // is remembered.
        let mut good = BTreeMap::new();
        prepare(at, &mut self.cluster, view, &self.settings, &mut good);
        let mut fixed = self.templates.clone();
        fixed.retain(|group, _| !good.contains_key(group));
        let view = CloudView { fixed_templates: &fixed, ..view };
        let prepared = prepare(at, &mut self.cluster, view, &self.settings, &mut self.memory.templates);
        let observation = Observation::new(prepared, &self.cluster, view, &self.settings);

        let mut increases: BTreeMap<String, u32> = BTreeMap::new();
        let mut turn = Loop::new(&observation, &self.settings, &mut self.memory);
        loop {
            match turn.next() {
                Step::Rank { expander, request } => turn.ranked(expanders::rank(&expander, &request)),
                Step::Act(action) => {
                    if let Action::Increase { group, delta, .. } = &action {
                        *increases.entry(group.to_string()).or_default() += delta;
                    }
                    turn.acted(granted(&action));
                }
                Step::Done => break,
            }
        }
        let plan = turn.into_plan();
        let template = |view: &plimsoll_core::observation::GroupView<'_>| {
            view.template.as_ref().ok().map(|template| (view.cloud.id.clone(), template.clone()))
        };
        Turn {
            plan,
            increases,
            templates: observation.groups.iter().filter_map(template).collect(),
            starting: observation.groups.iter().flat_map(|group| group.starting.iter().copied()).collect(),
            ready: observation.readiness.iter().filter(|state| state.ready).count(),
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "prices of nodes are small and positive")]
fn micros(price: f64) -> u64 {
    (price * 1e6).round() as u64
}

fn instance(id: &str, state: InstanceState) -> Instance {
    Instance::new(id, NodeMatch::ProviderId(id.to_owned()), state)
}

fn granted(action: &Action) -> Outcome {
    let size = |target_size, accepted| {
        Outcome::Size(Ok(SizeOutcome { target_size, accepted, activity: None, confirmed: true, shortfall: None }))
    };
    match action {
        Action::Increase { delta, expected_target, .. } => size(expected_target + delta, *delta),
        Action::DecreaseTarget { delta, expected_target, .. } => size(expected_target.saturating_sub(*delta), *delta),
        Action::Delete { instances, expected_target, .. } => {
            let gone = u32::try_from(instances.len()).unwrap_or(u32::MAX);
            Outcome::Delete(Ok(DeleteOutcome {
                target_size: expected_target.saturating_sub(gone),
                results: instances.iter().map(|id| (id.clone(), DeleteStatus::Accepted)).collect(),
                activity: None,
            }))
        }
        Action::Taint { .. } | Action::Untaint { .. } | Action::Evict { .. } => Outcome::Api(Ok(())),
    }
}

/// The cluster with all its pods, and the entry that each pod comes from.
fn cluster(case: &Case) -> anyhow::Result<(Cluster, Vec<String>)> {
    let mut per_node = Vec::new();
    for entry in list(case, "perNodePods") {
        let entry: PerNode = serde_json::from_value(entry.clone()).context("cluster.perNodePods")?;
        for node in &entry.nodes {
            per_node.push(copy(&entry.pod, node, Some(node))?);
        }
    }
    let mut whole = case.clone();
    let single = list(case, "pods").to_vec();
    whole.cluster.insert("pods".to_owned(), per_node.into_iter().chain(single).collect());
    let mut cluster = whole.cluster()?;
    let mut entries: Vec<String> = cluster.pods.iter().map(|pod| cluster.pod_name(pod)).collect();
    for entry in list(case, "replicatedPods") {
        let entry: Replicated = serde_json::from_value(entry.clone()).context("cluster.replicatedPods")?;
        let name = |field: &str| entry.pod.pointer(field).and_then(Value::as_str).unwrap_or_default();
        let label = format!("{}/{}", name("/metadata/namespace"), name("/metadata/name"));
        for number in 0..entry.count {
            let pod = copy(&entry.pod, &number.to_string(), None)?;
            Kind::Pod.import_value(pod, &mut cluster).context("cluster.replicatedPods")?;
            entries.push(label.clone());
        }
    }
    Ok((cluster, entries))
}

fn list<'c>(case: &'c Case, name: &str) -> &'c [Value] {
    case.cluster.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A pod of an entry that stands for several: its name and uid end in `-SUFFIX`.
fn copy(pod: &Value, suffix: &str, node: Option<&str>) -> anyhow::Result<Value> {
    let mut pod = pod.clone();
    let metadata = pod.get_mut("metadata").and_then(Value::as_object_mut).context("a pod without metadata")?;
    for field in ["name", "uid"] {
        if let Some(text) = metadata.get(field).and_then(Value::as_str) {
            let text = format!("{text}-{suffix}");
            metadata.insert(field.to_owned(), text.into());
        }
    }
    if let Some(node) = node {
        let spec = pod.get_mut("spec").and_then(Value::as_object_mut).context("a pod without spec")?;
        spec.insert("nodeName".to_owned(), node.into());
    }
    Ok(pod)
}
