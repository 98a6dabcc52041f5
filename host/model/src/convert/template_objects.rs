//! Templates as JSON trees of Kubernetes objects.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::resource::v1 as resource;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::template::Template;

use super::admission::Admit;
use super::error::{ConvertError, Within};
use super::objects::{ObjectError, claim_name, resource_claim};
use super::older_devices;
use super::parse::from_value;

/// A template as JSON trees of Kubernetes objects.
#[derive(Clone, Debug, Default)]
pub struct TemplateObjects {
    /// A `v1` Node.
    pub node: Value,
    /// `v1` Pods that each such node starts with.
    pub pods: Vec<Value>,
    /// `resource.k8s.io` ResourceSlices of such a node.
    pub resource_slices: Vec<Value>,
    /// `resource.k8s.io` ResourceClaims of these pods. Only what they ask for matters: each node's pods get devices of
    /// their own.
    pub resource_claims: Vec<Value>,
}

impl Cluster {
    /// A template from JSON trees, as the API server would have their objects. A node without a name gets `name`. Claims
    /// become known to the cluster by what they ask for, if there is none of the same name.
    ///
    /// # Errors
    ///
    /// If the trees are no such objects or a value cannot be read; the path starts with `template`, `templatePods`,
    /// `templateResourceSlices` or `templateResourceClaims`.
    pub fn template_from_values(&mut self, name: &str, objects: TemplateObjects) -> Result<Template, ObjectError> {
        self.template_of(name, TypedTemplate::new(objects)?)
    }

    /// The same from objects that the API server may never have seen: what it fills in is filled in, and what it refuses is
    /// refused.
    ///
    /// # Errors
    ///
    /// As [`Cluster::template_from_values`], and if a value is refused.
    pub fn admit_template(&mut self, name: &str, objects: TemplateObjects) -> Result<Template, ObjectError> {
        let mut typed = TypedTemplate::new(objects)?;
        typed.admit()?;
        self.template_of(name, typed)
    }

    fn template_of(&mut self, name: &str, typed: TypedTemplate) -> Result<Template, ObjectError> {
        let TypedTemplate { node, pods, slices, claims } = typed;
        for (index, claim) in claims.iter().enumerate() {
            let name = claim_name(&claim.metadata, self).index(index).field("templateResourceClaims")?;
            if !self.devices.claims.contains_key(&name) {
                let bare = resource::ResourceClaim { status: None, ..claim.clone() };
                let bare = resource_claim(&bare, self).index(index).field("templateResourceClaims")?;
                self.devices.claims.insert(name, bare);
            }
        }
        Ok(self.converter().template(name, &node, &pods, &slices)?)
    }
}

/// A template as typed objects.
struct TypedTemplate {
    node: core::Node,
    pods: Vec<core::Pod>,
    slices: Vec<resource::ResourceSlice>,
    claims: Vec<resource::ResourceClaim>,
}

impl TypedTemplate {
    fn new(objects: TemplateObjects) -> Result<Self, ObjectError> {
        let modern = |values: Vec<Value>| Value::Array(values.into_iter().map(older_devices::modernized).collect());
        Ok(Self {
            node: from_value(objects.node).map_err(|error| error.under("template"))?,
            pods: from_value(Value::Array(objects.pods)).map_err(|error| error.under("templatePods"))?,
            slices: from_value(modern(objects.resource_slices))
                .map_err(|error| error.under("templateResourceSlices"))?,
            claims: from_value(modern(objects.resource_claims))
                .map_err(|error| error.under("templateResourceClaims"))?,
        })
    }

    fn admit(&mut self) -> Result<(), ConvertError> {
        fn all<T: Admit>(objects: &mut [T]) -> Result<(), ConvertError> {
            objects.iter_mut().enumerate().try_for_each(|(index, object)| object.admit().index(index))
        }
        self.node.admit().field("template")?;
        all(&mut self.pods).field("templatePods")?;
        all(&mut self.slices).field("templateResourceSlices")?;
        all(&mut self.claims).field("templateResourceClaims")
    }
}
