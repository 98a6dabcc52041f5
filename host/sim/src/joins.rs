//! Nodes of machines that another cloud has: they join and leave the cluster as that cloud's snapshot says.
//!
//! With this the in-memory cluster stands in front of a real provider and its cloud, or of a fake of that cloud.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_core::cloud::{Group, GroupId, Instance, InstanceId, InstanceState, NodeMatch, NodeTemplate};
use plimsoll_core::templates::fresh_node;
use plimsoll_model::{Node, Time};

use crate::events::What;
use crate::world::World;

/// How machines become nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manner {
    /// From the moment in which a machine is seen running to its registered node.
    pub joins_after: Duration,
    /// From a registered node to a ready one.
    pub ready_after: Duration,
}

impl Default for Manner {
    fn default() -> Self {
        Self { joins_after: Duration::from_secs(20), ready_after: Duration::from_secs(10) }
    }
}

/// Machines that were seen, and the nodes that they became.
#[derive(Debug, Default)]
pub struct Joins {
    manner: Manner,
    machines: BTreeMap<(GroupId, InstanceId), Machine>,
}

#[derive(Debug)]
struct Machine {
    running_since: Time,
    /// Name of its node.
    node: Option<String>,
}

impl Joins {
    /// Nobody has joined yet.
    pub fn new(manner: Manner) -> Self {
        Self { manner, machines: BTreeMap::new() }
    }

    /// Lets nodes join and leave. A group that could not be read, or not completely, loses no node.
    pub fn follow(
        &mut self,
        world: &mut World,
        groups: &[Group],
        templates: &BTreeMap<GroupId, Result<Vec<NodeTemplate>, plimsoll_core::cloud::CloudError>>,
    ) {
        for group in groups {
            let template = templates.get(&group.id).and_then(|known| known.as_ref().ok()).and_then(|all| all.first());
            for instance in group.instances.iter().filter(|instance| instance.state == InstanceState::Running) {
                self.see(world, &group.id, instance, template);
            }
            if group.error.is_none() && group.instances_complete {
                self.forget_missing(world, group);
            }
        }
    }

    fn see(&mut self, world: &mut World, group: &GroupId, instance: &Instance, template: Option<&NodeTemplate>) {
        let now = world.now();
        let fresh = || Machine { running_since: now, node: None };
        let machine = self.machines.entry((group.clone(), instance.id.clone())).or_insert_with(fresh);
        let due = now >= machine.running_since + self.manner.joins_after;
        let Some(template) = template.filter(|_| due && machine.node.is_none()) else { return };
        let name = node_name(instance);
        match node(world, &name, instance, template) {
            Ok(node) => {
                world.join(node, group.as_str(), self.manner.ready_after);
                machine.node = Some(name);
            }
            Err(why) => world.tell(What::MachineFailed { group: group.to_string(), why }),
        }
    }

    fn forget_missing(&mut self, world: &mut World, group: &Group) {
        let listed = |id: &InstanceId| group.instances.iter().any(|instance| instance.id == *id);
        let gone: Vec<_> = self.machines.keys().filter(|(of, id)| *of == group.id && !listed(id)).cloned().collect();
        for key in gone {
            if let Some(node) = self.machines.remove(&key).and_then(|machine| machine.node) {
                world.leave(&node, group.id.as_str());
            }
        }
    }
}

/// The name that the cloud expects, or one that is made from the machine's.
fn node_name(instance: &Instance) -> String {
    let named = instance.matches.iter().find_map(|known| match known {
        NodeMatch::NodeName(name) => Some(name.clone()),
        NodeMatch::ProviderId(_) | NodeMatch::Label(..) | NodeMatch::InternalIp(_) => None,
    });
    named.unwrap_or_else(|| instance.id.as_str().replace(|c: char| !c.is_ascii_alphanumeric(), "-").to_lowercase())
}

/// A node by which the provider recognises its machine.
fn node(world: &mut World, name: &str, instance: &Instance, template: &NodeTemplate) -> Result<Node, String> {
    let mut template = template.clone();
    template.labels.push(("kubernetes.io/hostname".to_owned(), name.to_owned()));
    for known in &instance.matches {
        if let NodeMatch::Label(key, value) = known {
            template.labels.push((key.clone(), value.clone()));
        }
    }
    template.zone = instance.zone.clone().or(template.zone);
    let mut node = fresh_node(&template, name, &mut world.cluster).map_err(|error| error.to_string())?;
    node.uid = name.into();
    node.created_at = Some(world.now());
    for known in &instance.matches {
        match known {
            NodeMatch::ProviderId(id) if node.provider_id.is_empty() => node.provider_id = id.as_str().into(),
            NodeMatch::InternalIp(address) => node.internal_ip = Some(address.as_str().into()),
            NodeMatch::ProviderId(_) | NodeMatch::NodeName(_) | NodeMatch::Label(..) => {}
        }
    }
    Ok(node)
}
