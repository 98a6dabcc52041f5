//! The API server's objects as the model has them, kept up to date by the watches.
//!
//! An object is converted as it arrives and then forgotten; of nodes, what a write needs is kept beside. The loop takes
//! the cluster as it is at one moment; while it works on it, the first change makes a copy, so that neither waits.

use std::sync::Arc;

use plimsoll_model::Cluster;
use plimsoll_model::convert::{Kind, ObjectError};
use plimsoll_model::pod::Scheduling;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::rows::{Change, Key, Rows, reorder};

/// What a write to a node needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct NodeFacts {
    /// `metadata.resourceVersion`.
    pub(crate) version: Box<str>,
    /// `metadata.uid`.
    pub(crate) uid: Box<str>,
    /// `spec.taints` as JSON; empty if there are none.
    pub(crate) taints: Box<str>,
    /// `spec.unschedulable`.
    pub(crate) unschedulable: bool,
}

/// What a change means for the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// Nothing that cannot wait.
    Plain,
    /// The scheduler found that a pod fits nowhere.
    Unschedulable,
}

/// What says which object a text is, and of nodes what writes need.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow, default)]
    spec: Option<NodeSpec<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    #[serde(default)]
    namespace: Option<&'a str>,
    #[serde(default)]
    uid: &'a str,
    #[serde(default)]
    resource_version: &'a str,
}

#[derive(Deserialize, Default)]
struct NodeSpec<'a> {
    #[serde(borrow, default)]
    taints: Option<&'a RawValue>,
    #[serde(default)]
    unschedulable: Option<bool>,
}

/// The part of an object that says which it is.
#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

/// Why an object was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MirrorError {
    /// It does not even say what it is.
    #[error("an object without a name that can be read: {0}")]
    Nameless(#[from] serde_json::Error),
    /// A field cannot be read. The loop goes on as if the object were not there.
    #[error("{name} cannot be read and is left out: {error}")]
    Unreadable {
        /// Namespace and name.
        name: String,
        /// Which field and why.
        error: ObjectError,
    },
}

/// The objects.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    cluster: Arc<Cluster>,
    /// Of kinds that are lists in the cluster, in the order of the list; of the others, which there are.
    rows: [Rows; LISTS],
    nodes: FxHashMap<Box<str>, NodeFacts>,
}

/// Which rows a kind is in. Controllers of all kinds are one list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum List {
    Nodes,
    Pods,
    DaemonSets,
    Controllers,
    Budgets,
    Capacities,
    Attachments,
    ConfigMaps,
    Slices,
    /// No list in the cluster.
    ByName,
}

const LISTS: usize = List::ByName as usize + 1;

/// Runs `$body` on the list of a cluster that holds the objects, if it is one.
macro_rules! with_list {
    ($list:expr, $cluster:expr, |$items:ident| $body:expr) => {
        match $list {
            List::Nodes => {
                let $items = &mut $cluster.nodes;
                $body
            }
            List::Pods => {
                let $items = &mut $cluster.pods;
                $body
            }
            List::DaemonSets => {
                let $items = &mut $cluster.daemon_sets;
                $body
            }
            List::Controllers => {
                let $items = &mut $cluster.controllers;
                $body
            }
            List::Budgets => {
                let $items = &mut $cluster.disruption_budgets;
                $body
            }
            List::Capacities => {
                let $items = &mut $cluster.storage.capacities;
                $body
            }
            List::Attachments => {
                let $items = &mut $cluster.storage.attachments;
                $body
            }
            List::ConfigMaps => {
                let $items = &mut $cluster.config_maps;
                $body
            }
            List::Slices => {
                let $items = &mut $cluster.devices.slices;
                $body
            }
            List::ByName => {}
        }
    };
}

