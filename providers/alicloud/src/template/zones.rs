//! Zones of a group: those of its vSwitches.

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Deadline, log};

use crate::api::{Api, Call, Lenient, Product};
use crate::groups::ScalingGroup;
use crate::memory::Memory;

/// The zones, in the order of the vSwitches; empty if they cannot be read, and then the cloud chooses.
pub(super) fn of<T: Transport>(
    api: &mut Api<T>,
    memory: &mut Memory,
    group: &ScalingGroup,
    deadline: Deadline,
) -> Vec<String> {
    let unknown: Vec<_> = group.vswitches.iter().filter(|id| !memory.zones.contains_key(*id)).cloned().collect();
    let question = |id: &String| Call::read(Product::Vpc, "DescribeVSwitches").about(&group.id).with("VSwitchId", id);
    let calls: Vec<_> = unknown.iter().map(question).collect();
    api.ask_all(&calls, deadline, |_, answer| match answer {
        Ok(value) => {
            let found =
                value.list("VSwitches", "VSwitch").iter().map(|one| (one.text("VSwitchId"), one.text("ZoneId")));
            memory.zones.extend(found.filter(|(_, zone)| !zone.is_empty()));
        }
        Err(error) => {
            log::warn(&format!("the zones of scaling group {} cannot be read: {}", group.id, error.summary()))
        }
    });
    let mut zones: Vec<String> = vec![];
    for id in &group.vswitches {
        match memory.zones.get(id) {
            Some(zone) if !zones.contains(zone) => zones.push(zone.clone()),
            Some(_) => {}
            // With one zone unknown, no zone may be promised.
            None => return vec![],
        }
    }
    zones
}
