//! Metrics in the Prometheus text format: the Go autoscaler's families under its names, and ours.
//!
//! [`families`] is the table of all of them, from which `docs/metrics.md` is made; [`registry`] holds the values;
//! [`of_loop`] and [`of_plugins`] say what they are.

pub mod families;
pub mod family;
mod of_loop;
mod of_plugins;
mod registry;
mod table;

pub(crate) use of_loop::{Counted, ErrorType, failure};
pub use of_plugins::PluginMetrics;
pub(crate) use registry::CONTENT_TYPE;
pub use registry::Metrics;
pub use table::markdown;
