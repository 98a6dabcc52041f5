//! Nodes.

use k8s_openapi::api::core::v1 as core;

use super::super::error::Within;
use super::amounts::amounts;
use super::pod::STATUSES;
use super::{Admit, Checked, each_of, word};

/// Effects of taints.
pub(super) const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

impl Admit for core::Node {
    fn admit(&mut self) -> Checked {
        let Some(status) = &self.status else { return Ok(()) };
        amounts(status.capacity.as_ref()).field("capacity").field("status")?;
        amounts(status.allocatable.as_ref()).field("allocatable").field("status")?;
        let condition = |condition: &core::NodeCondition| word(&condition.status, STATUSES).field("status");
        each_of(status.conditions.as_ref(), condition).field("conditions").field("status")
    }
}
