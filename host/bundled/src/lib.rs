//! The components that come with the host, and how guests become components.
//!
//! ```text
//!  providers/*, expanders/*  ──(nested cargo, wasm32-unknown-unknown)──►  core modules  ──(componentize)──►  components
//! ```
//!
//! [`EXPANDERS`], [`PROVIDERS`] and [`SIMULATED_PROVIDER`] are embedded when this crate is built. The binary `components`
//! of this crate (`make components`) makes files of all of them.

mod componentize;
#[cfg(test)]
mod embedded;
mod guests;
mod template;
mod toolchain;

pub use componentize::{ComponentizeError, componentize};
pub use guests::{BuildError, Guest, GuestKind, Workspace};
pub use template::{SdkSource, TemplateError, new_expander};
pub use toolchain::{Choice, Toolchain, ToolchainError};

macro_rules! embedded {
    ($file:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $file, ".wasm"))
    };
}

/// The expanders by name, each a component of the world `expander`.
pub const EXPANDERS: &[(&str, &[u8])] = &[
    ("least-nodes", embedded!("expander-least-nodes")),
    ("least-waste", embedded!("expander-least-waste")),
    ("most-pods", embedded!("expander-most-pods")),
    ("price", embedded!("expander-price")),
    ("priority", embedded!("expander-priority")),
    ("random", embedded!("expander-random")),
];

/// The providers of clouds by name, each a component of the world `cloud-provider`.
pub const PROVIDERS: &[(&str, &[u8])] =
    &[("alicloud", embedded!("provider-alicloud")), ("utho", embedded!("provider-utho"))];

/// The provider of the simulated cloud, a component of the world `cloud-provider` with prices.
pub const SIMULATED_PROVIDER: &[u8] = embedded!("provider-simulated");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_build_script_builds_is_what_is_embedded() {
        let names: Vec<_> = EXPANDERS.iter().map(|&(name, _)| name).collect();
        assert_eq!(names, embedded::EXPANDERS);
        let names: Vec<_> = PROVIDERS.iter().map(|&(name, _)| name).collect();
        assert_eq!(names, embedded::PROVIDERS);
        assert_eq!(embedded::SIMULATED, "simulated");
    }
}
