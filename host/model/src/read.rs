//! Files that people have → the model: `kubectl get -o json` or `-o yaml`, single objects or lists, several documents, and
//! node groups written by hand.
//!
//! ```text
//!  bytes ─► text ─► documents ─┬─ json ─┐
//!                   (split at  │        ├─► objects, one at a time ─► convert::Kind ─► Cluster
//!                    "---")    └─ yaml ─┘                          └► node_group    ─► NodeGroup
//! ```
//!
//! JSON is read item by item from the text, so a file of hundreds of megabytes needs no more memory than itself and the
//! model; YAML likewise, though slower. Errors say where, which object, which field, what was found and what to do; the
//! place is looked up only once there is an error.

mod error;
mod json;
mod locate;
mod membership;
mod node_group;
mod raw_pods;
mod text;
mod unique;
mod warning;
mod yaml;

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::convert::{Defaults, Kind};
use crate::group::NodeGroup;
use crate::pod::Pod;

pub use error::{ObjectName, Place, Problem, ReadError};
pub use warning::Warning;

use locate::Origin;
use raw_pods::{RawPod, Several};

/// What a set of files holds.
#[derive(Clone, Debug)]
pub struct Input {
    /// The Kubernetes objects.
    pub cluster: Cluster,
    /// The node groups, in the order of the files.
    pub node_groups: Vec<NodeGroup>,
    /// What is odd but no error.
    pub warnings: Vec<Warning>,
    /// A LoopState object, which says what a running process knew; its fields are its reader's.
    pub loop_state: Option<Value>,
    /// All objects as they stand in the files, lists taken apart; only from [`Reader::keeping_objects`].
    pub objects: Vec<Value>,
}

/// Reads files one after another and puts together what they hold.
///
/// ```
/// let mut reader = plimsoll_model::read::Reader::default();
/// reader.add("node.yaml", b"{apiVersion: v1, kind: Node, metadata: {name: n1}}")?;
/// assert_eq!(reader.finish()?.cluster.nodes.len(), 1);
/// # Ok::<(), Box<plimsoll_model::read::ReadError>>(())
/// ```
#[derive(Debug, Default)]
pub struct Reader {
    cluster: Cluster,
    node_groups: Vec<(NodeGroup, Place)>,
    /// Objects by kind, namespace and name.
    seen: FxHashMap<(Kind, Box<str>), Place>,
    /// Kinds that are not read: how many objects there are, and where the first is.
    unread: IndexMap<(String, String), (usize, Place), FxBuildHasher>,
    warnings: Vec<Warning>,
    /// Pods that ask for nothing.
    without_requests: Option<Several>,
    /// What other objects add to pods.
    defaults: Defaults,
    raw_pods: Vec<RawPod>,
    /// RuntimeClasses that pods name and that are not there.
    missing_classes: IndexMap<String, Several, FxBuildHasher>,
    loop_state: Option<(Value, Place)>,
    /// Objects as they stand in the files, if somebody wants them.
    objects: Option<Vec<Value>>,
}

/// What says which object something is.
#[derive(Clone, Debug, Default)]
struct Head {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: Option<String>,
}

impl Head {
    /// Whether it says its API version and kind.
    fn is_marked(&self) -> bool {
        !self.api_version.is_empty() && !self.kind.is_empty()
    }
}

/// Kind of the objects that say what a running process knew.
const LOOP_STATE: &str = "LoopState";

/// An object on its way in.
enum Body<'a> {
    Text(&'a str),
    Tree(Value),
}

impl Body<'_> {
    /// The object with its API version and kind, which may stand at the list that it is from.
    fn marked(&self, head: &Head) -> Value {
        let mut tree = match self {
            Self::Text(text) => serde_json::from_str(text).unwrap_or_default(),
            Self::Tree(tree) => tree.clone(),
        };
        if let Value::Object(fields) = &mut tree {
            for (field, text) in [("apiVersion", &head.api_version), ("kind", &head.kind)] {
                fields.entry(field).or_insert_with(|| Value::String(text.clone()));
            }
        }
        tree
    }
}

impl Reader {
    /// A reader that gives out the objects themselves too.
    pub fn keeping_objects() -> Self {
        Self { objects: Some(Vec::new()), ..Self::default() }
    }

    /// Reads one file. `source` is its name for error messages.
    ///
    /// # Errors
    ///
    /// If the file is no text, is neither JSON nor YAML, or holds an object that cannot be read or that was read before.
    /// What was read before the error stays, but is of no use on its own.
    pub fn add(&mut self, source: &str, bytes: &[u8]) -> Result<(), Box<ReadError>> {
        let source: Arc<str> = source.into();
        let text = text::decode(bytes).map_err(|(line, problem)| ReadError::at(Place::new(&source, line), problem))?;
        let mut objects = 0;
        for document in text::documents(text) {
            if document.is_json() {
                objects += json::read(self, &source, &document)?;
            } else if document.has_content() {
                objects += yaml::read(self, &source, &document)?;
            }
        }
        if objects == 0 {
            self.warnings.push(Warning::NoObjects { file: source.to_string() });
        }
        Ok(())
    }

