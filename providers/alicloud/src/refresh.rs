//! Reads everything in one go: groups, machines, activities. What cannot be read now keeps its last good state.

use plimsoll_guest::http::Transport;
use plimsoll_guest::{
    Deadline, Diagnostic, ErrorScope, GroupStatus, NodeGroup, PluginError, RefreshAnswer, RefreshRequest, Severity,
    TemplateChoice,
};

use crate::activities::{self, Deed};
use crate::api::Api;
use crate::capacity::{self, Sizes};
use crate::fingerprint::Fingerprint;
use crate::groups::{self, Lifecycle, ScalingGroup};
use crate::instances::{self, Listing};
use crate::memory::{Known, Memory};
use crate::settings::Settings;
use crate::spec::GroupSpec;
use crate::{charge, template};

/// Tags that set the sizes of a group that was found by a rule.
const MIN_TAG: &str = "k8s.io/cluster-autoscaler/min-size";
const MAX_TAG: &str = "k8s.io/cluster-autoscaler/max-size";

/// What one reading gathers.
struct Reading {
    groups: Vec<NodeGroup>,
    diagnostics: Vec<Diagnostic>,
    complete: bool,
}

/// Reads the groups that are asked for.
///
/// # Errors
/// Nothing at all could be read.
pub(crate) fn refresh<T: Transport>(
    api: &mut Api<T>,
    settings: &Settings,
    memory: &mut Memory,
    request: &RefreshRequest,
) -> Result<RefreshAnswer, PluginError> {
    let deadline = request.deadline();
    let mut reading = Reading { groups: vec![], diagnostics: vec![], complete: request.only_groups.is_empty() };
    let found = find(api, settings, memory, request, &mut reading, deadline)?;
    let alive: Vec<_> = found.into_iter().map(|found| (has_machines(&found.1), found)).collect();

    let names: Vec<&str> = alive.iter().filter(|(some, _)| *some).map(|(_, (spec, _))| spec.id.as_str()).collect();
    let mut listings = instances::list(api, &names, deadline).into_iter();
    let none = || Ok(Listing { members: vec![], complete: true });
    let mut with_machines = Vec::with_capacity(alive.len());
    for (some, (spec, group)) in alive {
        let listing = if some { listings.next().unwrap_or_else(none) } else { none() };
        match listing {
            Ok(listing) => with_machines.push((spec, group, listing)),
            Err(error) => reading.stale(memory, &spec, error),
        }
    }
    if let Err(error) = charge::read(api, memory, with_machines.iter().map(|(.., listing)| listing), deadline) {
        reading.diagnostics.push(error.into());
    }
    let deeds = read_activities(api, memory, &with_machines, deadline);
    for ((spec, group, listing), deeds) in with_machines.into_iter().zip(deeds) {
        let known = assemble(api, settings, memory, &mut reading, spec, group, &listing, deeds);
        reading.groups.push(known.told.clone());
        memory.groups.insert(known.spec.id.clone(), known);
    }
    Ok(reading.answer(api.now_ms(), request))
}

fn has_machines(group: &ScalingGroup) -> bool {
    group.instance_count != Some(0) || group.capacity > 0
}

type Found = Vec<(GroupSpec, ScalingGroup)>;

