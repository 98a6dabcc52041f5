//! What `wit-bindgen` makes of the contract, in pieces that share one set of types.
//!
//! A guest links only what it uses: an expander that never touches WASI imports nothing of it, and an optional interface
//! becomes an export only when the export macro names it. The SDK wraps all of this; go through here only for a part of
//! the contract that it does not wrap.

#![allow(missing_docs, unsafe_code, unreachable_pub, clippy::all, clippy::restriction, reason = "generated code")]

/// Types of the contract, and what the host offers.
pub mod contract {
    wit_bindgen::generate!({
        path: "../wit/v0",
        inline: "
            package plimsoll:guest;
            world contract {
                import autoscaler:plugin/types@0.1.0;
                import autoscaler:plugin/log@0.1.0;
                import autoscaler:plugin/config@0.1.0;
                import autoscaler:plugin/state@0.1.0;
            }
        ",
        world: "plimsoll:guest/contract",
        generate_unused_types: true,
        additional_derives: [PartialEq],
        generate_all,
    });
    pub use self::autoscaler::plugin::{config, log, state, types};
}

/// The parts of WASI that a provider may use.
#[cfg(target_arch = "wasm32")]
pub mod system {
    wit_bindgen::generate!({
        path: "../wit/v0",
        inline: "
            package plimsoll:guest;
            world system {
                import wasi:clocks/wall-clock@0.2.12;
                import wasi:clocks/monotonic-clock@0.2.12;
                import wasi:random/random@0.2.12;
                import wasi:http/outgoing-handler@0.2.12;
            }
        ",
        world: "plimsoll:guest/system",
        generate_all,
    });
    pub use self::wasi::{clocks, http, io, random};
}

/// The world `expander`.
pub mod expander {
    wit_bindgen::generate!({
        path: "../wit/v0",
        world: "autoscaler:plugin/expander",
        with: {
            "autoscaler:plugin/types@0.1.0": super::contract::types,
            "autoscaler:plugin/log@0.1.0": super::contract::log,
            "autoscaler:plugin/config@0.1.0": super::contract::config,
        },
        generate_unused_types: true,
        additional_derives: [PartialEq],
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export",
    });
    pub use self::exports::autoscaler::plugin::ranking;
}

/// The world `cloud-provider`, without the WASI that `system` holds.
pub mod provider {
    wit_bindgen::generate!({
        path: "../wit/v0",
        world: "autoscaler:plugin/cloud-provider-host",
        with: {
            "autoscaler:plugin/types@0.1.0": super::contract::types,
            "autoscaler:plugin/log@0.1.0": super::contract::log,
            "autoscaler:plugin/config@0.1.0": super::contract::config,
            "autoscaler:plugin/state@0.1.0": super::contract::state,
        },
        generate_unused_types: true,
        additional_derives: [PartialEq],
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export",
    });
    pub use self::exports::autoscaler::plugin::provider as interface;
}

/// The optional interface `pricing`.
pub mod pricing {
    wit_bindgen::generate!({
        path: "../wit/v0",
        world: "autoscaler:plugin/pricing-mixin",
        with: { "autoscaler:plugin/types@0.1.0": super::contract::types },
        additional_derives: [PartialEq],
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export",
    });
    pub use self::exports::autoscaler::plugin::pricing as interface;
}

/// The optional interface `provisioning`.
pub mod provisioning {
    wit_bindgen::generate!({
        path: "../wit/v0",
        world: "autoscaler:plugin/provisioning-mixin",
        with: { "autoscaler:plugin/types@0.1.0": super::contract::types },
        additional_derives: [PartialEq],
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export",
    });
    pub use self::exports::autoscaler::plugin::provisioning as interface;
}
