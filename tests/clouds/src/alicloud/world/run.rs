//! Time: what is due happens, in order.

use std::time::Duration;

use super::activity::{Direction, Status};
use super::create::Origin;
use super::group::GroupState;
use super::machine::{Next, State};
use super::{Timing, World};
use crate::clock::UnixMs;
use crate::fake::Context;
use crate::journal::{Cause, Happening};

/// What is due.
enum Due {
    Create(String),
    Machine(String, Next),
    Reconcile(String),
}

impl World {
    /// Let everything happen that is due until the context's time.
    pub fn run(&mut self, context: &mut Context<'_>) {
        let end = context.now;
        context.now = self.clock;
        self.watch_groups(context);
        while let Some((at, due)) = self.next_due().filter(|(at, _)| *at <= end) {
            context.now = at;
            match due {
                Due::Create(activity) => self.create(&activity, context),
                Due::Machine(id, next) => self.move_on(&id, next, context),
                Due::Reconcile(group) => self.reconcile(&group, context),
            }
            self.watch_groups(context);
        }
        context.now = end;
        self.clock = end;
    }

    fn next_due(&self) -> Option<(UnixMs, Due)> {
        let creations = self.activities.iter().filter_map(|activity| Some((activity.creates_at?, &activity.id)));
        let creation = creations.min().map(|(at, id)| (at, Due::Create(id.clone())));
        let moves = self.machines.values().filter_map(|machine| machine.due.map(|(at, next)| (at, &machine.id, next)));
        let soonest = moves.min_by(|one, other| (one.0, one.1).cmp(&(other.0, other.1)));
        let machine = soonest.map(|(at, id, next)| (at, Due::Machine(id.clone(), next)));
        let groups = self.groups.values().filter_map(|group| Some((group.reconcile_at?, &group.id)));
        let group = groups.min().map(|(at, id)| (at, Due::Reconcile(id.clone())));
        [creation, machine, group].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn move_on(&mut self, id: &str, next: Next, context: &mut Context<'_>) {
        let hook = self.machines.get(id).and_then(|machine| self.groups.get(&machine.group)?.hook_ms);
        let Some(machine) = self.machines.get_mut(id) else { return };
        machine.due = None;
        match next {
            Next::Boot => {
                machine.started = machine.started.or(Some(context.now));
                match hook {
                    Some(hook) => {
                        machine.state = State::PendingWait;
                        machine.due = Some((context.now + Duration::from_millis(hook), Next::HookEnds));
                    }
                    None => machine.state = State::InService,
                }
                let group = machine.group.clone();
                context.event(Happening::Started, &group, id, Cause::Cloud, "");
            }
            Next::HookEnds => machine.state = State::InService,
            Next::Leave if machine.kept => {
                machine.state = State::Stopped;
                machine.started = None;
            }
            Next::Leave => return self.end(id, Cause::Cloud, "released", context),
        }
        for activity in self.running_activities(id) {
            self.settle(&activity, context);
        }
    }

    /// Running activities that a machine belongs to.
    pub(super) fn running_activities(&self, machine: &str) -> Vec<String> {
        let running = self.activities.iter().filter(|activity| activity.status == Status::InProgress);
        running
            .filter(|activity| activity.members.iter().any(|id| id == machine))
            .map(|found| found.id.clone())
            .collect()
    }

    /// End an activity if all its machines have arrived.
    pub(super) fn settle(&mut self, id: &str, context: &mut Context<'_>) {
        let Some(activity) = self.activities.iter().find(|activity| activity.id == id) else { return };
        let moving = activity.members.iter().filter_map(|member| self.machines.get(member));
        let moving = moving.filter(|machine| machine.state.comes() || machine.state.leaves()).count() > 0;
        let never = self.groups.get(&activity.group).is_some_and(|group| group.never_ends);
        if activity.status != Status::InProgress || activity.creates_at.is_some() || moving || never {
            return;
        }
        let status = match (activity.direction, activity.members.is_empty(), activity.failure.is_some()) {
            (Direction::Out, true, true) => Status::Failed,
            (Direction::Out, false, true) | (Direction::In, _, true) => Status::Warning,
            _ => Status::Successful,
        };
        let group = activity.group.clone();
        let total = self.total(&group);
        if let Some(activity) = self.activities.iter_mut().find(|activity| activity.id == id) {
            activity.status = status;
            activity.end = Some(context.now);
            activity.total_after = total;
        }
        context.event(Happening::ActivityEnded, &group, id, Cause::Cloud, status.text());
        self.count_failures(&group, status, context);
    }

    fn count_failures(&mut self, group: &str, status: Status, context: &mut Context<'_>) {
        let Some(found) = self.groups.get_mut(group) else { return };
        found.failures = if status == Status::Failed { found.failures + 1 } else { 0 };
        if !found.suspended && found.suspends_after.is_some_and(|limit| found.failures >= limit) {
            found.suspended = true;
            context.event(Happening::Changed, group, group, Cause::Cloud, "suspended after repeated failures");
        }
    }

    /// What a group should have: its desired capacity, else anything within its bounds.
    fn goal(&self, group: &str) -> Option<(u32, u32)> {
        let found = self.groups.get(group).filter(|group| group.state == GroupState::Active && !group.suspended)?;
        let mut total = self.total(group);
        if found.desired.is_some() {
            total = total.saturating_sub(self.capacity(group, State::Stopped));
        }
        Some((found.desired.unwrap_or(total).clamp(found.min, found.max), total))
    }

    fn off(&self, group: &str) -> bool {
        !self.busy(group) && self.goal(group).is_some_and(|(goal, total)| self.differs(group, goal, total))
    }

    /// A weighted group may have a little more than it should: a machine cannot be cut.
    fn differs(&self, group: &str, goal: u32, total: u32) -> bool {
        let heaviest = self.members(group).iter().map(|machine| self.weight(machine)).max().unwrap_or(1);
        total < goal || total >= goal.saturating_add(heaviest)
    }

    /// Set or clear each group's appointment with itself.
    fn watch_groups(&mut self, context: &mut Context<'_>) {
        let ids: Vec<String> = self.groups.keys().cloned().collect();
        for id in ids {
            let off = self.off(&id);
            let wait = Timing::draw(self.timing.reconcile_ms, context.chance);
            if let Some(group) = self.groups.get_mut(&id) {
                group.reconcile_at = if off { group.reconcile_at.or(Some(context.now + wait)) } else { None };
            }
        }
    }

    fn reconcile(&mut self, group: &str, context: &mut Context<'_>) {
        if let Some(found) = self.groups.get_mut(group) {
            found.reconcile_at = None;
        }
        let Some((goal, total)) = self.goal(group) else { return };
        let stopped =
            |process: &str| self.groups.get(group).is_some_and(|group| group.suspended_processes.contains(process));
        let origin = Origin::cloud("the group compares what it has with what it should have");
        if total < goal && !stopped("ScaleOut") {
            self.scale_out(group, goal - total, origin, context);
        } else if total > goal && !stopped("ScaleIn") {
            let victims = self.victims(group, total - goal);
            if !victims.is_empty() {
                let recycle = self.groups.get(group).is_some_and(|group| group.recycles);
                self.scale_in(group, &victims, recycle, Cause::Chosen, origin, context);
            }
        }
    }
}
