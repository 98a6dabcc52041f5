//! What was written lately, kept by the host: the API shows a change late, and knows no idempotency keys.
//!
//! Nothing here is needed to be safe. Without it a repeated increase is a conflict, and a pool that recreates deleted
//! machines is found out later.

use std::collections::BTreeMap;

use plimsoll_guest::{InstanceState, log, state};
use serde::{Deserialize, Serialize};

use crate::cluster::{Pool, Worker};

const MINUTE_MS: u64 = 60_000;
/// A change of the count must be visible after this time; else it did not happen.
const VISIBLE_AFTER_MS: u64 = 3 * MINUTE_MS;
/// An answered key is remembered so long.
const KEYS_MS: u64 = 60 * MINUTE_MS;
/// A pool that seems to recreate machines is tried again after this time at first, and after twice as long each time.
const PAUSE_MS: u64 = 30 * MINUTE_MS;
/// The longest such pause.
const LONGEST_PAUSE_MS: u64 = 24 * 60 * MINUTE_MS;
/// Most machines whose first sight is remembered; the host keeps 64 KiB under one key.
const MOST_MACHINES: usize = 1000;

/// What is remembered of one cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    #[serde(skip)]
    key: String,
    pools: BTreeMap<String, Past>,
    /// When a machine was first seen on its way, by id.
    seen: BTreeMap<String, u64>,
}

/// What was done to a pool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Past {
    raise: Option<Raise>,
    removal: Option<Removal>,
    suspicion: Option<Suspicion>,
}

/// Deleted machines seem to come back. It may also have been somebody who raised the count at the same time, so it is
/// tried again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Suspicion {
    /// The count then: a lower one clears it.
    count: u32,
    /// How often it was found in a row.
    times: u32,
    until_ms: u64,
}

/// A count that was written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Raise {
    /// The host's key of the write.
    pub(crate) key: String,
    /// Counts that a read may show before it shows this one: the one that was read, and those of earlier writes that did
    /// not show yet.
    pub(crate) earlier: Vec<u32>,
    /// The count that was written.
    pub(crate) wish: u32,
    /// When.
    pub(crate) at_ms: u64,
    /// Utho said that it took it.
    pub(crate) accepted: bool,
    /// A count was read that is none of the earlier ones, or too much time has passed.
    pub(crate) settled: bool,
}

/// Machines that were deleted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Removal {
    before: u32,
    ids: Vec<String>,
    at_ms: u64,
}

impl Memory {
    /// What is remembered of a cluster; nothing if there is nothing.
    pub(crate) fn of(cluster: &str) -> Self {
        let key = format!("cluster/{cluster}");
        Self { key: key.clone(), ..state::get_json(&key).unwrap_or_default() }
    }

    /// Keeps it. What cannot be kept is forgotten, and said so.
    pub(crate) fn keep(&self) {
        if let Err(error) = state::set_json(&self.key, self) {
            log::warn(&format!("what was written lately is forgotten: {}", error.message));
        }
    }

    /// What was done to a pool.
    pub(crate) fn pool(&mut self, id: &str) -> &mut Past {
        self.pools.entry(id.to_owned()).or_default()
    }

    /// Forgets pools that are gone.
    pub(crate) fn retain_pools(&mut self, is_there: impl Fn(&str) -> bool) {
        self.pools.retain(|id, _| is_there(id));
    }

    /// When a machine was asked for, as far as it was seen on its way.
    pub(crate) fn first_seen(&mut self, worker: &Worker, now_ms: u64) -> Option<u64> {
        if worker.state() == InstanceState::Creating && self.seen.len() < MOST_MACHINES {
            self.seen.entry(worker.id.clone()).or_insert(now_ms);
        }
        self.seen.get(&worker.id).copied()
    }

    /// Forgets machines that are gone.
    pub(crate) fn retain_machines(&mut self, is_there: impl Fn(&str) -> bool) {
        self.seen.retain(|id, _| is_there(id));
    }
}

