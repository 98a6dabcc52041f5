//! The flags of a case as settings.

use std::time::Duration;

use anyhow::Context;
use plimsoll_core::Settings;
use plimsoll_core::cloud::GroupOptions;
use plimsoll_core::settings::Bounds;
use plimsoll_model::time::go_duration_nanos;
use serde_json::{Map, Value};

/// Settings with every flag of a case.
///
/// # Errors
///
/// If a flag is unknown here or its value cannot be read.
pub(crate) fn settings(options: &Map<String, Value>) -> anyhow::Result<Settings> {
    let mut settings = Settings::default();
    for (name, value) in options {
        set(&mut settings, name, value).with_context(|| format!("options.{name}: {value}"))?;
    }
    Ok(settings)
}

fn set(s: &mut Settings, name: &str, value: &Value) -> anyhow::Result<()> {
    match name {
        "expander" => s.expander = text(value)?.split(',').map(str::to_owned).collect(),
        "balance-similar-node-groups" => s.balance_similar_node_groups = switch(value)?,
        "new-pod-scale-up-delay" => s.new_pod_scale_up_delay = duration(value)?,
        "max-nodes-per-scaleup" => s.max_nodes_per_scaleup = whole(value)?,
        "max-nodes-total" => s.max_nodes_total = Some(whole(value)?).filter(|&most| most > 0),
        "enforce-node-group-min-size" => s.enforce_node_group_min_size = switch(value)?,
        "cores-total" => s.cores_total = bounds(text(value)?, 1)?,
        "memory-total" => s.memory_total = bounds(text(value)?, 1 << 30)?,
        "gpu-total" => s.gpu_total = texts(value)?.into_iter().map(gpu).collect::<anyhow::Result<_>>()?,
        "expendable-pods-priority-cutoff" => s.expendable_pods_priority_cutoff = whole(value)?,
        "bypassed-scheduler-names" => {
            s.bypassed_schedulers = text(value)?.split(',').map(str::to_owned).collect();
        }
        "force-ds" => s.force_ds = switch(value)?,
        "startup-taint" | "ignore-taint" => s.startup_taints.extend(texts(value)?.into_iter().map(str::to_owned)),
        "status-taint" => s.status_taints = texts(value)?.into_iter().map(str::to_owned).collect(),
        "scale-from-unschedulable" => s.scale_from_unschedulable = switch(value)?,
        "scale-up-from-zero" => s.scale_up_from_zero = switch(value)?,
        "scale-down-delay-after-add" => s.scale_down_delay_after_add = duration(value)?,
        "scale-down-unneeded-time" => s.scale_down_unneeded_time = duration(value)?,
        "scale-down-unready-enabled" => s.scale_down_unready_enabled = switch(value)?,
        "scale-down-utilization-threshold" => s.scale_down_utilization_threshold = ratio(value)?,
        "ignore-daemonsets-utilization" => s.ignore_daemonsets_utilization = switch(value)?,
        "ignore-mirror-pods-utilization" => s.ignore_mirror_pods_utilization = switch(value)?,
        "skip-nodes-with-system-pods" => s.skip_nodes_with_system_pods = switch(value)?,
        "skip-nodes-with-local-storage" => s.skip_nodes_with_local_storage = switch(value)?,
        "skip-nodes-with-custom-controller-pods" => s.skip_nodes_with_custom_controller_pods = switch(value)?,
        "min-replica-count" => s.min_replica_count = whole(value)?,
        "max-scale-down-parallelism" => s.max_scale_down_parallelism = whole(value)?,
        // The peer's spelling.
        "blocking-system-pod-distruption-timeout" => s.blocking_system_pod_disruption_timeout = duration(value)?,
        _ => anyhow::bail!("no such flag is known here"),
    }
    Ok(())
}

/// Options of a node group, named like the flags.
///
/// # Errors
///
/// If one is unknown here or its value cannot be read.
pub(crate) fn of_group(options: &Map<String, Value>) -> anyhow::Result<GroupOptions> {
    let mut made = GroupOptions::default();
    for (name, value) in options {
        let place = || format!("nodeGroups[].options.{name}: {value}");
        match name.as_str() {
            "zero-or-max-node-scaling" => made.zero_or_max = Some(switch(value).with_context(place)?),
            "ignore-daemonsets-utilization" => {
                made.ignore_daemon_sets_utilization = Some(switch(value).with_context(place)?);
            }
            "scale-down-unneeded-time" => made.unneeded_time = Some(duration(value).with_context(place)?),
            "scale-down-unready-time" => made.unready_time = Some(duration(value).with_context(place)?),
            "scale-down-utilization-threshold" => made.utilization_threshold = Some(ratio(value).with_context(place)?),
            _ => anyhow::bail!("{}: no such option is known here", place()),
        }
    }
    Ok(made)
}

fn text(value: &Value) -> anyhow::Result<&str> {
    value.as_str().context("expected a text")
}

fn texts(value: &Value) -> anyhow::Result<Vec<&str>> {
    let list = value.as_array().context("expected a list of texts")?;
    list.iter().map(text).collect()
}

fn switch(value: &Value) -> anyhow::Result<bool> {
    value.as_bool().context("expected true or false")
}

fn ratio(value: &Value) -> anyhow::Result<f64> {
    value.as_f64().context("expected a number")
}

fn whole<T: TryFrom<i64>>(value: &Value) -> anyhow::Result<T> {
    let number = value.as_i64().context("expected a whole number")?;
    T::try_from(number).ok().context("the number is out of range")
}

/// A span of time as Go writes it.
pub(crate) fn duration(value: &Value) -> anyhow::Result<Duration> {
    let text = text(value)?;
    let nanos = go_duration_nanos(text).with_context(|| format!("{text:?} is no duration"))?;
    Ok(Duration::from_nanos(u64::try_from(nanos)?))
}

/// `MIN:MAX`, in units of so much each.
fn bounds(text: &str, unit: i64) -> anyhow::Result<Bounds> {
    let (min, max) = text.split_once(':').context("expected MIN:MAX")?;
    let amount = |text: &str| anyhow::Ok(text.parse::<i64>()?.saturating_mul(unit));
    Ok(Bounds { min: amount(min)?, max: amount(max)? })
}

/// `MODEL:MIN:MAX`.
fn gpu(text: &str) -> anyhow::Result<(String, Bounds)> {
    let (model, range) = text.split_once(':').context("expected MODEL:MIN:MAX")?;
    Ok((model.to_owned(), bounds(range, 1)?))
}
