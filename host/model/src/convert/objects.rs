//! Which kinds of objects are read, and where each goes.

use std::sync::Arc;

use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::policy::v1 as policy;
use k8s_openapi::api::resource::v1 as resource;
use k8s_openapi::api::storage::v1 as storage;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::cluster::{Cluster, ConfigMap};
use crate::devices::ResourceClaim;
use crate::symbol::Symbol;

use super::admission::Admit;
use super::error::{ConvertError, FieldPath, Segment, Within};
use super::parse::{from_text, from_value};
use super::{metadata, older_devices};

/// An object that has a place in a cluster.
pub trait Import {
    /// Adds it. An object of the same kind and name that is there already is not looked for.
    ///
    /// # Errors
    ///
    /// If something in it cannot be read; nothing is added then.
    fn import(&self, cluster: &mut Cluster) -> Result<(), ConvertError>;
}

/// Why an object in a file was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ObjectError {
    /// A field does not have the shape that Kubernetes defines.
    #[error("{}{message}", prefix(path))]
    Shape {
        /// The field.
        path: FieldPath,
        /// What was found and expected.
        message: String,
    },
    /// A value cannot be read.
    #[error(transparent)]
    Value(#[from] ConvertError),
}

fn prefix(path: &FieldPath) -> String {
    if path.is_root() { String::new() } else { format!("{path}: ") }
}

impl ObjectError {
    /// The field that it is about.
    pub fn path(&self) -> &FieldPath {
        match self {
            Self::Shape { path, .. } => path,
            Self::Value(error) => &error.path,
        }
    }

    /// The same error seen from one level further out.
    pub fn under(self, key: &'static str) -> Self {
        let segment = Segment::Key(key.into());
        match self {
            Self::Shape { path, message } => Self::Shape { path: path.under(segment), message },
            Self::Value(error) => Self::Value(error.under(segment)),
        }
    }
}

macro_rules! kinds {
    ($($name:ident: $object:ty, $version:literal, $scope:ident;)*) => {
        /// A kind of object that is read, or that is known and does not matter.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Kind {
            $(
                #[doc = concat!("`", $version, "` ", stringify!($name), ".")]
                $name,
            )*
            /// Known, and nothing that the autoscaler looks at.
            Unneeded,
        }

        impl Kind {
            /// The kind by its API version and name; none if it is not known.
            pub fn find(api_version: &str, kind: &str) -> Option<Self> {
                match (older_devices::modern_version(api_version), kind) {
                    $(($version, stringify!($name)) => Some(Self::$name),)*
                    _ => is_unneeded(api_version, kind).then_some(Self::Unneeded),
                }
            }

            /// Whether its objects live in namespaces.
            pub fn is_namespaced(self) -> bool {
                match self {
                    $(Self::$name => stringify!($scope) == "namespaced",)*
                    Self::Unneeded => false,
                }
            }

            /// Reads an object of this kind from JSON text and adds it to a cluster. The API server may never have seen
            /// the object: what it fills in is filled in, and what it refuses is refused.
            ///
            /// # Errors
            ///
            /// If the text is no object of this kind, or a value in it cannot be read or is refused.
            pub fn admit_text(self, text: &str, cluster: &mut Cluster) -> Result<(), ObjectError> {
                if self.has_older_forms()
                    && let Some(value) = older_devices::modern(text)
                {
                    return self.admit_value(value, cluster);
                }
                match self {
                    $(Self::$name => Ok(admitted(from_text::<$object>(text)?)?.import(cluster)?),)*
                    Self::Unneeded => Ok(()),
                }
            }

            /// The same from a JSON tree.
            ///
            /// # Errors
            ///
            /// If the tree is no object of this kind, or a value in it cannot be read or is refused.
            pub fn admit_value(self, value: Value, cluster: &mut Cluster) -> Result<(), ObjectError> {
                let value = if self.has_older_forms() { older_devices::modernized(value) } else { value };
                match self {
                    $(Self::$name => Ok(admitted(from_value::<$object>(value)?)?.import(cluster)?),)*
                    Self::Unneeded => Ok(()),
                }
            }

            /// Reads an object of this kind from JSON text, as the API server has it, and adds it to a cluster.
            ///
            /// # Errors
            ///
            /// If the text is no object of this kind, or a value in it cannot be read.
            pub fn import_text(self, text: &str, cluster: &mut Cluster) -> Result<(), ObjectError> {
                if self.has_older_forms()
                    && let Some(value) = older_devices::modern(text)
                {
                    return self.import_value(value, cluster);
                }
                match self {
                    $(Self::$name => Ok(from_text::<$object>(text)?.import(cluster)?),)*
                    Self::Unneeded => Ok(()),
                }
            }

            /// Reads an object of this kind from a JSON tree, as the API server has it, and adds it to a cluster.
            ///
            /// # Errors
            ///
            /// If the tree is no object of this kind, or a value in it cannot be read.
            pub fn import_value(self, value: Value, cluster: &mut Cluster) -> Result<(), ObjectError> {
                let value = if self.has_older_forms() { older_devices::modernized(value) } else { value };
                match self {
                    $(Self::$name => Ok(from_value::<$object>(value)?.import(cluster)?),)*
                    Self::Unneeded => Ok(()),
                }
            }
        }
    };
}

