//! Version 0.1 of the contract (`wit/v0`).

mod bindings;
mod cloud;
mod expander;
mod host;
mod provider;
mod ranking;

use wasmtime::component::{HasSelf, Linker};
use wit_parser::decoding::decode_world;
use wit_parser::{Resolve, WorldId};

pub(crate) use self::expander::LinkedExpander;
pub(crate) use self::provider::{LinkedProvider, ProviderInstance};
use crate::plugin::Kind;
use crate::store::PluginState;

/// Name of the package, without version.
pub(crate) const PACKAGE: &str = "autoscaler:plugin";
/// The version track: components of any version in it fit.
pub(crate) const SERVED: (u64, u64) = (0, 1);

/// What the host offers to providers of this version, WASI aside.
pub(crate) fn add_provider_imports(linker: &mut Linker<PluginState>) -> wasmtime::Result<()> {
    bindings::provider::CloudProviderHost::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

/// What the host offers to expanders of this version, WASI aside.
pub(crate) fn add_expander_imports(linker: &mut Linker<PluginState>) -> wasmtime::Result<()> {
    bindings::expander::ExpanderHost::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

/// The contract as data, for comparison with what a component brings: the world that it must have, and the worlds of
/// optional abilities.
pub(crate) fn contract(kind: Kind) -> Result<Vec<(Resolve, WorldId)>, String> {
    let types: &[&[u8]] = match kind {
        Kind::CloudProvider => &[
            bindings::provider::COMPONENT_TYPE,
            bindings::pricing::COMPONENT_TYPE,
            bindings::provisioning::COMPONENT_TYPE,
        ],
        Kind::Expander => &[bindings::expander::COMPONENT_TYPE],
    };
    types.iter().map(|bytes| decode_world(bytes).map_err(|error| format!("{error:#}"))).collect()
}
