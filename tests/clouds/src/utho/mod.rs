//! Utho: one Kubernetes cluster with its node pools.
//!
//! ```text
//!  serve ── is the request well formed, who asks, what is meant ──► world ── pools, workers, time
//!  wire  ── the answer, in one of the forms that the API is known to give ◄── as much of it as reads show now
//! ```
//!
//! Where the vendor's documentation leaves open what happens, there is a switch, and a provider has to be right under both
//! settings: see [`Switches`] and [`Quirks`].

mod console;
mod scenario;
mod serve;
mod settings;
mod wire;
mod world;

pub use console::Order;
pub use scenario::{Scenario, ScenarioError, ScenarioPool};
pub use serve::Utho;
pub use settings::{Quirks, Switches};
pub use world::{Plan, Pool, State, Worker, World};

/// Host of the API.
pub const HOST: &str = "api.utho.com";
/// The token that is let in.
pub const TOKEN: &str = "utho-token-of-the-tests";

#[cfg(test)]
mod tests;
