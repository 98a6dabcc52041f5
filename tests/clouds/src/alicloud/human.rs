//! What a human does at the console, and what the world does to everyone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::world::{Creation, Group, GroupState, State, World};
use crate::fake::Context;
use crate::journal::{Cause, Happening};

/// Something that happens from outside.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Change a group's sizes.
    Resize {
        /// Group.
        group: String,
        /// Least capacity.
        #[serde(default)]
        min: Option<u32>,
        /// Most capacity.
        #[serde(default)]
        max: Option<u32>,
        /// Desired capacity.
        #[serde(default)]
        desired: Option<u32>,
    },
    /// Release a machine at the ECS console, past the group.
    Release {
        /// Machine.
        machine: String,
    },
    /// The cloud takes a spot machine back.
    Reclaim {
        /// Machine.
        machine: String,
    },
    /// Suspend a process of a group, or let it go on.
    Process {
        /// Group.
        group: String,
        /// `ScaleOut`, `ScaleIn`, …
        process: String,
        /// Whether it is suspended.
        suspended: bool,
    },
    /// The cloud suspends a group, or a human wakes it.
    Suspend {
        /// Group.
        group: String,
        /// Whether it is suspended.
        suspended: bool,
    },
    /// Switch a group on or off.
    State {
        /// Group.
        group: String,
        /// Its state.
        state: GroupState,
    },
    /// Delete a group with all its machines.
    DeleteGroup {
        /// Group.
        group: String,
    },
    /// Hand a machine over to a group.
    Attach {
        /// Group.
        group: String,
        /// The group may release it.
        #[serde(default)]
        entrusted: bool,
        /// It is paid for in advance.
        #[serde(default)]
        prepaid: bool,
    },
    /// Set a machine's state: `protected`, `standby` or `in-service`.
    Mark {
        /// Machine.
        machine: String,
        /// State.
        mark: Mark,
    },
    /// A machine's health.
    Health {
        /// Machine.
        machine: String,
        /// Whether it is well.
        healthy: bool,
    },
    /// Machines in stock; none: without end.
    Stock {
        /// Zone.
        zone: String,
        /// Type.
        instance_type: String,
        /// How many.
        left: Option<u32>,
    },
    /// Machines of a type that the account may have; none: without end.
    Quota {
        /// Type.
        instance_type: String,
        /// How many.
        most: Option<u32>,
    },
    /// Addresses that a subnet has left.
    Addresses {
        /// Subnet.
        vswitch: String,
        /// How many.
        free: u32,
    },
    /// The account's trouble with money, by its code; none: no trouble.
    Billing {
        /// Code.
        code: Option<String>,
    },
    /// Every creation in a group fails with this code and text; none: it works again.
    Break {
        /// Group.
        group: String,
        /// Code and text.
        failure: Option<(String, String)>,
    },
    /// A group's activities never end, or end again.
    Hang {
        /// Group.
        group: String,
        /// Whether they hang.
        hangs: bool,
    },
    /// What a group makes machines from has other tags.
    Tags {
        /// Group.
        group: String,
        /// Tags of the group.
        tags: BTreeMap<String, String>,
    },
}

/// State that a human can give to a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Kept from being chosen.
    Protected,
    /// Set aside.
    Standby,
    /// Works.
    InService,
}

impl World {
    /// Do what an order says.
    ///
    /// # Errors
    /// It names something that does not exist.
    pub fn obey(&mut self, order: &Order, context: &mut Context<'_>) -> Result<(), String> {
        let text = serde_json::to_string(order).unwrap_or_default();
        let subject = self.carry_out(order, context)?;
        context.event(Happening::Changed, &subject, &subject, Cause::Human, text);
        self.run(context);
        Ok(())
    }

