//! What happens in a run: demand, people, the clouds' own faults, and what befalls the process.

use std::time::Duration;

use fastrand::Rng;
use plimsoll_tests_clouds::{Fault, Twist};

use crate::scenario::{ApiFault, Moment, pick};

/// Something that happens.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Event {
    /// A workload gets another number of replicas.
    Scale { workload: usize, replicas: u32 },
    /// Some of the requests go wrong for a while; `handled`: after the cloud did what they ask.
    Trouble { fault: Fault, percent: u8, handled: bool, lasts: Duration },
    /// So many machines of a group's kind are left; none: enough.
    Stock { group: usize, left: Option<u32> },
    /// The account may have so many machines of a group's kind for a while.
    Quota { group: usize, most: u32, lasts: Duration },
    /// Somebody raises a group's size.
    Raise { group: usize, count: u32 },
    /// Somebody takes a machine away behind the group's back; the cloud makes another.
    TakeAway { group: usize },
    /// AliCloud: a group is suspended for a while. Utho: so many of the next machines fail.
    Ill { group: usize, machines: u32, lasts: Duration },
    /// Writes to the API server fail in this way for a while.
    Api { fault: ApiFault, lasts: Duration },
    /// Evictions are refused for a while.
    Evictions { lasts: Duration },
    /// The process is killed after so many more of its steps, of any kind or of one.
    Kill { moment: Option<Moment>, steps: u32 },
    /// The lease is lost for a while.
    Lease { lasts: Duration },
    /// The provider's component is replaced.
    Replace,
}

fn fault(rng: &mut Rng) -> Fault {
    match rng.u8(0..13) {
        0 => Fault::Reset,
        1 => Fault::Refused,
        2 => Fault::HalfBody,
        3 => Fault::Html { status: 502 },
        4 => Fault::Html { status: 200 },
        5 => Fault::SlowHead { ms: 40_000 },
        6 => Fault::Throttled { retry_after_s: None },
        7 => Fault::ThrottledMinute,
        8 => Fault::EmptyBody { status: 200 },
        9 => Fault::Error { status: 500, code: "InternalError".to_owned(), message: "try later".to_owned() },
        10 => Fault::Error { status: 200, code: "x".to_owned(), message: "Something else".to_owned() },
        _ => Fault::Twist { twist: Twist::StaleReads(rng.u64(1_000..90_000)) },
    }
}

pub(crate) fn draw_event(rng: &mut Rng, groups: usize, workloads: usize) -> Event {
    let group = rng.usize(0..groups);
    let lasts = Duration::from_secs(rng.u64(10..2400));
    match rng.u8(0..20) {
        0..=5 => Event::Trouble { fault: fault(rng), percent: rng.u8(10..=100), handled: rng.bool(), lasts },
        6 => Event::Stock { group, left: Some(rng.u32(0..3)) },
        7 => Event::Stock { group, left: None },
        8 => Event::Quota { group, most: rng.u32(1..6), lasts },
        9 => Event::Raise { group, count: rng.u32(1..3) },
        10 | 11 => Event::TakeAway { group },
        12 => Event::Ill { group, machines: rng.u32(1..3), lasts },
        13 => Event::Api { fault: pick(rng, &ApiFault::ALL), lasts },
        14 => Event::Evictions { lasts },
        15 => Event::Kill { moment: None, steps: rng.u32(0..30) },
        16 | 17 => Event::Kill { moment: Some(pick(rng, &Moment::AROUND_WRITES)), steps: rng.u32(0..3) },
        18 => Event::Lease { lasts },
        _ => match rng.bool() {
            true => Event::Replace,
            false => Event::Scale { workload: rng.usize(0..workloads), replicas: rng.u32(0..16) },
        },
    }
}
