//! Nodes.

use k8s_openapi::api::core::v1 as core;

use crate::node::{Condition, ConditionStatus, Node};
use crate::symbol::Symbols;
use crate::taint::Taint;

use super::Converter;
use super::amounts::{ResourceList, supply};
use super::error::{ConvertError, Flaw, Within};
use super::metadata::{self, annotation};
use super::pod_rules::taint_effect;

const SCALE_DOWN_DISABLED: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
const DELAY_DELETION_PREFIX: &str = "delay-deletion.cluster-autoscaler.kubernetes.io/";

impl Converter<'_> {
    /// A node. If only one of capacity and allocatable is there, it stands for both.
    ///
    /// # Errors
    ///
    /// If it has no name, or an amount or the effect of a taint cannot be read.
    pub fn node(&mut self, node: &core::Node) -> Result<Node, ConvertError> {
        self.node_named(metadata::name(&node.metadata)?, node)
    }

    /// A node under a name of our own.
    pub(super) fn node_named(&mut self, name: &str, node: &core::Node) -> Result<Node, ConvertError> {
        let symbols = &mut *self.symbols;
        let spec = node.spec.as_ref();
        let status = node.status.as_ref();
        let mut amounts = |list: Option<&ResourceList>, field| {
            let amounts = list.map(|list| supply(Some(list), symbols)).transpose();
            amounts.field(field).field("status")
        };
        let capacity = amounts(status.and_then(|status| status.capacity.as_ref()), "capacity")?;
        let allocatable = amounts(status.and_then(|status| status.allocatable.as_ref()), "allocatable")?;
        let taints = spec.and_then(|spec| spec.taints.as_ref()).into_iter().flatten().enumerate();
        let taints = taints.map(|(index, taint)| {
            let converted = self::taint(&taint.key, taint.value.as_deref().unwrap_or(""), &taint.effect, symbols);
            converted.index(index).field("taints").field("spec")
        });
        let taints = taints.collect::<Result<_, _>>()?;
        let mut features: Vec<_> = status
            .and_then(|status| status.declared_features.as_ref())
            .into_iter()
            .flatten()
            .map(|feature| symbols.intern(feature))
            .collect();
        features.sort_unstable();
        let addresses = status.and_then(|status| status.addresses.as_ref()).into_iter().flatten();
        let annotations = node.metadata.annotations.iter().flatten();
        Ok(Node {
            name: symbols.intern(name),
            uid: metadata::uid(&node.metadata).into(),
            labels: metadata::labels(node.metadata.labels.as_ref(), symbols),
            taints,
            unschedulable: spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
            capacity: capacity.clone().or_else(|| allocatable.clone()).unwrap_or_default(),
            allocatable: allocatable.or(capacity).unwrap_or_default(),
            provider_id: spec.and_then(|spec| spec.provider_id.as_deref()).unwrap_or("").into(),
            internal_ip: { addresses }
                .find(|address| address.type_ == "InternalIP")
                .map(|address| address.address.as_str().into()),
            created_at: node.metadata.creation_timestamp.as_ref().map(metadata::time),
            conditions: status
                .and_then(|status| status.conditions.as_ref())
                .into_iter()
                .flatten()
                .map(|condition| self::condition(condition, symbols))
                .collect(),
            features: features.into(),
            scale_down_disabled: annotation(&node.metadata, SCALE_DOWN_DISABLED) == Some("true"),
            deletion_delayed: { annotations }.any(|(key, _)| key.starts_with(DELAY_DELETION_PREFIX)),
        })
    }
}

/// A taint from its parts.
pub(super) fn taint(key: &str, value: &str, effect: &str, symbols: &mut Symbols) -> Result<Taint, ConvertError> {
    let effect = taint_effect(effect).ok_or_else(|| Flaw::TaintEffect(effect.to_owned()).into()).field("effect")?;
    Ok(Taint { key: symbols.intern(key), value: symbols.intern(value), effect })
}

fn condition(condition: &core::NodeCondition, symbols: &mut Symbols) -> Condition {
    Condition {
        kind: symbols.intern(&condition.type_),
        status: match condition.status.as_str() {
            "True" => ConditionStatus::True,
            "False" => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        },
        reason: symbols.intern(condition.reason.as_deref().unwrap_or("")),
        since: condition.last_transition_time.as_ref().map(metadata::time),
    }
}
