//! What one loop decided, with a reason for every pod and node that stays as it is.
//!
//! Reasons are data, made where the decision is made; the texts here are one way to show them.

use std::fmt;
use std::time::Duration;

use plimsoll_model::{Cluster, SpecId, Time};
use plimsoll_scheduling::Refusal;

use crate::cloud::{CloudError, GroupId, InstanceId};
use crate::drain::Blocker;
use crate::ledger::Failure;
use crate::observation::NodeIndex;
use crate::ranking::RankingFailure;
use crate::templates::TemplateProblem;
use crate::utilization::{Measured, UtilizationError};
pub use crate::words::amount;

/// Index of a pod in the cluster.
pub type PodIndex = usize;

/// A place for a pod: a node that exists, or one to come.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// An existing node.
    Node(NodeIndex),
    /// The n-th node to come of a group, counted from 0; nodes that are on their way already come first.
    New(GroupId, u32),
}

impl Place {
    /// `NODE` or `GROUP#N`.
    pub fn name(&self, cluster: &Cluster) -> String {
        match self {
            Self::Node(index) => cluster.nodes.get(*index).map_or("", |node| cluster.text(node.name)).to_owned(),
            Self::New(group, number) => format!("{group}#{number}"),
        }
    }
}

/// Which limit of the whole cluster stopped growth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// `max-nodes-total`.
    Nodes(u32),
    /// `cores-total`, in cores.
    Cores(i64),
    /// `memory-total`, in bytes.
    Memory(i64),
    /// `gpu-total` of an accelerator model.
    Gpu(String, i64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(limit) => write!(f, "max-nodes-total {limit}"),
            Self::Cores(limit) => write!(f, "cores-total {limit}"),
            Self::Memory(limit) => write!(f, "memory-total {} GiB", limit >> 30),
            Self::Gpu(model, limit) => write!(f, "gpu-total {model} {limit}"),
        }
    }
}

/// Why a group does not help a class of pods.
#[derive(Clone, PartialEq, Debug)]
pub enum GroupReason {
    /// A fresh node of it would be refused by this predicate.
    Refused(Refusal),
    /// It is as large as it may be.
    AtMaxSize(u32),
    /// It failed lately: until when it is left alone, and what happened.
    BackedOff {
        /// Until when.
        until: Time,
        /// What happened.
        reason: String,
    },
    /// Nobody knows what it would create.
    NoTemplate(TemplateProblem),
    /// It could not be read.
    Unreadable(CloudError),
    /// Somebody suspended it, or it is being deleted.
    Inactive(&'static str),
    /// Too many of the nodes that it should have are not there or not ready, and nobody waits for them.
    Missing {
        /// Nodes that it should have.
        wanted: u32,
        /// Those of them that are ready.
        ready: u32,
    },
    /// A limit of the whole cluster.
    Limit(Limit),
    /// It refused to grow in this very loop.
    Failed(CloudError),
    /// The growth would break a rule of safety.
    Guarded(crate::guard::Rule),
    /// It would help, but this loop may choose no further option.
    NoRoundLeft,
    /// No expander of the chain chose it.
    NotChosen,
    /// The cluster as a whole is not well.
    Unhealthy,
}

impl GroupReason {
    /// The predicate or part of the loop that speaks.
    pub fn plugin(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.predicate,
            Self::AtMaxSize(_) | Self::Missing { .. } | Self::Inactive(_) | Self::Unreadable(_) => "NodeGroup",
            Self::BackedOff { .. } | Self::Failed(_) => "Backoff",
            Self::NoTemplate(_) => "Template",
            Self::Limit(_) => "ResourceLimits",
            Self::Guarded(_) => "Guard",
            Self::NoRoundLeft | Self::NotChosen => "Expander",
            Self::Unhealthy => "ClusterHealth",
        }
    }
}