kinds! {
    Node: core::Node, "v1", global;
    Pod: core::Pod, "v1", namespaced;
    DaemonSet: apps::DaemonSet, "apps/v1", namespaced;
    ReplicaSet: apps::ReplicaSet, "apps/v1", namespaced;
    StatefulSet: apps::StatefulSet, "apps/v1", namespaced;
    Job: batch::Job, "batch/v1", namespaced;
    ReplicationController: core::ReplicationController, "v1", namespaced;
    PodDisruptionBudget: policy::PodDisruptionBudget, "policy/v1", namespaced;
    Namespace: core::Namespace, "v1", global;
    PersistentVolumeClaim: core::PersistentVolumeClaim, "v1", namespaced;
    PersistentVolume: core::PersistentVolume, "v1", global;
    StorageClass: storage::StorageClass, "storage.k8s.io/v1", global;
    CSINode: storage::CSINode, "storage.k8s.io/v1", global;
    CSIDriver: storage::CSIDriver, "storage.k8s.io/v1", global;
    CSIStorageCapacity: storage::CSIStorageCapacity, "storage.k8s.io/v1", namespaced;
    VolumeAttachment: storage::VolumeAttachment, "storage.k8s.io/v1", global;
    ConfigMap: core::ConfigMap, "v1", namespaced;
    DeviceClass: resource::DeviceClass, "resource.k8s.io/v1", global;
    ResourceSlice: resource::ResourceSlice, "resource.k8s.io/v1", global;
    ResourceClaim: resource::ResourceClaim, "resource.k8s.io/v1", namespaced;
    ResourceClaimTemplate: resource::ResourceClaimTemplate, "resource.k8s.io/v1", namespaced;
}

impl Kind {
    /// Whether objects of an older API version have other fields.
    fn has_older_forms(self) -> bool {
        matches!(self, Self::DeviceClass | Self::ResourceSlice | Self::ResourceClaim | Self::ResourceClaimTemplate)
    }
}

/// Kinds that dumps of whole clusters hold and that change no decision. Priorities of pods, for instance, are numbers in
/// the pods themselves.
fn is_unneeded(api_version: &str, kind: &str) -> bool {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    match group {
        "" => matches!(
            kind,
            "ComponentStatus"
                | "Endpoints"
                | "Event"
                | "LimitRange"
                | "PodTemplate"
                | "ResourceQuota"
                | "Secret"
                | "Service"
                | "ServiceAccount"
        ),
        "apps" => matches!(kind, "Deployment" | "ControllerRevision"),
        "batch" => kind == "CronJob",
        "storage.k8s.io" => kind == "VolumeAttributesClass",
        "scheduling.k8s.io" => kind == "PriorityClass",
        "node.k8s.io" => kind == "RuntimeClass",
        "admissionregistration.k8s.io"
        | "apiextensions.k8s.io"
        | "apiregistration.k8s.io"
        | "autoscaling"
        | "certificates.k8s.io"
        | "coordination.k8s.io"
        | "discovery.k8s.io"
        | "events.k8s.io"
        | "flowcontrol.apiserver.k8s.io"
        | "metrics.k8s.io"
        | "networking.k8s.io"
        | "rbac.authorization.k8s.io" => true,
        _ => false,
    }
}

