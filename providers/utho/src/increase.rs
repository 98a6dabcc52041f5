//! More machines: read, judge, write an absolute count once.
//!
//! The API has no idempotency, but an absolute count may be written twice. What must never happen is that a count is
//! written that is lower than one that Utho has accepted already: it would remove machines of its choice.

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Deadline, Increase, PluginError, SizeOutcome};

use crate::api::in_pool;
use crate::cluster::Pool;
use crate::memory::{Memory, Past};
use crate::provider::Utho;
use crate::snapshot::{count, target};

/// What is to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// This count.
    Write(u32),
    /// Nothing: an earlier call with the same key brought this about.
    Done(u32),
}

impl<T: Transport> Utho<T> {
    pub(crate) fn increase(&mut self, call: &Increase) -> Result<SizeOutcome, PluginError> {
        if call.atomic {
            return Err(PluginError::unsupported("an atomic increase").for_group(&call.group));
        }
        let deadline = call.options.deadline();
        let (_, pool) = self.pool(&call.group, deadline)?;
        let mut memory = Memory::of(&self.config.cluster);
        let past = memory.pool(&pool.id);
        past.observe(&pool, self.now_ms());
        match self.step(call, &pool, past)? {
            Step::Done(size) => Ok(SizeOutcome::accepted(call.delta, size)),
            Step::Write(wish) if call.options.dry_run => Ok(unconfirmed(call.delta, wish)),
            Step::Write(wish) => self.raise(call, &pool, wish, memory, deadline),
        }
    }

    fn step(&self, call: &Increase, pool: &Pool, past: &Past) -> Result<Step, PluginError> {
        let (group, count) = (&call.group, count(pool)?);
        if let Some(raise) = past.raise_with_key(&call.options.idempotency_key) {
            return match raise {
                raise if count >= raise.wish => Ok(Step::Done(target(pool, past))),
                // The same absolute count again: it cannot be more, and nobody else has changed it.
                raise if !raise.settled => Ok(Step::Write(raise.wish)),
                _ => Err(PluginError::stale_target(group, call.expected_target, target(pool, past))),
            };
        }
        let current = target(pool, past);
        if current != call.expected_target {
            return Err(PluginError::stale_target(group, call.expected_target, current));
        }
        let max = self.config.limits(pool)?.max;
        let wish = match current.checked_add(call.delta) {
            _ if call.delta == 0 => {
                return Err(PluginError::other("no-increase", "asked to grow by nothing").for_group(group));
            }
            Some(wish) if wish <= max => wish,
            _ => {
                let message = format!("pool {group} may have {max} nodes, and {current} and {} are more", call.delta);
                return Err(PluginError::quota(message).with_code("max-size").for_group(group));
            }
        };
        match past.unsettled_raise() {
            Some(raise) if wish < raise.wish => Err(PluginError::conflict(format!(
                "pool {group} may be on its way to {} nodes, as the answer to an earlier call was lost; {wish} would \
                 remove some of them",
                raise.wish
            ))
            .with_code("increase-unsettled")
            .for_group(group)),
            _ => Ok(Step::Write(wish)),
        }
    }

    /// Writes the count. The wish is kept first, so that a repetition after a crash knows of it.
    fn raise(
        &self,
        call: &Increase,
        pool: &Pool,
        wish: u32,
        mut memory: Memory,
        deadline: Deadline,
    ) -> Result<SizeOutcome, PluginError> {
        let key = call.options.idempotency_key.clone();
        let previous = memory.pool(&pool.id).raising(key, count(pool)?, wish, self.now_ms());
        memory.keep();
        let answer = match self.api.set_count(pool, wish, deadline) {
            // A lost answer is looked up at once. The count may also show later: then the host looks.
            Err(error) if error.outcome_unknown && self.shows(&pool.id, wish, deadline) => Ok(()),
            answer => answer,
        };
        match &answer {
            Ok(()) => memory.pool(&pool.id).raised(),
            Err(error) if error.outcome_unknown => {}
            Err(_) => memory.pool(&pool.id).not_raised(previous),
        }
        memory.keep();
        answer.map(|()| unconfirmed(call.delta, wish)).map_err(|error| in_pool(error, &pool.id))
    }

    fn shows(&self, pool: &str, wish: u32, deadline: Deadline) -> bool {
        let read = self.api.cluster(deadline).ok();
        read.and_then(|cluster| cluster.pools.get(pool)?.count).is_some_and(|count| count >= wish)
    }
}

/// Utho's answer tells no count; the next read shows it.
fn unconfirmed(delta: u32, wish: u32) -> SizeOutcome {
    SizeOutcome { confirmed: false, ..SizeOutcome::accepted(delta, wish) }
}
