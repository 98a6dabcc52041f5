//! How much memory the process has held.

/// Most memory that the process held at a time, in MiB; 0 where the system does not tell.
pub(crate) fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|number| number.trim().parse::<f64>().ok());
    (kib.unwrap_or(0.0) / 1024.0 * 10.0).round() / 10.0
}
