//! Machine types: asked for by name, as a list of all types is cut off at a hundred.

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Deadline, PluginError};
use serde_json::Value;

use crate::api::{Api, Call, Lenient, Product};
use crate::memory::Memory;

const NAMES_PER_CALL: usize = 10;

/// A machine type.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct InstanceType {
    pub(crate) cores: u32,
    pub(crate) memory_gib: f64,
    /// As in the label `kubernetes.io/arch`.
    pub(crate) arch: &'static str,
    pub(crate) gpus: u32,
    pub(crate) gpu_model: String,
}

impl InstanceType {
    fn read(value: &Value) -> Option<(String, Self)> {
        let arm = value.text("CpuArchitecture").to_ascii_lowercase().starts_with("arm");
        let kind = Self {
            cores: value.count("CpuCoreCount")?,
            memory_gib: value.decimal("MemorySize")?,
            arch: if arm { "arm64" } else { "amd64" },
            gpus: value.count("GPUAmount").unwrap_or(0),
            gpu_model: value.text("GPUSpec"),
        };
        Some((value.text("InstanceTypeId"), kind))
    }
}

/// Reads those that are not known yet.
///
/// # Errors
/// They cannot be read.
pub(super) fn learn<T: Transport>(
    api: &mut Api<T>,
    memory: &mut Memory,
    names: &[String],
    deadline: Deadline,
) -> Result<(), PluginError> {
    let unknown: Vec<_> = names.iter().filter(|name| !memory.types.contains_key(*name)).collect();
    for names in unknown.chunks(NAMES_PER_CALL) {
        let question = Call::read(Product::Ecs, "DescribeInstanceTypes").each("InstanceTypes", names);
        let mut token = String::new();
        // A handful of names fits on one page; some more are followed, but not for ever.
        for _ in 0..NAMES_PER_CALL {
            let answer = api.ask(&question.clone().with("NextToken", &token), deadline)?;
            memory.types.extend(answer.list("InstanceTypes", "InstanceType").iter().filter_map(InstanceType::read));
            token = answer.text("NextToken");
            if token.is_empty() || names.iter().all(|name| memory.types.contains_key(*name)) {
                break;
            }
        }
    }
    Ok(())
}