/// Which groups there are: those that the operator named, and those that the rules find.
fn find<T: Transport>(
    api: &mut Api<T>,
    settings: &Settings,
    memory: &mut Memory,
    request: &RefreshRequest,
    reading: &mut Reading,
    deadline: Deadline,
) -> Result<Found, PluginError> {
    let mut found: Found = vec![];
    let mut first_error = None;
    let wanted: Vec<&GroupSpec> = settings.groups.iter().filter(|spec| request.wants(&spec.id)).collect();
    let ids: Vec<_> = wanted.iter().map(|spec| spec.id.clone()).collect();
    let mut read = groups::by_ids(api, &ids, deadline);
    for (ids, error) in std::mem::take(&mut read.failures) {
        for spec in wanted.iter().filter(|spec| ids.contains(&spec.id)) {
            reading.stale(memory, spec, error.clone());
        }
        first_error.get_or_insert(error);
    }
    for spec in &wanted {
        let position = read.groups.iter().position(|(id, _)| *id == spec.id);
        match position.map(|position| read.groups.swap_remove(position).1) {
            Some(Ok(group)) => found.push(((*spec).clone(), group)),
            Some(Err(error)) => reading.stale(memory, spec, error),
            None if reading.mentions(&spec.id) => {}
            None => reading.gone(memory, &spec.id),
        }
    }
    for rule in &settings.rules {
        match groups::by_tags(api, rule, deadline) {
            Ok(read) => reading.add_discovered(memory, request, settings, read, &mut found),
            Err(error) => {
                reading.keep_discovered(memory, settings, &error);
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        // Not one group could be read, and the host has a better memory than an empty list.
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

impl Reading {
    fn mentions(&self, group: &str) -> bool {
        let about = |finding: &Diagnostic| matches!(&finding.scope, ErrorScope::Group(id) if id == group);
        self.groups.iter().any(|known| known.id == group) || self.diagnostics.iter().any(about)
    }

    /// A group that could not be read: its last good state, if there is one; else nothing is said about it.
    fn stale(&mut self, memory: &Memory, spec: &GroupSpec, error: PluginError) {
        match memory.groups.get(&spec.id) {
            Some(known) => self.groups.push(NodeGroup { error: Some(error), ..known.told.clone() }),
            None => {
                self.complete = false;
                let message = format!("scaling group {} could not be read: {}", spec.id, error.summary());
                self.tell(Severity::Warning, "group-unread", message, &spec.id);
            }
        }
    }

    fn gone(&mut self, memory: &mut Memory, id: &str) {
        memory.groups.remove(id);
        let message = format!("scaling group {id} does not exist in this region; create it, or take it out of --nodes");
        self.tell(Severity::Warning, "group-gone", message, id);
    }

    fn tell(&mut self, severity: Severity, code: &str, message: String, group: &str) {
        let scope = ErrorScope::Group(group.to_owned());
        self.diagnostics.push(Diagnostic { scope, ..Diagnostic::new(severity, code, message) });
    }

    /// Groups that a rule found. Those that were there before and are not now are gone.
    fn add_discovered(
        &mut self,
        memory: &mut Memory,
        request: &RefreshRequest,
        settings: &Settings,
        read: groups::Read,
        found: &mut Found,
    ) {
        for (id, group) in read.groups {
            let known = found.iter().any(|(spec, _)| spec.id == id) || settings.groups.iter().any(|spec| spec.id == id);
            if known || !request.wants(&id) {
                continue;
            }
            match group {
                Ok(group) => found.push((self.spec_by_tags(&group), group)),
                Err(error) => self.stale(memory, &GroupSpec { min: 0, max: 0, id }, error),
            }
        }
    }

    /// The rule could not be asked: groups that it found before are kept, and there may be more.
    fn keep_discovered(&mut self, memory: &Memory, settings: &Settings, error: &PluginError) {
        self.complete = false;
        self.diagnostics.push(error.clone().into());
        let discovered =
            memory.groups.values().filter(|known| settings.groups.iter().all(|spec| spec.id != known.spec.id));
        let specs: Vec<_> = discovered.map(|known| known.spec.clone()).collect();
        for spec in specs.into_iter().filter(|spec| !self.mentions(&spec.id)).collect::<Vec<_>>() {
            self.stale(memory, &spec, error.clone());
        }
    }

    fn spec_by_tags(&mut self, group: &ScalingGroup) -> GroupSpec {
        let mut size = |key: &str, default: u32| match group.tag(key).map(|text| (text, text.trim().parse())) {
            None => default,
            Some((_, Ok(size))) => size,
            Some((text, Err(_))) => {
                let message = format!("tag {key} of scaling group {} is {text:?}, expected a whole number", group.id);
                self.tell(Severity::Warning, "bad-tag", message, &group.id);
                default
            }
        };
        let min = size(MIN_TAG, group.min);
        let max = size(MAX_TAG, group.max);
        GroupSpec { min, max: max.max(min), id: group.id.clone() }
    }

    fn answer(mut self, now_ms: u64, request: &RefreshRequest) -> RefreshAnswer {
        self.groups.sort_by(|one, other| one.id.cmp(&other.id));
        let revision = revision(&self);
        let unchanged = request.previous_revision.as_deref() == Some(&revision);
        // A state that is not all good is told again, so that its age is seen.
        let answer = if unchanged && self.complete && self.groups.iter().all(|group| group.error.is_none()) {
            RefreshAnswer::unchanged(revision)
        } else {
            RefreshAnswer::read(revision, self.groups, self.complete)
        };
        RefreshAnswer { observed_at: now_ms, diagnostics: self.diagnostics, ..answer }
    }
}

/// Equal states have equal names.
fn revision(reading: &Reading) -> String {
    let mut print = Fingerprint::new().with_number(reading.complete.into());
    for group in &reading.groups {
        print = print.with(&group.id).with(&group.template_version).with_number(group.status as u64);
        print = [group.min_size, group.max_size, group.target_size]
            .iter()
            .fold(print, |print, n| print.with_number((*n).into()));
        print = print
            .with_number(group.instances_complete.into())
            .with(group.error.as_ref().map_or("", |error| &error.code));
        for instance in &group.instances {
            let held = matches!(instance.deletable, plimsoll_guest::Deletability::No(_));
            print = print
                .with(&instance.id)
                .with_number(instance.state as u64 * 4 + u64::from(held) * 2 + u64::from(instance.error.is_some()));
        }
        for activity in &group.activities {
            print = print.with(&activity.id).with_number(activity.state as u64);
        }
        for failure in &group.failures {
            print = print.with(&failure.id).with_number(failure.missing.into());
        }
    }
    print.name()
}

/// Activities are read only where they can tell something. The rest gets none.
fn read_activities<T: Transport>(
    api: &mut Api<T>,
    memory: &Memory,
    groups: &[(GroupSpec, ScalingGroup, Listing)],
    deadline: Deadline,
) -> Vec<Result<Vec<Deed>, PluginError>> {
    let now_ms = api.now_ms();
    let worth = |(spec, group, listing): &(GroupSpec, ScalingGroup, Listing)| {
        let busy = memory.groups.get(&spec.id).is_some_and(|known| known.busy);
        let target = capacity::sizes(group, &listing.members).target;
        busy || target != listing.live() || memory.changes.touched(&spec.id, now_ms)
    };
    let worth: Vec<bool> = groups.iter().map(worth).collect();
    let names: Vec<&str> =
        groups.iter().zip(&worth).filter(|(_, worth)| **worth).map(|((spec, ..), _)| spec.id.as_str()).collect();
    let mut read = activities::newest(api, &names, deadline).into_iter();
    worth.into_iter().map(|worth| if worth { read.next().unwrap_or_else(|| Ok(vec![])) } else { Ok(vec![]) }).collect()
}

#[expect(clippy::too_many_arguments, reason = "everything that was read about one group")]
fn assemble<T: Transport>(
    api: &Api<T>,
    settings: &Settings,
    memory: &Memory,
    reading: &mut Reading,
    spec: GroupSpec,
    group: ScalingGroup,
    listing: &Listing,
    deeds: Result<Vec<Deed>, PluginError>,
) -> Known {
    let now_ms = api.now_ms();
    let sizes = capacity::sizes(&group, &listing.members);
    let (deeds, untold) = match deeds {
        Ok(deeds) => (deeds, false),
        Err(error) => {
            reading.diagnostics.push(error.for_group(&spec.id).into());
            (vec![], true)
        }
    };
    let busy = untold || deeds.iter().any(Deed::runs);
    let target = match group.desired {
        Some(_) => sizes.target,
        // A machine may have come between the two reads, and an activity may not have made its machines yet.
        None => sizes.target.max(listing.live()) + outstanding(api, memory, &spec, listing, &deeds, sizes),
    };
    let mut told = NodeGroup {
        name: group.name.clone(),
        status: status(&group),
        instances_complete: listing.complete,
        template_version: template::version(settings, &group, now_ms),
        template_choice: if group.vswitches.len() > 1 { TemplateChoice::AnyOf } else { TemplateChoice::Single },
        activities: deeds.iter().filter(|deed| deed.is_recent(now_ms)).map(Deed::activity).collect(),
        failures: failures(api, memory, &spec, &deeds, sizes),
        observed_at: now_ms,
        ..NodeGroup::sized(spec.id.clone(), spec.min.max(sizes.least), spec.max.min(sizes.greatest), target)
    };
    told.max_size = told.max_size.max(told.min_size);
    told.instances = machines(api, memory, &group, listing, &deeds);
    reading.notes(&spec, &group, sizes, listing);
    Known { spec, group, told, busy }
}

/// Machines that our own running wishes still have to bring, where ESS stores no wish.
fn outstanding<T: Transport>(
    api: &Api<T>,
    memory: &Memory,
    spec: &GroupSpec,
    listing: &Listing,
    deeds: &[Deed],
    sizes: Sizes,
) -> u32 {
    let now_ms = api.now_ms();
    let asked = |deed: &Deed| memory.changes.of(&spec.id, now_ms).find(|change| change.activity == deed.id);
    let ours = deeds.iter().filter(|deed| deed.ours || asked(deed).is_some());
    ours.map(|deed| deed.outstanding(&listing.members, asked(deed).map(|change| change.machines), sizes.unit)).sum()
}

fn status(group: &ScalingGroup) -> GroupStatus {
    match group.lifecycle {
        Lifecycle::Deleting => GroupStatus::Deleting,
        Lifecycle::Inactive => GroupStatus::Suspended,
        Lifecycle::Active if group.scale_out_suspended() => GroupStatus::Suspended,
        Lifecycle::Active => GroupStatus::Active,
    }
}

fn machines<T: Transport>(
    api: &Api<T>,
    memory: &Memory,
    group: &ScalingGroup,
    listing: &Listing,
    deeds: &[Deed],
) -> Vec<plimsoll_guest::Instance> {
    let failed = |id: &str| {
        let deed = deeds.iter().find(|deed| deed.failed_instances.iter().any(|failed| failed == id))?;
        deed.error(api, &group.id)
    };
    let one_type = match group.overrides.as_slice() {
        [(only, _)] => Some(only.as_str()),
        _ => None,
    };
    let machine = |member: &instances::Member| {
        let prepaid = memory.prepaid.get(&member.id).map(|(prepaid, _)| *prepaid);
        let mut instance = member.instance(api.region(), one_type, prepaid)?;
        instance.error = failed(&member.id).map(|error| error.for_instance(&member.id));
        Some(instance)
    };
    listing.members.iter().filter_map(machine).collect()
}

/// What our own wishes did not bring. A wish that ESS only took note of is carried out by an activity without our mark.
fn failures<T: Transport>(
    api: &Api<T>,
    memory: &Memory,
    spec: &GroupSpec,
    deeds: &[Deed],
    sizes: Sizes,
) -> Vec<plimsoll_guest::ScaleFailure> {
    let now_ms = api.now_ms();
    let mut failures = vec![];
    let recent = |deed: &&Deed| deed.is_recent(now_ms);
    for deed in deeds.iter().filter(recent) {
        let asked = memory.changes.of(&spec.id, now_ms).find(|change| change.activity == deed.id);
        if deed.ours || asked.is_some() {
            failures.extend(deed.failure(api, &spec.id, asked.map(|change| change.machines), sizes.unit));
        }
    }
    for change in memory.changes.of(&spec.id, now_ms).filter(|change| change.activity.is_empty()) {
        let later =
            |deed: &&Deed| !deed.ours && deed.started_ms.is_some_and(|at_ms| at_ms / 60_000 >= change.at_ms / 60_000);
        let first = deeds.iter().filter(recent).filter(later).min_by_key(|deed| deed.started_ms);
        let failure = first.and_then(|deed| deed.failure(api, &spec.id, Some(change.machines), sizes.unit));
        failures.extend(
            failure
                .filter(|failure| failures.iter().all(|known: &plimsoll_guest::ScaleFailure| known.id != failure.id)),
        );
    }
    failures
}

impl Reading {
    /// What an operator should know.
    fn notes(&mut self, spec: &GroupSpec, group: &ScalingGroup, sizes: Sizes, listing: &Listing) {
        if spec.max > sizes.greatest {
            let message = format!(
                "scaling group {} may have {} machines by its own MaxSize, less than the {} configured here; raise MaxSize in ESS",
                spec.id, sizes.greatest, spec.max
            );
            self.tell(Severity::Warning, "max-size", message, &spec.id);
        }
        if group.system_suspended || !group.suspended.is_empty() {
            let who =
                if group.system_suspended { "by ESS after failures".to_owned() } else { group.suspended.join(", ") };
            let message = format!("scaling group {} is suspended: {who}; resume it in ESS", spec.id);
            self.tell(Severity::Warning, "suspended", message, &spec.id);
        }
        if group.lifecycle == Lifecycle::Inactive {
            let message = format!("scaling group {} is not enabled; enable it in ESS", spec.id);
            self.tell(Severity::Warning, "inactive", message, &spec.id);
        }
        let sick = listing.members.iter().filter(|member| !member.healthy).count();
        if sick > 0 {
            let message = format!("{sick} machines of scaling group {} are unhealthy; ESS replaces them", spec.id);
            self.tell(Severity::Info, "unhealthy", message, &spec.id);
        }
        if !listing.complete {
            let message = format!(
                "the machines of scaling group {} changed while they were listed; some may be missing",
                spec.id
            );
            self.tell(Severity::Info, "incomplete-listing", message, &spec.id);
        }
    }
}
