//! Who is left alone for a while after a failure: a group, or whatever else the error was about.
//!
//! A cloud that has no machines of one type left in one zone says nothing about the group's other zones, and much about
//! other groups there. So an error's scope decides what rests, and its class for how long. What passes by itself (a busy
//! cloud, too many requests) makes nobody rest.

use std::fmt;
use std::time::Duration;

use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Symbol, Time};
use serde::{Deserialize, Serialize};

use crate::cloud::{CloudError, ErrorClass, ErrorScope, GroupId};
use crate::memory::Memory;
use crate::observation::GroupView;
use crate::settings::Settings;

/// A group, or something wider, that is left alone for a while after a failure.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Backoff {
    /// How long this time.
    pub duration: Duration,
    /// Until when, in milliseconds since the epoch.
    pub until_ms: i64,
    /// When the last failure was, in milliseconds since the epoch.
    pub failed_at_ms: i64,
    /// What happened, for people.
    pub reason: String,
}

impl Backoff {
    fn holds(&self, at: Time) -> bool {
        at.millis() <= self.until_ms
    }

    /// The wait doubles when the failure comes again after it ran out, up to the cap, and starts small after a long time
    /// without failure (the peer's rule).
    fn after(old: Option<&Self>, at: Time, failure: &Failed<'_>, settings: &Settings) -> Self {
        let (initial, most) = failure.bounds(settings);
        let duration = match old {
            Some(old) if at.since(Time::from_millis(old.failed_at_ms)) > settings.node_group_backoff_reset => initial,
            Some(old) if !old.holds(at) => (old.duration * 2).clamp(initial, most),
            Some(old) => old.duration.max(initial),
            None => initial,
        };
        let duration = duration.max(failure.retry_after);
        Self { duration, until_ms: (at + duration).millis(), failed_at_ms: at.millis(), reason: failure.reason.clone() }
    }

    fn is_old(&self, at: Time, settings: &Settings) -> bool {
        !self.holds(at) && at.since(Time::from_millis(self.failed_at_ms)) > settings.node_group_backoff_reset
    }
}

/// What may rest besides a single group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Everything of the provider.
    Provider,
    /// A region.
    Region(String),
    /// A zone.
    Zone(String),
    /// A machine type.
    InstanceType(String),
}

impl Reach {
    /// What an error is about, if that is more than a group or a machine. Of the provider as a whole only failures that
    /// no other group would be spared: money and rights.
    fn of(error: &CloudError) -> Option<Self> {
        match &error.scope {
            ErrorScope::Provider if matches!(error.class, ErrorClass::Billing | ErrorClass::Auth) => {
                Some(Self::Provider)
            }
            ErrorScope::Region(region) => Some(Self::Region(region.clone())),
            ErrorScope::Zone(zone) => Some(Self::Zone(zone.clone())),
            ErrorScope::InstanceType(kind) => Some(Self::InstanceType(kind.clone())),
            ErrorScope::Provider | ErrorScope::Group(_) | ErrorScope::Instance(_) => None,
        }
    }

    /// Whether everything that a group could add is in here.
    fn covers(&self, group: &GroupView<'_>, cluster: &Cluster) -> bool {
        let label = |keys: &[Symbol], wanted: &String| {
            let node = group.template.as_ref().ok().map(|template| &template.node);
            let value = node.and_then(|node| keys.iter().find_map(|&key| node.labels.get(key)));
            value.is_some_and(|value| cluster.text(value) == wanted)
        };
        let instances = &group.cloud.instances;
        match self {
            Self::Provider => true,
            Self::Region(region) => label(&[known::REGION, known::BETA_REGION], region),
            // A group with machines elsewhere may find more there.
            Self::Zone(zone) => {
                label(&[known::ZONE, known::BETA_ZONE], zone)
                    && !instances.iter().any(|machine| machine.zone.as_ref().is_some_and(|other| other != zone))
            }
            Self::InstanceType(kind) => {
                label(&[known::INSTANCE_TYPE], kind)
                    && !instances
                        .iter()
                        .any(|machine| machine.instance_type.as_ref().is_some_and(|other| other != kind))
            }
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider => write!(f, "the provider"),
            Self::Region(region) => write!(f, "region {region}"),
            Self::Zone(zone) => write!(f, "zone {zone}"),
            Self::InstanceType(kind) => write!(f, "machine type {kind}"),
        }
    }
}

