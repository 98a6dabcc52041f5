//! Controllers, budgets and DaemonSets.

use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::policy::v1 as policy;

use super::super::error::Within;
use super::pod::pod_spec;
use super::selectors::label_selector;
use super::{Admit, Checked, at_least};

impl Admit for apps::DaemonSet {
    fn admit(&mut self) -> Checked {
        let spec = self.spec.template.spec.as_ref();
        spec.map_or(Ok(()), pod_spec).field("spec").field("template").field("spec")
    }
}

impl Admit for apps::ReplicaSet {
    fn admit(&mut self) -> Checked {
        at_least(0, self.spec.replicas).field("replicas").field("spec")
    }
}

impl Admit for apps::StatefulSet {
    fn admit(&mut self) -> Checked {
        at_least(0, self.spec.replicas).field("replicas").field("spec")
    }
}

impl Admit for core::ReplicationController {
    fn admit(&mut self) -> Checked {
        at_least(0, self.spec.as_ref().and_then(|spec| spec.replicas)).field("replicas").field("spec")
    }
}

impl Admit for batch::Job {
    fn admit(&mut self) -> Checked {
        at_least(0, self.spec.as_ref().and_then(|spec| spec.parallelism)).field("parallelism").field("spec")
    }
}

impl Admit for policy::PodDisruptionBudget {
    fn admit(&mut self) -> Checked {
        let selector = self.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        label_selector(selector).field("selector").field("spec")?;
        let allowed = self.status.as_ref().and_then(|status| status.disruptions_allowed);
        at_least(0, allowed).field("disruptionsAllowed").field("status")
    }
}