fn list_of(kind: Kind) -> List {
    match kind {
        Kind::Node => List::Nodes,
        Kind::Pod => List::Pods,
        Kind::DaemonSet => List::DaemonSets,
        Kind::ReplicaSet | Kind::StatefulSet | Kind::Job | Kind::ReplicationController => List::Controllers,
        Kind::PodDisruptionBudget => List::Budgets,
        Kind::CSIStorageCapacity => List::Capacities,
        Kind::VolumeAttachment => List::Attachments,
        Kind::ConfigMap => List::ConfigMaps,
        Kind::ResourceSlice => List::Slices,
        _ => List::ByName,
    }
}

impl Mirror {
    /// The cluster, to be looked at and added to.
    pub(crate) fn cluster_mut(&mut self) -> &mut Cluster {
        Arc::make_mut(&mut self.cluster)
    }

    /// The cluster as it is now, with its nodes, pods and DaemonSets in the order of their names, so that nothing depends
    /// on the order in which they came.
    pub(crate) fn in_order(&mut self) -> &mut Arc<Cluster> {
        for list in [List::Nodes, List::Pods, List::DaemonSets] {
            let rows = self.rows.get_mut(list as usize);
            if let Some(order) = rows.and_then(Rows::sort) {
                let cluster = Arc::make_mut(&mut self.cluster);
                with_list!(list, cluster, |items| reorder(items, &order));
            }
        }
        &mut self.cluster
    }

    /// What a write to a node needs to know; none if there is no such node.
    pub(crate) fn node(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.get(name)
    }

    /// How many names and pod specs there are, and how many objects they are for. Names and specs of objects that are gone
    /// stay.
    pub(crate) fn table_sizes(&self) -> (usize, usize) {
        let objects = self.rows.iter().map(Rows::len).sum();
        (self.cluster.symbols.len() + self.cluster.specs.len(), objects)
    }

    /// Takes an object of a kind from its JSON text, seen in the list of this number.
    pub(crate) fn put(&mut self, kind: Kind, text: &str, seen: u32) -> Result<News, MirrorError> {
        let Head { metadata, spec } = serde_json::from_str(text)?;
        if kind == Kind::Node
            && let Some(known) = self.nodes.get(metadata.name)
            && *known.uid == *metadata.uid
            && is_older(metadata.resource_version, &known.version)
        {
            // An answer to a write of our own was faster than the watch.
            self.mark(kind, &metadata, seen);
            return Ok(News::Plain);
        }
        let key = Key::new(kind as u8, metadata.namespace, metadata.name);
        let list = list_of(kind);
        let cluster = Arc::make_mut(&mut self.cluster);
        if let Err(error) = kind.import_text(text, cluster) {
            let name = match metadata.namespace {
                Some(namespace) => format!("{kind:?} {namespace}/{}", metadata.name),
                None => format!("{kind:?} {}", metadata.name),
            };
            self.remove(kind, &key);
            return Err(MirrorError::Unreadable { name, error });
        }
        if kind == Kind::Node {
            let facts = NodeFacts {
                version: metadata.resource_version.into(),
                uid: metadata.uid.into(),
                taints: spec.as_ref().and_then(|spec| spec.taints).map(RawValue::get).unwrap_or_default().into(),
                unschedulable: spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default(),
            };
            self.nodes.insert(metadata.name.into(), facts);
        }
        let Some(rows) = self.rows.get_mut(list as usize) else { return Ok(News::Plain) };
        let change = rows.put(key, seen);
        let is_unschedulable = |at: usize, cluster: &Cluster| {
            kind == Kind::Pod && cluster.pods.get(at).is_some_and(|pod| pod.scheduling == Scheduling::Unschedulable)
        };
        let (before, at) = match change {
            Change::Added => (false, rows.len() - 1),
            Change::Replaced(at) => {
                let before = is_unschedulable(at, cluster);
                // The new one was put at the end: it takes the place of the old one.
                with_list!(list, cluster, |items| {
                    items.swap_remove(at);
                });
                (before, at)
            }
        };
        Ok(if !before && is_unschedulable(at, cluster) { News::Unschedulable } else { News::Plain })
    }

    fn mark(&mut self, kind: Kind, metadata: &Metadata<'_>, seen: u32) {
        if let Some(rows) = self.rows.get_mut(list_of(kind) as usize) {
            rows.put(Key::new(kind as u8, metadata.namespace, metadata.name), seen);
        }
    }

