//! Every metric family: name, type, labels, and how it stands to the Go autoscaler's.

use super::family::{Family, Kind, Peer, When};

const fn same(name: &'static str, kind: Kind, labels: &'static [&'static str], help: &'static str) -> Family {
    Family { name, kind, labels, help, peer: Peer::Same(""), when: When::Always }
}

const fn noted(family: Family, note: &'static str) -> Family {
    Family { peer: Peer::Same(note), ..family }
}

const fn per_group(family: Family) -> Family {
    Family { when: When::Flag("emit-per-nodegroup-metrics"), ..family }
}

const fn new(name: &'static str, kind: Kind, labels: &'static [&'static str], help: &'static str) -> Family {
    Family { name, kind, labels, help, peer: Peer::New, when: When::Always }
}

const fn absent(name: &'static str, kind: Kind, labels: &'static [&'static str], why: &'static str) -> Family {
    Family { name, kind, labels, help: "", peer: Peer::NotApplicable(why), when: When::Never }
}

macro_rules! families {
    ($($id:ident = $family:expr;)*) => {
        $(pub(crate) const $id: Family = $family;)*
        /// All of them, in the order of the table.
        pub const ALL: &[Family] = &[$($id),*];
    };
}

use Kind::{Counter, Gauge, Histogram, Summary};

/// Labels that say which accelerator a node has.
const GPU: &[&str] = &["gpu_resource_name", "gpu_name"];

families! {
    // The state of the cluster.
    SAFE_TO_AUTOSCALE = same("cluster_autoscaler_cluster_safe_to_autoscale", Gauge, &[],
        "Whether the cluster is healthy enough to be scaled: 1 if it is, else 0");
    NODES = noted(same("cluster_autoscaler_nodes_count", Gauge, &["state"], "Nodes by state"),
        "`suspended` is always 0: no provider tells of it");
    NODE_GROUPS = same("cluster_autoscaler_node_groups_count", Gauge, &["node_group_type"], "Node groups by kind");
    UNSCHEDULABLE_PODS = noted(
        same("cluster_autoscaler_unschedulable_pods_count", Gauge, &["type"], "Pods without a node by kind"),
        "the types of the injection of fake pods do not exist, as nothing is injected");
    SKIPPED_PODS = noted(
        same("cluster_autoscaler_skipped_pods_count", Gauge, &["requestor"], "Pods left out for want of time"),
        "always 0: no pod is left out");
    MAX_NODES = same("cluster_autoscaler_max_nodes_count", Gauge, &[],
        "Sum of the groups' greatest sizes, capped by max-nodes-total");
    CPU_CURRENT = same("cluster_autoscaler_cluster_cpu_current_cores", Gauge, &[],
        "Cores of all nodes that are not being deleted");
    MEMORY_CURRENT = same("cluster_autoscaler_cluster_memory_current_bytes", Gauge, &[],
        "Memory of all nodes that are not being deleted");
    CPU_LIMITS = same("cluster_autoscaler_cpu_limits_cores", Gauge, &["direction"], "Bounds of cores-total");
    MEMORY_LIMITS = same("cluster_autoscaler_memory_limits_bytes", Gauge, &["direction"], "Bounds of memory-total");
    NODE_TAINTS = noted(same("cluster_autoscaler_node_taints_count", Gauge, &["type"], "Taints of nodes by kind"),
        "a kind of which no node has a taint is not there");
    GROUP_MIN = per_group(same("cluster_autoscaler_node_group_min_count", Gauge, &["node_group"],
        "Least size of a group"));
    GROUP_MAX = per_group(same("cluster_autoscaler_node_group_max_count", Gauge, &["node_group"],
        "Greatest size of a group"));
    GROUP_TARGET = per_group(same("cluster_autoscaler_node_group_target_count", Gauge, &["node_group"],
        "Size that the cloud works towards"));
    GROUP_HEALTHINESS = per_group(same("cluster_autoscaler_node_group_healthiness", Gauge, &["node_group"],
        "Whether a group has enough ready nodes: 1 if it has, else 0"));
    GROUP_BACKOFF = per_group(same("cluster_autoscaler_node_group_backoff_status", Gauge, &["node_group", "reason"],
        "Whether a group is left alone after a failure: 1 if it is, else 0"));

    // The loop.
    LAST_ACTIVITY = same("cluster_autoscaler_last_activity", Gauge, &["activity"],
        "When a part of the loop last ran, in seconds since the epoch");
    DURATION = noted(
        same("cluster_autoscaler_function_duration_seconds", Histogram, &["function"], "Time that parts of the loop take"),
        "pods are sorted into classes as they are read, so `scaleUp:buildPodEquivalenceGroups` has no time of its own");
    DURATION_QUANTILE = noted(
        same("cluster_autoscaler_function_duration_quantile_seconds", Summary, &["function"],
            "Quantiles of the time that parts of the loop took in the last hour"),
        "as above");
    PENDING_DELETIONS = same("cluster_autoscaler_pending_node_deletions", Gauge, &[], "Nodes on their way out");
    ERRORS = same("cluster_autoscaler_errors_total", Counter, &["type"], "Loops in which something failed, by kind");

    // What is done.
    SCALED_UP = same("cluster_autoscaler_scaled_up_nodes_total", Counter,
        &["gpu_resource_name", "gpu_name", "dra_drivers"], "Nodes that the clouds accepted to add");
    SCALED_UP_GPU = same("cluster_autoscaler_scaled_up_gpu_nodes_total", Counter, GPU,
        "Nodes with accelerators that the clouds accepted to add");
    FAILED_SCALE_UPS = same("cluster_autoscaler_failed_scale_ups_total", Counter,
        &["reason", "gpu_resource_name", "gpu_name", "dra_drivers"], "Growths that failed");
    FAILED_GPU_SCALE_UPS = same("cluster_autoscaler_failed_gpu_scale_ups_total", Counter,
        &["reason", "gpu_resource_name", "gpu_name"], "Growths of groups with accelerators that failed");
    FAILED_CREATIONS = same("cluster_autoscaler_failed_node_creations_total", Counter, &["reason"],
        "Nodes that were asked for and will not come");
    SCALED_DOWN = same("cluster_autoscaler_scaled_down_nodes_total", Counter,
        &["reason", "gpu_resource_name", "gpu_name", "dra_drivers"], "Nodes whose removal the clouds accepted");
    SCALED_DOWN_GPU = same("cluster_autoscaler_scaled_down_gpu_nodes_total", Counter,
        &["reason", "gpu_resource_name", "gpu_name"], "Nodes with accelerators whose removal the clouds accepted");
    EVICTED_PODS = same("cluster_autoscaler_evicted_pods_total", Counter, &["eviction_result"],
        "Evictions by their result");
    UNNEEDED_NODES = same("cluster_autoscaler_unneeded_nodes_count", Gauge, &[], "Nodes that nobody needs");
    UNREMOVABLE_NODES = noted(
        same("cluster_autoscaler_unremovable_nodes_count", Gauge, &["reason"], "Nodes that stay, by reason"),
        "a node with several reasons counts once for each; a reason that no node has is not there");
    IN_COOLDOWN = same("cluster_autoscaler_scale_down_in_cooldown", Gauge, &[],
        "Whether scale-down waits after something happened: 1 if it does, else 0");
    OLD_UNREGISTERED_REMOVED = same("cluster_autoscaler_old_unregistered_nodes_removed_count", Counter, &[],
        "Machines that never became nodes and whose removal the clouds accepted");
    OVERFLOWING_CONTROLLERS = noted(same("cluster_autoscaler_overflowing_controllers_count", Gauge, &[],
        "Controllers whose pods are too different to be sorted into classes"), "always 0: there is no such limit");
    SKIPPED_SCALE_EVENTS = same("cluster_autoscaler_skipped_scale_events_count", Counter, &["direction", "reason"],
        "Loops in which a limit of the whole cluster kept it from growing or shrinking");
    INCONSISTENT_MIGS = noted(same("cluster_autoscaler_inconsistent_instances_migs_count", Gauge, &[],
        "Groups whose machines a cloud lists inconsistently"), "always 0: only the Go provider for GCE has it");
    BINPACKING_HETEROGENEITY = noted(
        same("cluster_autoscaler_binpacking_heterogeneity", Histogram,
            &["instance_type", "cpu_count", "namespace_count"],
            "Classes of pods that are packed onto the nodes of one group together"),
        "observed once a loop for each group that may grow");
    MAX_SKIP_EVAL = noted(same("cluster_autoscaler_max_node_skip_eval_duration_seconds", Gauge, &[],
        "Longest time for which a node was not looked at by scale-down"), "always 0: every loop looks at every node");
    GROUPS_CREATED = absent("cluster_autoscaler_created_node_groups_total", Counter, &["group_type"],
        "node groups are not made by the autoscaler");
    GROUPS_DELETED = absent("cluster_autoscaler_deleted_node_groups_total", Counter, &["group_type"],
        "node groups are not deleted by the autoscaler");
    REMOVAL_LATENCY = absent("cluster_autoscaler_node_removal_latency_seconds", Histogram, &["deleted", "delay_reason"],
        "its flag node-removal-latency-tracking-enabled has no effect yet");
    DRA_MISMATCH = absent("cluster_autoscaler_dra_node_template_resources_mismatch", Gauge, &["driver", "mismatch_type"],
        "a node that is not what its template says is a warning in the log and in /api/v1/plan");
    BUFFER_RECONCILED = absent("cluster_autoscaler_capacity_buffer_oldest_reconciliation_timestamp_seconds", Gauge,
        &["new_buffer"], "capacity buffers are not served yet");

    // Ours.
    BUILD = new("plimsoll_build_info", Gauge, &["version"], "Always 1; the label tells the version");
    PHASES = new("plimsoll_loop_phase_seconds", Histogram, &["phase"],
        "Time that each part of a loop takes, in finer steps");
    LEDGER = new("plimsoll_ledger_intents", Gauge, &["state"], "Writes to clouds that are not settled yet");
    LEDGER_OUTSTANDING = new("plimsoll_ledger_outstanding_nodes", Gauge, &[],
        "Nodes that were asked for and are waited for");
    BACKED_OFF = new("plimsoll_backed_off_node_groups", Gauge, &[], "Groups that are left alone after a failure");
    NOT_HELPED = new("plimsoll_pods_not_helped", Gauge, &[], "Pods without a node that no group helps");
    WRITES = new("plimsoll_writes_total", Counter, &["write", "result"], "Writes to clouds and API server");
    WRITE_DURATION = new("plimsoll_write_seconds", Histogram, &["write"], "Time that writes take");
    GUARDED = new("plimsoll_guarded_writes_total", Counter, &[], "Writes that the guard did not let out");
    PLUGIN_CALLS = new("plimsoll_plugin_calls_total", Counter, &["plugin", "call", "outcome"],
        "Calls into plug-ins by how they ended");
    PLUGIN_CALL_DURATION = new("plimsoll_plugin_call_seconds", Histogram, &["plugin", "call"],
        "Time that calls into plug-ins take");
    PLUGIN_REQUESTS = new("plimsoll_plugin_requests_total", Counter, &["plugin", "host", "status", "outcome"],
        "Requests of plug-ins to the network by how they ended");
    PLUGIN_REQUEST_DURATION = new("plimsoll_plugin_request_seconds", Histogram, &["plugin", "host"],
        "Time that requests of plug-ins take");
    PLUGIN_EVENTS = new("plimsoll_plugin_events_total", Counter, &["plugin", "event"],
        "What the host noticed about plug-ins: starts, failures, refusals");
    PLUGIN_MEMORY = new("plimsoll_plugin_memory_bytes", Gauge, &["plugin"], "Memory of the instance of a provider");
    PLUGIN_UP = new("plimsoll_plugin_up", Gauge, &["plugin"], "Whether a provider has an instance that serves");
}
