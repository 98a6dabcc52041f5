//! New machines: accepted, then made as far as stock, addresses, quota and money allow.

use super::activity::{Activity, Direction, Failure, Status};
use super::group::MultiAz;
use super::machine::{Creation, Machine, Next, State};
use super::{Timing, TypeChoice, World};
use crate::clock::UnixMs;
use crate::fake::Context;
use crate::journal::{Cause, Happening};

/// A place for one machine.
struct Place {
    choice: TypeChoice,
    vswitch: String,
    zone: String,
}

/// Who asked for an activity, and how.
#[derive(Clone, Debug)]
pub struct Origin {
    /// In words.
    pub cause: String,
    /// `APIs`, or the cloud itself.
    pub trigger: &'static str,
    /// Text that the caller gave.
    pub metadata: Option<String>,
}

impl Origin {
    /// The cloud itself.
    pub fn cloud(cause: &str) -> Self {
        Self { cause: cause.to_owned(), trigger: "Autonomous", metadata: None }
    }

    /// A request.
    pub fn request(cause: &str, metadata: Option<&str>) -> Self {
        Self { cause: cause.to_owned(), trigger: "APIs", metadata: metadata.map(str::to_owned) }
    }
}

impl World {
    /// Begin an activity, with its identifier.
    pub(super) fn begin(
        &mut self,
        group: &str,
        direction: Direction,
        wanted: u32,
        origin: Origin,
        context: &mut Context<'_>,
    ) -> String {
        let id = format!("asa-bp1{}", context.chance.token(17));
        context.event(
            Happening::ActivityBegan,
            group,
            &id,
            Cause::Cloud,
            format!("{direction:?} {wanted}: {}", origin.cause),
        );
        self.activities.push(Activity {
            id: id.clone(),
            group: group.to_owned(),
            direction,
            status: Status::InProgress,
            cause: origin.cause,
            trigger: origin.trigger,
            wanted,
            members: vec![],
            failure: None,
            metadata: origin.metadata,
            start: context.now,
            end: None,
            creates_at: None,
            total_after: 0,
        });
        id
    }

    /// Accept an order for so much more capacity. Machines can be listed a little later.
    pub fn scale_out(&mut self, group: &str, wanted: u32, origin: Origin, context: &mut Context<'_>) -> String {
        let suspended = self.groups.get(group).is_some_and(|group| group.suspended_processes.contains("ScaleOut"));
        let id = self.begin(group, Direction::Out, wanted, origin, context);
        let at = context.now + Timing::draw(self.timing.accept_ms, context.chance);
        if let Some(activity) = self.activities.last_mut() {
            if suspended {
                activity.status = Status::Rejected;
                activity.end = Some(context.now);
            } else {
                activity.creates_at = Some(at);
            }
        }
        id
    }

    /// Make the machines of an accepted activity.
    pub(super) fn create(&mut self, activity: &str, context: &mut Context<'_>) {
        let found = self.activities.iter_mut().find(|candidate| candidate.id == activity);
        let Some((group, wanted)) = found.map(|found| {
            found.creates_at = None;
            (found.group.clone(), found.wanted)
        }) else {
            return;
        };
        let mut made = Vec::new();
        let mut capacity = self.restart_stopped(&group, wanted, &mut made, context);
        let mut failure = None;
        while capacity < wanted {
            match self.place(&group) {
                Ok(place) => {
                    capacity += if self.groups.get(&group).is_some_and(|group| group.weighted) {
                        place.choice.weight
                    } else {
                        1
                    };
                    made.push(self.make(&group, activity, &place, context));
                }
                Err(why) => {
                    failure = Some(why);
                    break;
                }
            }
        }
        if let Some(activity) = self.activities.iter_mut().find(|candidate| candidate.id == activity) {
            activity.members = made;
            activity.failure = failure;
        }
        self.settle(activity, context);
    }

    /// Groups that keep stopped machines start them again before they make new ones.
    fn restart_stopped(&mut self, group: &str, wanted: u32, made: &mut Vec<String>, context: &mut Context<'_>) -> u32 {
        let stopped: Vec<String> = self
            .members(group)
            .iter()
            .filter(|machine| machine.state == State::Stopped)
            .map(|m| m.id.clone())
            .collect();
        let mut capacity = 0;
        for id in stopped {
            if capacity >= wanted {
                break;
            }
            let at = context.now + Timing::draw(self.timing.boot_ms, context.chance);
            if let Some(machine) = self.machines.get_mut(&id) {
                machine.state = State::Pending;
                machine.kept = false;
                machine.due = Some((at, Next::Boot));
                capacity += machine.weight;
                made.push(id);
            }
        }
        capacity
    }

    fn make(&mut self, group: &str, activity: &str, place: &Place, context: &mut Context<'_>) -> String {
        let key = format!("{}/{}", place.zone, place.choice.instance_type);
        if let Some(stock) = self.stock.get_mut(&key) {
            *stock = stock.saturating_sub(1);
        }
        let at = context.now + Timing::draw(self.timing.boot_ms, context.chance);
        let mut machine = self.new_machine(group, place, context);
        activity.clone_into(&mut machine.activity);
        machine.due = Some((at, Next::Boot));
        let id = machine.id.clone();
        context.event(Happening::Created, group, &id, Cause::Cloud, key);
        self.machines.insert(id.clone(), machine);
        id
    }

