//! The provider: what the host calls.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use plimsoll_guest::http::Transport;
use plimsoll_guest::{
    Capabilities, Credential, Deadline, Delete, DeleteOutcome, Diagnostic, Features, GroupTemplates, Increase,
    Manifest, NodeGroup, NodeHint, PluginError, Provider, RefreshAnswer, RefreshRequest, Setup, Severity, SizeOutcome,
    clock,
};

use crate::api::{Api, CREDENTIAL};
use crate::cluster::{Cluster, MachineSize, Pool};
use crate::config::Config;
use crate::memory::Memory;
use crate::snapshot::{CLUSTER_ID, NODE_ID, Painter, label};
use crate::template::Source;

/// Time for calls that come without a deadline, in milliseconds.
const OWN_DEADLINE_MS: u32 = 30_000;
/// Deletions are single requests, one after the other.
const MOST_DELETIONS: u32 = 10;

/// The provider of Utho's node pools, over some transport.
pub struct Utho<T> {
    pub(crate) api: Api<T>,
    pub(crate) config: Config,
    clock: Rc<dyn Fn() -> u64>,
}

impl<T: Transport> Utho<T> {
    /// A provider that reaches its cloud by this transport.
    ///
    /// # Errors
    /// The cloud configuration or a node group is not what it should be.
    pub fn over(transport: T, setup: &Setup) -> Result<Self, PluginError> {
        let config = Config::read(setup)?;
        Ok(Self { api: Api::new(&config, transport, setup)?, config, clock: Rc::new(clock::now_ms) })
    }

    /// The same with another clock, which tells milliseconds since the Unix epoch: for tests on virtual time.
    pub fn with_clock(self, clock: Rc<dyn Fn() -> u64>) -> Self {
        Self { clock, ..self }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        (self.clock)()
    }

    /// Reads the cluster, for a write to a pool.
    ///
    /// # Errors
    /// It could not be read, or the pool is gone or not ours.
    pub(crate) fn pool(&self, id: &str, deadline: Deadline) -> Result<(Cluster, Pool), PluginError> {
        let cluster = self.api.cluster(deadline)?;
        let pool = cluster.pools.get(id).cloned().ok_or_else(|| {
            let message = format!("cluster {} has no pool {id}; somebody removed it", self.config.cluster);
            PluginError::not_found(message).with_code("pool-not-found").for_group(id)
        })?;
        if !self.config.manages(&pool) {
            let message =
                format!("pool {id} is neither named with --nodes nor scaled automatically; nothing is written");
            return Err(PluginError::config(message).with_code("not-managed").for_group(id));
        }
        Ok((cluster, pool))
    }

    /// Nodes of another cluster are a sign that the wrong one is configured.
    fn other_cluster(&self, nodes: &[NodeHint]) -> Option<Diagnostic> {
        let ours = &self.config.cluster;
        let other = nodes.iter().find_map(|node| label(node, CLUSTER_ID).filter(|id| id != ours).map(|id| (node, id)));
        other.map(|(node, id)| {
            let message = format!(
                "node {} belongs to cluster {id} by its label {CLUSTER_ID}, and cluster_id is {ours}; check cluster_id",
                node.name
            );
            Diagnostic::new(Severity::Error, "other-cluster", message)
        })
    }

    /// Sizes of all plans, if a group needs them.
    fn plans(&self, cluster: &Cluster, deadline: Deadline) -> Result<BTreeMap<String, MachineSize>, PluginError> {
        cluster.some_machine.as_ref().map_or_else(|| Ok(BTreeMap::new()), |machine| self.api.plans(machine, deadline))
    }

    fn templates_of(
        &self,
        group: &str,
        cluster: &Cluster,
        plans: &Result<BTreeMap<String, MachineSize>, PluginError>,
    ) -> GroupTemplates {
        let Some(pool) = cluster.pools.get(group) else {
            let message = format!("cluster {} has no pool {group}", self.config.cluster);
            let error = PluginError::not_found(message).with_code("pool-not-found");
            return GroupTemplates::failed(group, error.for_group(group));
        };
        let source = Source { cluster, pool, told: self.config.templates.get(group) };
        let template = match plans {
            Err(error) if source.needs_plans() => Err(error.clone()),
            plans => source.template(plans.as_ref().unwrap_or(&BTreeMap::new())),
        };
        match template {
            Ok(template) => GroupTemplates::of(group, source.version(), vec![template]),
            Err(error) => GroupTemplates::failed(group, error),
        }
    }
}