    /// An object is gone.
    pub(crate) fn delete(&mut self, kind: Kind, text: &str) -> Result<(), MirrorError> {
        let Named { metadata } = serde_json::from_str(text)?;
        self.remove(kind, &Key::new(kind as u8, metadata.namespace, metadata.name));
        Ok(())
    }

    /// Objects of a kind that the list of this number did not have are gone.
    pub(crate) fn sweep(&mut self, kind: Kind, since: u32) {
        let rows = self.rows.get(list_of(kind) as usize);
        for key in rows.map(|rows| rows.unseen(kind as u8, since)).unwrap_or_default() {
            self.remove(kind, &key);
        }
    }

    fn remove(&mut self, kind: Kind, key: &Key) {
        let list = list_of(kind);
        let Some(at) = self.rows.get_mut(list as usize).and_then(|rows| rows.take(key)) else { return };
        let (namespace, name) = key.parts();
        if kind == Kind::Node {
            self.nodes.remove(name);
        }
        let cluster = Arc::make_mut(&mut self.cluster);
        with_list!(list, cluster, |items| {
            items.swap_remove(at);
        });
        let Some(name) = cluster.symbols.find(name) else { return };
        let in_namespace = namespace.and_then(|namespace| Some((cluster.symbols.find(namespace)?, name)));
        match (kind, in_namespace) {
            (Kind::Namespace, _) => drop(cluster.namespaces.remove(&name)),
            (Kind::PersistentVolume, _) => drop(cluster.storage.volumes.remove(&name)),
            (Kind::StorageClass, _) => drop(cluster.storage.classes.remove(&name)),
            (Kind::CSINode, _) => drop(cluster.storage.csi_nodes.remove(&name)),
            (Kind::CSIDriver, _) => {
                cluster.storage.csi_drivers.remove(&name);
            }
            (Kind::DeviceClass, _) => drop(cluster.devices.classes.remove(&name)),
            (Kind::PersistentVolumeClaim, Some(name)) => drop(cluster.storage.claims.remove(&name)),
            (Kind::ResourceClaim, Some(name)) => drop(cluster.devices.claims.remove(&name)),
            (Kind::ResourceClaimTemplate, Some(name)) => drop(cluster.devices.templates.remove(&name)),
            _ => {}
        }
    }
}

