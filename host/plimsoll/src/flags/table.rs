//! Every flag of the Go autoscaler, with its default, and what it does here.

use super::{Effect, Flag, Kind, Section};

const RUN: &str = "matters to a live cluster, and `plimsoll run` does not know it yet";
const LOGS: &str = "logs go to standard error; --v, --logging-format and RUST_LOG choose how";
const PROFILING: &str = "a profile is taken from outside, such as by `perf record -p PID`; the binary has its symbols";
const NOT_YET: &str = "is not built yet";

/// All flags, in the order of the help text.
pub(crate) const FLAGS: &[Flag] = &[
    Flag {
        name: "address",
        section: Section::Process,
        kind: Kind::Text,
        default: ":8085",
        help: "Listen address of the HTTP server (metrics, health, snapshot, pprof)",
        effect: Effect::Run,
    },
    Flag {
        name: "kubernetes",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "API server URL. Used only if no kubeconfig is given",
        effect: Effect::Run,
    },
    Flag {
        name: "kubeconfig",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "Path to a kubeconfig; wins over kubernetes; both empty: in-cluster configuration",
        effect: Effect::Run,
    },
    Flag {
        name: "kube-api-content-type",
        section: Section::Process,
        kind: Kind::Text,
        default: "application/vnd.kubernetes.protobuf",
        help: "Content type of API requests",
        effect: Effect::None("requests are JSON; watches are converted as they arrive"),
    },
    Flag {
        name: "kube-client-qps",
        section: Section::Process,
        kind: Kind::Float,
        default: "5",
        help: "Client-side rate limit",
        effect: Effect::Run,
    },
    Flag {
        name: "kube-client-burst",
        section: Section::Process,
        kind: Kind::Int,
        default: "10",
        help: "Client-side burst",
        effect: Effect::Run,
    },
    Flag {
        name: "user-agent",
        section: Section::Process,
        kind: Kind::Text,
        default: "plimsoll",
        help: "User agent of requests to clouds and to the API server",
        effect: Effect::Run,
    },
    Flag {
        name: "namespace",
        section: Section::Process,
        kind: Kind::Text,
        default: "kube-system",
        help: "Namespace of the autoscaler's own objects: status, lease, priorities of the priority expander",
        effect: Effect::Sets(|s, v| {
            s.namespace = v.text();
            Ok(())
        }),
    },
    Flag {
        name: "cluster-name",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "Passed to providers only",
        effect: Effect::Run,
    },
    Flag {
        name: "cloud-provider",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "Provider to use: a plug-in by name",
        effect: Effect::Run,
    },
    Flag {
        name: "cloud-config",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "Path of provider configuration file",
        effect: Effect::Run,
    },
    Flag {
        name: "regional",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "GCE: cluster is regional",
        effect: Effect::None("belongs to a cloud whose provider is not shipped"),
    },
    Flag {
        name: "clusterapi-cloud-config-authoritative",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "Cluster API: do not fall back to kubeconfig for the management cluster",
        effect: Effect::None("belongs to a cloud whose provider is not shipped"),
    },
    Flag {
        name: "aws-use-static-instance-list",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "AWS: use the compiled-in instance type list instead of the API",
        effect: Effect::None("belongs to a cloud whose provider is not shipped"),
    },
    Flag {
        name: "bulk-mig-instances-listing-enabled",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "GCE: list instances for all MIGs in one call",
        effect: Effect::None("belongs to a cloud whose provider is not shipped"),
    },
    Flag {
        name: "gce-concurrent-refreshes",
        section: Section::Process,
        kind: Kind::Int,
        default: "1",
        help: "GCE: concurrency of refreshes",
        effect: Effect::None("belongs to a cloud whose provider is not shipped"),
    },
    Flag {
        name: "gce-mig-instances-min-refresh-wait-time",
        section: Section::Process,
        kind: Kind::Duration,
        default: "5s",
        help: "GCE: minimum time between refreshes of one MIG's instances",
        effect: Effect::None("belongs to a cloud whose provider is not shipped"),
    },
    Flag {
        name: "profiling",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "Serve /debug/pprof/",
        effect: Effect::None(PROFILING),
    },
    Flag {
        name: "debugging-snapshot-enabled",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "Serve /snapshotz",
        effect: Effect::Run,
    },
    Flag {
        name: "write-status-configmap",
        section: Section::Process,
        kind: Kind::Bool,
        default: "true",
        help: "Write the status ConfigMap each loop",
        effect: Effect::Run,
    },
    Flag {
        name: "status-config-map-name",
        section: Section::Process,
        kind: Kind::Text,
        default: "cluster-autoscaler-status",
        help: "Name of the status ConfigMap",
        effect: Effect::Run,
    },
    Flag {
        name: "record-duplicated-events",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "Turn off the 5-minute event de-duplication",
        effect: Effect::Run,
    },
    Flag {
        name: "emit-per-nodegroup-metrics",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "Emit metrics with a node_group label",
        effect: Effect::Run,
    },
    Flag {
        name: "scheduler-verbosity",
        section: Section::Process,
        kind: Kind::Int,
        default: "0",
        help: "Log threshold of the scheduler's own messages",
        effect: Effect::Later(RUN),
    },
    Flag {
        name: "nodes",
        section: Section::Limits,
        kind: Kind::List,
        default: "",
        help: "<min>:<max>:<name>: a node group by name, with its bounds",
        effect: Effect::Run,
    },
    Flag {
        name: "node-group-auto-discovery",
        section: Section::Limits,
        kind: Kind::List,
        default: "",
        help: "<discoverer>:<key>=<value>,…: a rule for finding node groups, given to the provider as it is",
        effect: Effect::Run,
    },
    Flag {
        name: "enforce-node-group-min-size",
        section: Section::Limits,
        kind: Kind::Bool,
        default: "false",
        help: "Grow groups that are below their min size, at the end of each loop",
        effect: Effect::Sets(|s, v| {
            s.enforce_node_group_min_size = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "max-nodes-total",
        section: Section::Limits,
        kind: Kind::Int,
        default: "0",
        help: "Upper bound on nodes in the whole cluster (not only in groups)",
        effect: Effect::Sets(|s, v| {
            s.max_nodes_total = (v.int()? > 0).then_some(v.count()?);
            Ok(())
        }),
    },
    Flag {
        name: "cores-total",
        section: Section::Limits,
        kind: Kind::Text,
        default: "0:320000",
        help: "<min>:<max> cores in the whole cluster",
        effect: Effect::Sets(|s, v| {
            s.cores_total = v.bounds(1)?;
            Ok(())
        }),
    },
    Flag {
        name: "memory-total",
        section: Section::Limits,
        kind: Kind::Text,
        default: "0:6400000",
        help: "<min>:<max> GiB of memory in the whole cluster",
        effect: Effect::Sets(|s, v| {
            s.memory_total = v.bounds(1 << 30)?;
            Ok(())
        }),
    },
    Flag {
        name: "gpu-total",
        section: Section::Limits,
        kind: Kind::List,
        default: "",
        help: "<model>:<min>:<max> accelerators in the whole cluster; the model is the value of the provider's accelerator label",
        effect: Effect::Sets(|s, v| {
            s.gpu_total = v.named_bounds()?;
            Ok(())
        }),
    },
    Flag {
        name: "capacity-quotas-enabled",
        section: Section::Limits,
        kind: Kind::Bool,
        default: "false",
        help: "Honour CapacityQuota objects",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "node-info-cache-expire-time",
        section: Section::Limits,
        kind: Kind::Duration,
        default: "87600h",
        help: "Lifetime of a cached template taken from a real node",
        effect: Effect::Later(RUN),
    },
    Flag {
        name: "scan-interval",
        section: Section::Loop,
        kind: Kind::Duration,
        default: "10s",
        help: "Longest pause between loops",
        effect: Effect::Run,
    },
    Flag {
        name: "frequent-loops-enabled",
        section: Section::Loop,
        kind: Kind::Bool,
        default: "true",
        help: "Also start loops at once on new unschedulable pods and after productive loops",
        effect: Effect::Run,
    },
    Flag {
        name: "max-inactivity",
        section: Section::Loop,
        kind: Kind::Duration,
        default: "10m",
        help: "Health fails if no loop activity for this long",
        effect: Effect::Run,
    },
    Flag {
        name: "max-failing-time",
        section: Section::Loop,
        kind: Kind::Duration,
        default: "15m",
        help: "Health fails if no successful loop for this long",
        effect: Effect::Run,
    },
    Flag {
        name: "max-startup-time",
        section: Section::Loop,
        kind: Kind::Duration,
        default: "20m",
        help: "Health fails if the first successful loop takes longer",
        effect: Effect::Run,
    },
    Flag {
        name: "max-total-unready-percentage",
        section: Section::Loop,
        kind: Kind::Float,
        default: "45",
        help: "Share of unready nodes, in percent, above which the cluster is unhealthy and nothing is done",
        effect: Effect::Sets(|s, v| {
            s.max_total_unready_percentage = v.float()?;
            Ok(())
        }),
    },
    Flag {
        name: "ok-total-unready-count",
        section: Section::Loop,
        kind: Kind::Int,
        default: "3",
        help: "Unready nodes always tolerated, whatever their share",
        effect: Effect::Sets(|s, v| {
            s.ok_total_unready_count = v.count()?;
            Ok(())
        }),
    },
    Flag {
        name: "scale-up-from-zero",
        section: Section::Loop,
        kind: Kind::Bool,
        default: "true",
        help: "If false, the autoscaler stops when there are no nodes or no ready nodes",
        effect: Effect::Sets(|s, v| {
            s.scale_up_from_zero = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "enable-graceful-degradation",
        section: Section::Loop,
        kind: Kind::Bool,
        default: "false",
        help: "When simulations time out, alternate scale-up and scale-down loops",
        effect: Effect::None("there is nothing to degrade: a loop takes milliseconds"),
    },
    Flag {
        name: "pending-pods-batching-timeout",
        section: Section::Loop,
        kind: Kind::Duration,
        default: "4m",
        help: "Time limit for the filter-out-schedulable step; only with graceful degradation",
        effect: Effect::None("there is nothing to degrade: a loop takes milliseconds"),
    },
    Flag {
        name: "predicate-parallelism",
        section: Section::Loop,
        kind: Kind::Int,
        default: "4",
        help: "Goroutines for running filters over nodes; < 1 is fatal",
        effect: Effect::None("placing pods needs no parallelism here"),
    },
    Flag {
        name: "scheduler-config-file",
        section: Section::Loop,
        kind: Kind::Text,
        default: "",
        help: "KubeSchedulerConfiguration file; must hold exactly one profile",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "enable-csi-node-aware-scheduling",
        section: Section::Loop,
        kind: Kind::Bool,
        default: "false",
        help: "Put CSINode objects into the snapshot, and treat nodes whose CSI drivers are not up as unready",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "enable-inter-pod-affinity-hostname-fast-path",
        section: Section::Loop,
        kind: Kind::Bool,
        default: "false",
        help: "Turn on the scheduler feature gate of that name",
        effect: Effect::None("the exact rule is as fast"),
    },
    Flag {
        name: "bypassed-scheduler-names",
        section: Section::Loop,
        kind: Kind::Slice,
        default: "",
        help: "Pods of these schedulers count as unschedulable before the scheduler has looked at them",
        effect: Effect::Sets(|s, v| {
            s.bypassed_schedulers.extend(v.names());
            Ok(())
        }),
    },
    Flag {
        name: "allowed-scheduler-names",
        section: Section::Loop,
        kind: Kind::Slice,
        default: "",
        help: "Only pods of these schedulers are looked at",
        effect: Effect::Sets(|s, v| {
            s.allowed_schedulers.extend(v.names());
            Ok(())
        }),
    },
    Flag {
        name: "estimator",
        section: Section::ScaleUp,
        kind: Kind::Text,
        default: "binpacking",
        help: "Only value",
        effect: Effect::None("binpacking is the only estimator"),
    },
    Flag {
        name: "expander",
        section: Section::ScaleUp,
        kind: Kind::Text,
        default: "least-waste",
        help: "Comma-separated chain of expanders: random, most-pods, least-waste, least-nodes, price, priority, or the name of a plug-in",
        effect: Effect::Sets(|s, v| {
            s.expander = v.expanders()?;
            Ok(())
        }),
    },
    Flag {
        name: "grpc-expander-url",
        section: Section::ScaleUp,
        kind: Kind::Text,
        default: "",
        help: "Address of the gRPC expander",
        effect: Effect::Later(RUN),
    },
    Flag {
        name: "grpc-expander-cert",
        section: Section::ScaleUp,
        kind: Kind::Text,
        default: "",
        help: "The autoscaler certificate path for it (TLS is mandatory)",
        effect: Effect::Later(RUN),
    },
    Flag {
        name: "max-binpacking-time",
        section: Section::ScaleUp,
        kind: Kind::Duration,
        default: "5m",
        help: "Time limit for computing options in one scale-up; later groups get no option",
        effect: Effect::None("options are computed in milliseconds; there is nothing to cut short"),
    },
    Flag {
        name: "max-nodes-per-scaleup",
        section: Section::ScaleUp,
        kind: Kind::Int,
        default: "1000",
        help: "Estimator node limit per option",
        effect: Effect::Sets(|s, v| {
            s.max_nodes_per_scaleup = Some(v.count()?).filter(|most| *most > 0).unwrap_or(u32::MAX);
            Ok(())
        }),
    },
    Flag {
        name: "max-nodegroup-binpacking-duration",
        section: Section::ScaleUp,
        kind: Kind::Duration,
        default: "10s",
        help: "Estimator time limit per option",
        effect: Effect::None("options are computed in milliseconds; there is nothing to cut short"),
    },
    Flag {
        name: "fastpath-binpacking-enabled",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Ceil-division shortcut for one large group of equal pods",
        effect: Effect::None("equal pods are always packed by arithmetic, exactly"),
    },
    Flag {
        name: "balance-similar-node-groups",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Split every scale-up over similar groups; where pods spread over zones this is done anyway",
        effect: Effect::Sets(|s, v| {
            s.balance_similar_node_groups = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "balancing-ignore-label",
        section: Section::ScaleUp,
        kind: Kind::List,
        default: "",
        help: "Extra label keys ignored when groups are compared",
        effect: Effect::Sets(|s, v| {
            s.likeness.ignored_labels = v.list();
            Ok(())
        }),
    },
    Flag {
        name: "balancing-label",
        section: Section::ScaleUp,
        kind: Kind::List,
        default: "",
        help: "Compare only these labels; not together with balancing-ignore-label",
        effect: Effect::Sets(|s, v| {
            s.likeness.only_labels = v.list();
            Ok(())
        }),
    },
    Flag {
        name: "memory-difference-ratio",
        section: Section::ScaleUp,
        kind: Kind::Float,
        default: "0.015",
        help: "Tolerance for memory capacity when groups are compared",
        effect: Effect::Sets(|s, v| {
            s.likeness.memory_difference_ratio = v.float()?;
            Ok(())
        }),
    },
    Flag {
        name: "max-free-difference-ratio",
        section: Section::ScaleUp,
        kind: Kind::Float,
        default: "0.05",
        help: "Tolerance for free resources when groups are compared",
        effect: Effect::Sets(|s, v| {
            s.likeness.max_free_difference_ratio = v.float()?;
            Ok(())
        }),
    },
    Flag {
        name: "max-allocatable-difference-ratio",
        section: Section::ScaleUp,
        kind: Kind::Float,
        default: "0.05",
        help: "Tolerance for allocatable resources when groups are compared",
        effect: Effect::Sets(|s, v| {
            s.likeness.max_allocatable_difference_ratio = v.float()?;
            Ok(())
        }),
    },
    Flag {
        name: "new-pod-scale-up-delay",
        section: Section::ScaleUp,
        kind: Kind::Duration,
        default: "0",
        help: "Ignore unschedulable pods younger than this",
        effect: Effect::Sets(|s, v| {
            s.new_pod_scale_up_delay = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "expendable-pods-priority-cutoff",
        section: Section::ScaleUp,
        kind: Kind::Int,
        default: "-10",
        help: "Pods with a priority below this never cause scale-up and never block scale-down",
        effect: Effect::Sets(|s, v| {
            s.expendable_pods_priority_cutoff = v.int32()?;
            Ok(())
        }),
    },
    Flag {
        name: "scale-from-unschedulable",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Clear spec.unschedulable on templates made from real nodes",
        effect: Effect::Sets(|s, v| {
            s.scale_from_unschedulable = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "force-ds",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Add all fitting DaemonSet pods to templates made from real nodes",
        effect: Effect::Sets(|s, v| {
            s.force_ds = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "ignore-taint",
        section: Section::ScaleUp,
        kind: Kind::List,
        default: "",
        help: "Deprecated name of startup-taint",
        effect: Effect::Sets(|s, v| {
            s.startup_taints.extend(v.list());
            Ok(())
        }),
    },
    Flag {
        name: "startup-taint",
        section: Section::ScaleUp,
        kind: Kind::List,
        default: "",
        help: "Taint keys removed from templates; a ready node with one counts as not ready",
        effect: Effect::Sets(|s, v| {
            s.startup_taints.extend(v.list());
            Ok(())
        }),
    },
    Flag {
        name: "startup-taint-prefix",
        section: Section::ScaleUp,
        kind: Kind::List,
        default: "",
        help: "Prefix variant of startup-taint, in addition to the built-in prefixes",
        effect: Effect::Sets(|s, v| {
            s.startup_taint_prefixes = v.list();
            Ok(())
        }),
    },
    Flag {
        name: "status-taint",
        section: Section::ScaleUp,
        kind: Kind::List,
        default: "",
        help: "Taint keys removed from templates; nodes stay ready",
        effect: Effect::Sets(|s, v| {
            s.status_taints = v.list();
            Ok(())
        }),
    },
    Flag {
        name: "parallel-scale-up",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Grow the groups of one decision at the same time",
        effect: Effect::None("requests are sent one after the other, and one that fails holds up none of the others"),
    },
    Flag {
        name: "salvo-scale-up",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Several decisions in one loop",
        effect: Effect::None("several decisions in one loop are the rule; see scale-up-rounds"),
    },
    Flag {
        name: "salvo-scale-up-budget",
        section: Section::ScaleUp,
        kind: Kind::Duration,
        default: "1m",
        help: "Time limit for the follow-up decisions",
        effect: Effect::None("several decisions in one loop are the rule; see scale-up-rounds"),
    },
    Flag {
        name: "async-node-groups",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Create node groups asynchronously (needs provider and processor support)",
        effect: Effect::None("node groups are made by people, never by the autoscaler"),
    },
    Flag {
        name: "scaleup-simulation-for-skipped-node-groups-enabled",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Also compute options for groups that were skipped, for diagnostics",
        effect: Effect::None("skipped groups are always explained"),
    },
    Flag {
        name: "max-node-provision-time",
        section: Section::ScaleUp,
        kind: Kind::Duration,
        default: "15m",
        help: "Time a requested node may take to register; per group",
        effect: Effect::Sets(|s, v| {
            s.max_node_provision_time = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "max-node-startup-time",
        section: Section::ScaleUp,
        kind: Kind::Duration,
        default: "15m",
        help: "Time a registered node may take to become ready; per group",
        effect: Effect::Sets(|s, v| {
            s.max_node_startup_time = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "initial-node-group-backoff-duration",
        section: Section::ScaleUp,
        kind: Kind::Duration,
        default: "5m",
        help: "First back-off of an group after a failed scale-up",
        effect: Effect::Sets(|s, v| {
            s.initial_node_group_backoff = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "max-node-group-backoff-duration",
        section: Section::ScaleUp,
        kind: Kind::Duration,
        default: "30m",
        help: "Cap of it",
        effect: Effect::Sets(|s, v| {
            s.max_node_group_backoff = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "node-group-backoff-reset-timeout",
        section: Section::ScaleUp,
        kind: Kind::Duration,
        default: "3h",
        help: "Forget back-off this long after the last failure",
        effect: Effect::Sets(|s, v| {
            s.node_group_backoff_reset = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "force-delete-unregistered-nodes",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Remove long-unregistered instances even below min size, using ForceDeleteNodes",
        effect: Effect::Sets(|s, v| {
            s.force_delete_unregistered_nodes = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "force-delete-failed-nodes",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Remove instances that failed to create using ForceDeleteNodes",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "enable-proactive-scaleup",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Inject the pods that workload controllers have not created yet",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "pod-injection-limit",
        section: Section::ScaleUp,
        kind: Kind::Int,
        default: "5000",
        help: "Ceiling for real + injected pods; real pods are never cut",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "enable-provisioning-requests",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Handle ProvisioningRequest objects",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "provisioning-request-initial-backoff-time",
        section: Section::ScaleUp,
        kind: Kind::Duration,
        default: "1m",
        help: "First retry delay per ProvisioningRequest",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "provisioning-request-max-backoff-time",
        section: Section::ScaleUp,
        kind: Kind::Duration,
        default: "10m",
        help: "Cap",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "provisioning-request-max-backoff-cache-size",
        section: Section::ScaleUp,
        kind: Kind::Int,
        default: "1000",
        help: "LRU size of that back-off",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "check-capacity-batch-processing",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Handle several check-capacity ProvisioningRequests per loop",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "check-capacity-provisioning-request-max-batch-size",
        section: Section::ScaleUp,
        kind: Kind::Int,
        default: "10",
        help: "Batch size",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "check-capacity-provisioning-request-batch-timebox",
        section: Section::ScaleUp,
        kind: Kind::Duration,
        default: "10s",
        help: "Batch time limit",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "check-capacity-processor-instance",
        section: Section::ScaleUp,
        kind: Kind::Text,
        default: "",
        help: "Only handle check-capacity ProvisioningRequests addressed to this name (and, still accepted, class names with this prefix); a non-empty value turns best-effort-atomic handling off",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "capacity-buffer-controller-enabled",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Run the CapacityBuffer controller",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "capacity-buffer-pod-injection-enabled",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "false",
        help: "Inject fake pods for ready buffers",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "capacity-buffer-pod-dry-run-enabled",
        section: Section::ScaleUp,
        kind: Kind::Bool,
        default: "true",
        help: "Build the buffer's pod template through an API dry-run create",
        effect: Effect::Later(NOT_YET),
    },
    Flag {
        name: "scale-down-enabled",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "true",
        help: "Whether nodes may be removed at all (deprecated)",
        effect: Effect::Sets(|s, v| {
            s.scale_down_enabled = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "scale-down-unready-enabled",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "true",
        help: "Allow removing unready nodes",
        effect: Effect::Sets(|s, v| {
            s.scale_down_unready_enabled = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "scale-down-delay-after-add",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "10m",
        help: "Cool-down after a scale-up",
        effect: Effect::Sets(|s, v| {
            s.scale_down_delay_after_add = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "scale-down-delay-after-delete",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "0",
        help: "Cool-down after a node deletion",
        effect: Effect::Sets(|s, v| {
            s.scale_down_delay_after_delete = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "scale-down-delay-after-failure",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "3m",
        help: "Cool-down after a failed scale-down",
        effect: Effect::Sets(|s, v| {
            s.scale_down_delay_after_failure = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "scale-down-delay-type-local",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "false",
        help: "Apply the three delays per group instead of globally",
        effect: Effect::Sets(|s, v| {
            s.scale_down_delay_type_local = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "scale-down-unneeded-time",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "10m",
        help: "Time a node must be unneeded; per group",
        effect: Effect::Sets(|s, v| {
            s.scale_down_unneeded_time = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "scale-down-unready-time",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "20m",
        help: "Same for unready nodes; per group",
        effect: Effect::Sets(|s, v| {
            s.scale_down_unready_time = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "scale-down-utilization-threshold",
        section: Section::ScaleDown,
        kind: Kind::Float,
        default: "0.5",
        help: "Node is a candidate if utilization ≤ this; per group",
        effect: Effect::Sets(|s, v| {
            s.scale_down_utilization_threshold = v.share()?;
            Ok(())
        }),
    },
    Flag {
        name: "scale-down-gpu-utilization-threshold",
        section: Section::ScaleDown,
        kind: Kind::Float,
        default: "0.5",
        help: "Same for GPU nodes; per group",
        effect: Effect::Sets(|s, v| {
            s.scale_down_gpu_utilization_threshold = v.share()?;
            Ok(())
        }),
    },
    Flag {
        name: "ignore-daemonsets-utilization",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "false",
        help: "Leave DaemonSet pods out of utilization; per group",
        effect: Effect::Sets(|s, v| {
            s.ignore_daemonsets_utilization = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "ignore-mirror-pods-utilization",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "false",
        help: "Leave static pods out of utilization; global only",
        effect: Effect::Sets(|s, v| {
            s.ignore_mirror_pods_utilization = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "scale-down-non-empty-candidates-count",
        section: Section::ScaleDown,
        kind: Kind::Int,
        default: "30",
        help: "Was: candidates that are not empty",
        effect: Effect::None("has no effect in the Go autoscaler either"),
    },
    Flag {
        name: "scale-down-candidates-pool-ratio",
        section: Section::ScaleDown,
        kind: Kind::Float,
        default: "0.1",
        help: "Was: share of nodes that are candidates",
        effect: Effect::None("has no effect in the Go autoscaler either"),
    },
    Flag {
        name: "scale-down-candidates-pool-min-count",
        section: Section::ScaleDown,
        kind: Kind::Int,
        default: "50",
        help: "Was: fewest candidates",
        effect: Effect::None("has no effect in the Go autoscaler either"),
    },
    Flag {
        name: "scale-down-simulation-timeout",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "30s",
        help: "Time limit of the removal simulation of one loop",
        effect: Effect::None("all nodes are simulated in every loop"),
    },
    Flag {
        name: "unremovable-node-recheck-timeout",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "5m",
        help: "Skip a node for this long after it proved unremovable",
        effect: Effect::None("every node is looked at again in every loop"),
    },
    Flag {
        name: "skip-nodes-with-system-pods",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "true",
        help: "Kube-system pods without PDB block (until the timeout below)",
        effect: Effect::Sets(|s, v| {
            s.skip_nodes_with_system_pods = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "skip-nodes-with-local-storage",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "true",
        help: "Pods with local storage block",
        effect: Effect::Sets(|s, v| {
            s.skip_nodes_with_local_storage = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "skip-nodes-with-custom-controller-pods",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "true",
        help: "Pods of controllers other than the known kinds block",
        effect: Effect::Sets(|s, v| {
            s.skip_nodes_with_custom_controller_pods = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "blocking-system-pod-distruption-timeout",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "1h",
        help: "Age after which a system pod without PodDisruptionBudget no longer blocks (spelt as in the Go autoscaler)",
        effect: Effect::Sets(|s, v| {
            s.blocking_system_pod_disruption_timeout = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "min-replica-count",
        section: Section::ScaleDown,
        kind: Kind::Int,
        default: "0",
        help: "Controllers with fewer replicas block",
        effect: Effect::Sets(|s, v| {
            s.min_replica_count = v.int()?;
            Ok(())
        }),
    },
    Flag {
        name: "max-scale-down-parallelism",
        section: Section::ScaleDown,
        kind: Kind::Int,
        default: "10",
        help: "Deletions in flight, all kinds",
        effect: Effect::Sets(|s, v| {
            s.max_scale_down_parallelism = v.count()?;
            Ok(())
        }),
    },
    Flag {
        name: "max-drain-parallelism",
        section: Section::ScaleDown,
        kind: Kind::Int,
        default: "1",
        help: "Deletions with drain in flight",
        effect: Effect::Sets(|s, v| {
            s.max_drain_parallelism = v.count()?;
            Ok(())
        }),
    },
    Flag {
        name: "max-graceful-termination-sec",
        section: Section::ScaleDown,
        kind: Kind::Int,
        default: "600",
        help: "Seconds: cap on a pod's grace period and on waiting for it",
        effect: Effect::Sets(|s, v| {
            s.max_graceful_termination = v.seconds()?;
            Ok(())
        }),
    },
    Flag {
        name: "drain-priority-config",
        section: Section::ScaleDown,
        kind: Kind::Text,
        default: "",
        help: "Priority:seconds,…: evict in ascending priority groups with a grace cap each. Unparsable = fatal",
        effect: Effect::Sets(|s, v| {
            s.drain_priorities = v.drain_priorities()?;
            Ok(())
        }),
    },
    Flag {
        name: "max-pod-eviction-time",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "2m",
        help: "Time to keep retrying one pod's eviction",
        effect: Effect::Sets(|s, v| {
            s.max_pod_eviction_time = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "daemonset-eviction-for-empty-nodes",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "false",
        help: "Evict DaemonSet pods from empty nodes",
        effect: Effect::Sets(|s, v| {
            s.daemon_set_eviction_for_empty_nodes = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "daemonset-eviction-for-occupied-nodes",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "true",
        help: "Evict DaemonSet pods from drained nodes",
        effect: Effect::Sets(|s, v| {
            s.daemon_set_eviction_for_occupied_nodes = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "cordon-node-before-terminating",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "true",
        help: "Set spec.unschedulable with the taint",
        effect: Effect::Sets(|s, v| {
            s.cordon_node_before_terminating = v.bool()?;
            Ok(())
        }),
    },
    Flag {
        name: "node-delete-delay-after-taint",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "5s",
        help: "Wait between tainting and the final check",
        effect: Effect::Sets(|s, v| {
            s.node_delete_delay_after_taint = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "dynamic-node-delete-delay-after-taint-enabled",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "false",
        help: "Measure the taint's propagation and adapt that wait",
        effect: Effect::None("the last check is made on what a later loop sees, when the taint is long known"),
    },
    Flag {
        name: "node-deletion-delay-timeout",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "2m",
        help: "Longest wait for delay-deletion annotations to go away",
        effect: Effect::Sets(|s, v| {
            s.node_deletion_delay_timeout = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "node-deletion-batcher-interval",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "0",
        help: "Collect nodes of one group this long and delete them in one call",
        effect: Effect::None("machines of one group that are ready to go in one loop always go in one request"),
    },
    Flag {
        name: "node-deletion-candidate-ttl",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "0",
        help: "If not 0: after a restart, restore the time since when nodes are unneeded from soft taints not older than this",
        effect: Effect::Sets(|s, v| {
            s.node_deletion_candidate_ttl = v.duration()?;
            Ok(())
        }),
    },
    Flag {
        name: "max-bulk-soft-taint-count",
        section: Section::ScaleDown,
        kind: Kind::Int,
        default: "10",
        help: "API writes for soft taints per loop; 0 = no soft taints",
        effect: Effect::Run,
    },
    Flag {
        name: "max-bulk-soft-taint-time",
        section: Section::ScaleDown,
        kind: Kind::Duration,
        default: "3s",
        help: "Time limit for them",
        effect: Effect::Run,
    },
    Flag {
        name: "node-removal-latency-tracking-enabled",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "false",
        help: "Metric of eligibility-to-deletion time",
        effect: Effect::Later(RUN),
    },
    Flag {
        name: "max-node-skip-eval-time-tracker-enabled",
        section: Section::ScaleDown,
        kind: Kind::Bool,
        default: "false",
        help: "Metric of the longest time a node was not evaluated",
        effect: Effect::Later(RUN),
    },
    Flag {
        name: "enable-dynamic-resource-allocation",
        section: Section::Process,
        kind: Kind::Bool,
        default: "true",
        help: "Simulate resource claims; cannot be turned off",
        effect: Effect::Sets(|_, v| match v.bool()? {
            true => Ok(()),
            false => Err("resource claims are always simulated; this cannot be turned off".to_owned()),
        }),
    },
    Flag {
        name: "cluster-snapshot-parallelism",
        section: Section::Process,
        kind: Kind::Int,
        default: "16",
        help: "Was: parallelism of the snapshot",
        effect: Effect::None("has no effect in the Go autoscaler either"),
    },
    Flag {
        name: "scale-up-rounds",
        section: Section::ScaleUp,
        kind: Kind::Int,
        default: "0",
        help: "Ours: most options chosen in one loop; 0: until nothing more can be helped",
        effect: Effect::Sets(|s, v| {
            s.scale_up_rounds = (v.int()? > 0).then_some(v.count()?);
            Ok(())
        }),
    },
    Flag {
        name: "v",
        section: Section::Process,
        kind: Kind::Int,
        default: "0",
        help: "Verbosity of logs, as klog counts it: 0 to 3 info, 4 and 5 debug, from 6 on trace. RUST_LOG wins",
        effect: Effect::Run,
    },
    Flag {
        name: "vmodule",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "Verbosity by source file",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "logtostderr",
        section: Section::Process,
        kind: Kind::Bool,
        default: "true",
        help: "Logs go to standard error",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "alsologtostderr",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "Logs go to standard error as well as to files",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "stderrthreshold",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "Logs at or above this severity go to standard error",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "log-file",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "File for logs",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "log-dir",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "Folder for log files",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "log-file-max-size",
        section: Section::Process,
        kind: Kind::Int,
        default: "1800",
        help: "Largest log file, in megabytes",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "log-backtrace-at",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "Stack trace when a log line of this place is written",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "add-dir-header",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "Folder of the source file in log headers",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "skip-headers",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "No headers in logs",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "skip-log-headers",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "No headers in log files",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "one-output",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "Each log line in one file only",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "leader-elect",
        section: Section::Process,
        kind: Kind::Bool,
        default: "true",
        help: "One of several replicas acts, the one that holds the Lease",
        effect: Effect::Run,
    },
    Flag {
        name: "leader-elect-lease-duration",
        section: Section::Process,
        kind: Kind::Duration,
        default: "15s",
        help: "How long a Lease that is not renewed holds others off",
        effect: Effect::Run,
    },
    Flag {
        name: "leader-elect-renew-deadline",
        section: Section::Process,
        kind: Kind::Duration,
        default: "10s",
        help: "How long the leader tries to renew before it gives up",
        effect: Effect::Run,
    },
    Flag {
        name: "leader-elect-retry-period",
        section: Section::Process,
        kind: Kind::Duration,
        default: "2s",
        help: "Pause between attempts to get or renew the Lease",
        effect: Effect::Run,
    },
    Flag {
        name: "leader-elect-resource-lock",
        section: Section::Process,
        kind: Kind::Text,
        default: "leases",
        help: "Kind of the lock",
        effect: Effect::Run,
    },
    Flag {
        name: "leader-elect-resource-name",
        section: Section::Process,
        kind: Kind::Text,
        default: "cluster-autoscaler",
        help: "Name of the Lease",
        effect: Effect::Run,
    },
    Flag {
        name: "leader-elect-resource-namespace",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "Was: namespace of the Lease",
        effect: Effect::None("the Lease is in --namespace, as in the Go autoscaler"),
    },
    Flag {
        name: "logging-format",
        section: Section::Process,
        kind: Kind::Text,
        default: "text",
        help: "Logs as text or json",
        effect: Effect::Run,
    },
    Flag {
        name: "feature-gates",
        section: Section::Process,
        kind: Kind::Slice,
        default: "",
        help: "Gates of the Kubernetes components",
        effect: Effect::None("the gates are those of Kubernetes 1.37 by default"),
    },
    Flag {
        name: "max-empty-bulk-delete",
        section: Section::ScaleDown,
        kind: Kind::Int,
        default: "10",
        help: "Was: most empty nodes deleted at a time",
        effect: Effect::None("max-scale-down-parallelism takes its place, as in the Go autoscaler"),
    },
    Flag {
        name: "log-flush-frequency",
        section: Section::Process,
        kind: Kind::Duration,
        default: "5s",
        help: "Longest time between flushes of logs",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "log-json-info-buffer-size",
        section: Section::Process,
        kind: Kind::Text,
        default: "0",
        help: "Buffer of informational messages in JSON",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "log-json-split-stream",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "Errors in JSON go to standard error, other messages to standard output",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "log-text-info-buffer-size",
        section: Section::Process,
        kind: Kind::Text,
        default: "0",
        help: "Buffer of informational messages as text",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "log-text-split-stream",
        section: Section::Process,
        kind: Kind::Bool,
        default: "false",
        help: "Errors as text go to standard error, other messages to standard output",
        effect: Effect::None(LOGS),
    },
    Flag {
        name: "cloud-provider-gce-l7lb-src-cidrs",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "GCE: source ranges of load balancers",
        effect: Effect::None("comes from a library of the Go autoscaler and has no effect there either"),
    },
    Flag {
        name: "cloud-provider-gce-lb-src-cidrs",
        section: Section::Process,
        kind: Kind::Text,
        default: "",
        help: "GCE: source ranges of load balancers",
        effect: Effect::None("comes from a library of the Go autoscaler and has no effect there either"),
    },
];
