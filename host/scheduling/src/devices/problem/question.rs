//! Which pods and devices matter for pods on one node, and whether they can be given what they ask for.

use plimsoll_model::devices::{Choice, ClaimSpec, ClaimSpecId, Device, DeviceCount, DeviceSelector, ResourceSlice};
use plimsoll_model::{Node, Symbol};

use super::super::ClaimKey;
use super::super::cel::Answer;
use super::super::held::Held;
use super::super::pools::Pool;
use super::super::search::Outcome;
use super::super::wants::Wants;
use super::Problem;
use super::build::Builder;
use crate::facts::Facts;

/// Pods on one node.
pub(crate) struct Spot<'x> {
    /// The node.
    pub(crate) node: &'x Node,
    /// What it can use.
    pub(crate) pools: &'x [Pool],
    /// What its pods want, and how many of each there are.
    pub(crate) pods: Vec<(&'x Wants, u32)>,
}

/// Whether the pods of all these nodes can be given their devices. The last ones of the first node are those that are to
/// come; with those on the node that want the same they stand or fall together. If there is no way even for the others,
/// then of these the ones that could not be given any if there were nobody else have none and are in nobody's way.
///
/// Pods that want the same as those to come are not judged alone: what fits beside others may fit nowhere without them,
/// since a claim to all devices is for fewer where pods on other nodes share it or take parts.
pub(crate) fn answer(
    facts: &Facts<'_>,
    held: &Held,
    spots: &[Spot<'_>],
    solve: impl Fn(&Problem) -> Outcome,
) -> Outcome {
    let ask = |spots: &[Spot<'_>]| solve(&question(facts, held, spots));
    let outcome = ask(spots);
    let Some(coming) = spots.first().and_then(|here| here.pods.last()).map(|(wants, _)| *wants) else {
        return outcome;
    };
    let likes = |number: usize, wants: &Wants| number == 0 && wants == coming;
    if outcome == Outcome::Possible || ask(&filtered(spots, |number, wants| !likes(number, wants))) == Outcome::Possible
    {
        return outcome;
    }
    let alone = |number: usize, wants| {
        let spot = spots.get(number);
        spot.is_some_and(|spot| ask(&[Spot { pods: vec![(wants, 1)], ..*spot }]) == Outcome::Possible)
    };
    let left = filtered(spots, |number, wants| likes(number, wants) || alone(number, wants));
    let count = |spots: &[Spot<'_>]| spots.iter().map(|spot| spot.pods.len()).sum::<usize>();
    if count(&left) < count(spots) { ask(&left) } else { outcome }
}

/// Some of the pods, node by node; a node is known by its place.
fn filtered<'x>(spots: &[Spot<'x>], stays: impl Fn(usize, &'x Wants) -> bool) -> Vec<Spot<'x>> {
    let left = spots.iter().enumerate().map(|(number, spot)| {
        let pods = spot.pods.iter().filter(|(wants, _)| stays(number, wants)).copied();
        Spot { pods: pods.collect(), ..*spot }
    });
    left.collect()
}

/// Claims that are given devices together. They are always asked in the same order, whoever came first.
///
/// Who wants all comes last: all is what others leave, where devices are given in parts.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Asked<'x> {
    takes_all: bool,
    /// No claim of its own, but this one, which pods share.
    is_own: bool,
    shared: Option<ClaimKey>,
    own: &'x [ClaimSpecId],
    homes: Vec<usize>,
    for_resources: Vec<(Symbol, Symbol, i64)>,
}

/// All of it as one question.
fn question(facts: &Facts<'_>, held: &Held, spots: &[Spot<'_>]) -> Problem {
    let devices = &facts.cluster.devices;
    let mut builder = Builder::new(facts, held);
    let mut homes: Vec<(ClaimKey, Vec<usize>)> = Vec::new();
    let mut units: Vec<(Asked<'_>, Option<ClaimSpec>, u32)> = Vec::new();
    for spot in spots {
        let side = builder.side(spot.pools);
        for (wants, count) in &spot.pods {
            for key in &wants.shared {
                match homes.iter_mut().find(|(claim, _)| claim == key) {
                    Some((_, of_claim)) if of_claim.contains(&side) => {}
                    Some((_, of_claim)) => of_claim.push(side),
                    None => homes.push((*key, vec![side])),
                }
            }
            let for_resources = wants.claim_for_resources(spot.node);
            if !wants.own.is_empty() || for_resources.is_some() {
                let asked = Asked {
                    takes_all: wants.own.iter().any(|spec| takes_all(&devices.specs[*spec])),
                    is_own: true,
                    shared: None,
                    own: &wants.own,
                    homes: vec![side],
                    for_resources: wants.missing(spot.node).copied().collect(),
                };
                units.push((asked, for_resources, *count));
            }
        }
    }
    for (key, homes) in homes {
        let Some(claim) = devices.claims.get(&key) else { continue };
        let own = std::slice::from_ref(&claim.spec);
        let takes_all = takes_all(&devices.specs[claim.spec]);
        let asked = Asked { takes_all, is_own: false, shared: Some(key), own, homes, for_resources: Vec::new() };
        units.push((asked, None, 1));
    }
    units.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    for (asked, for_resources, count) in &units {
        for _ in 0..*count {
            let specs = asked.own.iter().map(|spec| &devices.specs[*spec]);
            builder.unit(asked.homes.clone(), specs.chain(for_resources));
        }
    }
    builder.finish()
}

/// Whether some request of a claim is for all devices that match.
pub(crate) fn takes_all(spec: &ClaimSpec) -> bool {
    spec.requests.iter().any(|request| match &request.choice {
        Choice::Exactly(only) => only.count == DeviceCount::All,
        Choice::FirstAvailable(list) => list.iter().any(|alternative| alternative.count == DeviceCount::All),
        Choice::Unknown => false,
    })
}

/// Whether pods may use devices that other nodes can use too, or share a claim with pods elsewhere.
pub(crate) fn is_linked(facts: &Facts<'_>, wants: &Wants) -> bool {
    if !wants.shared.is_empty() {
        return true;
    }
    if facts.inventory.is_local() {
        return false;
    }
    let asked = asks(facts, wants);
    let may_match = |(class, selectors): (Symbol, &[DeviceSelector]), slice: &ResourceSlice, device: &Device| {
        let class = facts.cluster.devices.classes.get(&class);
        class.is_none_or(|class| {
            class.selectors.iter().chain(selectors).all(|selector| match *selector {
                DeviceSelector::Cel(text) => {
                    facts.selectors.ask(text, slice.driver, device, facts.symbols()) != Answer::No
                }
                DeviceSelector::Unknown => true,
            })
        })
    };
    facts
        .inventory
        .wide_slices()
        .any(|slice| slice.devices.iter().any(|device| asked.iter().any(|&asked| may_match(asked, slice, device))))
}

/// Classes and selectors of all requests of pods.
pub(crate) fn asks<'x>(facts: &'x Facts<'_>, wants: &'x Wants) -> Vec<(Symbol, &'x [DeviceSelector])> {
    let devices = &facts.cluster.devices;
    let shared = wants.shared.iter().filter_map(|key| Some(devices.claims.get(key)?.spec));
    let specs = wants.own.iter().copied().chain(shared).map(|spec| &devices.specs[spec]);
    let requests = specs.flat_map(|spec| &spec.requests).flat_map(|request| match &request.choice {
        Choice::Exactly(only) => std::slice::from_ref(only),
        Choice::FirstAvailable(list) => list,
        Choice::Unknown => &[],
    });
    let classes = wants.resources.iter().map(|(_, class, _)| (*class, &[][..]));
    requests.map(|request| (request.class, &*request.selectors)).chain(classes).collect()
}