    fn new_machine(&mut self, group: &str, place: &Place, context: &mut Context<'_>) -> Machine {
        if let Some(vswitch) = self.vswitches.get_mut(&place.vswitch) {
            vswitch.free = vswitch.free.saturating_sub(1);
        }
        self.next_ip += 1;
        let found = self.groups.get(group);
        let source = found.and_then(|group| self.choices(group)).map(|(source, _)| source).unwrap_or_default();
        Machine {
            id: format!("i-bp1{}", context.chance.token(17)),
            group: group.to_owned(),
            instance_type: place.choice.instance_type.clone(),
            zone: place.zone.clone(),
            vswitch: place.vswitch.clone(),
            ip: format!("10.{}.{}.{}", self.next_ip / 65_536, self.next_ip / 256 % 256, self.next_ip % 256),
            state: State::Pending,
            healthy: true,
            creation: Creation::AutoCreated,
            entrusted: false,
            prepaid: false,
            spot: found.is_some_and(|group| group.spot),
            weight: place.choice.weight,
            source,
            activity: String::new(),
            created: context.now,
            started: None,
            gone: None,
            due: None,
            kept: false,
            script: found.map(|group| group.script.clone()).unwrap_or_default(),
        }
    }

    /// A machine that runs from the beginning, or that a human hands over. None if there is no place for it.
    pub fn put_running(
        &mut self,
        group: &str,
        creation: Creation,
        since: UnixMs,
        context: &mut Context<'_>,
    ) -> Option<String> {
        let place = self.place(group).ok()?;
        let mut machine = self.new_machine(group, &place, context);
        machine.creation = creation;
        machine.state = State::InService;
        machine.created = since;
        machine.started = Some(since);
        let id = machine.id.clone();
        self.machines.insert(id.clone(), machine);
        Some(id)
    }

    /// Where the next machine of a group goes.
    fn place(&self, group: &str) -> Result<Place, Failure> {
        let gone = || Failure::new("InvalidScalingGroupId.NotFound", "the scaling group is gone");
        let group = self.groups.get(group).ok_or_else(gone)?;
        if let Some((code, message)) = &group.broken {
            return Err(Failure::new(code, message.as_str()));
        }
        if let Some(code) = &self.billing {
            return Err(Failure::new(code, "Your account does not have enough balance."));
        }
        let none = || Failure::new("InvalidScalingConfigurationId.NotFound", "there is nothing to make machines from");
        let (_, choices) = self.choices(group).ok_or_else(none)?;
        let mut why = none();
        for choice in choices {
            for vswitch in self.switches_in_order(&group.id) {
                match self.hindrance(&choice.instance_type, &vswitch) {
                    None => return Ok(Place { choice, zone: self.zone(&vswitch), vswitch }),
                    Some(hindrance) => why = hindrance,
                }
            }
        }
        Err(why)
    }

    fn zone(&self, vswitch: &str) -> String {
        self.vswitches.get(vswitch).map(|vswitch| vswitch.zone.clone()).unwrap_or_default()
    }

    fn switches_in_order(&self, group: &str) -> Vec<String> {
        let Some(group) = self.groups.get(group) else { return vec![] };
        let mut switches = group.vswitches.clone();
        if group.multi_az == MultiAz::Balance {
            let members = self.members(&group.id);
            let load = |vswitch: &String| {
                let zone = self.zone(vswitch);
                members.iter().filter(|machine| machine.zone == zone && !machine.state.leaves()).count()
            };
            switches.sort_by_key(load);
        }
        switches
    }

    fn hindrance(&self, instance_type: &str, vswitch: &str) -> Option<Failure> {
        let zone = self.zone(vswitch);
        if self.stock.get(&format!("{zone}/{instance_type}")) == Some(&0) {
            let text = format!("The resource {instance_type} is out of stock in the zone {zone}.");
            return Some(Failure::new("OperationDenied.NoStock", text));
        }
        let used = self.machines.values().filter(|machine| machine.instance_type == instance_type).count();
        if self.quota.get(instance_type).is_some_and(|quota| u32::try_from(used).is_ok_and(|used| used >= *quota)) {
            let text = format!("The number of {instance_type} exceeds the quota.");
            return Some(Failure::new("QuotaExceed.ElasticQuota", text));
        }
        match self.vswitches.get(vswitch) {
            None => Some(Failure::new("InvalidVSwitchId.NotFound", format!("the vSwitch {vswitch} does not exist"))),
            Some(vswitch) if vswitch.free == 0 => {
                let text = format!("The vSwitch {} has no free address.", vswitch.id);
                Some(Failure::new("InvalidVSwitchId.IpNotEnough", text))
            }
            Some(_) => None,
        }
    }

    /// What an order for so many would give, by zone and type, without giving it.
    pub fn plan(&self, group: &str, wanted: u32) -> Vec<(String, String, u32)> {
        let mut trial = self.clone();
        let mut amounts: Vec<(String, String, u32)> = Vec::new();
        for _ in 0..wanted {
            let Ok(place) = trial.place(group) else { break };
            if let Some(stock) = trial.stock.get_mut(&format!("{}/{}", place.zone, place.choice.instance_type)) {
                *stock = stock.saturating_sub(1);
            }
            let same = |(zone, kind, _): &&mut (String, String, u32)| {
                *zone == place.zone && *kind == place.choice.instance_type
            };
            match amounts.iter_mut().find(same) {
                Some((_, _, amount)) => *amount += 1,
                None => amounts.push((place.zone, place.choice.instance_type, 1)),
            }
        }
        amounts
    }
}
