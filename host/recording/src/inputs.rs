//! What a loop sees, as what differs from the loop before it.

use std::collections::BTreeMap;

use plimsoll_core::cloud::{Capabilities, CloudError, Group, GroupId, NodeTemplate, PriceBook, Snapshot};
use plimsoll_core::{Memory, Settings, priorities};
use plimsoll_model::cluster::{ConfigMap, Specs};
use plimsoll_model::devices::Devices;
use plimsoll_model::labels::Labels;
use plimsoll_model::pod::PodSpec;
use plimsoll_model::storage::Storage;
use plimsoll_model::symbol::Symbols;
use plimsoll_model::workload::{Controller, DaemonSet, PodDisruptionBudget};
use plimsoll_model::{Cluster, Node, Pod, Symbol, Template, Time};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::change::{Changed, Grown};
use crate::recorder::Seen;

/// Templates of a cloud's groups, or why there are none.
pub(crate) type Templates = BTreeMap<GroupId, Result<Vec<NodeTemplate>, CloudError>>;

/// Everything that a loop saw, by value.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) at: Time,
    pub(crate) settings: Settings,
    /// How many of the cluster's symbols are written down: none before the first loop, although every table has some.
    symbols: usize,
    pub(crate) cluster: Cluster,
    pub(crate) snapshot: Snapshot,
    pub(crate) capabilities: Capabilities,
    pub(crate) templates: Templates,
    pub(crate) fixed: BTreeMap<GroupId, Template>,
    pub(crate) prices: Option<PriceBook>,
    /// The memory as the lines of its JSON form.
    pub(crate) memory: Vec<String>,
    pub(crate) remembered: BTreeMap<GroupId, Template>,
}

/// What differs from the loop before. None: nothing.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Inputs {
    at: Time,
    settings: Option<Box<Settings>>,
    symbols: Grown<String>,
    specs: Grown<PodSpec>,
    nodes: Changed<Node>,
    pods: Changed<Pod>,
    daemon_sets: Option<Vec<DaemonSet>>,
    controllers: Changed<Controller>,
    disruption_budgets: Changed<PodDisruptionBudget>,
    namespaces: Option<FxHashMap<Symbol, Labels>>,
    storage: Option<Box<Storage>>,
    devices: Option<Box<Devices>>,
    config_maps: Option<Vec<ConfigMap>>,
    /// Without the times at which they were observed, which follow.
    groups: Changed<Group>,
    observed_at: Vec<Time>,
    complete: bool,
    capabilities: Option<Capabilities>,
    templates: Option<Templates>,
    fixed: Option<BTreeMap<GroupId, Template>>,
    /// A list of one, as none within none could not be told apart.
    prices: Option<[Option<PriceBook>; 1]>,
    memory: Changed<String>,
    remembered: Option<BTreeMap<GroupId, Template>>,
}

fn if_new<T: PartialEq + Clone>(before: &T, after: &T) -> Option<T> {
    (before != after).then(|| after.clone())
}

fn timeless(groups: &[Group]) -> Vec<Group> {
    groups.iter().map(|group| Group { observed_at: Time::default(), ..group.clone() }).collect()
}

