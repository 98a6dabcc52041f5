//! Lists as what differs from an earlier version of them.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// A piece of a list.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Piece<T> {
    /// So many elements of the earlier version, from this position on.
    Kept(usize, usize),
    /// New elements.
    New(Vec<T>),
}

/// A list in terms of its earlier version.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Changed<T>(pub(crate) Vec<Piece<T>>);

impl<T: Clone + PartialEq> Changed<T> {
    /// How to get from one version to the other. Elements with equal keys are likely the same; the more keys differ, the
    /// smaller the result.
    pub(crate) fn between<'a, K: Hash + Eq>(before: &'a [T], after: &'a [T], key: impl Fn(&'a T) -> K) -> Self {
        let mut pieces: Vec<Piece<T>> = Vec::new();
        let mut places: Option<FxHashMap<K, usize>> = None;
        let mut next = 0;
        for element in after {
            // Most often the list goes on as it did before.
            let found = if before.get(next) == Some(element) {
                Some(next)
            } else {
                let places = places
                    .get_or_insert_with(|| before.iter().enumerate().map(|(at, element)| (key(element), at)).collect());
                let at = places.get(&key(element)).copied();
                next = at.unwrap_or(next);
                at.filter(|&at| before.get(at) == Some(element))
            };
            next += 1;
            match (found, pieces.last_mut()) {
                (Some(at), Some(Piece::Kept(from, count))) if *from + *count == at => *count += 1,
                (Some(at), _) => pieces.push(Piece::Kept(at, 1)),
                (None, Some(Piece::New(new))) => new.push(element.clone()),
                (None, _) => pieces.push(Piece::New(vec![element.clone()])),
            }
        }
        Self(pieces)
    }

    /// The later version. None if it refers to what the earlier one does not have.
    pub(crate) fn apply(self, before: &[T]) -> Option<Vec<T>> {
        let mut after = Vec::new();
        for piece in self.0 {
            match piece {
                Piece::Kept(from, count) => {
                    after.extend_from_slice(before.get(from..from.checked_add(count)?)?);
                }
                Piece::New(new) => after.extend(new),
            }
        }
        Some(after)
    }
}

/// A table that only grows, as its new entries; all of them after so many that are kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Grown<T> {
    pub(crate) kept: usize,
    pub(crate) new: Vec<T>,
}

impl<T> Grown<T> {
    /// How to get from one version to the other.
    pub(crate) fn between<I: PartialEq>(
        before: impl Iterator<Item = I>,
        after: impl Iterator<Item = I>,
        own: impl Fn(I) -> T,
    ) -> Self {
        let (mut before, mut kept, mut new) = (before, 0, Vec::new());
        for entry in after {
            if new.is_empty() && before.next().is_some_and(|old| old == entry) {
                kept += 1;
            } else {
                new.push(own(entry));
            }
        }
        Self { kept, new }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_stays_is_not_written_again() {
        let before: Vec<u32> = (0..1000).collect();
        let mut after = before.clone();
        after.swap_remove(10);
        after.remove(500);
        after.push(2000);
        let changed = Changed::between(&before, &after, |element| *element);
        let new: usize = changed.0.iter().map(|piece| if let Piece::New(new) = piece { new.len() } else { 0 }).sum();
        assert_eq!(new, 1);
        assert!(changed.0.len() <= 6, "{changed:?}");
        assert_eq!(changed.apply(&before), Some(after));
    }

    #[test]
    fn a_change_of_another_list_is_refused() {
        assert_eq!(Changed::<u32>(vec![Piece::Kept(1, 3)]).apply(&[1, 2]), None);
        assert_eq!(Changed::<u32>(vec![Piece::Kept(1, usize::MAX)]).apply(&[1, 2]), None);
    }

    proptest! {
        #[test]
        fn any_list_follows_from_any_other(
            before in prop::collection::vec((0..20_u8, 0..3_u8), 0..40),
            after in prop::collection::vec((0..20_u8, 0..3_u8), 0..40),
        ) {
            let changed = Changed::between(&before, &after, |(key, _)| *key);
            prop_assert_eq!(changed.apply(&before), Some(after));
        }
    }
}