    /// Checks how the objects of all files fit together and gives them out.
    ///
    /// # Errors
    ///
    /// If a node is in two groups.
    pub fn finish(mut self) -> Result<Input, Box<ReadError>> {
        let unread = std::mem::take(&mut self.unread).into_iter();
        self.warnings.extend(unread.map(|((api_version, kind), (count, first))| Warning::UnreadKind {
            api_version,
            kind,
            count,
            first,
        }));
        self.complete_pods()?;
        if let Some((count, pod, first)) = self.without_requests.take() {
            self.warnings.push(Warning::WithoutRequests { count, pod, first });
        }
        // What follows must not depend on the order in which things were written down.
        let Cluster { nodes, pods, symbols, specs, .. } = &mut self.cluster;
        nodes.sort_by(|one, other| symbols.text(one.name).cmp(symbols.text(other.name)));
        let name = |pod: &Pod| (symbols.text(specs[pod.spec].namespace).to_owned(), pod.name.clone());
        pods.sort_by_cached_key(name);
        self.node_groups.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        membership::check(&self.cluster, &self.node_groups, &mut self.warnings)?;
        let node_groups = self.node_groups.into_iter().map(|(group, _)| group).collect();
        Ok(Input {
            cluster: self.cluster,
            node_groups,
            warnings: self.warnings,
            loop_state: self.loop_state.map(|(state, _)| state),
            objects: self.objects.unwrap_or_default(),
        })
    }

    /// Takes one object that is no list.
    fn take(&mut self, head: Head, body: Body<'_>, origin: &Origin<'_>) -> Result<(), Box<ReadError>> {
        if !head.is_marked() {
            return Err(origin.error(&head, Problem::Unmarked));
        }
        if let Some(objects) = &mut self.objects {
            objects.push(body.marked(&head));
        }
        if (head.api_version.as_str(), head.kind.as_str()) == (node_group::API_VERSION, LOOP_STATE) {
            return self.take_loop_state(&head, &body, origin);
        }
        if head.api_version.split('/').next() == Some(node_group::API_GROUP) {
            return self.take_node_group(&head, body, origin);
        }
        let tree = || match &body {
            Body::Text(text) => serde_json::from_str(text).unwrap_or_default(),
            Body::Tree(tree) => tree.clone(),
        };
        let adds = self.defaults.take(&head.api_version, &head.kind, tree);
        if adds.map_err(|error| origin.field_error(&head, error))? {
            return Ok(());
        }
        let Some(kind) = Kind::find(&head.api_version, &head.kind) else {
            let place = origin.place();
            self.unread.entry((head.api_version, head.kind)).or_insert((0, place)).0 += 1;
            return Ok(());
        };
        if kind == Kind::Unneeded {
            return Ok(());
        }
        self.note(kind, &head, origin)?;
        let at = self.cluster.pods.len();
        let pod_text: Option<Box<str>> = (kind == Kind::Pod).then(|| match &body {
            Body::Text(text) => (*text).into(),
            Body::Tree(tree) => tree.to_string().into(),
        });
        let imported = match body {
            Body::Text(text) => kind.admit_text(text, &mut self.cluster),
            Body::Tree(tree) => kind.admit_value(tree, &mut self.cluster),
        };
        imported.map_err(|error| origin.field_error(&head, error))?;
        let place = origin.place();
        match pod_text.filter(|_| self.is_raw(at)) {
            Some(text) => self.raw_pods.push(RawPod { at, text, head, place }),
            None => self.look_at_requests(at, &head, &place)?,
        }
        Ok(())
    }

    /// Refuses an object that is there already.
    fn note(&mut self, kind: Kind, head: &Head, origin: &Origin<'_>) -> Result<(), Box<ReadError>> {
        let Some(name) = &head.name else { return Ok(()) };
        let namespace = head.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or("default");
        let key = if kind.is_namespaced() { format!("{namespace}/{name}") } else { name.clone() };
        match self.seen.entry((kind, key.into())) {
            std::collections::hash_map::Entry::Occupied(first) => {
                Err(origin.error(head, Problem::Duplicate { first: first.get().clone() }))
            }
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(origin.place());
                Ok(())
            }
        }
    }

    fn take_loop_state(&mut self, head: &Head, body: &Body<'_>, origin: &Origin<'_>) -> Result<(), Box<ReadError>> {
        if let Some((_, first)) = &self.loop_state {
            return Err(origin.error(head, Problem::Duplicate { first: first.clone() }));
        }
        self.loop_state = Some((body.marked(head), origin.place()));
        Ok(())
    }

    fn take_node_group(&mut self, head: &Head, body: Body<'_>, origin: &Origin<'_>) -> Result<(), Box<ReadError>> {
        if (head.api_version.as_str(), head.kind.as_str()) != (node_group::API_VERSION, node_group::KIND) {
            let found = format!("{} {}", head.api_version, head.kind);
            return Err(origin.error(head, Problem::UnknownOwnKind { found }));
        }
        let tree = match body {
            Body::Tree(tree) => tree,
            Body::Text(text) => {
                let tree = serde_json::from_str(text).map_err(|error| origin.text_error(head, &error));
                tree.map(|unique::Unique(tree)| tree)?
            }
        };
        let group = node_group::convert(tree, &mut self.cluster, &mut self.warnings, &|path| origin.place_of(path))
            .map_err(|(path, problem)| origin.error_at(head, path, problem))?;
        if let Some((_, first)) = self.node_groups.iter().find(|(other, _)| other.name == group.name) {
            return Err(origin.error(head, Problem::Duplicate { first: first.clone() }));
        }
        self.node_groups.push((group, origin.place()));
        Ok(())
    }
}
