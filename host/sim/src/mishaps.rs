//! What happens to machines and nodes without anybody asking: for fault tests and what-if questions.

use plimsoll_model::node::ConditionStatus;

use crate::cloud::MachineState;
use crate::world::{World, twin_of};

impl World {
    /// Somebody raises the target of a pool by hand, up to its maximum.
    pub fn raise_by_hand(&mut self, pool: usize, count: u32) {
        if let Some(pool) = self.pools.get_mut(pool) {
            pool.target = pool.target.saturating_add(count).min(pool.max.max(pool.target));
        }
        self.fill(pool);
    }

    /// Somebody deletes the youngest running machine of a pool by hand, and lowers its target. Returns its name.
    pub fn delete_by_hand(&mut self, pool: usize) -> Option<String> {
        let id = self.youngest(pool)?;
        if let Some(pool) = self.pools.get_mut(pool) {
            pool.target = pool.target.saturating_sub(1);
        }
        self.begin_deletion(pool, &id);
        Some(id)
    }

    /// The youngest running machine of a pool is lost with its node, such as a spot machine that the cloud takes back. The
    /// cloud makes another one. Returns the name of the one that is lost.
    pub fn lose_machine(&mut self, pool: usize) -> Option<String> {
        let id = self.youngest(pool)?;
        self.remove_machine(pool, &id);
        self.fill(pool);
        Some(id)
    }

    /// The kubelet of the youngest node of a pool stops to answer, or answers again.
    pub fn set_ready(&mut self, pool: usize, ready: bool) {
        let Some(id) = self.youngest(pool) else { return };
        self.turn(&id, if ready { ConditionStatus::True } else { ConditionStatus::Unknown });
    }

    /// The youngest running machine of a pool registers a second time, under another name. Returns the name of its second
    /// node.
    pub fn register_again(&mut self, pool: usize) -> Option<String> {
        let id = self.youngest(pool)?;
        let (group, template) = self.pools.get(pool).map(|pool| (pool.id.clone(), pool.template.clone()))?;
        let is_node = self.cluster.symbols.find(&id).is_some_and(|id| self.cluster.nodes.iter().any(|n| n.name == id));
        let name = twin_of(&id);
        let twin = self.cluster.symbols.intern(&name);
        if !is_node || self.cluster.nodes.iter().any(|node| node.name == twin) {
            return None;
        }
        let mut node = self.node(&name, &template).ok()?;
        node.provider_id = format!("sim://{id}").into();
        self.join(node, &group, std::time::Duration::from_secs(10));
        Some(name)
    }

    /// Somebody marks the node of the youngest machine of a pool as being deleted, and forgets it.
    pub fn mark_by_hand(&mut self, pool: usize) {
        if let Some(id) = self.youngest(pool) {
            // A machine that is no node cannot be marked.
            let _ = self.taint(&id, false);
        }
    }

    fn youngest(&self, pool: usize) -> Option<String> {
        let machines = &self.pools.get(pool)?.machines;
        machines.iter().rev().find(|machine| machine.state == MachineState::Up).map(|machine| machine.id.clone())
    }
}
