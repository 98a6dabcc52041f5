//! Checks that every write passes before it leaves, whatever the plan says.

use std::fmt;

use plimsoll_model::Time;
use std::time::Duration;

use crate::cloud::{Group, InstanceId};

/// A rule that a write would break.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The group could not be read, so its numbers are old.
    UnreadGroup,
    /// The last good read is too old.
    StaleRead(Duration),
    /// The new target would be above the group's maximum.
    AboveMax {
        /// The new target.
        target: u32,
        /// The maximum.
        max: u32,
    },
    /// The new target would be below the machines that are there.
    BelowRegistered {
        /// The new target.
        target: u32,
        /// Machines that are nodes.
        registered: u32,
    },
    /// The group would fall below its minimum.
    BelowMin {
        /// The new target.
        target: u32,
        /// The minimum.
        min: u32,
    },
    /// The last read does not list the machine.
    UnknownInstance(InstanceId),
    /// The cloud protects the machine.
    ProtectedInstance(InstanceId, String),
    /// The group takes no orders.
    Inactive,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnreadGroup => write!(f, "no write to a group that could not be read"),
            Self::StaleRead(age) => write!(f, "no write on a read that is {}s old", age.as_secs()),
            Self::AboveMax { target, max } => write!(f, "target {target} would be above the maximum {max}"),
            Self::BelowRegistered { target, registered } => {
                write!(f, "target {target} would be below the {registered} nodes that are there")
            }
            Self::BelowMin { target, min } => write!(f, "target {target} would be below the minimum {min}"),
            Self::UnknownInstance(id) => write!(f, "the last read does not list machine {id}"),
            Self::ProtectedInstance(id, why) => write!(f, "machine {id} is protected: {why}"),
            Self::Inactive => write!(f, "the group takes no orders"),
        }
    }
}

/// A read older than this is no ground for a write.
pub const FRESH: Duration = Duration::from_secs(300);

fn readable(group: &Group, at: Time) -> Result<(), Rule> {
    if group.error.is_some() {
        return Err(Rule::UnreadGroup);
    }
    let age = at.since(group.observed_at);
    if age > FRESH {
        return Err(Rule::StaleRead(age));
    }
    if group.status != crate::cloud::GroupStatus::Active {
        return Err(Rule::Inactive);
    }
    Ok(())
}

/// May this group's target rise by so much?
///
/// # Errors
///
/// The rule that it would break.
pub fn increase(group: &Group, registered: u32, delta: u32, at: Time) -> Result<(), Rule> {
    readable(group, at)?;
    let target = group.target_size.saturating_add(delta);
    if target > group.max_size {
        return Err(Rule::AboveMax { target, max: group.max_size });
    }
    if target < registered {
        return Err(Rule::BelowRegistered { target, registered });
    }
    Ok(())
}

/// May this group's target fall by so much without a machine having to go? `alive` counts the machines that are there or on
/// their way.
///
/// # Errors
///
/// The rule that it would break.
pub fn decrease(group: &Group, alive: u32, delta: u32, at: Time) -> Result<(), Rule> {
    readable(group, at)?;
    let target = group.target_size.saturating_sub(delta);
    if !group.instances_complete || target < alive {
        return Err(Rule::BelowRegistered { target, registered: alive });
    }
    if target < group.min_size {
        return Err(Rule::BelowMin { target, min: group.min_size });
    }
    Ok(())
}

/// May these machines be deleted?
///
/// # Errors
///
/// The rule that it would break.
pub fn delete(group: &Group, instances: &[InstanceId], at: Time) -> Result<(), Rule> {
    readable(group, at)?;
    for id in instances {
        let Some(instance) = group.instances.iter().find(|instance| instance.id == *id) else {
            return Err(Rule::UnknownInstance(id.clone()));
        };
        if let Some(why) = &instance.protected {
            return Err(Rule::ProtectedInstance(id.clone(), why.clone()));
        }
    }
    let target = group.target_size.saturating_sub(u32::try_from(instances.len()).unwrap_or(u32::MAX));
    if target < group.min_size {
        return Err(Rule::BelowMin { target, min: group.min_size });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::{CloudError, ErrorClass, ErrorScope, GroupStatus, Instance, InstanceState};

    fn group() -> Group {
        let instance = |id: &str| Instance {
            id: id.into(),
            matches: vec![],
            state: InstanceState::Running,
            error: None,
            created_at: None,
            zone: None,
            instance_type: None,
            spot: false,
            protected: (id == "i-kept").then(|| "prepaid".to_owned()),
            placeholder: false,
            attributes: vec![],
        };
        let mut group = Group::sized("a", 1, 10, 3);
        group.instances = ["i-1", "i-2", "i-kept"].map(instance).into();
        group
    }

    #[test]
    fn increases() {
        let now = Time::from_millis(1000);
        let late = now + Duration::from_secs(301);
        let mut unread = group();
        unread.error = Some(CloudError::new(ErrorClass::Throttled, ErrorScope::Provider, "later".into()));
        let mut suspended = group();
        suspended.status = GroupStatus::Suspended;
        for (name, group, registered, delta, at, expected) in [
            ("within bounds", group(), 3, 7, now, Ok(())),
            ("above max", group(), 3, 8, now, Err(Rule::AboveMax { target: 11, max: 10 })),
            ("overflow", group(), 3, u32::MAX, now, Err(Rule::AboveMax { target: u32::MAX, max: 10 })),
            ("garbage target", group(), 200, 4, now, Err(Rule::BelowRegistered { target: 7, registered: 200 })),
            ("unread", unread, 3, 1, now, Err(Rule::UnreadGroup)),
            ("stale", group(), 3, 1, late, Err(Rule::StaleRead(Duration::from_secs(302)))),
            ("suspended", suspended, 3, 1, now, Err(Rule::Inactive)),
        ] {
            assert_eq!(increase(&group, registered, delta, at), expected, "{name}");
        }
    }

    #[test]
    fn deletes() {
        let now = Time::from_millis(1000);
        let ids = |ids: &[&str]| ids.iter().map(|&id| InstanceId::from(id)).collect::<Vec<_>>();
        for (name, instances, expected) in [
            ("one", ids(&["i-1"]), Ok(())),
            ("to the minimum", ids(&["i-1", "i-2"]), Ok(())),
            ("unknown", ids(&["i-9"]), Err(Rule::UnknownInstance("i-9".into()))),
            ("protected", ids(&["i-kept"]), Err(Rule::ProtectedInstance("i-kept".into(), "prepaid".into()))),
            ("below min", ids(&["i-1", "i-2", "i-1"]), Err(Rule::BelowMin { target: 0, min: 1 })),
        ] {
            assert_eq!(delete(&group(), &instances, now), expected, "{name}");
        }
    }
}