/// The memory as lines; those of two loops differ in few.
fn lines(memory: &Memory) -> Vec<String> {
    let text = serde_json::to_string_pretty(memory).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Only what the loop itself looks at: a ConfigMap may hold anything.
fn without_foreign_config_maps(cluster: &Cluster, settings: &Settings) -> Vec<ConfigMap> {
    let is_ours = |map: &&ConfigMap| {
        cluster.text(map.name) == priorities::CONFIG_MAP && cluster.text(map.namespace) == settings.namespace
    };
    cluster.config_maps.iter().filter(is_ours).cloned().collect()
}

impl Inputs {
    /// What differs between the loop before and what is seen now; what was before becomes what is now.
    pub(crate) fn advance(before: &mut State, seen: &Seen<'_>) -> Self {
        let Seen { at, settings, cluster, clouds, memory } = *seen;
        let (old, groups) = (&before.cluster, timeless(&clouds.snapshot.groups));
        let config_maps = without_foreign_config_maps(cluster, settings);
        let memory_lines = lines(memory);
        let prices = clouds.prices.cloned();
        let inputs = Self {
            at,
            settings: if_new(&before.settings, settings).map(Box::new),
            symbols: Grown::between(old.symbols.iter().take(before.symbols), cluster.symbols.iter(), str::to_owned),
            specs: Grown::between(specs(old), specs(cluster), PodSpec::clone),
            nodes: Changed::between(&old.nodes, &cluster.nodes, |node| node.name),
            pods: Changed::between(&old.pods, &cluster.pods, |pod| (&*pod.uid, &*pod.name)),
            daemon_sets: if_new(&old.daemon_sets, &cluster.daemon_sets),
            controllers: Changed::between(&old.controllers, &cluster.controllers, |it| {
                (it.kind, it.namespace, it.name)
            }),
            disruption_budgets: Changed::between(&old.disruption_budgets, &cluster.disruption_budgets, |it| {
                (it.namespace, it.name)
            }),
            namespaces: if_new(&old.namespaces, &cluster.namespaces),
            storage: if_new(&old.storage, &cluster.storage).map(Box::new),
            devices: if_new(&old.devices, &cluster.devices).map(Box::new),
            config_maps: if_new(&old.config_maps, &config_maps),
            groups: Changed::between(&before.snapshot.groups, &groups, |group| group.id.clone()),
            observed_at: clouds.snapshot.groups.iter().map(|group| group.observed_at).collect(),
            complete: clouds.snapshot.complete,
            capabilities: if_new(&before.capabilities, clouds.capabilities),
            templates: if_new(&before.templates, clouds.templates),
            fixed: if_new(&before.fixed, clouds.fixed_templates),
            prices: if_new(&before.prices, &prices).map(|prices| [prices]),
            memory: Changed::between(&before.memory, &memory_lines, String::as_str),
            remembered: if_new(&before.remembered, &memory.templates),
        };
        *before = State {
            at,
            symbols: cluster.symbols.len(),
            settings: settings.clone(),
            cluster: Cluster { config_maps, ..cluster.clone() },
            snapshot: Snapshot { groups, complete: clouds.snapshot.complete },
            capabilities: clouds.capabilities.clone(),
            templates: clouds.templates.clone(),
            fixed: clouds.fixed_templates.clone(),
            prices,
            memory: memory_lines,
            remembered: memory.templates.clone(),
        };
        inputs
    }

    /// What is seen now. None if this does not follow from what was before.
    pub(crate) fn apply(self, before: &mut State) -> Option<()> {
        let old = &mut before.cluster;
        before.at = self.at;
        if let Some(settings) = self.settings {
            before.settings = *settings;
        }
        old.symbols = grown_symbols(&old.symbols, self.symbols)?;
        old.specs = grown_specs(std::mem::take(&mut old.specs), self.specs)?;
        old.nodes = self.nodes.apply(&old.nodes)?;
        old.pods = self.pods.apply(&old.pods)?;
        old.controllers = self.controllers.apply(&old.controllers)?;
        old.disruption_budgets = self.disruption_budgets.apply(&old.disruption_budgets)?;
        put(&mut old.daemon_sets, self.daemon_sets);
        put(&mut old.namespaces, self.namespaces);
        put(&mut old.storage, self.storage.map(|storage| *storage));
        put(&mut old.devices, self.devices.map(|devices| *devices));
        put(&mut old.config_maps, self.config_maps);
        before.snapshot.groups = self.groups.apply(&timeless(&before.snapshot.groups))?;
        before.snapshot.complete = self.complete;
        for (group, observed_at) in before.snapshot.groups.iter_mut().zip(self.observed_at) {
            group.observed_at = observed_at;
        }
        put(&mut before.capabilities, self.capabilities);
        put(&mut before.templates, self.templates);
        put(&mut before.fixed, self.fixed);
        put(&mut before.prices, self.prices.map(|[prices]| prices));
        before.memory = self.memory.apply(&before.memory)?;
        put(&mut before.remembered, self.remembered);
        is_sound(before).then_some(())
    }
}

fn specs(cluster: &Cluster) -> impl Iterator<Item = &PodSpec> {
    cluster.specs.iter().map(|(_, spec)| spec)
}

fn put<T>(place: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *place = new;
    }
}

/// The table with its new texts. None if a text gets another number than it had: the numbers are all that the rest of a
/// recording knows of it.
fn grown_symbols(old: &Symbols, change: Grown<String>) -> Option<Symbols> {
    if change.kept == old.len() && change.new.is_empty() {
        return Some(old.clone());
    }
    let mut symbols = if change.kept == old.len() { old.clone() } else { Symbols::default() };
    let kept = old.iter().take(change.kept);
    let texts = kept.chain(change.new.iter().map(String::as_str)).enumerate();
    let mut count = 0;
    for (position, text) in texts {
        if symbols.intern(text).index() != position {
            return None;
        }
        count = position + 1;
    }
    (count == symbols.len() && count == change.kept + change.new.len()).then_some(symbols)
}

fn grown_specs(old: Specs, change: Grown<PodSpec>) -> Option<Specs> {
    if change.kept > old.len() {
        return None;
    }
    let mut specs = if change.kept == old.len() {
        old
    } else {
        let mut specs = Specs::default();
        for (_, spec) in old.iter().take(change.kept) {
            specs.intern(spec.clone());
        }
        specs
    };
    let count = change.kept + change.new.len();
    for spec in change.new {
        specs.intern(spec);
    }
    (specs.len() == count).then_some(specs)
}

/// Whether every pod's spec is there: the core relies on it.
fn is_sound(state: &State) -> bool {
    let cluster = &state.cluster;
    let count = cluster.specs.len();
    let templates = state.fixed.values().chain(state.remembered.values());
    cluster.pods.iter().all(|pod| pod.spec.index() < count && pod.held.index() < count)
        && cluster.daemon_sets.iter().all(|daemon_set| daemon_set.spec.index() < count)
        && templates.flat_map(|template| &template.pods).all(|pod| pod.spec.index() < count)
        && cluster.devices.is_sound()
}
