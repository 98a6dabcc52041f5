//! Machines on their way out: named by a request, chosen by the cloud, or lost.

use super::activity::Direction;
use super::create::Origin;
use super::machine::{Machine, Next, State};
use super::{Timing, World};
use crate::fake::Context;
use crate::journal::{Cause, Happening};

impl World {
    /// Begin an activity that removes these machines, with its identifier.
    pub fn scale_in(
        &mut self,
        group: &str,
        machines: &[String],
        recycle: bool,
        cause: Cause,
        origin: Origin,
        context: &mut Context<'_>,
    ) -> String {
        let wanted = u32::try_from(machines.len()).unwrap_or(u32::MAX);
        let id = self.begin(group, Direction::In, wanted, origin, context);
        for machine in machines {
            self.leave(machine, recycle, cause, context);
        }
        if let Some(activity) = self.activities.iter_mut().find(|activity| activity.id == id) {
            activity.members = machines.to_vec();
        }
        self.settle(&id, context);
        id
    }

    /// Send a machine on its way. One that its group may not release leaves the group at once and runs on.
    fn leave(&mut self, id: &str, recycle: bool, cause: Cause, context: &mut Context<'_>) {
        let at = context.now + Timing::draw(self.timing.leave_ms, context.chance);
        let Some(machine) = self.machines.get_mut(id) else { return };
        let group = machine.group.clone();
        if machine.releasable() {
            machine.state = State::Removing;
            machine.kept = recycle;
            machine.due = Some((at, Next::Leave));
            context.event(
                Happening::Leaving,
                &group,
                id,
                cause,
                if recycle { "will be stopped" } else { "will be released" },
            );
        } else {
            machine.group.clear();
            context.event(Happening::Leaving, &group, id, cause, "left the group and runs on");
        }
    }

    /// Take a machine out of its group; it runs on.
    pub fn detach(&mut self, id: &str, cause: Cause, context: &mut Context<'_>) {
        let Some(machine) = self.machines.get_mut(id) else { return };
        let group = std::mem::take(&mut machine.group);
        machine.due = None;
        context.event(Happening::Leaving, &group, id, cause, "left the group and runs on");
    }

    /// A machine ends now.
    pub fn end(&mut self, id: &str, cause: Cause, detail: &str, context: &mut Context<'_>) {
        let Some(mut machine) = self.machines.remove(id) else { return };
        if let Some(vswitch) = self.vswitches.get_mut(&machine.vswitch) {
            vswitch.free += 1;
        }
        machine.gone = Some(context.now);
        context.event(Happening::Gone, &machine.group, id, cause, detail);
        self.past.push(machine);
        let running: Vec<String> = self.running_activities(id);
        for activity in running {
            self.settle(&activity, context);
        }
    }

    /// Whom the cloud removes when it may choose: by the group's removal policies, never the protected or set aside.
    pub fn victims(&self, group: &str, count: u32) -> Vec<String> {
        let Some(found) = self.groups.get(group) else { return vec![] };
        let mut candidates: Vec<&Machine> = self.members(group);
        candidates.retain(|machine| matches!(machine.state, State::InService | State::Pending | State::PendingWait));
        let current = self.choices(found).map(|(source, _)| source).unwrap_or_default();
        for policy in found.removal_policies.iter().rev() {
            match policy.as_str() {
                "NewestInstance" => candidates.sort_by_key(|machine| std::cmp::Reverse(machine.created)),
                "OldestInstance" => candidates.sort_by_key(|machine| machine.created),
                "OldestScalingConfiguration" => candidates.sort_by_key(|machine| machine.source == current),
                _ => {}
            }
        }
        let mut victims = Vec::new();
        let mut weight = 0;
        for machine in candidates {
            if weight >= count {
                break;
            }
            weight += self.weight(machine);
            victims.push(machine.id.clone());
        }
        victims
    }
}
