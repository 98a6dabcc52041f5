//! Giving devices to claims: a search through all ways, the first of which counts.
//!
//! Claims, requests and devices are tried in the scheduler's order, and what the scheduler calls an error ends the search of
//! a pod here too. The thorough search looks at every device; the quick one looks at one of several that can stand for each
//! other, and remembers where it has failed. Both give the same answer.

mod state;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use plimsoll_model::Quantity;

use super::MOST_DEVICES;
use super::pools::Standing;
use super::problem::{Alternative, Ask, Claim, Fault, Fit, Problem};
use crate::facts::Facts;

/// What came of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// There is a way.
    Possible,
    /// There is none.
    Impossible,
    /// Something cannot even be tried.
    Faulty(Fault),
    /// No way was found within the limit of effort.
    GaveUp,
}

/// How to search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// Every device.
    Thorough,
    /// One device of each kind, and nothing twice.
    Quick,
}

/// Steps of the thorough search, and of the quick one.
const LIMITS: [usize; 2] = [20_000, 60_000];

/// Whether a step led to the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Found,
    Blocked,
    /// The search of this unit is over.
    Ended,
}

/// Where a search is within a unit.
#[derive(Clone, Copy)]
struct Cursor {
    unit: usize,
    home: usize,
    claim: usize,
    request: usize,
    alternative: Option<usize>,
    picked: usize,
    /// Devices before this place have been tried for the request.
    from: usize,
}

/// A device that was picked.
#[derive(Clone, Copy)]
struct Pick {
    unit: usize,
    claim: usize,
    device: usize,
    admin: bool,
    request: usize,
    alternative: usize,
}

struct Search<'p> {
    facts: &'p Facts<'p>,
    problem: &'p Problem,
    manner: Manner,
    kinds: Vec<usize>,
    used: Vec<bool>,
    sharers: Vec<u32>,
    consumed: Vec<Vec<Quantity>>,
    counters: Vec<Quantity>,
    picks: Vec<Pick>,
    failed: FxHashSet<Vec<u64>>,
    steps: usize,
    limit: usize,
    fault: Option<Fault>,
}

/// Whether all units can be given what they ask for.
pub(crate) fn solve(facts: &Facts<'_>, problem: &Problem, manner: Manner) -> Outcome {
    let [thorough, quick] = LIMITS;
    let mut search = Search {
        facts,
        problem,
        manner,
        kinds: if manner == Manner::Quick { problem.kinds() } else { Vec::new() },
        used: vec![false; problem.devices.len()],
        sharers: vec![0; problem.devices.len()],
        consumed: problem.devices.iter().map(|device| device.consumed.clone()).collect(),
        counters: problem.counters.clone(),
        picks: Vec::new(),
        failed: FxHashSet::default(),
        steps: 0,
        limit: if manner == Manner::Quick { quick } else { thorough },
        fault: None,
    };
    if search.unit(0) {
        return Outcome::Possible;
    }
    match search.fault {
        _ if search.steps >= search.limit => Outcome::GaveUp,
        Some(fault) => Outcome::Faulty(fault),
        None => Outcome::Impossible,
    }
}

