//! Label sets.

use serde::{Deserialize, Serialize};

use crate::symbol::Symbol;

/// Keys with their values, sorted by key symbol, each key once.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Labels(Box<[(Symbol, Symbol)]>);

impl Labels {
    /// From pairs in any order; of equal keys the last wins.
    pub fn new(pairs: impl IntoIterator<Item = (Symbol, Symbol)>) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.reverse();
        pairs.sort_by_key(|&(key, _)| key);
        pairs.dedup_by_key(|&mut (key, _)| key);
        Self(pairs.into())
    }

    /// Value of a key.
    #[inline]
    pub fn get(&self, key: Symbol) -> Option<Symbol> {
        let at = self.0.binary_search_by_key(&key, |&(key, _)| key).ok()?;
        self.0.get(at).map(|&(_, value)| value)
    }

    /// Whether all pairs of `other` are here too.
    pub fn contains(&self, other: &Labels) -> bool {
        other.iter().all(|(key, value)| self.get(key) == Some(value))
    }

    /// All pairs, by key symbol.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Symbol, Symbol)> {
        self.0.iter().copied()
    }

    /// The same set with one key set to a value.
    pub fn with(&self, key: Symbol, value: Symbol) -> Self {
        Self::new(self.iter().chain([(key, value)]))
    }

    /// The same set without some keys.
    pub fn without(&self, drop: impl Fn(Symbol) -> bool) -> Self {
        Self(self.0.iter().copied().filter(|&(key, _)| !drop(key)).collect())
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::Symbols;

    #[test]
    fn the_last_of_equal_keys_wins() {
        let mut symbols = Symbols::default();
        let [a, b, x, y] = ["a", "b", "x", "y"].map(|text| symbols.intern(text));
        let labels = Labels::new([(b, x), (a, x), (b, y)]);
        assert_eq!(labels.get(a), Some(x));
        assert_eq!(labels.get(b), Some(y));
        assert_eq!(labels.len(), 2);
        assert!(labels.contains(&Labels::new([(b, y)])));
        assert!(!labels.contains(&Labels::new([(b, x)])));
        assert_eq!(labels.without(|key| key == a), Labels::new([(b, y)]));
        assert_eq!(labels.with(a, y).get(a), Some(y));
    }
}
