//! What is watched: every kind that an observation is made from, where the API server has it, and what it means if it
//! cannot be had.

use plimsoll_model::convert::Kind;

/// Whether the loop can do without a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// There is no observation without it.
    Required,
    /// What is not known without it.
    Optional(&'static str),
}

/// A kind of objects at the API server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Resource {
    /// What the model makes of its objects.
    pub(crate) kind: Kind,
    /// Its name for people and for RBAC rules, with its API group if it has one.
    pub(crate) name: &'static str,
    /// API version, as objects say it.
    pub(crate) version: &'static str,
    /// Path of the collection.
    pub(crate) path: String,
    /// The same in older versions, for API servers that do not have that one; newest first.
    pub(crate) older: Vec<(&'static str, String)>,
    /// Which of the objects.
    pub(crate) fields: Option<String>,
    /// Whether the loop can do without.
    pub(crate) need: Need,
}

/// A pod that ended holds nothing and needs nothing.
const NOT_ENDED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Versions of API groups that are asked for; the core's is `v1`.
const VERSIONS: [&str; 5] = ["apps/v1", "batch/v1", "policy/v1", "storage.k8s.io/v1", "resource.k8s.io/v1"];

/// Dynamic resource allocation before Kubernetes 1.34, newest first.
pub(crate) const DEVICES_BEFORE: [&str; 2] = ["resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1"];

const NO_STORAGE: &str = "pods with volumes are judged without it";
const NO_DEVICES: &str = "pods with resource claims count as unschedulable";
const NO_OWNERS: &str = "a node with a pod of such a controller is not drained";

/// The kinds that the predicates and the drain rules look at, in the order in which they are read first: nodes and what
/// pods refer to before the pods.
pub(crate) fn of_observation() -> Vec<Resource> {
    use Need::{Optional, Required};
    let plain = |kind, name: &'static str, path: &str, need| {
        let version = VERSIONS.into_iter().find(|version| path.contains(&format!("/{version}/"))).unwrap_or("v1");
        Resource { kind, name, version, path: path.to_owned(), older: vec![], fields: None, need }
    };
    let storage = |kind, name, plural: &str| {
        plain(kind, name, &format!("/apis/storage.k8s.io/v1/{plural}"), Optional(NO_STORAGE))
    };
    let device = |kind, name, plural: &str| {
        let path = |version: &str| format!("/apis/{version}/{plural}");
        let older = DEVICES_BEFORE.map(|version| (version, path(version))).to_vec();
        Resource { older, ..plain(kind, name, &path("resource.k8s.io/v1"), Optional(NO_DEVICES)) }
    };
    let app = |kind, name, plural: &str, need| plain(kind, name, &format!("/apis/apps/v1/{plural}"), need);
    vec![
        plain(Kind::Node, "nodes", "/api/v1/nodes", Required),
        plain(
            Kind::Namespace,
            "namespaces",
            "/api/v1/namespaces",
            Optional("affinity terms that select namespaces by label match none"),
        ),
        app(
            Kind::DaemonSet,
            "daemonsets.apps",
            "daemonsets",
            Optional("new nodes are taken to run no DaemonSet's pods"),
        ),
        app(Kind::ReplicaSet, "replicasets.apps", "replicasets", Optional(NO_OWNERS)),
        app(Kind::StatefulSet, "statefulsets.apps", "statefulsets", Optional(NO_OWNERS)),
        plain(Kind::Job, "jobs.batch", "/apis/batch/v1/jobs", Optional(NO_OWNERS)),
        plain(
            Kind::ReplicationController,
            "replicationcontrollers",
            "/api/v1/replicationcontrollers",
            Optional(NO_OWNERS),
        ),
        plain(
            Kind::PodDisruptionBudget,
            "poddisruptionbudgets.policy",
            "/apis/policy/v1/poddisruptionbudgets",
            Optional(
                "budgets are only met when an eviction is refused, and no pod of kube-system counts as covered by one",
            ),
        ),
        plain(
            Kind::PersistentVolumeClaim,
            "persistentvolumeclaims",
            "/api/v1/persistentvolumeclaims",
            Optional(NO_STORAGE),
        ),
        plain(Kind::PersistentVolume, "persistentvolumes", "/api/v1/persistentvolumes", Optional(NO_STORAGE)),
        storage(Kind::StorageClass, "storageclasses.storage.k8s.io", "storageclasses"),
        storage(Kind::CSINode, "csinodes.storage.k8s.io", "csinodes"),
        storage(Kind::CSIDriver, "csidrivers.storage.k8s.io", "csidrivers"),
        storage(Kind::CSIStorageCapacity, "csistoragecapacities.storage.k8s.io", "csistoragecapacities"),
        storage(Kind::VolumeAttachment, "volumeattachments.storage.k8s.io", "volumeattachments"),
        device(Kind::DeviceClass, "deviceclasses.resource.k8s.io", "deviceclasses"),
        device(Kind::ResourceSlice, "resourceslices.resource.k8s.io", "resourceslices"),
        device(Kind::ResourceClaim, "resourceclaims.resource.k8s.io", "resourceclaims"),
        device(Kind::ResourceClaimTemplate, "resourceclaimtemplates.resource.k8s.io", "resourceclaimtemplates"),
        Resource { fields: Some(NOT_ENDED.to_owned()), ..plain(Kind::Pod, "pods", "/api/v1/pods", Required) },
    ]
}

/// One ConfigMap, and no other of its namespace.
pub(crate) fn config_map(namespace: &str, name: &str, without: &'static str) -> Resource {
    Resource {
        kind: Kind::ConfigMap,
        name: "configmaps",
        version: "v1",
        path: format!("/api/v1/namespaces/{namespace}/configmaps"),
        older: vec![],
        fields: Some(format!("metadata.name={name}")),
        need: Need::Optional(without),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_watched_once_and_pods_come_last() {
        let all = of_observation();
        for (index, resource) in all.iter().enumerate() {
            assert!(all.iter().skip(index + 1).all(|other| other.kind != resource.kind), "{}", resource.name);
            let plural = resource.name.split('.').next().unwrap();
            let newest = [(resource.version, resource.path.clone())];
            for (version, path) in newest.iter().chain(&resource.older) {
                let root = if version.contains('/') { "apis" } else { "api" };
                assert_eq!(*path, format!("/{root}/{version}/{plural}"));
                assert_eq!(Kind::find(version, &format!("{:?}", resource.kind)), Some(resource.kind), "{version}");
            }
        }
        assert_eq!(all.last().map(|resource| resource.kind), Some(Kind::Pod));
        let required = all.iter().filter(|resource| resource.need == Need::Required);
        assert_eq!(required.map(|resource| resource.name).collect::<Vec<_>>(), ["nodes", "pods"]);
    }
}
