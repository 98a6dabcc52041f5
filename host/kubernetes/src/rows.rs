//! Where the objects of a growing and shrinking set stand in a list.

use hashbrown::HashTable;
use std::hash::BuildHasher as _;

/// Which object a row is: its kind, and `NAMESPACE NUL NAME`, so that keys are in the order of namespaces and names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) kind: u8,
    pub(crate) name: Box<str>,
}

impl Key {
    pub(crate) fn new(kind: u8, namespace: Option<&str>, name: &str) -> Self {
        let name = match namespace.filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => format!("{namespace}\0{name}").into(),
            None => name.into(),
        };
        Self { kind, name }
    }

    /// Namespace and name.
    pub(crate) fn parts(&self) -> (Option<&str>, &str) {
        match self.name.split_once('\0') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, &self.name),
        }
    }
}

/// What a change of the rows asks of the list beside them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// The object is new: it stands at the end.
    Added,
    /// It was at this place, and the new one takes it.
    Replaced(usize),
}

/// The keys of a list, row by row, and where each is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    keys: Vec<Key>,
    /// When each was last seen in a list of all, as a number that grows.
    seen: Vec<u32>,
    places: HashTable<u32>,
    sorted: bool,
}

fn hash(key: &Key) -> u64 {
    rustc_hash::FxBuildHasher.hash_one(key)
}

fn place(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

impl Rows {
    /// Where an object stands.
    pub(crate) fn find(&self, key: &Key) -> Option<usize> {
        let same = |place: &u32| self.keys.get(index(*place)) == Some(key);
        self.places.find(hash(key), same).map(|place| index(*place))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Notes that an object is there, seen in the list of this number.
    pub(crate) fn put(&mut self, key: Key, seen: u32) -> Change {
        if let Some(at) = self.find(&key) {
            if let Some(mark) = self.seen.get_mut(at) {
                *mark = (*mark).max(seen);
            }
            return Change::Replaced(at);
        }
        let at = place(self.keys.len());
        self.sorted &= self.keys.last().is_none_or(|last| *last < key);
        let hashed = hash(&key);
        self.keys.push(key);
        self.seen.push(seen);
        let keys = &self.keys;
        self.places.insert_unique(hashed, at, |place| keys.get(index(*place)).map_or(0, hash));
        Change::Added
    }

    /// Takes an object out; the last row takes its place. Says where it was.
    pub(crate) fn take(&mut self, key: &Key) -> Option<usize> {
        let at = self.find(key)?;
        let last = self.keys.len() - 1;
        if let Ok(entry) = self.places.find_entry(hash(key), |place| index(*place) == at) {
            entry.remove();
        }
        if at != last
            && let Some(moved) = self.keys.get(last)
            && let Some(entry) = self.places.find_mut(hash(moved), |place| index(*place) == last)
        {
            *entry = place(at);
            self.sorted = false;
        }
        self.keys.swap_remove(at);
        self.seen.swap_remove(at);
        Some(at)
    }

    /// Objects of a kind that the list of this number did not have.
    pub(crate) fn unseen(&self, kind: u8, since: u32) -> Vec<Key> {
        let rows = self.keys.iter().zip(&self.seen);
        rows.filter(|(key, seen)| key.kind == kind && **seen < since).map(|(key, _)| key.clone()).collect()
    }

    /// Puts the rows in the order of their keys. Says in which order the old rows come now; none if nothing moves.
    pub(crate) fn sort(&mut self) -> Option<Vec<usize>> {
        if self.sorted {
            return None;
        }
        self.sorted = true;
        if self.keys.is_sorted() {
            return None;
        }
        let mut order: Vec<usize> = (0..self.keys.len()).collect();
        order.sort_by(|a, b| self.keys.get(*a).cmp(&self.keys.get(*b)));
        reorder(&mut self.keys, &order);
        reorder(&mut self.seen, &order);
        self.places.clear();
        let keys = &self.keys;
        for (at, key) in keys.iter().enumerate() {
            self.places.insert_unique(hash(key), place(at), |place| keys.get(index(*place)).map_or(0, hash));
        }
        Some(order)
    }
}

/// The items in another order, each once.
pub(crate) fn reorder<T>(items: &mut Vec<T>, order: &[usize]) {
    let mut old: Vec<Option<T>> = std::mem::take(items).into_iter().map(Some).collect();
    items.extend(order.iter().filter_map(|at| old.get_mut(*at)?.take()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation against a plain sorted map.
    #[test]
    fn rows_and_the_list_beside_them_stay_together() {
        let mut rows = Rows::default();
        let mut list: Vec<String> = vec![];
        let mut truth = std::collections::BTreeMap::new();
        let mut random = fastrand::Rng::with_seed(7);
        for step in 0..5_000_u32 {
            let name = format!("n{}", random.u32(0..60));
            let key = Key::new(random.u8(0..2), (random.bool()).then_some("ns"), &name);
            let text = format!("{key:?} {step}");
            if random.u32(0..3) > 0 {
                truth.insert(key.clone(), text.clone());
                match rows.put(key, 1) {
                    Change::Added => list.push(text),
                    Change::Replaced(at) => list[at] = text,
                }
            } else {
                let at = rows.take(&key);
                assert_eq!(at.is_some(), truth.remove(&key).is_some());
                at.map(|at| list.swap_remove(at));
            }
            if step % 50 == 0 {
                if let Some(order) = rows.sort() {
                    reorder(&mut list, &order);
                }
                assert_eq!(list, truth.values().cloned().collect::<Vec<_>>());
            }
            assert_eq!(rows.len(), truth.len());
        }
        for key in truth.keys() {
            assert!(rows.find(key).is_some_and(|at| list[at] == truth[key]));
        }
    }

    #[test]
    fn what_a_list_does_not_have_is_found() {
        let mut rows = Rows::default();
        for (kind, name) in [(0, "a"), (0, "b"), (1, "c")] {
            rows.put(Key::new(kind, None, name), 1);
        }
        rows.put(Key::new(0, None, "b"), 2);
        assert_eq!(rows.unseen(0, 2), [Key::new(0, None, "a")]);
        assert_eq!(Key::new(0, Some("ns"), "a").parts(), (Some("ns"), "a"));
    }
}
