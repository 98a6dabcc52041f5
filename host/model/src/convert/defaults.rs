//! What other objects add to a pod when the API server makes it: requests from the LimitRanges of its namespace, and what
//! its RuntimeClass says (the admission plug-ins LimitRanger and RuntimeClass, 1.37).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::node::v1 as node;
use serde_json::Value;

use crate::cluster::Cluster;

use super::admission::Admit;
use super::amounts::ResourceList;
use super::objects::ObjectError;
use super::parse::{from_text, from_value};

/// What pods get that have not met the API server yet.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    /// Requests of containers by namespace.
    requests: BTreeMap<String, ResourceList>,
    classes: BTreeMap<String, node::RuntimeClass>,
}

impl Defaults {
    /// Takes an object that adds to pods; false: it is none.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(crate) fn take(
        &mut self,
        api_version: &str,
        kind: &str,
        tree: impl Fn() -> Value,
    ) -> Result<bool, ObjectError> {
        match (api_version, kind) {
            ("v1", "LimitRange") => self.take_range(&from_value(tree())?),
            ("node.k8s.io/v1", "RuntimeClass") => {
                let class: node::RuntimeClass = from_value(tree())?;
                self.classes.insert(class.metadata.name.clone().unwrap_or_default(), class);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Defaults of a LimitRange default to each other (`SetDefaults_LimitRangeItem`).
    fn take_range(&mut self, range: &core::LimitRange) {
        let namespace = range.metadata.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let requests = self.requests.entry(namespace.unwrap_or("default").to_owned()).or_default();
        let items = range.spec.iter().flat_map(|spec| &spec.limits).filter(|item| item.type_ == "Container");
        for item in items {
            for list in [&item.default_request, &item.default, &item.max, &item.min].into_iter().flatten() {
                for (name, amount) in list {
                    requests.entry(name.clone()).or_insert_with(|| amount.clone());
                }
            }
        }
    }

    /// Converts a pod anew with what it gets. `at` is its number in the cluster, `text` the object.
    ///
    /// # Errors
    ///
    /// If what it gets cannot be read. The class that it names, if there is no such class.
    pub(crate) fn complete(&self, cluster: &mut Cluster, at: usize, text: &str) -> Result<Option<String>, ObjectError> {
        if self.requests.is_empty() && !text.contains("runtimeClassName") {
            return Ok(None);
        }
        let mut pod: core::Pod = from_text(text)?;
        pod.admit()?;
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let Some(spec) = &mut pod.spec else { return Ok(None) };
        let requests = self.requests.get(if namespace.is_empty() { "default" } else { &namespace });
        requests.into_iter().for_each(|requests| fill_in(spec, requests));
        let missing = self.apply_class(spec);
        let completed = cluster.converter().pod(&pod)?;
        if let Some(slot) = cluster.pods.get_mut(at) {
            *slot = completed;
        }
        Ok(missing)
    }

    /// Gives the name of the class if it is not there.
    fn apply_class(&self, spec: &mut core::PodSpec) -> Option<String> {
        let name = spec.runtime_class_name.clone().filter(|name| !name.is_empty())?;
        let Some(class) = self.classes.get(&name) else { return Some(name) };
        if spec.overhead.is_none() {
            spec.overhead = class.overhead.as_ref().and_then(|overhead| overhead.pod_fixed.clone());
        }
        let scheduling = class.scheduling.as_ref()?;
        for (key, value) in scheduling.node_selector.iter().flatten() {
            spec.node_selector.get_or_insert_default().entry(key.clone()).or_insert_with(|| value.clone());
        }
        let tolerations = scheduling.tolerations.iter().flatten().cloned();
        spec.tolerations.get_or_insert_default().extend(tolerations);
        None
    }
}

fn fill_in(spec: &mut core::PodSpec, requests: &ResourceList) {
    for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
        let own = container.resources.get_or_insert_default().requests.get_or_insert_default();
        for (name, amount) in requests {
            own.entry(name.clone()).or_insert_with(|| amount.clone());
        }
    }
}
