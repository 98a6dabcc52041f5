//! What is known to mean something, and what is left out.

/// Texts that stay wherever they stand, in order: everybody has them.
pub(super) const KEPT: &[&str] = &[
    "",
    "amd64",
    "arm64",
    "cluster-autoscaler-priority-expander",
    "default",
    "default-scheduler",
    "false",
    "kube-node-lease",
    "kube-public",
    "kube-system",
    "linux",
    "plimsoll",
    "system-cluster-critical",
    "system-node-critical",
    "true",
    "windows",
];

/// Fields whose text stays: words of Kubernetes, amounts, times, label keys, drivers.
pub(super) const KEPT_FIELDS: &[&str] = &[
    "accessModes",
    "action",
    "allocationMode",
    "apiVersion",
    "at",
    "attacher",
    "bindingConditions",
    "bindingFailureConditions",
    "capacity",
    "creationTimestamp",
    "declaredFeatures",
    "deletionTimestamp",
    "distinctAttribute",
    "driver",
    "effect",
    "expression",
    "extendedResourceName",
    "fsType",
    "key",
    "kind",
    "lastTransitionTime",
    "matchAttribute",
    "matchLabelKeys",
    "maximumVolumeSize",
    "medium",
    "mismatchLabelKeys",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "operator",
    "persistentVolumeReclaimPolicy",
    "phase",
    "preemptionPolicy",
    "pricePerHour",
    "protocol",
    "provisioner",
    "reason",
    "reclaimPolicy",
    "restartPolicy",
    "startTime",
    "status",
    "topologyKey",
    "topologyKeys",
    "type",
    "unhealthyPodEvictionPolicy",
    "volumeBindingMode",
    "volumeMode",
    "whenUnsatisfiable",
];

/// Fields under which everything stays: maps from resource names to amounts, attributes of devices, options of groups.
pub(super) const KEPT_MAPS: &[&str] = &[
    "allocatable",
    "allocatedResources",
    "attributes",
    "capacity",
    "consumedCapacity",
    "counters",
    "default",
    "defaultRequest",
    "hard",
    "limits",
    "max",
    "maxLimitRequestRatio",
    "min",
    "options",
    "overhead",
    "podFixed",
    "requests",
];

/// Fields that are left out: no decision hangs on them, and they tell much.
pub(super) const LEFT_OUT: &[&str] = &[
    "addedCapabilities",
    "args",
    "awsElasticBlockStoreSecret",
    "binaryData",
    "command",
    "configMap",
    "containerID",
    "daemonEndpoints",
    "dnsConfig",
    "dnsPolicy",
    "downwardAPI",
    "env",
    "envFrom",
    "generateName",
    "finalizers",
    "hostAliases",
    "hostIPs",
    "image",
    "imageID",
    "imagePullPolicy",
    "imagePullSecrets",
    "images",
    "lastProbeTime",
    "lastState",
    "lifecycle",
    "livenessProbe",
    "managedFields",
    "message",
    "mountOptions",
    "nodeInfo",
    "parameters",
    "podIP",
    "podIPs",
    "projected",
    "readinessProbe",
    "resourceVersion",
    "secret",
    "securityContext",
    "selfLink",
    "serviceAccount",
    "serviceAccountName",
    "startupProbe",
    "state",
    "stringData",
    "subdomain",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "volumeAttributes",
    "volumeDevices",
    "volumesAttached",
    "volumesInUse",
    "workingDir",
];

/// Sources of volumes that are left out, but must still be there: a volume without a source is none.
pub(super) const EMPTIED: &[&str] = &["configMap", "downwardAPI", "projected", "secret"];

/// Annotations that decisions hang on, with what becomes of their values.
pub(super) const ANNOTATIONS: &[(&str, Annotation)] = &[
    ("cluster-autoscaler.kubernetes.io/daemonset-pod", Annotation::Kept),
    ("cluster-autoscaler.kubernetes.io/enable-ds-eviction", Annotation::Kept),
    ("cluster-autoscaler.kubernetes.io/pod-scale-up-delay", Annotation::Kept),
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", Annotation::Kept),
    ("cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes", Annotation::Names),
    ("cluster-autoscaler.kubernetes.io/scale-down-disabled", Annotation::Kept),
    ("kubernetes.io/config.mirror", Annotation::Name),
    ("kubernetes.io/config.source", Annotation::Kept),
    ("pv.kubernetes.io/bind-completed", Annotation::Kept),
    ("resource.kubernetes.io/pod-claim-name", Annotation::Name),
    ("storage.alpha.kubernetes.io/migrated-plugins", Annotation::Kept),
    ("storageclass.beta.kubernetes.io/is-default-class", Annotation::Kept),
    ("storageclass.kubernetes.io/is-default-class", Annotation::Kept),
    ("volume.beta.kubernetes.io/storage-class", Annotation::Name),
    ("volume.kubernetes.io/selected-node", Annotation::Name),
];

/// Beginning of annotations whose end is anybody's, and whose value says nothing.
pub(super) const DELAY_DELETION: &str = "delay-deletion.cluster-autoscaler.kubernetes.io/";

/// What becomes of the value of an annotation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Annotation {
    /// It stays, if it is a word that decisions hang on, a number or a duration.
    Kept,
    /// It is a name.
    Name,
    /// It is names with commas between.
    Names,
}

/// Whether a value of an annotation that stays is harmless: few words have an effect, and others have none.
pub(super) fn is_harmless(value: &str) -> bool {
    let word = |word: &str| word.len() <= 40 && word.chars().all(|c| c.is_ascii_alphanumeric() || "-./".contains(c));
    matches!(value, "" | "true" | "false" | "yes" | "on-completion" | "api" | "file" | "http")
        || plimsoll_model::time::go_duration_nanos(value).is_some()
        || (value.contains("kubernetes.io/") && value.split(',').all(word))
}

/// Kinds of owners that the loop tells apart.
pub(super) const OWNERS: &[&str] =
    &["CronJob", "DaemonSet", "Deployment", "Job", "Node", "Pod", "ReplicaSet", "ReplicationController", "StatefulSet"];
