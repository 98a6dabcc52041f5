//! Controllers, budgets and DaemonSets.

use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::policy::v1 as policy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::pod::OwnerKind;
use crate::symbol::Symbols;
use crate::taint::{TaintEffect, Toleration, TolerationOperator};
use crate::workload::{Controller, DaemonSet, PodDisruptionBudget};

use super::Converter;
use super::error::{ConvertError, Within};
use super::metadata;
use super::pod::Subject;
use super::pod_rules::LabelKeys;
use super::selectors::label_selector;

impl Converter<'_> {
    /// A DaemonSet with the pod that it would run on a fresh node: its template as it stands (the API server fills in
    /// limits and host ports only when it makes the real pod, and the peer does not), with the tolerations that the
    /// DaemonSet controller adds.
    ///
    /// # Errors
    ///
    /// If it has no name, or its template has an amount or a host port that cannot be read.
    pub fn daemon_set(&mut self, set: &apps::DaemonSet) -> Result<DaemonSet, ConvertError> {
        let name = metadata::name(&set.metadata)?;
        let namespace = metadata::namespace(&set.metadata, self.symbols);
        let template = &set.spec.template;
        let (bare_metadata, bare_spec) = (meta::ObjectMeta::default(), core::PodSpec::default());
        let pod = template.spec.as_ref().unwrap_or(&bare_spec);
        let spec = self.pod_spec(&Subject {
            metadata: template.metadata.as_ref().unwrap_or(&bare_metadata),
            namespace,
            name,
            spec: pod,
            status: None,
            label_keys: LabelKeys::ToMerge,
        });
        let mut spec = spec.field("template").field("spec")?;
        let node = pod.node_name.as_deref().filter(|node| !node.is_empty());
        spec.node_name = node.map(|node| self.symbols.intern(node));
        let mut tolerations = spec.tolerations.into_vec();
        for added in daemon_tolerations(pod.host_network == Some(true), self.symbols) {
            if !tolerations.contains(&added) {
                tolerations.push(added);
            }
        }
        spec.tolerations = tolerations.into();
        Ok(DaemonSet {
            namespace,
            name: self.symbols.intern(name),
            uid: self.symbols.intern(metadata::uid(&set.metadata)),
            spec: self.specs.intern(spec),
            node_critical: pod.priority_class_name.as_deref() == Some("system-node-critical"),
        })
    }

    /// A ReplicaSet.
    ///
    /// # Errors
    ///
    /// If it has no name.
    pub fn replica_set(&mut self, set: &apps::ReplicaSet) -> Result<Controller, ConvertError> {
        self.controller(OwnerKind::ReplicaSet, &set.metadata, set.spec.replicas)
    }

    /// A StatefulSet.
    ///
    /// # Errors
    ///
    /// If it has no name.
    pub fn stateful_set(&mut self, set: &apps::StatefulSet) -> Result<Controller, ConvertError> {
        self.controller(OwnerKind::StatefulSet, &set.metadata, set.spec.replicas)
    }

    /// A Job.
    ///
    /// # Errors
    ///
    /// If it has no name.
    pub fn job(&mut self, job: &batch::Job) -> Result<Controller, ConvertError> {
        let parallelism = job.spec.as_ref().and_then(|spec| spec.parallelism);
        self.controller(OwnerKind::Job, &job.metadata, parallelism)
    }

    /// A ReplicationController.
    ///
    /// # Errors
    ///
    /// If it has no name.
    pub fn replication_controller(&mut self, rc: &core::ReplicationController) -> Result<Controller, ConvertError> {
        let replicas = rc.spec.as_ref().and_then(|spec| spec.replicas);
        self.controller(OwnerKind::ReplicationController, &rc.metadata, replicas)
    }

    fn controller(
        &mut self,
        kind: OwnerKind,
        metadata: &meta::ObjectMeta,
        replicas: Option<i32>,
    ) -> Result<Controller, ConvertError> {
        Ok(Controller {
            kind,
            namespace: metadata::namespace(metadata, self.symbols),
            name: self.symbols.intern(metadata::name(metadata)?),
            replicas: replicas.map(i64::from),
        })
    }

    /// A PodDisruptionBudget.
    ///
    /// # Errors
    ///
    /// If it has no name.
    pub fn disruption_budget(
        &mut self,
        budget: &policy::PodDisruptionBudget,
    ) -> Result<PodDisruptionBudget, ConvertError> {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        Ok(PodDisruptionBudget {
            namespace: metadata::namespace(&budget.metadata, self.symbols),
            name: self.symbols.intern(metadata::name(&budget.metadata)?),
            selector: selector.map(|selector| label_selector(selector, self.symbols)),
            disruptions_allowed: budget.status.as_ref().map_or(0, |status| status.disruptions_allowed.unwrap_or(0)),
        })
    }
}

/// What the DaemonSet controller lets every one of its pods tolerate (`AddOrUpdateDaemonPodTolerations`).
fn daemon_tolerations(host_network: bool, symbols: &mut Symbols) -> Vec<Toleration> {
    use TaintEffect::{NoExecute, NoSchedule};
    const ALWAYS: [(&str, TaintEffect); 6] = [
        ("node.kubernetes.io/not-ready", NoExecute),
        ("node.kubernetes.io/unreachable", NoExecute),
        ("node.kubernetes.io/disk-pressure", NoSchedule),
        ("node.kubernetes.io/memory-pressure", NoSchedule),
        ("node.kubernetes.io/pid-pressure", NoSchedule),
        ("node.kubernetes.io/unschedulable", NoSchedule),
    ];
    let network = host_network.then_some(("node.kubernetes.io/network-unavailable", NoSchedule));
    let tolerate = |(key, effect)| Toleration {
        key: symbols.intern(key),
        operator: TolerationOperator::Exists,
        value: crate::symbol::known::EMPTY,
        effect: Some(effect),
    };
    ALWAYS.into_iter().chain(network).map(tolerate).collect()
}
