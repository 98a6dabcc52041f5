//! Sizes in machines. ESS counts units of capacity, which are machines unless the group is weighted.

use crate::groups::ScalingGroup;
use crate::instances::Member;

/// Sizes of a group in machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    /// What the cloud works towards.
    pub(crate) target: u32,
    /// Least and greatest size that ESS allows.
    pub(crate) least: u32,
    pub(crate) greatest: u32,
    /// Units of capacity for one machine more.
    pub(crate) unit: u32,
}

/// Sizes of a group. Only a weighted group needs its machines for that.
///
/// The target counts every machine that is listed as not being deleted, and what ESS still has to make. Machines that
/// were stopped to be kept, and those being removed, do not count.
pub(crate) fn sizes(group: &ScalingGroup, members: &[Member]) -> Sizes {
    if !group.weighted {
        return Sizes {
            target: group.desired.unwrap_or(group.capacity),
            least: group.min,
            greatest: group.max,
            unit: 1,
        };
    }
    // The lightest type: a wish for so many units is met by as much capacity, whichever type ESS takes.
    let by_type = group.overrides.iter().map(|(_, weight)| *weight).min();
    let live = || members.iter().filter(|member| member.counts());
    let unit = by_type.or_else(|| live().map(|member| member.weight).min()).unwrap_or(1).max(1);
    let have: u32 = live().map(|member| member.weight).sum();
    let count = u32::try_from(live().count()).unwrap_or(u32::MAX);
    let wished = group.desired.unwrap_or(group.capacity);
    Sizes {
        target: count.saturating_add(wished.saturating_sub(have).div_ceil(unit)),
        least: group.min.div_ceil(unit),
        greatest: group.max / unit,
        unit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instances::tests::member;
    use rstest::rstest;

    fn weighted(desired: u32) -> ScalingGroup {
        ScalingGroup {
            desired: Some(desired),
            weighted: true,
            min: 3,
            max: 21,
            overrides: vec![("ecs.g7.2xlarge".into(), 4), ("ecs.g7.xlarge".into(), 2)],
            ..ScalingGroup::default()
        }
    }

    #[test]
    fn a_plain_group_counts_what_is_there_and_a_desired_group_what_is_wished() {
        let plain = ScalingGroup { capacity: 8, max: 10, ..ScalingGroup::default() };
        assert_eq!(sizes(&plain, &[]), Sizes { target: 8, least: 0, greatest: 10, unit: 1 });
        let desired = ScalingGroup { desired: Some(5), ..plain };
        assert_eq!(sizes(&desired, &[]).target, 5);
    }

    #[rstest]
    #[case::all_there(8, 2, 2)]
    #[case::one_small_missing(10, 2, 3)]
    #[case::half_a_machine_is_one(11, 2, 4)]
    #[case::none_there(8, 0, 4)]
    #[case::more_than_wished(2, 2, 2)]
    fn weights_become_machines(#[case] desired: u32, #[case] large: usize, #[case] target: u32) {
        let members = vec![crate::instances::Member { weight: 4, ..member("i-1", "InService") }; large];
        let sizes = sizes(&weighted(desired), &members);
        assert_eq!(sizes, Sizes { target, least: 2, greatest: 10, unit: 2 });
    }
}