impl fmt::Display for GroupReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => f.write_str(&crate::words::refusal(refusal)),
            Self::AtMaxSize(size) => write!(f, "at max size {size}"),
            Self::BackedOff { until, reason } => write!(f, "backed off until {until}: {reason}"),
            Self::NoTemplate(problem) => problem.fmt(f),
            Self::Unreadable(error) => write!(f, "could not be read: {error}"),
            Self::Inactive(state) => write!(f, "is {state}"),
            Self::Missing { wanted, ready } => {
                write!(f, "only {ready} of its {wanted} nodes are ready, so it is left alone until more are")
            }
            Self::Limit(limit) => write!(f, "cluster limit reached: {limit}"),
            Self::Failed(error) => write!(f, "refused to grow: {error}"),
            Self::Guarded(rule) => rule.fmt(f),
            Self::NoRoundLeft => write!(f, "would help, but scale-up-rounds allows no further choice in this loop"),
            Self::NotChosen => write!(f, "would help, but no expander chose it"),
            Self::Unhealthy => write!(f, "nothing grows while too many nodes are not ready"),
        }
    }
}

/// Why a pod without a node is not considered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IgnoreReason {
    /// Its scheduling gates are closed.
    Gated,
    /// The scheduler has not said that it fits nowhere.
    NotUnschedulable,
    /// Its priority is below the cutoff.
    Expendable,
    /// A DaemonSet makes it; its node is not up to us.
    DaemonSet,
    /// It is younger than its delay.
    Young(Duration),
    /// Its scheduler is not one of `allowed-scheduler-names`.
    OtherScheduler,
    /// It is being deleted.
    Deleting,
    /// It ended.
    Ended,
}

impl fmt::Display for IgnoreReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gated => write!(f, "scheduling gates hold it back"),
            Self::NotUnschedulable => write!(f, "the scheduler has not marked it unschedulable"),
            Self::Expendable => write!(f, "its priority is below expendable-pods-priority-cutoff"),
            Self::DaemonSet => write!(f, "it belongs to a DaemonSet"),
            Self::Young(delay) => write!(f, "it is younger than new-pod-scale-up-delay ({}s)", delay.as_secs()),
            Self::OtherScheduler => write!(f, "its scheduler is not among allowed-scheduler-names"),
            Self::Deleting => write!(f, "it is being deleted"),
            Self::Ended => write!(f, "it has ended"),
        }
    }
}

/// What becomes of pods that need a node.
#[derive(Clone, PartialEq, Debug)]
pub enum PodOutcome {
    /// It fits on a node that is there.
    FitsExisting(Place),
    /// It fits on a node that is on its way already.
    FitsUpcoming(Place),
    /// It fits on a node that this plan asks for.
    ScaleUp(Place),
    /// Nothing helps it; the reasons are those of its class.
    NotHelped,
    /// It is not considered.
    Ignored(IgnoreReason),
}

/// Why the pods of one class are not helped.
#[derive(Clone, PartialEq, Debug)]
pub struct NotHelped {
    /// The class, by one of its specs.
    pub spec: SpecId,
    /// Its pods.
    pub pods: Vec<PodIndex>,
    /// One reason for each group.
    pub reasons: Vec<(GroupId, GroupReason)>,
    /// Groups whose reason is all that is in the way: without it, one of the pods would fit a fresh node of theirs.
    pub sole: Vec<GroupId>,
    /// Why the nodes that are there do not take one of the pods: what the scheduler says first, and of how many nodes. Empty
    /// if nobody looked, since there are too many nodes and classes.
    pub existing: Vec<(String, u32)>,
}

