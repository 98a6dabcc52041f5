//! Fewer machines: one request for each, by the id of the snapshot, never by a label of a node.

use std::collections::BTreeMap;

use plimsoll_guest::http::Transport;
use plimsoll_guest::{
    Deadline, Delete, DeleteOutcome, DeleteResult, DeleteStatus, ErrorClass, InstanceState, PluginError,
};

use crate::api::in_pool;
use crate::cluster::{Cluster, Pool};
use crate::memory::Memory;
use crate::provider::Utho;
use crate::snapshot::{RECREATES, WHY_RECREATES, count, target};

/// Deletions of one call, as they go.
struct Batch<'a> {
    cluster: &'a Cluster,
    pool: &'a Pool,
    /// How many more may go.
    spare: u32,
    /// Why the others are not tried.
    halted: Option<String>,
    accepted: Vec<String>,
}

impl<T: Transport> Utho<T> {
    pub(crate) fn delete(&mut self, call: &Delete) -> Result<DeleteOutcome, PluginError> {
        if call.force {
            return Err(PluginError::unsupported("a forced deletion").for_group(&call.group));
        }
        let deadline = call.options.deadline();
        let (cluster, pool) = self.pool(&call.group, deadline)?;
        let mut memory = Memory::of(&self.config.cluster);
        let past = memory.pool(&pool.id);
        let now_ms = self.now_ms();
        past.observe(&pool, now_ms);
        let current = target(&pool, past);
        let (recreates, unsettled) = (past.recreates(now_ms), past.removal_is_unsettled());
        memory.keep();
        if recreates {
            return Err(PluginError::other(RECREATES, WHY_RECREATES).for_group(&pool.id));
        }
        self.check_target(call, &pool, current)?;
        if unsettled {
            let message = format!("pool {} still shows the count from before the last deletion", pool.id);
            return Err(PluginError::conflict(message).with_code("deletion-unsettled").for_group(&pool.id));
        }
        let spare = self.spare(call, &pool)?;
        let mut batch = Batch { cluster: &cluster, pool: &pool, spare, halted: None, accepted: vec![] };
        let mut told = BTreeMap::new();
        for id in &call.ids {
            if !told.contains_key(id) {
                let status = self.delete_one(id, &mut batch, call.options.dry_run, deadline);
                told.insert(id.clone(), status);
            }
        }
        let accepted = std::mem::take(&mut batch.accepted);
        let size =
            if call.options.dry_run { current } else { self.settle(&pool, accepted, current, memory, deadline)? };
        let results = told.into_iter().map(|(id, status)| DeleteResult { id, status }).collect::<Vec<_>>();
        Ok(DeleteOutcome::new(size, in_order(&call.ids, results)))
    }

    /// The pool must not be smaller than the host believes: the host has counted on the machines that stay. Machines of
    /// this call that are gone already explain as many.
    fn check_target(&self, call: &Delete, pool: &Pool, current: u32) -> Result<(), PluginError> {
        let leaving = |id: &&String| pool.worker(id).is_none_or(|worker| worker.state() == InstanceState::Deleting);
        let explained = u32::try_from(call.ids.iter().filter(leaving).count()).unwrap_or(u32::MAX);
        if current.saturating_add(explained) < call.expected_target {
            return Err(PluginError::stale_target(&pool.id, call.expected_target, current));
        }
        Ok(())
    }

    /// How many may go. Either size may lag behind the other, so the smaller one counts.
    fn spare(&self, call: &Delete, pool: &Pool) -> Result<u32, PluginError> {
        let floor = self.config.limits(pool)?.min.max(call.min_size).max(1);
        Ok(count(pool)?.min(pool.staying()).saturating_sub(floor))
    }