fn admitted<T: Admit>(mut object: T) -> Result<T, ConvertError> {
    object.admit()?;
    Ok(object)
}

pub(super) fn claim_name(metadata: &ObjectMeta, cluster: &mut Cluster) -> Result<(Symbol, Symbol), ConvertError> {
    let namespace = metadata::namespace(metadata, &mut cluster.symbols);
    Ok((namespace, cluster.symbols.intern(metadata::name(metadata)?)))
}

pub(super) fn resource_claim(
    claim: &resource::ResourceClaim,
    cluster: &mut Cluster,
) -> Result<ResourceClaim, ConvertError> {
    let spec = cluster.converter().claim_spec(claim.spec.as_ref()).field("spec")?;
    let status = claim.status.as_ref();
    let allocation = status.map(|status| cluster.converter().allocation(status)).transpose().field("status")?.flatten();
    let owner = metadata::controller(&claim.metadata);
    let symbols = &mut cluster.symbols;
    let consumers = status.and_then(|status| status.reserved_for.as_ref()).into_iter().flatten();
    Ok(ResourceClaim {
        spec: cluster.devices.specs.intern(spec),
        deleting: claim.metadata.deletion_timestamp.is_some(),
        owner_pod: owner.map(|owner| (symbols.intern(&owner.name), symbols.intern(&owner.uid))),
        allocation,
        reserved_for: consumers.map(|consumer| symbols.intern(&consumer.uid)).collect(),
    })
}

macro_rules! import_into {
    ($($object:ty => |$cluster:ident, $this:ident| $body:expr;)*) => {
        $(impl Import for $object {
            fn import(&self, $cluster: &mut Cluster) -> Result<(), ConvertError> {
                let $this = self;
                $body;
                Ok(())
            }
        })*
    };
}

