//! Kubernetes objects as the API server has them → the model. Nothing else in the model names a `k8s_openapi` type.
//!
//! A [`Converter`] turns one object into one record and shares names and pod specs with every object before it; an
//! [`Import`] also puts the record where it belongs in a [`Cluster`]. What Kubernetes defines as invalid but harmless (a
//! selector that cannot be parsed, say) is kept with that meaning; errors are only about what cannot be read at all.
//!
//! | file | Kubernetes |
//! |---|---|
//! | `pod`, `requests`, `pod_rules`, `volumes` | Pod |
//! | `node`, `template`, `template_objects` | Node |
//! | `workloads` | DaemonSet, ReplicaSet, StatefulSet, Job, ReplicationController, PodDisruptionBudget |
//! | `storage` | claims, volumes, classes, CSI objects |
//! | `devices`, `older_devices` | DeviceClass, ResourceSlice, ResourceClaim, ResourceClaimTemplate |
//! | `objects`, `parse`, `wording` | which kinds there are, and how their JSON is read |
//! | `admission` | what the API server would refuse or fill in |
//! | `defaults` | LimitRange, RuntimeClass: what they add to pods |
//! | `selectors`, `amounts`, `metadata`, `syntax` | what they have in common |

mod admission;
mod amounts;
mod defaults;
mod devices;
mod error;
mod metadata;
mod node;
mod objects;
mod older_devices;
mod parse;
mod pod;
mod pod_rules;
mod requests;
mod selectors;
mod storage;
mod syntax;
mod template;
mod template_objects;
mod volumes;
mod wording;
mod workloads;

pub(crate) use defaults::Defaults;
pub use error::{ConvertError, FieldPath, Flaw, Segment};
pub use objects::{Import, Kind, ObjectError};
pub use template::{TaintParts, TemplateParts};
pub use template_objects::TemplateObjects;
pub(crate) use wording::{json_message, plain};

use crate::cluster::{Cluster, Specs};
use crate::symbol::Symbols;

/// Converts objects one by one. All methods add to the same tables of names and specs.
#[derive(Debug)]
pub struct Converter<'a> {
    /// Names.
    pub symbols: &'a mut Symbols,
    /// Pod specs.
    pub specs: &'a mut Specs,
}

impl Cluster {
    /// A converter that adds to the tables of this cluster.
    pub fn converter(&mut self) -> Converter<'_> {
        Converter { symbols: &mut self.symbols, specs: &mut self.specs }
    }
}
