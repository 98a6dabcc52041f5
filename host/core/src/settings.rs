//! What the operator set: the peer's flags, typed. Every field is named like its flag.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::similar::Likeness;

/// Lower and upper bound of an amount in the whole cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bounds {
    /// Scale-down stops here.
    pub min: i64,
    /// Scale-up stops here.
    pub max: i64,
}

/// The settings of one autoscaler.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// `expander`: names of the expanders, asked in this order.
    pub expander: Vec<String>,
    /// `max-nodes-total`: most nodes in the whole cluster; none: no limit.
    pub max_nodes_total: Option<u32>,
    /// `cores-total`, in whole cores.
    pub cores_total: Bounds,
    /// `memory-total`, in bytes.
    pub memory_total: Bounds,
    /// `gpu-total`: accelerator model with the bounds of its count.
    pub gpu_total: Vec<(String, Bounds)>,
    /// `max-nodes-per-scaleup`: most nodes that one option may add.
    pub max_nodes_per_scaleup: u32,
    /// `scale-up-rounds` (ours): most options chosen in one loop; none: until nothing more can be helped.
    pub scale_up_rounds: Option<u32>,
    /// `balance-similar-node-groups`: like groups share every growth, the smallest first.
    pub balance_similar_node_groups: bool,
    /// Which groups are like each other: `memory-difference-ratio` and its companions, `balancing-label`.
    pub likeness: Likeness,
    /// `scale-up-from-zero`: whether to act in a cluster without ready nodes.
    pub scale_up_from_zero: bool,
    /// `ok-total-unready-count`: so many nodes may be unready, whatever their share.
    pub ok_total_unready_count: u32,
    /// `max-total-unready-percentage`: with a larger share of unready nodes nothing is done.
    pub max_total_unready_percentage: f64,
    /// `new-pod-scale-up-delay`: younger pods are left alone.
    pub new_pod_scale_up_delay: Duration,
    /// `bypassed-scheduler-names`: pods of these schedulers count as unschedulable before they have been looked at.
    pub bypassed_schedulers: Vec<String>,
    /// `allowed-scheduler-names`: pods of other schedulers are none of our business; empty: all are.
    pub allowed_schedulers: Vec<String>,
    /// `expendable-pods-priority-cutoff`: pods below this never cause growth and never block removal.
    pub expendable_pods_priority_cutoff: i32,
    /// `enforce-node-group-min-size`: grow groups that are below their least size.
    pub enforce_node_group_min_size: bool,
    /// `force-ds`: give every fitting DaemonSet's pod to templates made from real nodes.
    pub force_ds: bool,
    /// `scale-from-unschedulable`: templates made from cordoned nodes are not cordoned.
    pub scale_from_unschedulable: bool,
    /// `startup-taint` and `ignore-taint`: taint keys that templates do not have, and that make a node not ready.
    pub startup_taints: Vec<String>,
    /// `startup-taint-prefix`, in addition to the built-in prefixes.
    pub startup_taint_prefixes: Vec<String>,
    /// `status-taint`: taint keys that templates do not have.
    pub status_taints: Vec<String>,
    /// `max-node-provision-time`: how long a machine may take to become a node.
    pub max_node_provision_time: Duration,
    /// `max-node-startup-time`: how long a node may take to become ready.
    pub max_node_startup_time: Duration,
    /// `initial-node-group-backoff-duration`.
    pub initial_node_group_backoff: Duration,
    /// `max-node-group-backoff-duration`.
    pub max_node_group_backoff: Duration,
    /// `node-group-backoff-reset-timeout`.
    pub node_group_backoff_reset: Duration,
    /// `force-delete-unregistered-nodes`: machines that never became nodes go even if their group falls below its least size.
    pub force_delete_unregistered_nodes: bool,
    /// `scale-down-enabled`.
    pub scale_down_enabled: bool,
    /// `scale-down-unready-enabled`.
    pub scale_down_unready_enabled: bool,
    /// `scale-down-delay-after-add`.
    pub scale_down_delay_after_add: Duration,
    /// `scale-down-delay-after-delete`.
    pub scale_down_delay_after_delete: Duration,
    /// `scale-down-delay-after-failure`.
    pub scale_down_delay_after_failure: Duration,
    /// `scale-down-delay-type-local`: those three waits hold the group that they are about, not all of them.
    pub scale_down_delay_type_local: bool,
    /// `scale-down-unneeded-time`.
    pub scale_down_unneeded_time: Duration,
    /// `scale-down-unready-time`.
    pub scale_down_unready_time: Duration,
    /// `scale-down-utilization-threshold`, 0 to 1.
    pub scale_down_utilization_threshold: f64,
    /// `scale-down-gpu-utilization-threshold`, 0 to 1.
    pub scale_down_gpu_utilization_threshold: f64,
    /// `ignore-daemonsets-utilization`.
    pub ignore_daemonsets_utilization: bool,
    /// `ignore-mirror-pods-utilization`.
    pub ignore_mirror_pods_utilization: bool,
    /// `skip-nodes-with-system-pods`.
    pub skip_nodes_with_system_pods: bool,
    /// `skip-nodes-with-local-storage`.
    pub skip_nodes_with_local_storage: bool,
    /// `skip-nodes-with-custom-controller-pods`.
    pub skip_nodes_with_custom_controller_pods: bool,
    /// `blocking-system-pod-distruption-timeout` (the peer's spelling).
    pub blocking_system_pod_disruption_timeout: Duration,
    /// `min-replica-count`: controllers with fewer replicas block.
    pub min_replica_count: i64,
    /// `max-scale-down-parallelism`: most nodes that are being removed at a time.
    pub max_scale_down_parallelism: u32,
    /// `max-drain-parallelism`: most of them that are being drained.
    pub max_drain_parallelism: u32,
    /// `max-graceful-termination-sec`.
    pub max_graceful_termination: Duration,
    /// `max-pod-eviction-time`: how long one pod's eviction is tried.
    pub max_pod_eviction_time: Duration,
    /// `node-delete-delay-after-taint`: how long a tainted node settles before the last check.
    pub node_delete_delay_after_taint: Duration,
    /// `drain-priority-config`: pods leave in groups, those of the lowest priority first, each with a cap on the time that
    /// a pod of it may take to end (zero: none). In ascending order; empty: all pods leave at once.
    pub drain_priorities: Vec<(i32, Duration)>,
    /// `daemonset-eviction-for-empty-nodes`: DaemonSet pods of a node without others are evicted before it goes.
    pub daemon_set_eviction_for_empty_nodes: bool,
    /// `daemonset-eviction-for-occupied-nodes`: DaemonSet pods are evicted together with the others.
    pub daemon_set_eviction_for_occupied_nodes: bool,
    /// `node-deletion-delay-timeout`: how long annotations may hold the deletion of an emptied node.
    pub node_deletion_delay_timeout: Duration,
    /// `node-deletion-candidate-ttl`: after a restart without memory, soft taints younger than this say since when their
    /// nodes are unneeded. Zero: they say nothing.
    pub node_deletion_candidate_ttl: Duration,
    /// `cordon-node-before-terminating`.
    pub cordon_node_before_terminating: bool,
    /// `namespace`: where the autoscaler's own objects are.
    pub namespace: String,
    /// Whether every wait counts as over, as for a file, which has no history.
    pub waits_elapsed: bool,
    /// Seed of the choice between options that no expander tells apart.
    pub seed: u64,
}

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

