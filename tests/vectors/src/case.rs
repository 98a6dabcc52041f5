//! Reading cases, and the clusters in them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Context;
use plimsoll_model::convert::Kind;
use plimsoll_model::{Cluster, Node, Pod, Time};
use serde::Deserialize;
use serde_json::{Map, Value};

/// One golden case. What only one kind of case has stays JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// Unique name.
    pub id: String,
    /// Kind.
    pub kind: String,
    /// API objects by the plural of their kind.
    #[serde(default)]
    pub cluster: Map<String, Value>,
    /// Node groups.
    #[serde(default)]
    pub node_groups: Vec<Value>,
    /// Flags of the peer that are not at their defaults.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// The pod to place, of a `predicates` or `dra` case.
    #[serde(default)]
    pub pod: Value,
    /// The node in question, of a `drain` or `utilization` case.
    #[serde(default)]
    pub node: String,
    /// The time of the decision.
    #[serde(default)]
    pub now: String,
    /// The time of the first of the two loops of a `scaledown` case.
    #[serde(default)]
    pub first_loop: String,
    /// The two templates of a `similar` case.
    #[serde(default)]
    pub pair: Vec<TemplateValues>,
    /// The answer.
    #[serde(default)]
    pub expect: Value,
    /// Several answers, each of them right.
    #[serde(default)]
    pub expect_any_of: Vec<Value>,
    /// A remark.
    #[serde(default)]
    pub note: String,
}

/// A fresh node with its pods.
#[derive(Clone, Debug, Deserialize)]
pub struct TemplateValues {
    /// The node.
    pub node: Value,
    /// Its DaemonSet and static pods.
    #[serde(default)]
    pub pods: Vec<Value>,
}

/// Reads all cases of a file, `KIND.jsonl` or `KIND.jsonl.xz`.
///
/// # Errors
///
/// If the file cannot be read, or a line of it is no case.
pub fn read_cases(path: &Path) -> anyhow::Result<Vec<Case>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let packed = path.extension().is_some_and(|extension| extension == "xz");
    let reader: Box<dyn Read> = if packed { Box::new(liblzma::read::XzDecoder::new(file)) } else { Box::new(file) };
    let lines = BufReader::new(reader).lines().enumerate();
    let cases = lines.map(|(number, line)| {
        let place = || format!("{}:{}", path.display(), number + 1);
        let line = line.with_context(place)?;
        serde_json::from_str(&line).with_context(place)
    });
    cases.collect()
}

/// The lists of a case's cluster, with the kind of their objects. Nodes first, so that they keep their order.
const LISTS: &[(&str, Kind)] = &[
    ("nodes", Kind::Node),
    ("pods", Kind::Pod),
    ("namespaces", Kind::Namespace),
    ("persistentVolumeClaims", Kind::PersistentVolumeClaim),
    ("persistentVolumes", Kind::PersistentVolume),
    ("storageClasses", Kind::StorageClass),
    ("csiNodes", Kind::CSINode),
    ("csiDrivers", Kind::CSIDriver),
    ("csiStorageCapacities", Kind::CSIStorageCapacity),
    ("volumeAttachments", Kind::VolumeAttachment),
    ("podDisruptionBudgets", Kind::PodDisruptionBudget),
    ("daemonSets", Kind::DaemonSet),
    ("replicaSets", Kind::ReplicaSet),
    ("statefulSets", Kind::StatefulSet),
    ("jobs", Kind::Job),
    ("replicationControllers", Kind::ReplicationController),
    ("deviceClasses", Kind::DeviceClass),
    ("resourceSlices", Kind::ResourceSlice),
    ("resourceClaims", Kind::ResourceClaim),
    ("configMaps", Kind::ConfigMap),
];

impl Case {
    /// The cluster, without its `replicatedPods` and `perNodePods`.
    ///
    /// # Errors
    ///
    /// If an object cannot be read.
    pub fn cluster(&self) -> anyhow::Result<Cluster> {
        let mut cluster = Cluster::default();
        for (list, kind) in LISTS {
            for object in self.cluster.get(*list).and_then(Value::as_array).into_iter().flatten() {
                kind.import_value(object.clone(), &mut cluster).with_context(|| format!("cluster.{list}"))?;
            }
        }
        Ok(cluster)
    }

    /// The time of the decision.
    ///
    /// # Errors
    ///
    /// If it is no RFC 3339 time.
    pub fn at(&self) -> anyhow::Result<Time> {
        Time::parse(&self.now).with_context(|| format!("now: {:?} is no RFC 3339 time", self.now))
    }

    /// The node in question.
    ///
    /// # Errors
    ///
    /// If there is no such node.
    pub fn node<'c>(&self, cluster: &'c Cluster) -> anyhow::Result<&'c Node> {
        let found = cluster.nodes.iter().find(|node| cluster.text(node.name) == self.node);
        found.with_context(|| format!("node {:?} is not in the cluster", self.node))
    }

    /// A flag that is on or off.
    pub fn flag(&self, option: &str, default: bool) -> bool {
        self.options.get(option).and_then(Value::as_bool).unwrap_or(default)
    }

    /// A flag that is a ratio.
    pub fn ratio(&self, option: &str, default: f64) -> f64 {
        self.options.get(option).and_then(Value::as_f64).unwrap_or(default)
    }

    /// A flag that can be given several times.
    pub fn texts(&self, option: &str) -> Vec<String> {
        let given = self.options.get(option).and_then(Value::as_array).into_iter().flatten();
        given.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// A flag that is a number.
    pub fn number(&self, option: &str) -> Option<u32> {
        self.options.get(option)?.as_u64().and_then(|number| u32::try_from(number).ok())
    }
}

/// Reads one more pod, without keeping it among the cluster's.
///
/// # Errors
///
/// If it is no pod.
pub(crate) fn pod(cluster: &mut Cluster, object: Value) -> anyhow::Result<Pod> {
    Kind::Pod.import_value(object, cluster)?;
    cluster.pods.pop().context("the pod was not added")
}
