//! Which nodes are idle, and everything that holds them.

use plimsoll_model::Pod;

use crate::control_loop::Loop;
use crate::drain::Fate;
use crate::observation::NodeIndex;
use crate::plan::{NodeOutcome, NodeReason, NodeVerdict, PodIndex};
use crate::utilization::{self, Ignore};

/// A node that nothing but its pods' next place may hold.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) node: NodeIndex,
    /// Pods that must find another place.
    pub(crate) moving: Vec<PodIndex>,
    /// Pods that must end by themselves first.
    pub(crate) completing: Vec<PodIndex>,
}

/// What the first look at a node says.
pub(crate) enum FirstLook {
    /// It stays, for these reasons.
    Stays(NodeVerdict),
    /// It may go if its pods find a place.
    Candidate(Candidate),
}

impl Loop<'_> {
    /// Looks at one node: is it idle, and what holds it? Every blocker is told, not only the first.
    pub(crate) fn first_look(&self, node: NodeIndex, pods: &[PodIndex]) -> Option<FirstLook> {
        let cluster = self.observation.cluster;
        let object = cluster.nodes.get(node)?;
        let stays = |outcome, reasons| Some(FirstLook::Stays(NodeVerdict { node, outcome, reasons }));
        if object.taint(plimsoll_model::symbol::known::TO_BE_DELETED).is_some()
            || self.memory.removals.contains_key(cluster.text(object.name))
        {
            return stays(NodeOutcome::Removable, vec![NodeReason::BeingDeleted]);
        }
        let view = self.observation.group_of(node);
        let pod = |&index: &PodIndex| cluster.pods.get(index);
        let rules = self.drain_rules();
        let options = view.map(|view| &view.cloud.options);
        let ignore = Ignore {
            daemon_sets: options
                .and_then(|options| options.ignore_daemon_sets_utilization)
                .unwrap_or(self.settings.ignore_daemonsets_utilization),
            mirror_pods: self.settings.ignore_mirror_pods_utilization,
        };
        let accelerators = &self.observation.accelerators;
        let mut reasons = Vec::new();
        let ready = self.observation.readiness.get(node).is_none_or(|state| state.ready);
        if object.scale_down_disabled {
            reasons.push(NodeReason::Disabled);
        }
        if !ready && !self.settings.scale_down_unready_enabled {
            reasons.push(NodeReason::UnreadyDisabled);
        }
        match utilization::of_node(object, pods.iter().filter_map(pod), &rules, accelerators, ignore) {
            Err(error) => reasons.push(NodeReason::Unknown(error)),
            Ok(used) => {
                let threshold = if accelerators.has(object) {
                    let own = options.and_then(|options| options.gpu_utilization_threshold);
                    own.unwrap_or(self.settings.scale_down_gpu_utilization_threshold)
                } else {
                    let own = options.and_then(|options| options.utilization_threshold);
                    own.unwrap_or(self.settings.scale_down_utilization_threshold)
                };
                // A share that is no number is not above anything, as in the peer.
                if used.share > threshold {
                    let (share, of) = (used.share, used.resource);
                    reasons.push(NodeReason::NotUnderutilized { share, threshold, of });
                    return stays(NodeOutcome::Needed, reasons);
                }
            }
        }
        match view {
            None => reasons.push(NodeReason::NotAutoscaled),
            Some(view) => {
                if let Some(error) = &view.cloud.error {
                    reasons.push(NodeReason::Unreadable(error.clone()));
                }
                if view.cloud.target_size <= view.cloud.min_size {
                    reasons.push(NodeReason::GroupMinSize(view.cloud.min_size));
                }
            }
        }
        let membership = self.observation.membership.get(node).copied().flatten();
        let instance = membership.zip(view).and_then(|(m, view)| view.cloud.instances.get(m.instance));
        if let Some(why) = instance.and_then(|instance| instance.protected.clone()) {
            reasons.push(NodeReason::Protected(why));
        }
        if let Some(&twin) = self.observation.twins.get(&node) {
            reasons.push(NodeReason::Twin(twin));
        }
        let mut candidate = Candidate { node, moving: vec![], completing: vec![] };
        for &index in pods {
            let Some(pod): Option<&Pod> = cluster.pods.get(index) else { continue };
            match rules.fate(pod, Some(&self.budgets)) {
                Fate::Ignored | Fate::DaemonSet => {}
                Fate::Moves => candidate.moving.push(index),
                Fate::Completes => candidate.completing.push(index),
                Fate::Blocks(blocker) => reasons.push(NodeReason::Pod(index, blocker)),
            }
        }
        if reasons.is_empty() {
            return Some(FirstLook::Candidate(candidate));
        }
        stays(NodeOutcome::Blocked, reasons)
    }
}