/// Why a node stays, or is not needed.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeReason {
    /// Enough of it is asked for.
    NotUnderutilized {
        /// Share that is asked for.
        share: f64,
        /// Below or at this it would be a candidate.
        threshold: f64,
        /// Of what.
        of: Measured,
    },
    /// No group has it.
    NotAutoscaled,
    /// Its group is at its least size.
    GroupMinSize(u32),
    /// Annotation `scale-down-disabled`.
    Disabled,
    /// It is not ready and `scale-down-unready-enabled` is off.
    UnreadyDisabled,
    /// Too many nodes are not ready, or none is: nothing is done.
    ClusterUnhealthy,
    /// It is on its way out already.
    BeingDeleted,
    /// The cloud protects its machine.
    Protected(String),
    /// Its machine registered as another node too, which would die with it.
    Twin(usize),
    /// A pod holds it.
    Pod(PodIndex, Blocker),
    /// It waits for a pod to end by itself.
    OnCompletion(PodIndex),
    /// A pod would find no other place.
    NoPlaceToMovePod(PodIndex),
    /// Not unneeded for long enough: how long it is, how long it must be.
    NotUnneededLongEnough(Duration, Duration),
    /// Not unready for long enough: how long it is, how long it must be.
    NotUnreadyLongEnough(Duration, Duration),
    /// Scale-down waits, for this reason, until then.
    Cooldown(&'static str, Option<Time>),
    /// A lower limit of the whole cluster.
    Limit(Limit),
    /// Its group has all of its nodes or none, and others of them stay.
    AllOrNothing,
    /// As many nodes as may go at a time go already.
    Budget(&'static str, u32),
    /// Its utilization cannot be told.
    Unknown(UtilizationError),
    /// The group's sizes could not be read, so nothing of it is removed.
    Unreadable(CloudError),
}

impl NodeReason {
    /// The peer's name of the reason where it has one.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotUnderutilized { .. } => "NotUnderutilized",
            Self::NotAutoscaled => "NotAutoscaled",
            Self::GroupMinSize(_) => "NodeGroupMinSizeReached",
            Self::Disabled => "ScaleDownDisabledAnnotation",
            Self::UnreadyDisabled => "ScaleDownUnreadyDisabled",
            Self::ClusterUnhealthy => "ClusterUnhealthy",
            Self::BeingDeleted => "CurrentlyBeingDeleted",
            Self::Protected(_) => "InstanceProtected",
            Self::Twin(_) => "RegisteredTwice",
            Self::Pod(..) => "BlockedByPod",
            Self::OnCompletion(_) => "BlockedByOnCompletionPod",
            Self::NoPlaceToMovePod(_) => "NoPlaceToMovePods",
            Self::NotUnneededLongEnough(..) => "NotUnneededLongEnough",
            Self::NotUnreadyLongEnough(..) => "NotUnreadyLongEnough",
            Self::Cooldown(..) => "InCooldown",
            Self::Limit(_) => "MinimalResourceLimitExceeded",
            Self::AllOrNothing => "AtomicScaleDownFailed",
            Self::Budget(..) => "ScaleDownBudget",
            Self::Unknown(_) => "UnexpectedError",
            Self::Unreadable(_) => "NodeGroupUnreadable",
        }
    }

    /// The reason in words.
    pub fn describe(&self, cluster: &Cluster) -> String {
        let pod = |index: &PodIndex| cluster.pods.get(*index).map(|pod| cluster.pod_name(pod)).unwrap_or_default();
        let seconds = |span: &Duration| format!("{}s", span.as_secs());
        match self {
            Self::NotUnderutilized { share, threshold, of } => {
                let of = match of {
                    Measured::Cpu => "cpu",
                    Measured::Memory => "memory",
                    Measured::Gpu(name) => name.map_or("accelerator", |name| cluster.text(name)),
                };
                format!("{of} utilization {share:.2} is above {threshold}")
            }
            Self::NotAutoscaled => "no node group has it".into(),
            Self::GroupMinSize(size) => format!("group at minimum size {size}"),
            Self::Disabled => "annotation scale-down-disabled is \"true\"".into(),
            Self::ClusterUnhealthy => "nothing is removed while too many nodes are not ready".into(),
            Self::UnreadyDisabled => "it is not ready, and scale-down-unready-enabled is off".into(),
            Self::BeingDeleted => "it is being deleted already".into(),
            Self::Protected(reason) => format!("the cloud protects its machine: {reason}"),
            Self::Twin(other) => {
                let name = cluster.nodes.get(*other).map(|node| cluster.text(node.name)).unwrap_or_default();
                format!("its machine is node {name} too")
            }
            Self::Pod(index, blocker) => blocker.describe(&pod(index), cluster),
            Self::OnCompletion(index) => format!("{}: must end by itself (safe-to-evict: on-completion)", pod(index)),
            Self::NoPlaceToMovePod(index) => format!("{}: no other node has room for it", pod(index)),
            Self::NotUnneededLongEnough(is, must) => format!("unneeded for {} of {}", seconds(is), seconds(must)),
            Self::NotUnreadyLongEnough(is, must) => format!("unready for {} of {}", seconds(is), seconds(must)),
            Self::Cooldown(flag, Some(until)) => format!("scale-down waits until {until} ({flag})"),
            Self::Cooldown(flag, None) => format!("scale-down waits ({flag})"),
            Self::Limit(limit) => format!("cluster limit: {limit}"),
            Self::AllOrNothing => "its group has all of its nodes or none, and others of them stay".into(),
            Self::Budget(flag, count) => format!("{flag} lets {count} nodes go at a time"),
            Self::Unknown(error) => error.to_string(),
            Self::Unreadable(error) => format!("its group could not be read: {error}"),
        }
    }
}