    fn delete_one(&self, id: &str, batch: &mut Batch<'_>, dry_run: bool, deadline: Deadline) -> DeleteStatus {
        let Some(worker) = batch.pool.worker(id) else { return not_listed(id, batch) };
        if worker.state() == InstanceState::Deleting {
            return DeleteStatus::Accepted;
        }
        if let Some(why) = &batch.halted {
            return DeleteStatus::Skipped(why.clone());
        }
        if batch.spare == 0 {
            return DeleteStatus::Skipped(format!("pool {} is at its least size", batch.pool.id));
        }
        if dry_run {
            batch.spare -= 1;
            return DeleteStatus::Accepted;
        }
        let answer = self.api.delete(batch.pool, id, deadline);
        if answer.as_ref().err().is_none_or(|error| error.outcome_unknown || error.class == ErrorClass::NotFound) {
            batch.spare -= 1;
        }
        match answer {
            Ok(()) => {
                batch.accepted.push(id.to_owned());
                DeleteStatus::Accepted
            }
            Err(error) if error.class == ErrorClass::NotFound => DeleteStatus::AlreadyGone,
            Err(error) => {
                batch.halted = halts(&error).then(|| format!("not tried after: {}", error.summary()));
                DeleteStatus::Failed(in_pool(error, &batch.pool.id).for_instance_unless_wider(id))
            }
        }
    }

    /// Looks once whether the count fell, and remembers it if it did not. Gives back the size that the pool has now.
    fn settle(
        &self,
        pool: &Pool,
        accepted: Vec<String>,
        current: u32,
        mut memory: Memory,
        deadline: Deadline,
    ) -> Result<u32, PluginError> {
        if accepted.is_empty() {
            return Ok(current);
        }
        let before = count(pool)?;
        let believed = current.saturating_sub(u32::try_from(accepted.len()).unwrap_or(u32::MAX));
        // What cannot be read now is read by the next refresh.
        let read = self.api.cluster(deadline).ok().and_then(|mut cluster| cluster.pools.remove(&pool.id));
        match read.as_ref().and_then(|pool| Some((pool, pool.count?))) {
            Some((now, count)) if count != before => Ok(count.max(now.staying())),
            _ => {
                memory.pool(&pool.id).removed(before, accepted, self.now_ms());
                memory.keep();
                Ok(believed)
            }
        }
    }
}

/// A machine that the pool does not list: gone, somebody else's, or hidden by what could not be read.
fn not_listed(id: &str, batch: &Batch<'_>) -> DeleteStatus {
    let elsewhere = batch.cluster.pools.values().find(|pool| pool.worker(id).is_some());
    let here = &batch.pool.id;
    match elsewhere {
        Some(pool) => {
            let message = format!("machine {id} belongs to pool {}, not to {here}", pool.id);
            DeleteStatus::Failed(PluginError::conflict(message).with_code("other-pool").for_instance(id))
        }
        None if batch.cluster.pools.values().all(Pool::workers_complete) => DeleteStatus::AlreadyGone,
        None => {
            let message = format!("machine {id} is not listed, but not every worker of the cluster could be read");
            DeleteStatus::Failed(PluginError::transient(message).with_code("unreadable-workers").for_instance(id))
        }
    }
}

/// After such a failure the others would fail as well, or do harm.
fn halts(error: &PluginError) -> bool {
    let everywhere = [ErrorClass::Auth, ErrorClass::Billing, ErrorClass::Throttled, ErrorClass::Config];
    everywhere.contains(&error.class) || error.code == "not-sent"
}

/// One result for each id, in the order asked.
fn in_order(ids: &[String], results: Vec<DeleteResult>) -> Vec<DeleteResult> {
    let mut results: BTreeMap<_, _> = results.into_iter().map(|result| (result.id.clone(), result)).collect();
    ids.iter().filter_map(|id| results.remove(id)).collect()
}

trait Narrow {
    fn for_instance_unless_wider(self, id: &str) -> Self;
}

impl Narrow for PluginError {
    /// About the machine, unless it is about the whole provider.
    fn for_instance_unless_wider(self, id: &str) -> Self {
        if halts(&self) { self } else { self.for_instance(id) }
    }
}
