//! Every object of a cluster that a decision may hang on, as the API server has it: for dumps.

use std::path::Path;

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use serde::Deserialize;
use serde_json::Value;

use crate::resources::DEVICES_BEFORE;

/// Objects in one answer: more would make the API server hold them all at once.
const PAGE: u32 = 500;
/// How often a list is begun anew because the API server forgot it in the middle.
const MOST_TRIES: u32 = 5;

/// A kind of object: API versions, kind, name in paths, and whether a cluster can do without.
struct Source {
    version: &'static str,
    /// Older versions that have it too, newest first.
    older: &'static [&'static str],
    kind: &'static str,
    plural: &'static str,
    selector: &'static str,
    required: bool,
}

const fn of(version: &'static str, kind: &'static str, plural: &'static str, required: bool) -> Source {
    Source { version, older: &[], kind, plural, selector: "", required }
}

const fn device(kind: &'static str, plural: &'static str) -> Source {
    Source { older: &DEVICES_BEFORE, ..of("resource.k8s.io/v1", kind, plural, false) }
}

/// All of them. What is missing or forbidden beside the required ones only makes the dump poorer.
const KINDS: &[Source] = &[
    of("v1", "Node", "nodes", true),
    of("v1", "Pod", "pods", true),
    of("v1", "Namespace", "namespaces", false),
    // What a file's own pods get that have not met the API server.
    of("v1", "LimitRange", "limitranges", false),
    of("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", false),
    of("v1", "ReplicationController", "replicationcontrollers", false),
    of("v1", "PersistentVolumeClaim", "persistentvolumeclaims", false),
    of("v1", "PersistentVolume", "persistentvolumes", false),
    Source {
        selector: "&fieldSelector=metadata.name%3Dcluster-autoscaler-priority-expander",
        ..of("v1", "ConfigMap", "configmaps", false)
    },
    of("apps/v1", "DaemonSet", "daemonsets", false),
    of("apps/v1", "ReplicaSet", "replicasets", false),
    of("apps/v1", "StatefulSet", "statefulsets", false),
    of("batch/v1", "Job", "jobs", false),
    of("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", false),
    of("storage.k8s.io/v1", "StorageClass", "storageclasses", false),
    of("storage.k8s.io/v1", "CSINode", "csinodes", false),
    of("storage.k8s.io/v1", "CSIDriver", "csidrivers", false),
    of("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", false),
    of("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", false),
    device("DeviceClass", "deviceclasses"),
    device("ResourceSlice", "resourceslices"),
    device("ResourceClaim", "resourceclaims"),
    device("ResourceClaimTemplate", "resourceclaimtemplates"),
];

/// Why a cluster could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The kubeconfig cannot be used.
    #[error("--kubeconfig: {path}: {source}")]
    Kubeconfig {
        /// The file.
        path: String,
        /// Why not.
        source: Box<kube::config::KubeconfigError>,
    },
    /// Nothing says where a cluster is.
    #[error("no cluster is known: {0}; name a kubeconfig with --kubeconfig, or give files")]
    Unknown(Box<kube::config::InferConfigError>),
    /// There is no way to the API server.
    #[error("the API server cannot be reached: {0}")]
    Client(Box<Error>),
    /// A kind that every cluster has could not be listed.
    #[error("{kind} objects cannot be listed: {source}")]
    List {
        /// The kind.
        kind: &'static str,
        /// Why not.
        source: Box<Error>,
    },
}

/// What a cluster has.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Its objects, each with its API version and kind.
    pub objects: Vec<Value>,
    /// Kinds that are left out, with the reason.
    pub left_out: Vec<String>,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(default)]
    items: Vec<Value>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    token: Option<String>,
}

/// Lists a cluster: that of a kubeconfig, or the one that the environment names.
///
/// # Errors
///
/// If it cannot be reached, or its nodes or pods cannot be listed.
pub async fn everything(kubeconfig: Option<&Path>) -> Result<Listed, ListError> {
    let config = match kubeconfig {
        Some(path) => {
            let failed = |source| ListError::Kubeconfig { path: path.display().to_string(), source: Box::new(source) };
            let file = Kubeconfig::read_from(path).map_err(failed)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(failed)?
        }
        None => Config::infer().await.map_err(|error| ListError::Unknown(Box::new(error)))?,
    };
    let client = Client::try_from(config).map_err(|error| ListError::Client(Box::new(error)))?;
    let mut listed = Listed::default();
    for kind in KINDS {
        match list_any(&client, kind).await {
            Ok(objects) => listed.objects.extend(objects),
            Err(error) if !kind.required && is_absent(&error) => {
                // An API that a cluster does not serve has no objects.
                if !matches!(&error, Error::Api(status) if status.code == 404) {
                    listed.left_out.push(format!("{} objects are left out: {}", kind.kind, in_words(&error)));
                }
            }
            Err(source) => return Err(ListError::List { kind: kind.kind, source: Box::new(source) }),
        }
    }
    Ok(listed)
}