/// What the loop thinks of a node.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeVerdict {
    /// The node.
    pub node: NodeIndex,
    /// Outcome.
    pub outcome: NodeOutcome,
    /// All reasons, not only the first.
    pub reasons: Vec<NodeReason>,
}

/// What becomes of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeOutcome {
    /// It is used.
    Needed,
    /// It could go, but not now.
    Unneeded,
    /// It goes.
    Removable,
    /// It is idle, but something holds it.
    Blocked,
}

impl NodeOutcome {
    /// As the outputs write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Needed => "needed",
            Self::Unneeded => "unneeded",
            Self::Removable => "removable",
            Self::Blocked => "blocked",
        }
    }
}

/// An option that was not chosen.
#[derive(Clone, PartialEq, Debug)]
pub struct Rival {
    /// Its group.
    pub group: GroupId,
    /// Nodes that it would have added.
    pub nodes: u32,
    /// Its score by the deciding expander; none: that expander rejected it, or was not asked about it.
    pub score: Option<f64>,
}

/// Why an option was chosen.
#[derive(Clone, PartialEq, Debug)]
pub struct Because {
    /// The expander that decided; none: only one option was there.
    pub expander: Option<String>,
    /// Its score.
    pub score: Option<f64>,
    /// Its words.
    pub reason: Option<String>,
    /// What it was chosen over.
    pub against: Vec<Rival>,
}

/// A group that grows.
#[derive(Clone, PartialEq, Debug)]
pub struct ScaleUp {
    /// The group.
    pub group: GroupId,
    /// Target before.
    pub from: u32,
    /// Target after, as asked.
    pub to: u32,
    /// Pods that the new nodes are for.
    pub pods: Vec<PodIndex>,
    /// Why this group.
    pub because: Because,
}

/// A node that goes.
#[derive(Clone, PartialEq, Debug)]
pub struct ScaleDown {
    /// The node.
    pub node: NodeIndex,
    /// Its group.
    pub group: GroupId,
    /// Whether pods move.
    pub drain: bool,
    /// Where its pods will go.
    pub moves: Vec<(PodIndex, Place)>,
}

/// Something that an operator should know of this loop.
#[derive(Clone, PartialEq, Debug)]
pub enum Warning {
    /// Too many nodes are not ready.
    Unhealthy(crate::health::Unhealthy),
    /// An expander gave no usable answer.
    Expander(RankingFailure),
    /// The priorities of the groups cannot be read.
    Priorities(crate::priorities::PriorityError),
    /// Patterns of several priorities match a group; the highest counts.
    OverlappingPriorities {
        /// The group.
        group: GroupId,
        /// The priorities, highest first.
        matching: Vec<i32>,
    },
    /// What a provider says of a group's next node cannot be used.
    Template {
        /// The group.
        group: GroupId,
        /// Why.
        problem: crate::templates::TemplateProblem,
    },
    /// A node of a group is not what its template says.
    Drift {
        /// The group.
        group: GroupId,
        /// The node's name.
        node: String,
        /// How it differs; never empty.
        differences: Vec<crate::drift::Difference>,
    },
    /// Machines will not come.
    Failure(Failure),
    /// A group could not grow.
    IncreaseFailed {
        /// The group.
        group: GroupId,
        /// How many nodes were asked for.
        delta: u32,
        /// How many of them were accepted.
        accepted: u32,
        /// Why.
        error: CloudError,
    },
    /// A wish for machines that will not come could not be taken back.
    DecreaseFailed {
        /// The group.
        group: GroupId,
        /// How many nodes fewer were asked for.
        delta: u32,
        /// Why not.
        error: CloudError,
    },
    /// A write was not sent, because it would break a rule of safety.
    Guarded {
        /// The group.
        group: GroupId,
        /// The rule.
        rule: crate::guard::Rule,
    },
    /// Machines that are no nodes could not be deleted; it is tried again.
    StrayStays {
        /// Their group.
        group: GroupId,
        /// The machines.
        machines: Vec<InstanceId>,
        /// What stood in the way.
        reason: String,
    },
    /// The removal of a node was given up.
    RemovalFailed {
        /// The node's name.
        node: String,
        /// Why.
        reason: String,
    },
}

