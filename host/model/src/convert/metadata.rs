//! Names, labels, annotations and owners.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::labels::Labels;
use crate::pod::{Owner, OwnerKind};
use crate::symbol::{Symbol, Symbols, known};
use crate::time::Time;

use super::error::{ConvertError, Flaw, Within};

pub(super) type Texts = BTreeMap<String, String>;

/// `metadata.name`.
pub(super) fn name(metadata: &meta::ObjectMeta) -> Result<&str, ConvertError> {
    let name = metadata.name.as_deref().filter(|name| !name.is_empty()).ok_or_else(|| Flaw::Nameless.into());
    name.field("name").field("metadata")
}

/// `metadata.namespace` of an object that lives in one.
pub(super) fn namespace(metadata: &meta::ObjectMeta, symbols: &mut Symbols) -> Symbol {
    match metadata.namespace.as_deref() {
        None | Some("") => known::DEFAULT,
        Some(namespace) => symbols.intern(namespace),
    }
}

pub(super) fn uid(metadata: &meta::ObjectMeta) -> &str {
    metadata.uid.as_deref().unwrap_or("")
}

pub(super) fn labels(texts: Option<&Texts>, symbols: &mut Symbols) -> Labels {
    Labels::new(texts.into_iter().flatten().map(|(key, value)| (symbols.intern(key), symbols.intern(value))))
}

/// Value of an annotation.
pub(super) fn annotation<'a>(metadata: &'a meta::ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

pub(super) fn time(time: &meta::Time) -> Time {
    Time::from_millis(time.0.as_millisecond())
}

/// The reference that is marked as the controller (apimachinery `GetControllerOf`).
pub(super) fn controller(metadata: &meta::ObjectMeta) -> Option<&meta::OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// The controller as the drain rules see it: by kind alone for most kinds; DaemonSets and StatefulSets of other API groups
/// than `apps` are other kinds, since nobody can look them up.
pub(super) fn owner(metadata: &meta::ObjectMeta, symbols: &mut Symbols) -> Option<Owner> {
    let reference = controller(metadata)?;
    let in_apps = reference.api_version.split_once('/').is_some_and(|(group, _)| group == "apps");
    let kind = match reference.kind.as_str() {
        "ReplicaSet" => OwnerKind::ReplicaSet,
        "StatefulSet" if in_apps => OwnerKind::StatefulSet,
        "DaemonSet" if in_apps => OwnerKind::DaemonSet,
        "Job" => OwnerKind::Job,
        "ReplicationController" => OwnerKind::ReplicationController,
        "Node" => OwnerKind::Node,
        other => OwnerKind::Other(symbols.intern(other)),
    };
    Some(Owner { kind, name: symbols.intern(&reference.name), uid: symbols.intern(&reference.uid) })
}
