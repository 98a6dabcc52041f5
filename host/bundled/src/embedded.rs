//! Which guests the library embeds.

/// The expanders.
pub(crate) const EXPANDERS: &[&str] = &["least-nodes", "least-waste", "most-pods", "price", "priority", "random"];

/// The providers of clouds.
pub(crate) const PROVIDERS: &[&str] = &["alicloud", "utho"];

/// The provider of the simulated cloud.
pub(crate) const SIMULATED: &str = "simulated";
