//! A smaller wish, as far as no machine has to go. ESS would choose a victim by its own policy, so nothing is ever sent that
//! could make it choose.

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Decrease, PluginError, SizeOutcome};

use crate::activities;
use crate::api::{Api, Call, Product};
use crate::increase::{check_status, listed};
use crate::{capacity, groups};

/// Lowers the wish.
///
/// # Errors
/// Class `conflict` if a machine would have to go, or if something runs that may bring one.
pub(crate) fn decrease<T: Transport>(api: &mut Api<T>, call: &Decrease) -> Result<SizeOutcome, PluginError> {
    let deadline = call.options.deadline();
    let group = groups::one(api, &call.group, deadline)?;
    let conflict =
        |code: &str, message: String| Err(PluginError::conflict(message).with_code(code).for_group(&call.group));
    // Machines after the group, so that none can be missing that the group already counted.
    let members = listed(api, &call.group, deadline)?;
    let sizes = capacity::sizes(&group, &members);
    let wished = call.expected_target.saturating_sub(call.delta);
    let Some(desired) = group.desired else {
        // There is no stored wish: the number falls by itself when the activity ends.
        return if sizes.target <= wished && !activities::any_runs(api, &call.group, deadline)? {
            Ok(SizeOutcome::accepted(call.delta, sizes.target))
        } else {
            let message =
                format!("scaling group {} stores no wish; its size falls when the running activity ends", call.group);
            conflict("in-progress", message)
        };
    };
    if sizes.target != call.expected_target {
        return Err(PluginError::stale_target(&call.group, call.expected_target, sizes.target));
    }
    check_status(&group, false)?;
    let live: u32 = members
        .iter()
        .filter(|member| member.counts())
        .map(|member| if group.weighted { member.weight } else { 1 })
        .sum();
    let lowered = desired.saturating_sub(call.delta.saturating_mul(sizes.unit));
    if lowered < live || lowered < group.min || call.delta > call.expected_target {
        let message = format!(
            "attempt to delete existing nodes targetSize:{} delta:-{} existingNodes:{} (scaling group {}, MinSize {})",
            sizes.target, call.delta, live, call.group, group.min
        );
        return conflict("below-existing", message);
    }
    if activities::any_runs(api, &call.group, deadline)? {
        let message = format!(
            "scaling group {} has an activity running, which may bring machines; try again when it has ended",
            call.group
        );
        return conflict("ScalingActivityInProgress", message);
    }
    if !call.options.dry_run {
        let request =
            Call::write(Product::Ess, "ModifyScalingGroup").group(&call.group).with("DesiredCapacity", lowered);
        api.ask(&request, deadline)?;
    }
    Ok(SizeOutcome { confirmed: !call.options.dry_run, ..SizeOutcome::accepted(call.delta, wished) })
}