impl Past {
    /// Compares what was written with what a read shows.
    pub(crate) fn observe(&mut self, pool: &Pool, now_ms: u64) {
        let Some(count) = pool.count else { return };
        let age = |at_ms: u64| now_ms.saturating_sub(at_ms);
        if let Some(raise) = &mut self.raise {
            // Another count is ours, or somebody else's that came after ours.
            raise.settled |= !raise.earlier.contains(&count) || age(raise.at_ms) > VISIBLE_AFTER_MS;
        }
        self.raise = self.raise.take().filter(|raise| age(raise.at_ms) <= KEYS_MS);
        self.suspicion = self.suspicion.take().filter(|suspicion| count >= suspicion.count);
        let Some(removal) = self.removal.take() else { return };
        if count != removal.before {
            return;
        }
        if age(removal.at_ms) <= VISIBLE_AFTER_MS {
            self.removal = Some(removal);
            return;
        }
        let stays = |id: &String| pool.worker(id).is_some_and(|worker| worker.state() != InstanceState::Deleting);
        if !removal.ids.iter().any(stays) {
            self.suspect(count, now_ms);
        }
    }

    fn suspect(&mut self, count: u32, now_ms: u64) {
        let times = self.suspicion.as_ref().map_or(0, |suspicion| suspicion.times).saturating_add(1);
        let doubled = PAUSE_MS.saturating_mul(1_u64.checked_shl(times - 1).unwrap_or(u64::MAX));
        self.suspicion =
            Some(Suspicion { count, times, until_ms: now_ms.saturating_add(doubled.min(LONGEST_PAUSE_MS)) });
    }

    /// A count that was written and may not be visible yet.
    pub(crate) fn unsettled_raise(&self) -> Option<&Raise> {
        self.raise.as_ref().filter(|raise| !raise.settled)
    }

    /// The write with this key.
    pub(crate) fn raise_with_key(&self, key: &str) -> Option<&Raise> {
        self.raise.as_ref().filter(|raise| raise.key == key)
    }

    /// Writes down a count that is about to be written, after another was read; gives back what was there.
    pub(crate) fn raising(&mut self, key: String, read: u32, wish: u32, now_ms: u64) -> Option<Raise> {
        self.removal = None;
        let mut earlier = vec![read];
        if let Some(unsettled) = self.unsettled_raise() {
            earlier.extend(&unsettled.earlier);
            earlier.push(unsettled.wish);
        }
        earlier.retain(|&count| count < wish);
        self.raise.replace(Raise { key, earlier, wish, at_ms: now_ms, accepted: false, settled: false })
    }

    /// Utho took it.
    pub(crate) fn raised(&mut self) {
        if let Some(raise) = &mut self.raise {
            raise.accepted = true;
        }
    }

    /// Utho refused it.
    pub(crate) fn not_raised(&mut self, previous: Option<Raise>) {
        self.raise = previous;
    }

    /// Machines were deleted, and the count is still the one from before.
    pub(crate) fn removed(&mut self, before: u32, ids: Vec<String>, now_ms: u64) {
        self.removal = Some(Removal { before, ids, at_ms: now_ms });
    }

    /// The count has not fallen yet after a deletion.
    pub(crate) fn removal_is_unsettled(&self) -> bool {
        self.removal.is_some()
    }

