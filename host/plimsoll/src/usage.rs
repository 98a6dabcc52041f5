//! How much memory and processor time the process has used.

use std::time::Duration;

/// Most memory that the process held at a time, in MiB; 0 where the system does not tell.
pub(crate) fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|number| number.trim().parse::<f64>().ok());
    (kib.unwrap_or(0.0) / 1024.0 * 10.0).round() / 10.0
}

/// How long the threads that live now have run on a processor; zero where the system does not tell. Unlike the time that
/// passed, it does not grow while other programs have the processor.
pub(crate) fn processor_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let statistics = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        statistics.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}