fn is_absent(error: &Error) -> bool {
    matches!(error, Error::Api(status) if matches!(status.code, 403 | 404))
}

fn in_words(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// All objects of a kind in the newest version that the API server has.
async fn list_any(client: &Client, kind: &Source) -> Result<Vec<Value>, Error> {
    let mut listed = list(client, kind, kind.version).await;
    for version in kind.older {
        if !matches!(&listed, Err(Error::Api(status)) if status.code == 404) {
            break;
        }
        listed = list(client, kind, version).await;
    }
    listed
}

/// All objects of a kind, page by page. A list that the API server forgets in the middle is begun anew.
async fn list(client: &Client, kind: &Source, version: &str) -> Result<Vec<Value>, Error> {
    let mut tries = 0;
    'anew: loop {
        tries += 1;
        let mut objects = Vec::new();
        let mut token = String::new();
        loop {
            let request = Request::get(path(kind, version, &token)).body(vec![]).map_err(Error::HttpError)?;
            let page: Page = match client.request(request).await {
                Err(Error::Api(status)) if status.code == 410 && tries < MOST_TRIES => continue 'anew,
                other => other?,
            };
            objects.extend(page.items.into_iter().map(|item| marked(item, kind, version)));
            match page.metadata.token.filter(|token| !token.is_empty()) {
                Some(next) => token = next,
                None => return Ok(objects),
            }
        }
    }
}

fn path(kind: &Source, version: &str, token: &str) -> String {
    let root = if version.contains('/') { "apis" } else { "api" };
    let escaped: String = token
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect();
    let token = if token.is_empty() { String::new() } else { format!("&continue={escaped}") };
    format!("/{root}/{version}/{}?limit={PAGE}{}{token}", kind.plural, kind.selector)
}

/// Items of a list do not say what they are.
fn marked(mut object: Value, kind: &Source, version: &str) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".to_owned(), Value::String(version.to_owned()));
        fields.insert("kind".to_owned(), Value::String(kind.kind.to_owned()));
    }
    object
}

#[cfg(test)]
mod tests {
    use plimsoll_model::convert::Kind;

    use super::*;
    use crate::testing;

    #[test]
    fn paths_of_pages() {
        for (kind, token, expected) in [
            ("Pod", "", "/api/v1/pods?limit=500"),
            ("Job", "", "/apis/batch/v1/jobs?limit=500"),
            ("Pod", "a=/b", "/api/v1/pods?limit=500&continue=a%3D%2Fb"),
            (
                "ConfigMap",
                "",
                "/api/v1/configmaps?limit=500&fieldSelector=metadata.name%3Dcluster-autoscaler-priority-expander",
            ),
        ] {
            let kind = KINDS.iter().find(|known| known.kind == kind).unwrap();
            assert_eq!(path(kind, kind.version, token), expected);
        }
    }

    #[test]
    fn every_kind_is_one_that_files_may_hold() {
        for kind in KINDS {
            let found = plimsoll_model::convert::Kind::find(kind.version, kind.kind);
            let adds_to_pods = matches!(kind.kind, "LimitRange" | "RuntimeClass");
            assert!(found.is_some_and(|found| (found == Kind::Unneeded) == adds_to_pods), "{}", kind.kind);
            for version in kind.older {
                assert_eq!(Kind::find(version, kind.kind), found, "{version} {}", kind.kind);
            }
        }
    }

    #[tokio::test]
    async fn what_is_there_only_in_an_older_version_is_listed_so() {
        let (client, journal) = testing::client(|asked| match asked.path.contains("/v1beta2/") {
            true => testing::list(1, &[serde_json::json!({"metadata": {"name": "a"}})], None),
            false => testing::Says::Fails(404),
        });
        let slices = KINDS.iter().find(|kind| kind.kind == "ResourceSlice").unwrap();
        let listed = list_any(&client, slices).await.unwrap();
        assert_eq!(listed[0]["apiVersion"], "resource.k8s.io/v1beta2");
        assert_eq!(journal.count("GET"), 2);
        let classes = KINDS.iter().find(|kind| kind.kind == "RuntimeClass").unwrap();
        assert!(matches!(list_any(&client, classes).await, Err(error) if is_absent(&error)));
    }
}
