//! The component of the simulated cloud, in front of a cloud that lives in this process.

use std::sync::{Arc, Mutex};

use plimsoll_plugins::egress::{Grant, GrantError, InProcess, NetworkGrants, Transport};
use plimsoll_plugins::expander::RoleError;
use plimsoll_plugins::provider::{ProviderOptions, Setup};
use plimsoll_plugins::{Kind, LoadError, Origin, PluginHost, Provider, Source};
/// Where the cloud is, for `cloud_config` of a [`Setup`].
pub use plimsoll_provider_simulated::wire::ENDPOINT;
use plimsoll_sim::{World, api};

use crate::lock;

/// Why the component does not serve.
#[derive(Debug, thiserror::Error)]
pub enum SimulatedError {
    /// It cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The address of the cloud is no grant.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// It is no provider.
    #[error(transparent)]
    Role(#[from] RoleError),
}

/// The component, as a host loads it.
pub fn source(component: &'static [u8]) -> Source {
    Source {
        name: "simulated".into(),
        origin: Origin::BuiltIn,
        kind: Some(Kind::CloudProvider),
        bytes: component.into(),
    }
}

/// A network that consists of the cloud.
pub fn transport(world: Arc<Mutex<World>>) -> Arc<dyn Transport> {
    Arc::new(InProcess::new(move |request| {
        let world = world.clone();
        async move { api::answer(&mut lock(&world), &request) }
    }))
}

/// The component at work. It may reach the cloud and nothing else.
///
/// # Errors
///
/// If `component` is not the provider of the simulated cloud, or one of another version.
pub async fn provider(
    host: &PluginHost,
    component: &'static [u8],
    transport: Arc<dyn Transport>,
    setup: Setup,
) -> Result<Provider, SimulatedError> {
    let plugin = host.load(source(component), None).await?;
    let mut options = ProviderOptions::new(setup, transport);
    options.grants = NetworkGrants { hosts: vec![Grant::parse(ENDPOINT, false)?], ..NetworkGrants::default() };
    Ok(Provider::spawn(host, &plugin, options)?)
}
