//! From the cluster that was read to the groups that the host knows.

use plimsoll_guest::{
    Deletability, Diagnostic, ErrorScope, Instance, InstanceState, KeyValue, NodeGroup, NodeHint, NodeMatch,
    PluginError, Severity,
};

use crate::cluster::{Cluster, Pool, Worker};
use crate::config::{Config, Limits};
use crate::memory::{Memory, Past};
use crate::template::Source;

/// Label that Utho's controller puts on a node: the id of its machine.
pub(crate) const NODE_ID: &str = "node_id";
/// Label that Utho's controller puts on a node: the id of its cluster.
pub(crate) const CLUSTER_ID: &str = "cluster_id";

impl Config {
    /// Whether a pool is a group of ours.
    pub(crate) fn manages(&self, pool: &Pool) -> bool {
        self.named.contains_key(&pool.id) || (self.discovers && pool.auto_scale == Some(true))
    }

    /// Limits of a pool: those of the command line, within those of Utho where it scales the pool; never below one.
    ///
    /// # Errors
    /// The pool has none that can be used.
    pub(crate) fn limits(&self, pool: &Pool) -> Result<Limits, PluginError> {
        let bad = |code: &str, why: String| Err(PluginError::config(why).with_code(code).for_group(&pool.id));
        let id = &pool.id;
        let theirs = pool.max.filter(|&max| max > 0).map(|max| Limits { min: pool.min.unwrap_or(1), max });
        let limits = match (self.named.get(id), theirs) {
            (Some(ours), Some(theirs)) if pool.auto_scale == Some(true) => {
                Limits { min: ours.min.max(theirs.min), max: ours.max.min(theirs.max) }
            }
            (Some(ours), _) => *ours,
            (None, Some(theirs)) => theirs,
            (None, None) => {
                return bad(
                    "no-limits",
                    format!("pool {id} has no readable max_size; set it, or name the pool with --nodes"),
                );
            }
        };
        // With size zero Utho removes the pool.
        let limits = Limits { min: limits.min.max(1), ..limits };
        if limits.min > limits.max {
            let Limits { min, max } = limits;
            return bad(
                "no-limits",
                format!("pool {id} would have the limits {min} to {max}; mend --nodes or the pool"),
            );
        }
        Ok(limits)
    }
}

/// The size that Utho works towards, as far as is known: the count, or a count that was accepted and does not show yet,
/// and at least the machines that are there.
pub(crate) fn target(pool: &Pool, past: &Past) -> u32 {
    let accepted = past.unsettled_raise().filter(|raise| raise.accepted).map_or(0, |raise| raise.wish);
    pool.count.unwrap_or(0).max(pool.staying()).max(accepted)
}

/// The count that writes are computed from.
///
/// # Errors
/// It could not be read.
pub(crate) fn count(pool: &Pool) -> Result<u32, PluginError> {
    pool.count.ok_or_else(|| {
        let message = format!("the count of pool {} cannot be read, so nothing is written to it", pool.id);
        PluginError::transient(message).with_code("unreadable-count").for_group(&pool.id)
    })
}

/// Makes groups of pools, and collects findings on the way.
pub(crate) struct Painter<'a> {
    pub(crate) config: &'a Config,
    pub(crate) cluster: &'a Cluster,
    pub(crate) memory: &'a mut Memory,
    pub(crate) nodes: &'a [NodeHint],
    pub(crate) now_ms: u64,
    pub(crate) findings: Vec<Diagnostic>,
}