    fn carry_out(&mut self, order: &Order, context: &mut Context<'_>) -> Result<String, String> {
        match order {
            Order::Resize { group, min, max, desired } => self.edit(group, context, |group| {
                group.min = min.unwrap_or(group.min);
                group.max = max.unwrap_or(group.max);
                group.desired = desired.or(group.desired);
            }),
            Order::Process { group, process, suspended } => self.edit(group, context, |group| {
                if *suspended {
                    group.suspended_processes.insert(process.clone());
                } else {
                    group.suspended_processes.remove(process);
                }
            }),
            Order::Suspend { group, suspended } => self.edit(group, context, |group| {
                group.suspended = *suspended;
                group.failures = 0;
            }),
            Order::State { group, state } => self.edit(group, context, |group| group.state = *state),
            Order::Break { group, failure } => self.edit(group, context, |group| group.broken.clone_from(failure)),
            Order::Hang { group, hangs } => self.edit(group, context, |group| group.never_ends = *hangs),
            Order::Tags { group, tags } => self.edit(group, context, |group| group.tags.clone_from(tags)),
            Order::DeleteGroup { group } => self.delete_group(group, context),
            Order::Attach { group, entrusted, prepaid } => self.attach(group, *entrusted, *prepaid, context),
            _ => self.change_world(order, context),
        }
    }

    fn change_world(&mut self, order: &Order, context: &mut Context<'_>) -> Result<String, String> {
        match order {
            Order::Release { machine } => self.lose(machine, Cause::Human, "released outside the group", context),
            Order::Reclaim { machine } => self.lose(machine, Cause::Cloud, "spot machine reclaimed", context),
            Order::Mark { machine, mark } => self.touch(machine, |machine| {
                machine.state = match mark {
                    Mark::Protected => State::Protected,
                    Mark::Standby => State::Standby,
                    Mark::InService => State::InService,
                };
            }),
            Order::Health { machine, healthy } => self.touch(machine, |machine| machine.healthy = *healthy),
            Order::Stock { zone, instance_type, left } => {
                Ok(set(&mut self.stock, format!("{zone}/{instance_type}"), *left))
            }
            Order::Quota { instance_type, most } => Ok(set(&mut self.quota, instance_type.clone(), *most)),
            Order::Addresses { vswitch, free } => {
                let found = self.vswitches.get_mut(vswitch).ok_or_else(|| format!("there is no vSwitch {vswitch}"))?;
                found.free = *free;
                Ok(vswitch.clone())
            }
            Order::Billing { code } => {
                self.billing.clone_from(code);
                Ok("account".to_owned())
            }
            _ => Err("this order is about a group".to_owned()),
        }
    }

    fn edit(&mut self, id: &str, context: &Context<'_>, change: impl FnOnce(&mut Group)) -> Result<String, String> {
        let group = self.groups.get_mut(id).ok_or_else(|| format!("there is no scaling group {id}"))?;
        change(group);
        group.modified = context.now;
        Ok(id.to_owned())
    }

    fn touch(&mut self, id: &str, change: impl FnOnce(&mut super::world::Machine)) -> Result<String, String> {
        change(self.machines.get_mut(id).ok_or_else(|| format!("there is no machine {id}"))?);
        Ok(id.to_owned())
    }

    fn lose(&mut self, id: &str, cause: Cause, why: &str, context: &mut Context<'_>) -> Result<String, String> {
        if !self.machines.contains_key(id) {
            return Err(format!("there is no machine {id}"));
        }
        self.end(id, cause, why, context);
        Ok(id.to_owned())
    }

    fn delete_group(&mut self, id: &str, context: &mut Context<'_>) -> Result<String, String> {
        self.groups.remove(id).ok_or_else(|| format!("there is no scaling group {id}"))?;
        let members: Vec<String> = self.members(id).iter().map(|machine| machine.id.clone()).collect();
        for member in members {
            self.end(&member, Cause::Human, "deleted with its group", context);
        }
        self.activities.retain(|activity| activity.group != id);
        Ok(id.to_owned())
    }

    fn attach(
        &mut self,
        id: &str,
        entrusted: bool,
        prepaid: bool,
        context: &mut Context<'_>,
    ) -> Result<String, String> {
        let now = context.now;
        let machine = self.put_running(id, Creation::Attached, now, context);
        let machine = machine.ok_or_else(|| format!("{id} is no scaling group with room for a machine"))?;
        self.edit(id, context, |group| group.desired = group.desired.map(|desired| desired + 1))?;
        self.touch(&machine, |machine| {
            machine.entrusted = entrusted;
            machine.prepaid = prepaid;
        })
    }
}

fn set(map: &mut BTreeMap<String, u32>, key: String, value: Option<u32>) -> String {
    match value {
        Some(value) => map.insert(key.clone(), value),
        None => map.remove(&key),
    };
    key
}
