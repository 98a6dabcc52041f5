//! Options: how far each group alone would help what is pending.

use plimsoll_model::Resources;
use plimsoll_scheduling::packing::{Aim, Bin, Limits, Packed, Packer, Target};
use plimsoll_scheduling::{ClassId, NodeId};
use std::time::Duration;

use super::question;
use crate::control_loop::{Loop, Turn};
use crate::observation::GroupIndex;
use crate::plan::{Because, GroupReason};
use crate::ranking::{GrowthOption, PodClass, RankRequest, SimilarGroup};

/// One way to grow: nodes of one group, or of several like ones, with the pods that they would take.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    /// The group that is told to the expanders.
    pub(crate) group: GroupIndex,
    /// The groups that grow: it, and those that share the growth.
    bins: Vec<(GroupIndex, Bin)>,
    /// What was wanted: position among the pending classes.
    entries: Vec<usize>,
    /// Its new nodes with their pods, by position in `entries`.
    packed: Packed,
    /// Nodes that come along without pods, because its group has all of its nodes or none.
    empty: u32,
}

impl Growth {
    fn nodes(&self) -> u32 {
        self.packed.node_count().saturating_add(self.empty)
    }

    /// Groups that really grow, with how many nodes each.
    fn growing(&self) -> impl Iterator<Item = (GroupIndex, u32)> {
        let nodes = self.bins.iter().enumerate().map(|(at, &(group, _))| (group, self.packed.nodes_of(at)));
        nodes.filter(|&(_, nodes)| nodes > 0)
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
            if left > 0 && (pending.scarce || pending.first || self.turn == Turn::Everybody) {
                entries.push(index);
                wanted.push((pending.class, left));
            }
        }
        if wanted.is_empty() {
            return vec![];
        }
        let mut growths = Vec::new();
        let mut packer = Packer::default();
        let together = self.grow_together(&wanted);
        // Like groups come to the same packing, whichever of them is the first.
        let mut packings: Vec<(Vec<GroupIndex>, Packed)> = Vec::new();
        for group in 0..self.groups.len() {
            let Some(bins) = self.bins(group, together) else { continue };
            if self.shares_afterwards() {
                let packed = self.share(&bins, &wanted, &mut packer);
                growths.extend(self.growth(group, bins, &entries, packed));
                continue;
            }
            let mut set: Vec<GroupIndex> = bins.iter().map(|&(group, _)| group).collect();
            set.sort_unstable();
            let known = packings.iter().position(|(known, _)| *known == set);
            let (bins, packed) = match known.and_then(|at| packings.get(at)) {
                // Bins in the order in which they were packed.
                Some((set, packed)) => (in_order(&bins, set), packed.clone()),
                None => {
                    let bins = in_order(&bins, &set);
                    let shapes: Vec<Bin> = bins.iter().map(|&(_, bin)| bin).collect();
                    let limits = Limits { nodes: self.most_nodes(&set), aim: self.aim(), ..Limits::default() };
                    let packed = packer.estimate(&mut self.snapshot, &shapes, &wanted, limits);
                    if set.len() > 1 {
                        packings.push((set, packed.clone()));
                    }
                    (bins, packed)
                }
            };
            growths.extend(self.growth(group, bins, &entries, packed));
        }
        growths
    }

    /// What options are packed for. Where one is chosen and no more, it is to be the one that the peer would choose.
    pub(crate) fn aim(&self) -> Aim {
        if self.goes_step_by_step() { Aim::PeersPods } else { Aim::MostPods }
    }

    /// An option from its packing; none if that helps nobody.
    fn growth(
        &self,
        group: GroupIndex,
        bins: Vec<(GroupIndex, Bin)>,
        entries: &[usize],
        packed: Packed,
    ) -> Option<Growth> {
        if packed.node_count() == 0 || packed.pod_count() == 0 {
            return None;
        }
        let empty = self.nodes_along(group, packed.node_count());
        Some(Growth { group, bins, entries: entries.to_vec(), packed, empty })
    }

    /// Whether like groups grow together: if the operator wants it, or if where pods may go depends on where others are,
    /// as with a spread over zones. One group alone would take them all into its zone.
    fn grow_together(&mut self, wanted: &[(ClassId, u32)]) -> bool {
        self.settings.balance_similar_node_groups
            || (!self.goes_step_by_step() && wanted.iter().any(|&(class, _)| self.snapshot.is_shifting(class)))
    }

    /// A group that may grow, and those like it that may grow too; none if it may not.
    fn bins(&mut self, group: GroupIndex, together: bool) -> Option<Vec<(GroupIndex, Bin)>> {
        let mut bins = vec![(group, self.bin(group)?)];
        let template = self.view(group)?.template.as_ref().ok()?;
        if !together || self.is_all_or_nothing(group) {
            return Some(bins);
        }
        for other in (0..self.groups.len()).filter(|&other| other != group) {
            let like = self.view(other).and_then(|view| view.template.as_ref().ok());
            let likeness = if self.goes_step_by_step() { &self.settings.likeness } else { &self.likeness };
            let like = like.filter(|like| likeness.holds(template, like, self.observation.cluster));
            if like.is_some()
                && !self.is_all_or_nothing(other)
                && (!self.shares_afterwards() || self.takes_the_same(group, other))
                && let Some(bin) = self.bin(other)
            {
                bins.push((other, bin));
            }
        }
        Some(bins)
    }

    pub(crate) fn is_all_or_nothing(&self, group: GroupIndex) -> bool {
        self.view(group).is_some_and(|view| view.cloud.options.zero_or_max == Some(true))
    }

    /// How many nodes come with so many others, because the group has all of its nodes or none.
    fn nodes_along(&self, group: GroupIndex, nodes: u32) -> u32 {
        if !self.is_all_or_nothing(group) {
            return 0;
        }
        self.to_max_size(group).unwrap_or(0).saturating_sub(nodes)
    }

    /// Nodes from what a group has and will have to its greatest size.
    fn to_max_size(&self, group: GroupIndex) -> Option<u32> {
        let (view, state) = (self.view(group)?, self.groups.get(group)?);
        let planned = u32::try_from(state.new.len()).unwrap_or(u32::MAX).saturating_sub(state.asked);
        Some(view.cloud.max_size.saturating_sub(state.target.saturating_add(planned)))
    }

    fn bin(&mut self, group: GroupIndex) -> Option<Bin> {
        let most = self.room(group)?;
        let state = self.groups.get(group)?;
        Some(Bin { shape: state.shape?, most, size: state.target })
    }

    /// How many nodes several groups may get together; none if only each one's own limit counts.
    pub(crate) fn most_nodes(&self, groups: &[GroupIndex]) -> Option<u32> {
        if groups.len() < 2 {
            return None;
        }
        let limits =
            groups.iter().filter_map(|&group| self.groups.get(group)).map(|state| self.limits.room(&state.weight).0);
        Some(limits.min().unwrap_or(0).min(self.settings.max_nodes_per_scaleup))
    }

    /// How many nodes a group may get now; none if it is closed. Closes it when a limit is reached.
    pub(crate) fn room(&mut self, group: GroupIndex) -> Option<u32> {
        let view = self.view(group)?;
        let state = self.groups.get(group).filter(|state| state.closed.is_none())?;
        let to_max = self.to_max_size(group)?;
        let (to_limit, limit) = self.limits.room(&state.weight);
        let room = to_max.min(to_limit).min(self.settings.max_nodes_per_scaleup);
        if room > 0 && (to_limit >= to_max || !self.is_all_or_nothing(group)) {
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
        let (mut wanted, mut used) = (Resources::default(), Resources::default());
        for (&entry, &count) in growth.entries.iter().zip(&growth.packed.placed) {
            let Some(pending) = self.pending.get(entry).filter(|_| count > 0) else { continue };
            pods.push((u32::try_from(entry).unwrap_or(u32::MAX), count));
            let spec = &cluster.specs[pending.spec];
            wanted = wanted.plus(&question::asked(spec).times(i64::from(count)));
            used = used.plus(&spec.requests.times(i64::from(count)));
        }
        let requests = template.pods.iter().map(|pod| &cluster.specs[pod.spec].requests);
        let taken = requests.fold(Resources::default(), |sum, requests| sum.plus(requests));
        let state = self.groups.get(growth.group)?;
        let nodes = growth.nodes();
        let shared = growth.growing().filter(|&(group, _)| group != growth.group);
        let similar = shared.filter_map(|(group, share)| {
            let (view, state) = (self.view(group)?, self.groups.get(group)?);
            Some(SimilarGroup {
                group: view.cloud.id.clone(),
                target_size: state.target,
                max_size: view.cloud.max_size,
                share,
            })
        });
        Some(GrowthOption {
            group: view.cloud.id.clone(),
            node_count: nodes,
            target_size: state.target,
            max_size: view.cloud.max_size,
            pods,
            shape: question::shape(&template.node, view, self.observation),
            usage: question::usage((&wanted, &used), &template.node, &taken, nodes, cluster),
            cost: question::cost(&wanted, nodes, view, self.observation),
            priority: match &self.priorities {
                Some(priorities) => priorities.of(view.cloud.id.as_str()),
                None => view.cloud.options.priority,
            },
            exists: true,
            similar: similar.collect(),
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
        let shapes: Vec<Bin> = growth.bins.iter().map(|&(_, bin)| bin).collect();
        let nodes = growth.packed.apply(&mut self.snapshot, &shapes, &pods);
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
        for (bin, node) in growth.packed.bins().zip(nodes) {
            let group = growth.bins.get(bin).map(|&(group, _)| group);
            if let Some(state) = group.and_then(|group| self.groups.get_mut(group)) {
                self.limits.count(&state.weight, 1);
                state.new.push(node);
            }
        }
        self.add_empty(growth.group, growth.empty);
        // The group that was chosen is told first.
        let (chosen, shared): (Vec<_>, Vec<_>) =
            growth.growing().map(|(group, _)| group).partition(|&group| group == growth.group);
        self.decisions.extend(chosen.into_iter().chain(shared).map(|group| (group, because.clone())));
    }

    /// Adds the nodes that come along without pods; whoever is still pending may use them.
    fn add_empty(&mut self, group: GroupIndex, count: u32) {
        let Some(shape) = self.groups.get(group).and_then(|state| state.shape).filter(|_| count > 0) else { return };
        let nodes: Vec<NodeId> = (0..count).map(|_| self.snapshot.add_copy(shape)).collect();
        if let Some(state) = self.groups.get_mut(group) {
            self.limits.count(&state.weight, i64::from(count));
            state.new.extend(&nodes);
        }
        for pending in &mut self.pending {
            pending.take_room(&mut self.snapshot, &nodes);
        }
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

/// Bins in the order of a list of their groups.
fn in_order(bins: &[(GroupIndex, Bin)], groups: &[GroupIndex]) -> Vec<(GroupIndex, Bin)> {
    groups.iter().filter_map(|group| bins.iter().find(|(of, _)| of == group).copied()).collect()
}
