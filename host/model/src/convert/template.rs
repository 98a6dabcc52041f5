//! The nodes that a group would create, from a Node object or from text maps.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::resource::v1 as resource;

use crate::node::Node;
use crate::pod::OwnerKind;
use crate::template::{Template, TemplatePod};

use super::Converter;
use super::amounts::{ResourceList, supply};
use super::error::{ConvertError, Within};
use super::{devices, metadata, node};

/// What a provider says about the nodes that a group would create, as text.
#[derive(Clone, Copy, Debug, Default)]
pub struct TemplateParts<'a> {
    /// A name for people; each node gets its own.
    pub name: &'a str,
    /// Labels.
    pub labels: &'a [(String, String)],
    /// Taints.
    pub taints: &'a [TaintParts<'a>],
    /// What a node has: resource name and quantity.
    pub capacity: &'a [(String, String)],
    /// What pods may use: resource name and quantity. Empty: as much as the node has.
    pub allocatable: &'a [(String, String)],
}

/// A taint as text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaintParts<'a> {
    /// Key.
    pub key: &'a str,
    /// Value; may be empty.
    pub value: &'a str,
    /// Effect, as Kubernetes writes it.
    pub effect: &'a str,
}

impl Converter<'_> {
    /// A template from a Node object, the pods that each such node starts with, and its devices. A node without a name
    /// gets `name`.
    ///
    /// # Errors
    ///
    /// As [`Converter::node`], [`Converter::pod`] and [`Converter::resource_slice`]; the path starts with `template`,
    /// `templatePods` or `templateResourceSlices`.
    pub fn template(
        &mut self,
        name: &str,
        node: &core::Node,
        pods: &[core::Pod],
        slices: &[resource::ResourceSlice],
    ) -> Result<Template, ConvertError> {
        let name = metadata::name(&node.metadata).unwrap_or(name);
        let node = self.node_named(name, node).field("template")?;
        let pods =
            pods.iter().enumerate().map(|(index, pod)| self.template_pod(pod).index(index).field("templatePods"));
        let pods = pods.collect::<Result<_, _>>()?;
        let slices = slices.iter().enumerate().map(|(index, slice)| {
            let slice = self.resource_slice(slice).and_then(|slice| devices::is_on_node(&slice).map(|()| slice));
            slice.map(Arc::new).index(index).field("templateResourceSlices")
        });
        Ok(Template { node, pods, slices: slices.collect::<Result<_, _>>()? })
    }

    fn template_pod(&mut self, pod: &core::Pod) -> Result<TemplatePod, ConvertError> {
        let converted = self.pod_on_a_node(pod)?;
        let namespace = self.symbols.text(self.specs[converted.spec].namespace);
        Ok(TemplatePod {
            name: format!("{namespace}/{}", converted.name).into(),
            spec: converted.spec,
            daemon_set: converted.is_daemon_set_pod(),
            owner: converted.owner.filter(|owner| owner.kind == OwnerKind::DaemonSet).map(|owner| owner.name),
        })
    }

    /// A node that does not exist yet, from a provider's description.
    ///
    /// # Errors
    ///
    /// If an amount or the effect of a taint cannot be read; the path starts with the field of [`TemplateParts`].
    pub fn template_node(&mut self, parts: &TemplateParts<'_>) -> Result<Node, ConvertError> {
        let symbols = &mut *self.symbols;
        let list = |amounts: &[(String, String)]| -> ResourceList {
            let text = k8s_openapi::apimachinery::pkg::api::resource::Quantity;
            amounts.iter().map(|(name, amount)| (name.clone(), text(amount.clone()))).collect()
        };
        let capacity = supply(Some(&list(parts.capacity)), symbols).field("capacity")?;
        let allocatable = match parts.allocatable {
            [] => capacity.clone(),
            amounts => supply(Some(&list(amounts)), symbols).field("allocatable")?,
        };
        let labels = parts.labels.iter().map(|(key, value)| (symbols.intern(key), symbols.intern(value)));
        let labels = crate::Labels::new(labels);
        let taints = parts.taints.iter().enumerate().map(|(index, taint)| {
            node::taint(taint.key, taint.value, taint.effect, symbols).index(index).field("taints")
        });
        let taints = taints.collect::<Result<_, _>>()?;
        Ok(Node { labels, taints, capacity, allocatable, ..Node::bare(symbols.intern(parts.name)) })
    }
}