/// The peer's defaults.
impl Default for Settings {
    fn default() -> Self {
        Self {
            expander: vec!["least-waste".to_owned()],
            max_nodes_total: None,
            cores_total: Bounds { min: 0, max: 320_000 },
            memory_total: Bounds { min: 0, max: 6_400_000 << 30 },
            gpu_total: vec![],
            max_nodes_per_scaleup: 1000,
            scale_up_rounds: None,
            balance_similar_node_groups: false,
            likeness: Likeness::default(),
            scale_up_from_zero: true,
            ok_total_unready_count: 3,
            max_total_unready_percentage: 45.0,
            new_pod_scale_up_delay: Duration::ZERO,
            bypassed_schedulers: vec![],
            allowed_schedulers: vec![],
            expendable_pods_priority_cutoff: -10,
            enforce_node_group_min_size: false,
            force_ds: false,
            scale_from_unschedulable: false,
            startup_taints: vec![],
            startup_taint_prefixes: vec![],
            status_taints: vec![],
            max_node_provision_time: minutes(15),
            max_node_startup_time: minutes(15),
            initial_node_group_backoff: minutes(5),
            max_node_group_backoff: minutes(30),
            node_group_backoff_reset: minutes(180),
            force_delete_unregistered_nodes: false,
            scale_down_enabled: true,
            scale_down_unready_enabled: true,
            scale_down_delay_after_add: minutes(10),
            scale_down_delay_after_delete: Duration::ZERO,
            scale_down_delay_after_failure: minutes(3),
            scale_down_delay_type_local: false,
            scale_down_unneeded_time: minutes(10),
            scale_down_unready_time: minutes(20),
            scale_down_utilization_threshold: 0.5,
            scale_down_gpu_utilization_threshold: 0.5,
            ignore_daemonsets_utilization: false,
            ignore_mirror_pods_utilization: false,
            skip_nodes_with_system_pods: true,
            skip_nodes_with_local_storage: true,
            skip_nodes_with_custom_controller_pods: true,
            blocking_system_pod_disruption_timeout: minutes(60),
            min_replica_count: 0,
            max_scale_down_parallelism: 10,
            max_drain_parallelism: 1,
            max_graceful_termination: minutes(10),
            max_pod_eviction_time: minutes(2),
            node_delete_delay_after_taint: Duration::from_secs(5),
            drain_priorities: vec![],
            daemon_set_eviction_for_empty_nodes: false,
            daemon_set_eviction_for_occupied_nodes: true,
            node_deletion_delay_timeout: minutes(2),
            node_deletion_candidate_ttl: Duration::ZERO,
            cordon_node_before_terminating: true,
            namespace: "kube-system".to_owned(),
            waits_elapsed: false,
            seed: 0,
        }
    }
}
