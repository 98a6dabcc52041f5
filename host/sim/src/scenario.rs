//! A scenario in a file: workloads of an in-memory cluster and how their replicas change over time.
//!
//! ```yaml
//! apiVersion: plimsoll.dev/v1alpha1
//! kind: Scenario
//! spec:
//!   length: 90m
//!   joinsAfter: 40s        # from a running machine to a registered node
//!   readyAfter: 10s        # from a registered node to a ready one
//!   workloads:
//!     - name: web
//!       namespace: shop
//!       requests: {cpu: 500m, memory: 1Gi}
//!       replicas: {1m: 120, 40m: 0}
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::convert::Kind;
use plimsoll_model::time::go_duration_nanos;
use plimsoll_model::{PodSpec, Time};
use serde::{Deserialize, Deserializer, de};

use crate::joins::Manner;
use crate::workload::Workload;
use crate::world::World;

const API_VERSION: &str = "plimsoll.dev/v1alpha1";
const KIND: &str = "Scenario";

/// A Go duration such as `1m30s`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Span(Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let nanos = go_duration_nanos(&text).and_then(|nanos| u64::try_from(nanos).ok());
        let expected = || de::Error::custom(format!("{text:?} is not a duration such as 30s, 10m or 1h30m"));
        nanos.map(|nanos| Self(Duration::from_nanos(nanos))).ok_or_else(expected)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    #[expect(dead_code, reason = "accepted, as every object has some")]
    metadata: BTreeMap<String, String>,
    spec: Spec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    length: Span,
    joins_after: Option<Span>,
    ready_after: Option<Span>,
    workloads: Vec<Wished>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wished {
    name: String,
    #[serde(default = "default_namespace")]
    namespace: String,
    requests: BTreeMap<String, String>,
    #[serde(default)]
    node_selector: BTreeMap<String, String>,
    replicas: BTreeMap<Span, u32>,
}

fn default_namespace() -> String {
    "default".to_owned()
}

/// A scenario that is being played.
#[derive(Debug)]
pub struct Scenario {
    /// How long it goes on.
    pub length: Duration,
    /// How machines become nodes.
    pub manner: Manner,
    workloads: Vec<Wished>,
    /// Changes by time since the beginning, the next one last.
    changes: Vec<(Duration, String, u32)>,
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    ///
    /// What is wrong and where, with the file's name.
    pub fn parse(file: &str, text: &str) -> Result<Self, String> {
        let read: File = serde_saphyr::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        if read.api_version != API_VERSION || read.kind != KIND {
            let (version, kind) = (read.api_version, read.kind);
            return Err(format!("{file}: holds {version} {kind}; expected {API_VERSION} {KIND}"));
        }
        let spec = read.spec;
        let mut changes: Vec<(Duration, String, u32)> = Vec::new();
        for workload in &spec.workloads {
            changes.extend(workload.replicas.iter().map(|(at, count)| (at.0, workload.name.clone(), *count)));
        }
        changes.sort_by(|one, other| other.cmp(one));
        let manner = Manner::default();
        Ok(Self {
            length: spec.length.0,
            manner: Manner {
                joins_after: spec.joins_after.map_or(manner.joins_after, |span| span.0),
                ready_after: spec.ready_after.map_or(manner.ready_after, |span| span.0),
            },
            workloads: spec.workloads,
            changes,
        })
    }

    /// Puts the workloads into a world, without replicas yet.
    ///
    /// # Errors
    ///
    /// If an amount of a request cannot be read.
    pub fn set_up(&self, world: &mut World) -> Result<(), String> {
        for wished in &self.workloads {
            let spec = pod_spec(wished, world).map_err(|why| format!("workload {}: {why}", wished.name))?;
            let namespace = spec.namespace;
            let spec = world.cluster.specs.intern(spec);
            world.workloads.push(Workload::deployment(namespace, &wished.name, spec));
        }
        Ok(())
    }

    /// When something changes next, from the beginning on.
    pub fn next_change(&self) -> Option<Duration> {
        self.changes.last().map(|&(at, ..)| at)
    }

    /// Makes all changes that are due.
    pub fn play(&mut self, begun: Time, world: &mut World) {
        while let Some((at, ..)) = self.changes.last()
            && begun + *at <= world.now()
            && let Some((_, workload, replicas)) = self.changes.pop()
        {
            world.scale(&workload, replicas);
        }
    }
}

/// What a pod of a workload asks for. Its amounts are read as those of a pod in a file are.
fn pod_spec(wished: &Wished, world: &mut World) -> Result<PodSpec, String> {
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": wished.name, "namespace": wished.namespace, "labels": {"app": wished.name}},
        "spec": {
            "nodeSelector": wished.node_selector,
            "containers": [{"name": "main", "resources": {"requests": wished.requests}}],
        },
    });
    Kind::Pod.import_value(object, &mut world.cluster).map_err(|error| error.to_string())?;
    let pod = world.cluster.pods.pop().ok_or("the pod was not read")?;
    Ok(world.cluster.specs[pod.spec].clone())
}