impl Painter<'_> {
    /// All groups, by id.
    pub(crate) fn groups(&mut self) -> Vec<NodeGroup> {
        let (cluster, config) = (self.cluster, self.config);
        for pool in cluster.pools.values().filter(|pool| pool.auto_scale_is_odd && !config.named.contains_key(&pool.id))
        {
            self.find(&pool.id, "unreadable-auto-scale", "its auto_scale cannot be read, so it is left alone".into());
        }
        for id in config.named.keys().filter(|id| !cluster.pools.contains_key(*id)) {
            self.find(id, "pool-not-found", "it is named with --nodes, and the cluster has no such pool".into());
        }
        cluster.pools.values().filter(|pool| config.manages(pool)).map(|pool| self.group(pool)).collect()
    }

    fn find(&mut self, pool: &str, code: &str, what: String) {
        let finding = Diagnostic::new(Severity::Warning, code, format!("pool {pool}: {what}"));
        self.findings.push(Diagnostic { scope: ErrorScope::Group(pool.to_owned()), ..finding });
    }

    fn group(&mut self, pool: &Pool) -> NodeGroup {
        let past = self.memory.pool(&pool.id);
        past.observe(pool, self.now_ms);
        let (target, recreates) = (target(pool, past), past.recreates(self.now_ms));
        let limits = self.config.limits(pool);
        let error = limits.as_ref().err().cloned().or_else(|| count(pool).err());
        let limits = limits.unwrap_or(Limits { min: 1, max: target.max(1) });
        let told = self.config.templates.get(&pool.id);
        let template_version = Source { cluster: self.cluster, pool, told }.version();
        let instances = pool.workers.iter().map(|worker| self.instance(pool, worker, recreates)).collect();
        self.oddities(pool, recreates);
        NodeGroup {
            name: pool.label.clone().unwrap_or_else(|| pool.id.clone()),
            instances,
            instances_complete: pool.workers_complete(),
            template_version,
            error,
            observed_at: self.now_ms,
            attributes: sizes(pool),
            ..NodeGroup::sized(&pool.id, limits.min, limits.max, target)
        }
    }

    fn oddities(&mut self, pool: &Pool, recreates: bool) {
        for worker in pool.workers.iter().filter(|worker| worker.state() == InstanceState::Unknown) {
            let words = worker.words.join(", ");
            self.find(&pool.id, "unknown-state", format!("worker {} has an unknown state ({words})", worker.id));
        }
        if !pool.workers_readable {
            self.find(&pool.id, "unreadable-workers", "its list of workers cannot be read".into());
        }
        if pool.nameless > 0 {
            self.find(&pool.id, "nameless-workers", format!("{} workers have no id yet", pool.nameless));
        }
        if recreates {
            self.find(&pool.id, RECREATES, format!("{WHY_RECREATES}; lower its size at Utho to end this"));
        }
    }

    fn instance(&mut self, pool: &Pool, worker: &Worker, recreates: bool) -> Instance {
        let state = worker.state();
        let failed = (state == InstanceState::Failed).then(|| {
            let message = format!("Utho reports the worker as {}", worker.words.join(", "));
            PluginError::other("worker-failed", message).for_instance(&worker.id)
        });
        let told = self.config.templates.get(&pool.id);
        Instance {
            matches: self.matches(worker),
            error: failed,
            created_at: self.memory.first_seen(worker, self.now_ms),
            zone: told.and_then(|told| told.zone.clone()),
            instance_type: worker.plan.clone().or_else(|| pool.plan.clone()),
            deletable: if recreates { Deletability::No(WHY_RECREATES.to_owned()) } else { Deletability::Yes },
            ..Instance::new(&worker.id, state)
        }
    }

    /// A node with a provider id is recognised by that alone. A node without one is recognised by its label, and one
    /// without a label by address or name: labels can be edited by people, and addresses are used again.
    fn matches(&self, worker: &Worker) -> Vec<NodeMatch> {
        let id = &worker.id;
        let mut matches = vec![NodeMatch::ProviderId(format!("utho://{id}")), NodeMatch::ProviderId(id.clone())];
        if self.nodes.is_empty() {
            matches.push(NodeMatch::Label(KeyValue::new(NODE_ID, id)));
        }
        let is_this = |node: &&NodeHint| match label(node, NODE_ID) {
            _ if !node.provider_id.is_empty() => false,
            Some(label) => label == id,
            None if worker.state() == InstanceState::Deleting => false,
            None => {
                (worker.private_ip.is_some() && worker.private_ip == node.internal_ip)
                    || worker.hostname.as_deref() == Some(node.name.as_str())
            }
        };
        matches.extend(self.nodes.iter().filter(is_this).map(|node| NodeMatch::NodeName(node.name.clone())));
        matches
    }
}

/// Code of the finding that deleted machines come back.
pub(crate) const RECREATES: &str = "pool-recreates-deleted-nodes";
/// The same in words.
pub(crate) const WHY_RECREATES: &str = "the pool recreates deleted nodes, so deleting them does not shrink it";

/// Both sizes, when they differ.
fn sizes(pool: &Pool) -> Vec<KeyValue> {
    let staying = pool.staying();
    match pool.count {
        Some(count) if count != staying => {
            vec![KeyValue::new("utho-count", count.to_string()), KeyValue::new("utho-workers", staying.to_string())]
        }
        _ => vec![],
    }
}

/// Value of a label of a node.
pub(crate) fn label<'a>(node: &'a NodeHint, key: &str) -> Option<&'a str> {
    node.labels.iter().find(|label| label.key == key).map(|label| label.value.as_str())
}
