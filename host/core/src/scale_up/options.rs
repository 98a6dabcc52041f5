//! Options: how far each group alone would help what is pending.

use plimsoll_model::Resources;
use plimsoll_scheduling::packing::{Bin, Limits, Packed, Packer, Target};
use plimsoll_scheduling::{ClassId, NodeId};
use std::time::Duration;

use super::question;
use crate::control_loop::{Loop, Turn};
use crate::observation::GroupIndex;
use crate::plan::{Because, GroupReason};
use crate::ranking::{GrowthOption, PodClass, RankRequest};

/// One way to grow: nodes of one group, with the pods that they would take.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    /// The group.
    pub(crate) group: GroupIndex,
    bin: Bin,
    /// What was wanted: position among the pending classes.
    entries: Vec<usize>,
    /// Its new nodes with their pods, by position in `entries`.
    packed: Packed,
}

impl Growth {
    fn nodes(&self) -> u32 {
        self.packed.node_count()
    }
}

/// How long an expander may think.
const PATIENCE: Duration = Duration::from_secs(5);

impl Loop<'_> {
    /// Every group that could help something, with what it would help.
    pub(crate) fn options(&mut self) -> Vec<Growth> {
        let (mut entries, mut wanted) = (Vec::new(), Vec::new());
        for (index, pending) in self.pending.iter().enumerate() {
            let left = pending.left();
            if left > 0 && (pending.scarce || self.turn == Turn::Everybody) {
                entries.push(index);
                wanted.push((pending.class, left));
            }
        }
        if wanted.is_empty() {
            return vec![];
        }
        let mut growths = Vec::new();
        let mut packer = Packer::default();
        for group in 0..self.groups.len() {
            let Some(room) = self.room(group) else { continue };
            let Some(state) = self.groups.get(group) else { continue };
            let Some(shape) = state.shape else { continue };
            let bin = Bin { shape, most: room, size: state.target };
            let packed = packer.estimate(&mut self.snapshot, &[bin], &wanted, Limits::default());
            if packed.node_count() > 0 && packed.pod_count() > 0 {
                growths.push(Growth { group, bin, entries: entries.clone(), packed });
            }
        }
        growths
    }

    /// How many nodes a group may get now; none if it is closed. Closes it when a limit is reached.
    fn room(&mut self, group: GroupIndex) -> Option<u32> {
        let view = self.view(group)?;
        let planned = {
            let state = self.groups.get(group)?;
            if state.closed.is_some() {
                return None;
            }
            u32::try_from(state.new.len()).unwrap_or(u32::MAX).saturating_sub(state.asked)
        };
        let state = self.groups.get(group)?;
        let to_max = view.cloud.max_size.saturating_sub(state.target.saturating_add(planned));
        let (to_limit, limit) = self.limits.room(&state.weight);
        let room = to_max.min(to_limit).min(self.settings.max_nodes_per_scaleup);
        if room > 0 {
            return Some(room);
        }
        let reason = match limit {
            _ if to_max == 0 => GroupReason::AtMaxSize(view.cloud.max_size),
            Some(limit) => GroupReason::Limit(limit),
            None => GroupReason::AtMaxSize(view.cloud.max_size),
        };
        if let Some(state) = self.groups.get_mut(group) {
            state.closed = Some(reason);
        }
        None
    }

    /// What the expanders are asked.
    pub(crate) fn question(&self, growths: &[Growth]) -> RankRequest {
        let cluster = self.observation.cluster;
        let label = |pending: &super::super::control_loop::Pending| {
            let namespace = cluster.text(cluster.specs[pending.spec].namespace);
            let pod = pending.pods.first().and_then(|&index| cluster.pods.get(index));
            let owner = pod.and_then(|pod| pod.owner).map(|owner| cluster.text(owner.name));
            let name = owner.or_else(|| pod.map(|pod| &*pod.name)).unwrap_or_default();
            format!("{namespace}/{name}")
        };
        let pod_classes = self.pending.iter().map(|pending| PodClass {
            label: label(pending),
            pending: pending.left(),
            requests: question::amounts(&cluster.specs[pending.spec].requests, cluster),
            priority: cluster.specs[pending.spec].priority.unwrap_or(0),
        });
        RankRequest {
            // Answers refer to options by position, so that all are described or none.
            options: growths.iter().map(|growth| self.describe(growth)).collect::<Option<_>>().unwrap_or_default(),
            pod_classes: pod_classes.collect(),
            cluster_nodes: u32::try_from(self.limits.nodes()).unwrap_or(0),
            seed: self.settings.seed,
            deadline: PATIENCE,
        }
    }

    fn describe(&self, growth: &Growth) -> Option<GrowthOption> {
        let cluster = self.observation.cluster;
        let view = self.view(growth.group)?;
        let template = view.template.as_ref().ok()?;
        let mut pods: Vec<(u32, u32)> = Vec::new();
        let mut wanted = Resources::default();
        for (&entry, &count) in growth.entries.iter().zip(&growth.packed.placed) {
            let Some(pending) = self.pending.get(entry).filter(|_| count > 0) else { continue };
            pods.push((u32::try_from(entry).unwrap_or(u32::MAX), count));
            wanted = wanted.plus(&cluster.specs[pending.spec].requests.times(i64::from(count)));
        }
        let requests = template.pods.iter().map(|pod| &cluster.specs[pod.spec].requests);
        let taken = requests.fold(Resources::default(), |sum, requests| sum.plus(requests));
        let state = self.groups.get(growth.group)?;
        let nodes = growth.nodes();
        Some(GrowthOption {
            group: view.cloud.id.clone(),
            node_count: nodes,
            target_size: state.target,
            max_size: view.cloud.max_size,
            pods,
            shape: question::shape(&template.node, view, self.observation),
            usage: question::usage(&wanted, &template.node, &taken, nodes, cluster),
            cost: question::cost(&wanted, nodes, view, self.observation),
            priority: match &self.priorities {
                Some(priorities) => priorities.of(view.cloud.id.as_str()),
                None => view.cloud.options.priority,
            },
            exists: true,
            similar: vec![],
        })
    }

    /// Puts the chosen option's nodes and pods into the snapshot.
    pub(crate) fn grow(&mut self, growth: Growth, because: Because) {
        let pods: Vec<(ClassId, u32)> = growth
            .entries
            .iter()
            .filter_map(|&entry| self.pending.get(entry))
            .map(|pending| (pending.class, pending.left()))
            .collect();
        let nodes = growth.packed.apply(&mut self.snapshot, &[growth.bin], &pods);
        for step in growth.packed.steps() {
            let node = match step.target {
                Target::Existing(node) => Some(node),
                Target::New(index) => nodes.get(usize::try_from(index).unwrap_or(usize::MAX)).copied(),
            };
            let pending = growth.entries.get(step.entry).and_then(|&entry| self.pending.get_mut(entry));
            if let Some((node, pending)) = node.zip(pending) {
                pending.placed.push((node, step.count));
            }
        }
        if let Some(state) = self.groups.get_mut(growth.group) {
            self.limits.count(&state.weight, i64::try_from(nodes.len()).unwrap_or(i64::MAX));
            state.new.extend(nodes);
        }
        self.decisions.push((growth.group, because));
    }

    /// Gives places to the next pods of a class.
    pub(crate) fn assign(&mut self, class: ClassId, node: NodeId, count: u32) {
        let mut left = count;
        for pending in self.pending.iter_mut().filter(|pending| pending.class == class) {
            let taken = pending.left().min(left);
            if taken > 0 {
                pending.placed.push((node, taken));
                left -= taken;
            }
        }
    }
}
