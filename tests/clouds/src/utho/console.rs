//! What a human does at Utho's console, and what the world does to the cluster.

use serde::{Deserialize, Serialize};

use crate::fake::Context;
use crate::journal::{Cause, Happening};

use super::settings::Switches;
use super::world::{Naming, State, World};

/// One such deed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Sets a pool's count; zero removes it.
    Count {
        /// The pool.
        pool: String,
        /// The count.
        count: u32,
    },
    /// Sets a pool's limits.
    Limits {
        /// The pool.
        pool: String,
        /// Least size.
        min: u32,
        /// Greatest size.
        max: u32,
    },
    /// Switches automatic scaling.
    AutoScale {
        /// The pool.
        pool: String,
        /// On or off.
        on: bool,
    },
    /// Gives a pool another label.
    Label {
        /// The pool.
        pool: String,
        /// The label.
        label: String,
    },
    /// Deletes a worker behind the pool's back: it is replaced after a minute.
    DeleteWorker {
        /// The pool.
        pool: String,
        /// The worker.
        worker: String,
    },
    /// A worker fails.
    FailWorker {
        /// The pool.
        pool: String,
        /// The worker.
        worker: String,
    },
    /// So many of the next workers fail.
    Failing {
        /// How many.
        workers: u32,
    },
    /// How many machines of a plan are left.
    Stock {
        /// The plan.
        plan: String,
        /// How many; none: enough.
        left: Option<u32>,
    },
    /// How many workers the account may have.
    Quota {
        /// How many; none: any number.
        workers: Option<u32>,
    },
    /// The account is in arrears, or not.
    Arrears {
        /// Which.
        on: bool,
    },
}

impl World {
    /// # Errors
    /// There is no such pool, worker or plan.
    pub(super) fn obey(
        &mut self,
        order: &Order,
        switches: &Switches,
        named: Naming,
        context: &mut Context<'_>,
    ) -> Result<(), String> {
        match order {
            Order::Count { pool, count } => {
                self.pools.get(pool).ok_or_else(|| format!("there is no pool {pool}"))?;
                if *count == 0 {
                    self.remove_pool(pool, Cause::Human, context);
                } else {
                    self.resize(pool, *count, Cause::Human, named, context);
                }
            }
            Order::Limits { pool, min, max } => {
                let found = self.pools.get_mut(pool).ok_or_else(|| format!("there is no pool {pool}"))?;
                (found.min, found.max) = (*min, *max);
            }
            Order::AutoScale { pool, on } => {
                self.pools.get_mut(pool).ok_or_else(|| format!("there is no pool {pool}"))?.auto_scale = *on;
            }
            Order::Label { pool, label } => {
                self.pools.get_mut(pool).ok_or_else(|| format!("there is no pool {pool}"))?.label.clone_from(label);
            }
            Order::DeleteWorker { pool, worker } => {
                self.worker(pool, worker)?;
                self.delete(pool, worker, Cause::Human, switches, context);
            }
            Order::FailWorker { pool, worker } => {
                *self.worker(pool, worker)? = State::Failed;
                context.event(Happening::Changed, pool, worker, Cause::Cloud, "failed");
            }
            Order::Failing { workers } => self.failing = *workers,
            Order::Stock { plan, left } => {
                self.plans.get_mut(plan).ok_or_else(|| format!("there is no plan {plan}"))?.stock = *left;
            }
            Order::Quota { workers } => self.quota = *workers,
            Order::Arrears { on } => self.in_arrears = *on,
        }
        Ok(())
    }

    fn worker(&mut self, pool: &str, worker: &str) -> Result<&mut State, String> {
        let found = self.pools.get_mut(pool).and_then(|pool| pool.workers.get_mut(worker));
        found.map(|worker| &mut worker.state).ok_or_else(|| format!("pool {pool} has no worker {worker}"))
    }
}
