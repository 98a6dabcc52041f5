//! What happens to machines and nodes without anybody asking: for fault tests and what-if questions.

use plimsoll_model::node::ConditionStatus;

use crate::cloud::MachineState;
use crate::world::World;

impl World {
    /// Somebody raises the target of a pool by hand, up to its maximum.
    pub fn raise_by_hand(&mut self, pool: usize, count: u32) {
        if let Some(pool) = self.pools.get_mut(pool) {
            pool.target = pool.target.saturating_add(count).min(pool.max.max(pool.target));
        }
        self.fill(pool);
    }

    /// Somebody deletes the youngest running machine of a pool by hand, and lowers its target.
    pub fn delete_by_hand(&mut self, pool: usize) {
        let Some(id) = self.youngest(pool) else { return };
        if let Some(pool) = self.pools.get_mut(pool) {
            pool.target = pool.target.saturating_sub(1);
        }
        self.begin_deletion(pool, &id);
    }

    /// The youngest running machine of a pool is lost with its node, such as a spot machine that the cloud takes back. The
    /// cloud makes another one.
    pub fn lose_machine(&mut self, pool: usize) {
        let Some(id) = self.youngest(pool) else { return };
        self.remove_machine(pool, &id);
        self.fill(pool);
    }

    /// The kubelet of the youngest node of a pool stops to answer, or answers again.
    pub fn set_ready(&mut self, pool: usize, ready: bool) {
        let Some(id) = self.youngest(pool) else { return };
        self.turn(&id, if ready { ConditionStatus::True } else { ConditionStatus::Unknown });
    }

    fn youngest(&self, pool: usize) -> Option<String> {
        let machines = &self.pools.get(pool)?.machines;
        machines.iter().rev().find(|machine| machine.state == MachineState::Up).map(|machine| machine.id.clone())
    }
}