import_into! {
    core::Node => |cluster, node| { let node = cluster.converter().node(node)?; cluster.nodes.push(node) };
    core::Pod => |cluster, pod| { let pod = cluster.converter().pod(pod)?; cluster.pods.push(pod) };
    apps::DaemonSet => |cluster, set| { let set = cluster.converter().daemon_set(set)?; cluster.daemon_sets.push(set) };
    apps::ReplicaSet => |cluster, set| { let set = cluster.converter().replica_set(set)?; cluster.controllers.push(set) };
    apps::StatefulSet => |cluster, set| { let set = cluster.converter().stateful_set(set)?; cluster.controllers.push(set) };
    batch::Job => |cluster, job| { let job = cluster.converter().job(job)?; cluster.controllers.push(job) };
    core::ReplicationController => |cluster, controller| {
        let controller = cluster.converter().replication_controller(controller)?;
        cluster.controllers.push(controller)
    };
    policy::PodDisruptionBudget => |cluster, budget| {
        let budget = cluster.converter().disruption_budget(budget)?;
        cluster.disruption_budgets.push(budget)
    };
    core::Namespace => |cluster, namespace| {
        let name = cluster.symbols.intern(metadata::name(&namespace.metadata)?);
        let labels = metadata::labels(namespace.metadata.labels.as_ref(), &mut cluster.symbols);
        cluster.namespaces.insert(name, labels)
    };
    core::PersistentVolumeClaim => |cluster, claim| {
        let namespace = metadata::namespace(&claim.metadata, &mut cluster.symbols);
        let name = cluster.symbols.intern(metadata::name(&claim.metadata)?);
        let claim = cluster.converter().claim(claim)?;
        cluster.storage.claims.insert((namespace, name), claim)
    };
    core::PersistentVolume => |cluster, volume| {
        let name = cluster.symbols.intern(metadata::name(&volume.metadata)?);
        let volume = cluster.converter().persistent_volume(volume)?;
        cluster.storage.volumes.insert(name, volume)
    };
    storage::StorageClass => |cluster, class| {
        let name = cluster.symbols.intern(metadata::name(&class.metadata)?);
        let class = cluster.converter().storage_class(class);
        cluster.storage.classes.insert(name, class)
    };
    storage::CSINode => |cluster, node| {
        let name = cluster.symbols.intern(metadata::name(&node.metadata)?);
        let node = cluster.converter().csi_node(node);
        cluster.storage.csi_nodes.insert(name, node)
    };
    storage::CSIDriver => |cluster, driver| {
        let name = cluster.symbols.intern(metadata::name(&driver.metadata)?);
        let driver = cluster.converter().csi_driver(driver);
        cluster.storage.csi_drivers.insert(name, driver)
    };
    storage::CSIStorageCapacity => |cluster, capacity| {
        let capacity = cluster.converter().storage_capacity(capacity)?;
        cluster.storage.capacities.push(capacity)
    };
    storage::VolumeAttachment => |cluster, attachment| {
        let attachment = cluster.converter().attachment(attachment);
        cluster.storage.attachments.push(attachment)
    };
    core::ConfigMap => |cluster, map| {
        let data = map.data.iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
        let namespace = metadata::namespace(&map.metadata, &mut cluster.symbols);
        let name = cluster.symbols.intern(metadata::name(&map.metadata)?);
        cluster.config_maps.push(ConfigMap { namespace, name, data })
    };
    resource::DeviceClass => |cluster, class| {
        let name = cluster.symbols.intern(metadata::name(&class.metadata)?);
        let class = cluster.converter().device_class(class);
        cluster.devices.classes.insert(name, class)
    };
    resource::ResourceSlice => |cluster, slice| {
        let slice = cluster.converter().resource_slice(slice)?;
        cluster.devices.slices.push(Arc::new(slice))
    };
    resource::ResourceClaim => |cluster, claim| {
        let name = claim_name(&claim.metadata, cluster)?;
        let claim = resource_claim(claim, cluster)?;
        cluster.devices.claims.insert(name, claim)
    };
    resource::ResourceClaimTemplate => |cluster, template| {
        let name = claim_name(&template.metadata, cluster)?;
        let spec = template.spec.as_ref().and_then(|template| template.spec.as_ref());
        let spec = cluster.converter().claim_spec(spec).field("spec").field("spec")?;
        let spec = cluster.devices.specs.intern(spec);
        cluster.devices.templates.insert(name, spec)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_where_the_parser_stopped() {
        for (name, text, expected) in [
            ("a number", r#"{"spec":{"nodeName":5}}"#, "spec.nodeName"),
            ("a number before others", r#"{"spec":{"nodeName":5,"priority":1}}"#, "spec.nodeName"),
            ("an object for a list", r#"{"spec":{"containers":{}}}"#, "spec.containers"),
            ("over several lines", "{\n \"spec\": {\n  \"containers\":\n   {\n   }\n }\n}", "spec.containers"),
            ("an element", r#"{"spec":{"containers":[{}, 7]}}"#, "spec.containers[1]"),
            ("a list for an object", r#"{"spec":{"securityContext":["a"]}}"#, "spec.securityContext"),
            ("an object for a text", r#"{"spec":{"containers":[{"args":[{"a":1}]}]}}"#, "spec.containers[0].args[0]"),
            ("a list for an element", r#"{"spec":{"containers":[[]]}}"#, "spec.containers[0]"),
            ("a text for a number", r#"{"spec":{"priority":"high","nodeName":"n"}}"#, "spec.priority"),
            ("a key that needs brackets", r#"{"metadata":{"labels":{"a/b": true}}}"#, "metadata.labels[\"a/b\"]"),
            ("a switch", r#"{"spec":{"hostNetwork":"yes"}}"#, "spec.hostNetwork"),
            ("a time", r#"{"metadata":{"creationTimestamp":"yesterday","name":"p"}}"#, "metadata.creationTimestamp"),
            ("not in ASCII", r#"{"metadata":{"name":"ä","uid":5}}"#, "metadata.uid"),
            ("the object", "5", ""),
        ] {
            match from_text::<core::Pod>(text) {
                Err(ObjectError::Shape { path, .. }) => assert_eq!(path.to_string(), expected, "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}
