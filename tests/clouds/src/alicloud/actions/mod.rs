//! What the operations do.

pub mod cs;
mod cs_nodes;
pub mod ecs;
mod ess_read;
mod ess_resize;
mod ess_withdraw;
pub mod location;
pub mod metadata;
mod page;
mod price;
mod show;
pub mod sts;
pub mod vpc;

use super::action::Action;

/// Operations of ESS.
pub(super) const fn ess() -> &'static [Action] {
    const ALL: &[Action] = &[
        ess_read::GROUPS,
        ess_read::INSTANCES,
        ess_read::CONFIGURATIONS,
        ess_read::ACTIVITIES,
        ess_resize::SCALE,
        ess_resize::MODIFY,
        ess_withdraw::REMOVE,
        ess_withdraw::DETACH,
        ess_withdraw::PROTECT,
    ];
    ALL
}
