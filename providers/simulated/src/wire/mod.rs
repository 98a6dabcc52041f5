//! What goes over the wire between the provider and the simulated cloud: JSON, names in kebab case, empty fields left out.
//!
//! | request | body | answer |
//! |---|---|---|
//! | `GET /v1/health` | | `{}` |
//! | `POST /v1/state` | [`StateQuery`] | [`State`] |
//! | `POST /v1/templates` | [`TemplatesQuery`] | [`Templates`] |
//! | `GET /v1/prices` | | [`Prices`] |
//! | `POST /v1/groups/{group}/increase` | [`IncreaseOrder`] | [`SizeAnswer`] |
//! | `POST /v1/groups/{group}/decrease-target` | [`DecreaseOrder`] | [`SizeAnswer`] |
//! | `POST /v1/groups/{group}/delete-instances` | [`DeleteOrder`] | [`DeleteAnswer`] |
//!
//! A request that fails is answered with a [`Failure`] and the HTTP status [`Failure::status`]. [`Call::parse`] reads a
//! request on the cloud's side. State and templates are asked for by POST because a list of groups may be long.

mod call;
mod failure;
mod group;
mod order;
mod template;

pub use call::Call;
pub use failure::{Class, Failure, Scope};
pub use group::{
    Activity, ActivityState, Group, GroupOptions, GroupStatus, Instance, InstanceState, ScaleFailure, State,
    StateQuery, TemplateChoice,
};
pub use order::{DecreaseOrder, DeleteAnswer, DeleteOrder, DeleteResult, DeleteStatus, IncreaseOrder, SizeAnswer};
pub use template::{
    Accelerator, GroupTemplates, Prices, Taint, TaintEffect, Template, TemplatePrice, Templates, TemplatesQuery,
    UnitPrice,
};

/// Where the simulated cloud is, unless the configuration says otherwise. The name cannot be resolved: only a host that
/// answers it itself can.
pub const ENDPOINT: &str = "https://sim.plimsoll.internal";

fn is_false(flag: &bool) -> bool {
    !flag
}
