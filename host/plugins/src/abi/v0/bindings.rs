//! Generated bindings. The host binds worlds without WASI; WASI is added to the linker separately.
#![allow(unreachable_pub, reason = "generated code")]

pub(crate) mod provider {
    wasmtime::component::bindgen!({
        path: "../../wit/v0",
        world: "cloud-provider-host",
        imports: { default: trappable },
        exports: { default: async },
        include_component_type: true,
    });
}

pub(crate) mod expander {
    wasmtime::component::bindgen!({
        path: "../../wit/v0",
        world: "expander-host",
        imports: { default: trappable },
        exports: { default: async },
        include_component_type: true,
        // One set of types, and one implementation of the host's interfaces, for both worlds.
        with: {
            "autoscaler:plugin/types": super::provider::autoscaler::plugin::types,
            "autoscaler:plugin/log": super::provider::autoscaler::plugin::log,
            "autoscaler:plugin/config": super::provider::autoscaler::plugin::config,
        },
    });
}

/// Optional ability, probed on a provider that is already linked.
pub(crate) mod pricing {
    wasmtime::component::bindgen!({
        path: "../../wit/v0",
        world: "pricing-mixin",
        exports: { default: async },
        include_component_type: true,
        with: { "autoscaler:plugin/types": super::provider::autoscaler::plugin::types },
    });
}

/// Optional ability, probed on a provider that is already linked.
pub(crate) mod provisioning {
    wasmtime::component::bindgen!({
        path: "../../wit/v0",
        world: "provisioning-mixin",
        exports: { default: async },
        include_component_type: true,
        with: { "autoscaler:plugin/types": super::provider::autoscaler::plugin::types },
    });
}

pub(crate) use expander::exports::autoscaler::plugin::ranking;
pub(crate) use pricing::exports::autoscaler::plugin::pricing as prices;
pub(crate) use provider::autoscaler::plugin::{config, log, state, types};
pub(crate) use provider::exports::autoscaler::plugin::provider as cloud;