impl Warning {
    /// What it comes down to: two warnings for which this is equal need not both be told. That a group's nodes are not what
    /// its template says is the same news with each new node.
    pub fn gist(&self) -> String {
        match self {
            Self::Drift { group, differences, .. } => {
                let words: Vec<String> = differences.iter().map(ToString::to_string).collect();
                format!("{group}: nodes are not what the template says: {}", words.join(", "))
            }
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use crate::ledger::FailureCause;
        match self {
            Self::Unhealthy(unhealthy) => unhealthy.fmt(f),
            Self::Expander(failure) => failure.fmt(f),
            Self::Priorities(error) => error.fmt(f),
            Self::OverlappingPriorities { group, matching } => {
                let numbers: Vec<String> = matching.iter().map(ToString::to_string).collect();
                write!(f, "{group} matches {} priorities: {}; the highest counts", matching.len(), numbers.join(", "))
            }
            Self::Template { group, problem } => write!(f, "{group}: {problem}"),
            Self::Drift { group, node, differences } => {
                let words: Vec<String> = differences.iter().map(ToString::to_string).collect();
                write!(f, "{group}: node {node} is not what the template says: {}", words.join(", "))
            }
            Self::Failure(Failure { group, missing, cause }) => match cause {
                FailureCause::Cloud(error) => write!(f, "{group}: {missing} nodes will not come: {error}"),
                FailureCause::TimedOut(after) => {
                    write!(f, "{group}: {missing} nodes did not register within {}s", after.as_secs())
                }
                FailureCause::NeverAccepted => write!(f, "{group}: a request for {missing} nodes was never accepted"),
            },
            Self::IncreaseFailed { group, delta, accepted, error } => {
                write!(f, "{group}: asked for {delta} nodes, got {accepted}: {error}")
            }
            Self::DecreaseFailed { group, delta, error } => {
                write!(f, "{group}: its target could not be lowered by {delta}: {error}")
            }
            Self::Guarded { group, rule } => write!(f, "{group}: write refused by the guard: {rule}"),
            Self::StrayStays { group, machines, reason } => {
                let names: Vec<&str> = machines.iter().map(InstanceId::as_str).collect();
                write!(f, "{group}: {} did not become a node and could not be deleted: {reason}", names.join(", "))
            }
            Self::RemovalFailed { node, reason } => write!(f, "{node}: removal given up: {reason}"),
        }
    }
}

/// What one loop decided.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// Groups that grow, in the order of the decisions; one entry per group.
    pub scale_up: Vec<ScaleUp>,
    /// Nodes that go.
    pub scale_down: Vec<ScaleDown>,
    /// What becomes of every pod without a node.
    pub pods: Vec<(PodIndex, PodOutcome)>,
    /// Why pods are not helped, by class.
    pub not_helped: Vec<NotHelped>,
    /// What becomes of every node.
    pub nodes: Vec<NodeVerdict>,
    /// What an operator should know.
    pub warnings: Vec<Warning>,
    /// Groups that could not grow from the start, with the reason. Only told where some pod needs a node.
    pub skipped: Vec<(GroupId, GroupReason)>,
    /// Nodes that are on their way, by group.
    pub upcoming: Vec<(GroupId, u32)>,
    /// How many options were chosen.
    pub rounds: u32,
}
