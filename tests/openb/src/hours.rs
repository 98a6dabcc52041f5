//! How few node-hours could have held the pods that ran, by their times in the trace.

use std::collections::{BTreeMap, BTreeSet};

use crate::bound::lower_bounds;
use crate::trace::{Shape, Task};

/// The fewest node-hours.
#[derive(Clone, PartialEq, Debug)]
pub struct FewestHours {
    /// By resource, as if it were the only one that matters.
    pub by_resource: BTreeMap<String, f64>,
    /// By whichever resource needs the most machines at each moment: the bound to compare with.
    pub all: f64,
}

/// Adds up, over the whole trace, the fewest machines that could hold the pods that are there at each moment. Pods count from
/// the moment at which they were made; those that fit on no machine are left out.
#[allow(clippy::cast_precision_loss, reason = "seconds of some months")]
pub fn fewest_hours(shapes: &[(Shape, u32)], tasks: &[Task]) -> FewestHours {
    let mut changes: BTreeMap<u64, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (index, task) in tasks.iter().enumerate() {
        if let Some((begin, end)) = task.span.filter(|(begin, end)| begin < end) {
            changes.entry(begin).or_default().0.push(index);
            changes.entry(end).or_default().1.push(index);
        }
    }
    let mut fewest = FewestHours { by_resource: BTreeMap::new(), all: 0.0 };
    let mut running: BTreeSet<usize> = BTreeSet::new();
    let mut since = 0;
    for (at, (begin, end)) in changes {
        let hours = (at - since) as f64 / 3600.0;
        if !running.is_empty() {
            let there: Vec<Task> = running.iter().filter_map(|&index| tasks.get(index)).cloned().collect();
            let bounds = lower_bounds(shapes, &there);
            let most = bounds.iter().map(|bound| bound.machines).max().unwrap_or(0);
            fewest.all += f64::from(most) * hours;
            for bound in bounds {
                *fewest.by_resource.entry(bound.resource).or_default() += f64::from(bound.machines) * hours;
            }
        }
        running.extend(begin);
        running.retain(|index| !end.contains(index));
        since = at;
    }
    fewest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_follow_the_pods() {
        let shape = Shape { cpu_milli: 10, memory_mib: 10, gpus: 0, model: String::new() };
        let task = |cpu_milli, begin, end| Task {
            name: String::new(),
            cpu_milli,
            memory_mib: 1,
            gpus: 0,
            models: vec![],
            span: Some((begin, end)),
        };
        // One machine for an hour, two for another, none, one for half an hour.
        let tasks = [task(6, 0, 7200), task(6, 3600, 7200), task(1, 36_000, 37_800), task(11, 0, 99_999)];
        let fewest = fewest_hours(&[(shape, 9)], &tasks);
        assert!((fewest.all - 3.5).abs() < 1e-9, "{fewest:?}");
        assert!((fewest.by_resource["cpu"] - 3.5).abs() < 1e-9);
        assert!((fewest.by_resource["memory"] - 2.5).abs() < 1e-9);
    }
}