/// Something wider than a group that is left alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wider {
    /// What.
    pub reach: Reach,
    /// For how long.
    pub backoff: Backoff,
}

/// A failure as back-off sees it.
struct Failed<'a> {
    class: Option<ErrorClass>,
    reason: String,
    retry_after: Duration,
    reach: Option<Reach>,
    group: &'a GroupId,
}

impl Failed<'_> {
    /// The first wait and the longest one. The flags say it for stock and for everything unknown, 5 and 30 minutes by
    /// default; what takes longer or shorter to mend is in proportion.
    fn bounds(&self, settings: &Settings) -> (Duration, Duration) {
        let (initial, most) = (settings.initial_node_group_backoff, settings.max_node_group_backoff);
        let (initial, most) = match self.class {
            // 15 minutes to 2 hours.
            Some(ErrorClass::Quota | ErrorClass::Config) => (initial * 3, most * 4),
            // One probe every 15 minutes.
            Some(ErrorClass::Billing) => (initial * 3, initial * 3),
            // 1 to 10 minutes.
            Some(ErrorClass::Auth) => (initial / 5, most / 3),
            // 10 to 60 minutes.
            Some(ErrorClass::Bootstrap) => (initial * 2, most * 2),
            _ => (initial, most),
        };
        (initial, most.max(initial))
    }
}

/// So often a passing failure may come in a row before it counts as one that does not pass.
const MOST_PASSING: u32 = 3;

impl Memory {
    /// The back-off that holds a group now, if one does: its own, else the wider one that lasts longest.
    pub fn backed_off(&self, group: &GroupId, at: Time) -> Option<&Backoff> {
        self.backoff.get(group).filter(|backoff| backoff.holds(at))
    }

    /// What holds a group now, in words, with the time until it does: its own back-off, or that of its zone, machine type,
    /// region or provider.
    pub fn held(&self, group: &GroupView<'_>, cluster: &Cluster, at: Time) -> Option<(Time, String)> {
        let own = self.backed_off(&group.cloud.id, at).map(|own| (own.until_ms, own.reason.clone()));
        let wider =
            self.wider_backoff.iter().filter(|wider| wider.backoff.holds(at) && wider.reach.covers(group, cluster));
        let wider = wider.map(|wider| (wider.backoff.until_ms, format!("{}: {}", wider.reach, wider.backoff.reason)));
        let (until, reason) = own.into_iter().chain(wider).max_by_key(|&(until, _)| until)?;
        Some((Time::from_millis(until), reason))
    }

    /// Writes down that machines did not come, for a reason that is no error of the cloud.
    pub fn back_off(&mut self, group: &GroupId, at: Time, reason: String, settings: &Settings) {
        self.rest(Failed { class: None, reason, retry_after: Duration::ZERO, reach: None, group }, at, settings);
    }

    /// Writes down an error that kept machines from coming. Whatever it is about rests. A group that is asked although its
    /// zone or machine type rests, as it has others, rests itself when it fails there again.
    pub fn back_off_for(&mut self, group: &GroupId, error: &CloudError, at: Time, settings: &Settings) {
        if error.class.passes() {
            let count = self.passing_failures.entry(group.clone()).or_default();
            // A stale size and a busy group are no fault of anybody; what cannot be reached for long may be broken.
            *count += u32::from(error.class == ErrorClass::Transient);
            if *count < MOST_PASSING {
                return;
            }
        }
        self.passing_failures.remove(group);
        let failed = Failed {
            class: Some(error.class),
            reason: error.to_string(),
            retry_after: error.retry_after.unwrap_or_default(),
            reach: Reach::of(error),
            group,
        };
        self.rest(failed, at, settings);
    }

    /// Writes down that a group got machines: failures that pass begin to count anew.
    pub fn succeeded(&mut self, group: &GroupId) {
        self.passing_failures.remove(group);
    }