    /// Deleted machines come back, as far as is known now.
    pub(crate) fn recreates(&self, now_ms: u64) -> bool {
        self.suspicion.as_ref().is_some_and(|suspicion| now_ms < suspicion.until_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn pool(count: u32, workers: &[(&str, &str)]) -> Pool {
        let worker =
            |&(id, word): &(&str, &str)| Worker { id: id.into(), words: vec![word.into()], ..Worker::default() };
        Pool { count: Some(count), workers: workers.iter().map(worker).collect(), ..Pool::default() }
    }

    fn raised(before: u32, wish: u32) -> Past {
        let mut past = Past::default();
        past.raising("k".into(), before, wish, 0);
        past.raised();
        past
    }

    #[rstest]
    #[case::not_visible_yet(3, MINUTE_MS, true)]
    #[case::visible(5, MINUTE_MS, false)]
    #[case::someone_else(4, MINUTE_MS, false)]
    #[case::never(3, 4 * MINUTE_MS, false)]
    fn a_raise_is_unsettled_until_the_count_moves(#[case] count: u32, #[case] now_ms: u64, #[case] unsettled: bool) {
        let mut past = raised(3, 5);
        past.observe(&pool(count, &[]), now_ms);
        assert_eq!(past.unsettled_raise().is_some(), unsettled);
        assert!(past.raise_with_key("k").is_some());
    }

    #[test]
    fn an_earlier_write_that_shows_late_settles_nothing() {
        let mut past = raised(3, 6);
        past.raising("l".into(), 3, 10, MINUTE_MS);
        past.observe(&pool(6, &[]), 2 * MINUTE_MS);
        assert_eq!(past.unsettled_raise().map(|raise| raise.wish), Some(10));
        past.observe(&pool(10, &[]), 2 * MINUTE_MS);
        assert_eq!(past.unsettled_raise(), None);
    }

    #[test]
    fn keys_are_forgotten_in_the_end() {
        let mut past = raised(3, 5);
        past.observe(&pool(5, &[]), KEYS_MS + 1);
        assert_eq!(past, Past::default());
    }

    #[rstest]
    #[case::count_fell(2, &[], 4, false)]
    #[case::too_early(3, &[("new", "active")], 2, false)]
    #[case::replaced(3, &[("new", "active")], 4, true)]
    #[case::still_on_its_way_out(3, &[("old", "deleting")], 4, true)]
    #[case::never_went(3, &[("old", "active")], 4, false)]
    #[case::raised_meanwhile(4, &[], 4, false)]
    fn a_pool_that_recreates_is_found_out(
        #[case] count: u32,
        #[case] workers: &[(&str, &str)],
        #[case] minutes: u64,
        #[case] recreates: bool,
    ) {
        let mut past = Past::default();
        past.removed(3, vec!["old".into()], 0);
        past.observe(&pool(count, workers), minutes * MINUTE_MS);
        assert_eq!(past.recreates(minutes * MINUTE_MS), recreates);
    }

    #[test]
    fn a_pool_that_recreates_gets_another_chance_and_then_a_longer_pause() {
        let mut past = Past::default();
        let mut now_ms = 0;
        for minutes in [30, 60, 120, 240, 480, 960, 1440, 1440] {
            past.removed(3, vec!["old".into()], now_ms);
            now_ms += 4 * MINUTE_MS;
            past.observe(&pool(3, &[("new", "active")]), now_ms);
            assert!(past.recreates(now_ms));
            now_ms += minutes * MINUTE_MS - 1;
            assert!(past.recreates(now_ms), "{minutes} minutes");
            now_ms += 1;
            assert!(!past.recreates(now_ms), "{minutes} minutes");
        }
        past.observe(&pool(2, &[]), now_ms);
        assert_eq!(past, Past::default(), "a count that falls clears it");
    }

    #[test]
    fn only_machines_seen_on_their_way_have_an_age() {
        let mut memory = Memory::of("1");
        let worker = |word: &str| Worker { id: word.into(), words: vec![word.into()], ..Worker::default() };
        assert_eq!(memory.first_seen(&worker("active"), 5), None);
        assert_eq!(memory.first_seen(&worker("pending"), 5), Some(5));
        assert_eq!(memory.first_seen(&worker("pending"), 9), Some(5));
        memory.keep();
        let mut memory = Memory::of("1");
        assert_eq!(memory.first_seen(&worker("pending"), 9), Some(5));
        assert_eq!(Memory::of("2").first_seen(&worker("pending"), 9), Some(9));
        memory.retain_machines(|_| false);
        assert_eq!(memory.first_seen(&worker("pending"), 11), Some(11));
    }
}
