//! Which machines are subscriptions. Only those that were attached by hand can be, and only for them it is asked.

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Deadline, PluginError};

use crate::api::{Api, Call, Lenient, Product};
use crate::instances::{Listing, Origin};
use crate::memory::Memory;

const IDS_PER_CALL: usize = 100;
/// How long an answer is believed; a machine can be made a subscription later.
const BELIEVED_FOR_MS: u64 = 6 * 3_600_000;

/// Reads the charge types that are not known.
///
/// # Errors
/// They could not be read: such machines are not given up then.
pub(crate) fn read<'a, T: Transport>(
    api: &mut Api<T>,
    memory: &mut Memory,
    listings: impl Iterator<Item = &'a Listing>,
    deadline: Deadline,
) -> Result<(), PluginError> {
    let now_ms = api.now_ms();
    let doubtful = listings.flat_map(|listing| &listing.members).filter(|member| member.origin == Origin::Entrusted);
    let ids: Vec<_> = doubtful.map(|member| member.id.clone()).collect();
    memory.prepaid.retain(|_, (_, at_ms)| now_ms.saturating_sub(*at_ms) <= BELIEVED_FOR_MS);
    let unknown: Vec<_> = ids.into_iter().filter(|id| !memory.prepaid.contains_key(id)).collect();
    for ids in unknown.chunks(IDS_PER_CALL) {
        let list = serde_json::Value::from(ids.to_vec()).to_string();
        let call =
            Call::read(Product::Ecs, "DescribeInstances").with("InstanceIds", list).with("PageSize", IDS_PER_CALL);
        let answer = api.ask(&call, deadline)?;
        for instance in answer.list("Instances", "Instance") {
            let charge = instance.text("InstanceChargeType");
            if !charge.is_empty() {
                memory.prepaid.insert(instance.text("InstanceId"), (charge.eq_ignore_ascii_case("PrePaid"), now_ms));
            }
        }
    }
    Ok(())
}