/// Equal for equal groups, whenever they were read. Partial and whole answers never have the same name.
fn revision(groups: &[NodeGroup], request: &RefreshRequest) -> String {
    let mut hasher = DefaultHasher::new();
    for group in groups {
        format!("{:?}", NodeGroup { observed_at: 0, ..group.clone() }).hash(&mut hasher);
    }
    let part = if request.only_groups.is_empty() { "all" } else { "part" };
    format!("{part}-{:016x}", hasher.finish())
}

impl<T: Transport + Default + 'static> Provider for Utho<T> {
    const MANIFEST: Manifest = Manifest::provider("utho", env!("CARGO_PKG_VERSION"))
        .hosts(&["https://api.utho.com"])
        .credentials(&[Credential::bearer(CREDENTIAL, &["api.utho.com"])])
        .memory_mib(64)
        .call_seconds(60);

    fn configure(setup: Setup) -> Result<Self, PluginError> {
        Self::over(T::default(), &setup)
    }

    fn capabilities(&self) -> Capabilities {
        let features = Features::INCREASE
            | Features::DELETE
            | Features::SCALE_FROM_ZERO
            | Features::DISCOVERY
            | Features::INSTANCE_ERRORS
            | Features::NEEDS_NODE_HINTS;
        Capabilities {
            // No provider id prefixes: nodes without a provider id are recognised as well.
            wanted_node_labels: vec![NODE_ID.to_owned(), CLUSTER_ID.to_owned()],
            max_delete_batch: MOST_DELETIONS,
            ..Capabilities::new("utho", env!("CARGO_PKG_VERSION"), features)
        }
    }

    fn self_test(&mut self) -> Vec<Diagnostic> {
        let request = RefreshRequest { deadline_ms: OWN_DEADLINE_MS, ..RefreshRequest::everything() };
        match self.refresh(request) {
            Err(error) => vec![Diagnostic::from(error)],
            Ok(answer) => {
                let groups = answer.snapshot.map(|snapshot| snapshot.groups).unwrap_or_default();
                let none = groups.is_empty().then(|| {
                    let message =
                        "no pool is named with --nodes, and none has automatic scaling: there is nothing to do";
                    Diagnostic::new(Severity::Warning, "no-groups", message)
                });
                let broken = groups.into_iter().filter_map(|group| group.error).map(Diagnostic::from);
                answer.diagnostics.into_iter().chain(none).chain(broken).collect()
            }
        }
    }

    fn refresh(&mut self, request: RefreshRequest) -> Result<RefreshAnswer, PluginError> {
        let cluster = self.api.cluster(request.deadline())?;
        let now_ms = self.now_ms();
        let mut memory = Memory::of(&self.config.cluster);
        let known = memory.clone();
        let (nodes, findings) = (&request.nodes[..], self.other_cluster(&request.nodes).into_iter().collect());
        let mut painter =
            Painter { config: &self.config, cluster: &cluster, memory: &mut memory, nodes, now_ms, findings };
        let groups = painter.groups();
        let diagnostics = painter.findings;
        memory.retain_pools(|id| cluster.pools.contains_key(id));
        memory.retain_machines(|id| cluster.pools.values().any(|pool| pool.worker(id).is_some()));
        if memory != known {
            memory.keep();
        }
        let groups: Vec<_> = groups.into_iter().filter(|group| request.wants(&group.id)).collect();
        let revision = revision(&groups, &request);
        let whole = request.only_groups.is_empty();
        let answer = if whole && request.previous_revision.as_deref() == Some(&revision) {
            RefreshAnswer::unchanged(revision)
        } else {
            RefreshAnswer::read(revision, groups, whole)
        };
        Ok(RefreshAnswer { observed_at: now_ms, diagnostics, ..answer })
    }

    fn templates(&mut self, groups: Vec<String>) -> Result<Vec<GroupTemplates>, PluginError> {
        let deadline = Deadline::after_ms(OWN_DEADLINE_MS);
        let cluster = self.api.cluster(deadline)?;
        let needs_plans = |id: &String| {
            let told = self.config.templates.get(id);
            cluster.pools.get(id).is_some_and(|pool| Source { cluster: &cluster, pool, told }.needs_plans())
        };
        let plans = if groups.iter().any(needs_plans) { self.plans(&cluster, deadline) } else { Ok(BTreeMap::new()) };
        Ok(groups.iter().map(|group| self.templates_of(group, &cluster, &plans)).collect())
    }

    fn increase_size(&mut self, call: Increase) -> Result<SizeOutcome, PluginError> {
        self.increase(&call)
    }

    fn delete_instances(&mut self, call: Delete) -> Result<DeleteOutcome, PluginError> {
        self.delete(&call)
    }
}

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;