/// Whether a resource version is older than another of the same object. Those that are no numbers cannot be compared, and
/// none of them is.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, version: u32, taints: &str) -> String {
        format!(
            r#"{{"metadata":{{"name":"{name}","uid":"u-{name}","resourceVersion":"{version}"}},
                "spec":{{"unschedulable":true{taints}}},"status":{{"capacity":{{"cpu":"2"}}}}}}"#
        )
    }

    fn pod(name: &str, conditions: &str) -> String {
        format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"shop"}},"status":{{"phase":"Pending","conditions":[{conditions}]}}}}"#
        )
    }

    const UNSCHEDULABLE: &str = r#"{"type":"PodScheduled","status":"False","reason":"Unschedulable"}"#;

    fn names(mirror: &mut Mirror) -> Vec<String> {
        let cluster = mirror.in_order();
        cluster.nodes.iter().map(|node| cluster.text(node.name).to_owned()).collect()
    }

    #[test]
    fn objects_come_change_and_go() {
        let mut mirror = Mirror::default();
        for name in ["b", "c", "a"] {
            mirror.put(Kind::Node, &node(name, 1, ""), 1).unwrap();
        }
        assert_eq!(names(&mut mirror), ["a", "b", "c"]);
        mirror
            .put(
                Kind::Node,
                &node("b", 2, r#","taints":[{"key":"k","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}]"#),
                1,
            )
            .unwrap();
        assert_eq!(names(&mut mirror), ["a", "b", "c"]);
        let facts = mirror.node("b").unwrap();
        assert!(facts.taints.contains("timeAdded"), "what the model does not keep is there for writes");
        assert!(facts.unschedulable);
        mirror.delete(Kind::Node, &node("a", 3, "")).unwrap();
        mirror.delete(Kind::Node, &node("never there", 3, "")).unwrap();
        assert_eq!(names(&mut mirror), ["b", "c"]);
        assert_eq!(mirror.node("a"), None);
    }

    #[test]
    fn an_older_version_of_a_node_changes_nothing() {
        let mut mirror = Mirror::default();
        mirror.put(Kind::Node, &node("a", 10, r#","taints":[]"#), 1).unwrap();
        mirror.put(Kind::Node, &node("a", 9, ""), 2).unwrap();
        assert_eq!(&*mirror.node("a").unwrap().version, "10");
        mirror.sweep(Kind::Node, 2);
        assert_eq!(names(&mut mirror), ["a"], "but it is there");
        let again = node("a", 9, "").replace("u-a", "another");
        mirror.put(Kind::Node, &again, 2).unwrap();
        assert_eq!(&*mirror.node("a").unwrap().version, "9", "another node of the same name");
    }

    #[test]
    fn what_a_new_list_does_not_have_is_gone() {
        let mut mirror = Mirror::default();
        let set =
            |name: &str| format!(r#"{{"metadata":{{"name":"{name}","namespace":"shop"}},"spec":{{"replicas":2}}}}"#);
        let claim = |name: &str| format!(r#"{{"metadata":{{"name":"{name}","namespace":"shop"}}}}"#);
        for name in ["one", "two"] {
            mirror.put(Kind::ReplicaSet, &set(name), 1).unwrap();
            mirror.put(Kind::StatefulSet, &set(name), 1).unwrap();
            mirror.put(Kind::PersistentVolumeClaim, &claim(name), 1).unwrap();
        }
        mirror.put(Kind::ReplicaSet, &set("one"), 2).unwrap();
        mirror.sweep(Kind::ReplicaSet, 2);
        mirror.put(Kind::PersistentVolumeClaim, &claim("two"), 2).unwrap();
        mirror.sweep(Kind::PersistentVolumeClaim, 2);
        let cluster = mirror.cluster_mut();
        assert_eq!(cluster.controllers.len(), 3, "one ReplicaSet and both StatefulSets");
        assert_eq!(cluster.storage.claims.len(), 1);
    }

    #[test]
    fn a_pod_that_turns_unschedulable_is_news_once() {
        let mut mirror = Mirror::default();
        for (name, text, expected) in [
            ("not looked at yet", pod("p", ""), News::Plain),
            ("fits nowhere", pod("p", UNSCHEDULABLE), News::Unschedulable),
            ("still", pod("p", UNSCHEDULABLE), News::Plain),
            ("another, from the start", pod("q", UNSCHEDULABLE), News::Unschedulable),
            ("the first is looked at again", pod("p", ""), News::Plain),
            ("and fits nowhere", pod("p", UNSCHEDULABLE), News::Unschedulable),
        ] {
            assert_eq!(mirror.put(Kind::Pod, &text, 1).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn the_loop_sees_one_moment() {
        let mut mirror = Mirror::default();
        mirror.put(Kind::Node, &node("a", 1, ""), 1).unwrap();
        let seen = Arc::clone(mirror.in_order());
        mirror.put(Kind::Node, &node("b", 2, ""), 1).unwrap();
        assert_eq!((seen.nodes.len(), mirror.cluster_mut().nodes.len()), (1, 2));
    }

    #[test]
    fn an_object_that_cannot_be_read_is_left_out() {
        let mut mirror = Mirror::default();
        mirror.put(Kind::Node, &node("a", 1, ""), 1).unwrap();
        let bad = node("a", 2, "").replace("\"2\"}}", "\"many\"}}");
        let error = mirror.put(Kind::Node, &bad, 1).unwrap_err().to_string();
        assert!(error.contains("Node a") && error.contains("cpu"), "{error}");
        assert_eq!(names(&mut mirror), Vec::<String>::new());
        assert!(mirror.put(Kind::Node, "{}", 1).is_err());
    }
}
