//! Which guests the library embeds.

/// The expanders.
pub(crate) const EXPANDERS: &[&str] = &["least-nodes", "least-waste", "most-pods", "price", "priority", "random"];

/// The provider, for the demo.
pub(crate) const PROVIDER: &str = "simulated";