#[allow(
    clippy::indexing_slicing,
    reason = "numbers of devices, units, claims and requests are those of the one problem"
)]
impl Search<'_> {
    /// Units from this one on.
    fn unit(&mut self, unit: usize) -> bool {
        let Some(asked) = self.problem.units.get(unit) else { return true };
        let remembers = self.manner == Manner::Quick && self.steps > 64;
        let state = if remembers { self.state(unit) } else { Vec::new() };
        if remembers && self.failed.contains(&state) {
            return false;
        }
        for &home in &asked.homes {
            if let Some(fault) = self.fault_of(unit, home) {
                self.fault.get_or_insert(fault);
                continue;
            }
            let start = Cursor { unit, home, claim: 0, request: 0, alternative: None, picked: 0, from: 0 };
            if self.step(start) == Way::Found {
                return true;
            }
        }
        if remembers {
            self.failed.insert(state);
        }
        false
    }

    /// What is left, so far as it can matter.
    fn state(&self, unit: usize) -> Vec<u64> {
        use std::hash::{Hash, Hasher};
        let mut rows: Vec<u64> = (0..self.kinds.len())
            .map(|device| {
                let mut hasher = rustc_hash::FxHasher::default();
                (self.kinds[device], self.used[device], self.sharers[device] > 0, &self.consumed[device])
                    .hash(&mut hasher);
                hasher.finish()
            })
            .collect();
        rows.sort_unstable();
        let mut hasher = rustc_hash::FxHasher::default();
        self.counters.hash(&mut hasher);
        rows.push(hasher.finish());
        rows.push(u64::try_from(unit).unwrap_or(u64::MAX));
        rows
    }

    /// What keeps a unit from being tried on a node at all.
    fn fault_of(&self, unit: usize, home: usize) -> Option<Fault> {
        for claim in &self.problem.units[unit].claims {
            if let Some(fault) = &claim.fault {
                return Some(fault.clone());
            }
            let mut least = 0;
            for alternatives in &claim.requests {
                let mut fewest = usize::MAX;
                for alternative in alternatives {
                    let ask = &self.problem.asks[alternative.ask];
                    if let Some(fault) = &ask.fault {
                        return Some(fault.clone());
                    }
                    let count = match ask.count {
                        Some(count) => count,
                        None => match self.all(unit, home, ask) {
                            Ok(all) => all.len(),
                            Err(fault) => return Some(fault),
                        },
                    };
                    fewest = fewest.min(count);
                }
                least += if alternatives.is_empty() { 0 } else { fewest };
            }
            if least > MOST_DEVICES {
                return Some(
                    format!("number of requested devices {least} exceeds the claim limit of {MOST_DEVICES}").into(),
                );
            }
        }
        None
    }

    /// Devices of a request for all.
    fn all(&self, unit: usize, home: usize, ask: &Ask) -> Result<SmallVec<[usize; 8]>, Fault> {
        let side = &self.problem.sides[home];
        if let Some((name, standing)) = side.bad_pool {
            let text = |symbol| self.facts.symbols().text(symbol);
            let state = if standing == Standing::Invalid { "invalid" } else { "being updated" };
            return Err(format!(
                "request {}: asks for all devices, but resource pool {}/{} is currently {state}",
                text(ask.name()),
                text(name.0),
                text(name.1)
            )
            .into());
        }
        let mut all = SmallVec::new();
        for &device in side.devices.iter().filter(|device| self.is_reachable(unit, **device)) {
            match &ask.fits[device] {
                Fit::Unclear(fault) => return Err(fault.clone()),
                Fit::No | Fit::TooSmall => {}
                Fit::Tainted => all.push(device),
                Fit::Yes(share) if self.has_left(device, share, ask.admin) => all.push(device),
                Fit::Yes(_) => {}
            }
        }
        Ok(all)
    }

    /// Whether all nodes of a unit can use a device.
    fn is_reachable(&self, unit: usize, device: usize) -> bool {
        let homes = &self.problem.units[unit].homes;
        let found = &self.problem.devices[device];
        homes.len() < 2
            || (homes.iter().all(|home| found.seen_by.contains(home))
                && !found.device().is_some_and(|device| device.binds_to_node))
    }

    fn step(&mut self, at: Cursor) -> Way {
        self.steps += 1;
        if self.steps >= self.limit {
            return Way::Ended;
        }
        let problem = self.problem;
        let Some(claim) = problem.units[at.unit].claims.get(at.claim) else {
            return if self.unit(at.unit + 1) { Way::Found } else { Way::Blocked };
        };
        let Some(alternatives) = claim.requests.get(at.request) else {
            return self.step(Cursor { claim: at.claim + 1, request: 0, alternative: None, picked: 0, from: 0, ..at });
        };
        let Some(alternative) = at.alternative else {
            for alternative in 0..alternatives.len() {
                let way = self.step(Cursor { alternative: Some(alternative), ..at });
                if way != Way::Blocked {
                    return way;
                }
            }
            return Way::Blocked;
        };
        let chosen = &alternatives[alternative];
        let ask = &problem.asks[chosen.ask];
        match ask.count {
            Some(count) => self.some(at, claim, chosen, ask, count),
            None => self.every(at, claim, chosen, ask),
        }
    }

    fn next_request(&mut self, at: Cursor) -> Way {
        self.step(Cursor { request: at.request + 1, alternative: None, picked: 0, from: 0, ..at })
    }

    /// How many devices the claim has so far.
    fn picked_for(&self, at: Cursor) -> usize {
        self.picks.iter().rev().take_while(|pick| (pick.unit, pick.claim) == (at.unit, at.claim)).count()
    }

    /// One more of a number of devices.
    fn some(&mut self, at: Cursor, claim: &Claim, chosen: &Alternative, ask: &Ask, count: usize) -> Way {
        if at.picked >= count {
            return self.next_request(at);
        }
        if self.picked_for(at).saturating_add(count - at.picked) > MOST_DEVICES {
            return Way::Blocked;
        }
        let problem = self.problem;
        let side = &problem.sides[at.home];
        let mut tried: SmallVec<[usize; 8]> = SmallVec::new();
        for place in at.from..side.devices.len() {
            let device = side.devices[place];
            if !self.is_free(at, device, ask.admin) || !self.is_reachable(at.unit, device) {
                continue;
            }
            let share = match &ask.fits[device] {
                Fit::No | Fit::TooSmall | Fit::Tainted => continue,
                Fit::Unclear(fault) => {
                    self.fault.get_or_insert_with(|| fault.clone());
                    return Way::Ended;
                }
                Fit::Yes(share) => share,
            };
            if !self.has_left(device, share, ask.admin) {
                continue;
            }
            if self.manner == Manner::Quick {
                if tried.iter().any(|&other| self.is_like(at, other, device)) {
                    continue;
                }
                tried.push(device);
            }
            if !self.has_counters(device, ask.admin) || !self.obeys(at, claim, chosen, device) {
                continue;
            }
            self.pick(at, device, share, ask.admin);
            let way = self.step(Cursor { picked: at.picked + 1, from: place + 1, ..at });
            self.put_back(device, share, ask.admin);
            if way != Way::Blocked {
                return way;
            }
        }
        Way::Blocked
    }

    /// All devices that match.
    fn every(&mut self, at: Cursor, claim: &Claim, chosen: &Alternative, ask: &Ask) -> Way {
        let all = match self.all(at.unit, at.home, ask) {
            Ok(all) => all,
            Err(fault) => {
                self.fault.get_or_insert(fault);
                return Way::Ended;
            }
        };
        if all.is_empty() || self.picked_for(at) + all.len() > MOST_DEVICES {
            return Way::Blocked;
        }
        let mut way = Way::Found;
        let mut picked = 0;
        for &device in &all {
            let Fit::Yes(share) = &ask.fits[device] else {
                way = Way::Blocked;
                break;
            };
            if !self.is_free(at, device, ask.admin)
                || !self.has_counters(device, ask.admin)
                || !self.has_left(device, share, ask.admin)
            {
                way = Way::Blocked;
                break;
            }
            if !self.obeys(at, claim, chosen, device) {
                self.fault.get_or_insert_with(|| "a constraint keeps a claim from having all devices".into());
                way = Way::Ended;
                break;
            }
            self.pick(at, device, share, ask.admin);
            picked += 1;
        }
        if way == Way::Found {
            way = self.next_request(at);
        }
        for &device in all[..picked].iter().rev() {
            if let Fit::Yes(share) = &ask.fits[device] {
                self.put_back(device, share, ask.admin);
            }
        }
        way
    }
}