    fn rest(&mut self, failed: Failed<'_>, at: Time, settings: &Settings) {
        if let Some(reach) = failed.reach.clone() {
            let found = self.wider_backoff.iter_mut().find(|wider| wider.reach == reach);
            let rested = found.as_ref().is_some_and(|wider| wider.backoff.holds(at));
            let backoff = Backoff::after(found.as_ref().map(|wider| &wider.backoff), at, &failed, settings);
            match found {
                Some(wider) => wider.backoff = backoff,
                None => self.wider_backoff.push(Wider { reach, backoff }),
            }
            if !rested {
                return;
            }
        }
        let backoff = Backoff::after(self.backoff.get(failed.group), at, &failed, settings);
        self.backoff.insert(failed.group.clone(), backoff);
    }

    /// Forgets what is too old to matter.
    pub fn forget(&mut self, at: Time, settings: &Settings) {
        self.backoff.retain(|_, backoff| !backoff.is_old(at, settings));
        self.wider_backoff.retain(|wider| !wider.backoff.is_old(at, settings));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(minutes: i64) -> Time {
        Time::from_millis(minutes * 60_000)
    }

    #[test]
    fn back_off_follows_the_peer() {
        // Appendix B.2 of the behavioural reference: 5, 30, 180 minutes.
        let settings = Settings::default();
        let group = GroupId::from("a");
        let mut memory = Memory::default();
        let mut fail = |at: i64| {
            memory.back_off(&group, minute(at), String::new(), &settings);
            memory.backoff[&group].until_ms / 60_000 - at
        };
        assert_eq!(fail(0), 5);
        assert_eq!(fail(3), 5, "failure while backed off: the same again");
        assert_eq!(fail(9), 10);
        assert_eq!(fail(20), 20);
        assert_eq!(fail(41), 30, "the cap");
        assert_eq!(fail(72), 30);
        assert_eq!(fail(72 + 181), 5, "forgotten");
    }

    fn error(class: ErrorClass, scope: ErrorScope) -> CloudError {
        CloudError::new(class, scope, "no".to_owned())
    }

    #[test]
    fn the_class_decides_for_how_long() {
        let settings = Settings::default();
        let group = GroupId::from("a");
        for (class, first, longest) in [
            (ErrorClass::OutOfResources, 5, 30),
            (ErrorClass::Other, 5, 30),
            (ErrorClass::Quota, 15, 120),
            (ErrorClass::Config, 15, 120),
            (ErrorClass::Billing, 15, 15),
            (ErrorClass::Auth, 1, 10),
            (ErrorClass::Bootstrap, 10, 60),
        ] {
            let mut memory = Memory::default();
            let mut at = 0;
            let mut fail = || {
                memory.back_off_for(&group, &error(class, ErrorScope::Group(group.clone())), minute(at), &settings);
                let wait = memory.backoff[&group].until_ms / 60_000 - at;
                at += wait + 1;
                wait
            };
            assert_eq!(fail(), first, "{class:?}");
            for _ in 0..6 {
                fail();
            }
            assert_eq!(fail(), longest, "{class:?}");
        }
    }

    #[test]
    fn a_cloud_that_says_when_to_come_again_is_believed() {
        let mut memory = Memory::default();
        let group = GroupId::from("a");
        let mut later = error(ErrorClass::OutOfResources, ErrorScope::Group(group.clone()));
        later.retry_after = Some(Duration::from_secs(3600));
        memory.back_off_for(&group, &later, minute(0), &Settings::default());
        assert_eq!(memory.backoff[&group].until_ms, minute(60).millis());
    }

    #[test]
    fn what_passes_makes_nobody_rest_unless_it_lasts() {
        let settings = Settings::default();
        let group = GroupId::from("a");
        for (class, rests_at) in
            [(ErrorClass::Conflict, None), (ErrorClass::Throttled, None), (ErrorClass::Transient, Some(3))]
        {
            let mut memory = Memory::default();
            let fail = |memory: &mut Memory, times: usize| {
                (1..=times).find(|_| {
                    memory.back_off_for(&group, &error(class, ErrorScope::Provider), minute(0), &settings);
                    memory.backed_off(&group, minute(0)).is_some()
                })
            };
            assert_eq!(fail(&mut memory, 5), rests_at, "{class:?}");
            let mut memory = Memory::default();
            fail(&mut memory, 2);
            memory.succeeded(&group);
            assert_eq!(fail(&mut memory, 2), None, "{class:?} in a row only");
        }
    }
}
