//! Lists come in pages of 50, without a snapshot: entries move between pages while one reads.

use std::collections::BTreeSet;

/// Most entries that one page may have.
pub(crate) const PAGE_SIZE: u32 = 50;

/// Entries of a paged list, each once.
#[derive(Debug)]
pub(crate) struct Pages<E> {
    entries: Vec<E>,
    seen: BTreeSet<String>,
    total: u32,
    full_pages: u32,
    last_was_full: bool,
}

impl<E> Pages<E> {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self { entries: vec![], seen: BTreeSet::new(), total: 0, full_pages: 0, last_was_full: false }
    }

    /// One page more: its entries with their ids, and the total that it tells.
    pub(crate) fn add(&mut self, total: Option<u32>, entries: impl IntoIterator<Item = (String, E)>) {
        let mut count = 0;
        for (id, entry) in entries {
            count += 1;
            if self.seen.insert(id) {
                self.entries.push(entry);
            }
        }
        self.last_was_full = count >= PAGE_SIZE;
        self.full_pages += 1;
        self.total = total.unwrap_or(0);
    }

    /// Pages that are still to be read, by what is known now.
    pub(crate) fn missing(&self) -> std::ops::RangeInclusive<u32> {
        let by_total = self.total.div_ceil(PAGE_SIZE);
        // The total may be wrong, and then a full page has another behind it.
        let more = if self.last_was_full && by_total <= self.full_pages && self.found() > self.total { 1 } else { 0 };
        self.full_pages + 1..=by_total.max(self.full_pages + more)
    }

    /// How many different entries there are.
    pub(crate) fn found(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    /// Whether as many were seen as the cloud says there are.
    pub(crate) fn is_whole(&self) -> bool {
        self.found() == self.total
    }

    /// The entries.
    pub(crate) fn into_entries(self) -> Vec<E> {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ids: std::ops::Range<u32>) -> Vec<(String, u32)> {
        ids.map(|id| (id.to_string(), id)).collect()
    }

    #[test]
    fn the_first_page_tells_how_many_follow() {
        for (total, last) in [(0, 1), (15, 1), (50, 1), (51, 2), (500, 10), (1500, 30)] {
            let mut pages = Pages::new();
            assert_eq!(pages.missing().next(), None);
            pages.add(Some(total), page(0..total.min(50)));
            assert_eq!(pages.missing().last(), (last > 1).then_some(last), "{total}");
        }
    }

    #[test]
    fn doubles_count_once_and_are_noticed() {
        let mut pages = Pages::new();
        pages.add(Some(60), page(0..50));
        pages.add(Some(60), page(45..55));
        assert_eq!((pages.found(), pages.is_whole()), (55, false));
    }

    #[test]
    fn a_full_page_beyond_a_wrong_total_is_followed() {
        let mut pages = Pages::new();
        pages.add(Some(10), page(0..50));
        assert_eq!(pages.missing(), 2..=2);
        pages.add(Some(10), page(50..60));
        assert_eq!(pages.missing().next(), None);
    }
}
