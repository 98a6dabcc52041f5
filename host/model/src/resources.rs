//! Amounts of what pods ask for and nodes offer.

use serde::{Deserialize, Serialize};

use crate::symbol::Symbol;

/// One amount per resource, in base units (cpu in thousandths of a core). The same record serves requests, capacity,
/// allocatable and what is left; the last may be negative on an over-committed node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Resources {
    /// Thousandths of a core.
    pub cpu_milli: i64,
    /// Bytes.
    pub memory_bytes: i64,
    /// Bytes.
    pub ephemeral_storage_bytes: i64,
    /// Pods: 1 for a pod's request, the pod limit for a node.
    pub pods: i64,
    /// Extended resources, huge pages and attachable volumes, sorted by symbol, each once.
    pub scalars: Box<[(Symbol, i64)]>,
}

impl Resources {
    /// Amount of a scalar resource; 0 if absent.
    #[inline]
    pub fn scalar(&self, name: Symbol) -> i64 {
        let at = self.scalars.binary_search_by_key(&name, |&(name, _)| name);
        at.ok().and_then(|at| self.scalars.get(at)).map_or(0, |&(_, amount)| amount)
    }

    /// Sorts scalars and adds up equal names.
    pub fn with_scalars(mut self, scalars: impl IntoIterator<Item = (Symbol, i64)>) -> Self {
        let mut sorted: Vec<(Symbol, i64)> = scalars.into_iter().collect();
        sorted.sort_by_key(|&(name, _)| name);
        sorted.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1 = first.1.saturating_add(later.1);
            }
            same
        });
        self.scalars = sorted.into();
        self
    }

    /// Whether some amount is the greatest number there is, and so may stand for more.
    pub fn is_beyond_count(&self) -> bool {
        let amounts = [self.cpu_milli, self.memory_bytes, self.ephemeral_storage_bytes, self.pods];
        amounts.into_iter().chain(self.scalars.iter().map(|&(_, amount)| amount)).any(|amount| amount == i64::MAX)
    }

    /// Sum, saturating.
    pub fn plus(&self, other: &Resources) -> Resources {
        self.combined(other, 1)
    }

    /// Difference, saturating; scalars that only `other` has become negative.
    pub fn minus(&self, other: &Resources) -> Resources {
        self.combined(other, -1)
    }

    /// Every amount times a count, saturating.
    pub fn times(&self, count: i64) -> Resources {
        Resources {
            cpu_milli: self.cpu_milli.saturating_mul(count),
            memory_bytes: self.memory_bytes.saturating_mul(count),
            ephemeral_storage_bytes: self.ephemeral_storage_bytes.saturating_mul(count),
            pods: self.pods.saturating_mul(count),
            scalars: self.scalars.iter().map(|&(name, amount)| (name, amount.saturating_mul(count))).collect(),
        }
    }

    fn combined(&self, other: &Resources, sign: i64) -> Resources {
        let add = |a: i64, b: i64| a.saturating_add(b.saturating_mul(sign));
        let scalars = self.scalars.iter().copied();
        let others = other.scalars.iter().map(|&(name, amount)| (name, amount.saturating_mul(sign)));
        Resources {
            cpu_milli: add(self.cpu_milli, other.cpu_milli),
            memory_bytes: add(self.memory_bytes, other.memory_bytes),
            ephemeral_storage_bytes: add(self.ephemeral_storage_bytes, other.ephemeral_storage_bytes),
            pods: add(self.pods, other.pods),
            scalars: Box::default(),
        }
        .with_scalars(scalars.chain(others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::Symbols;

    #[test]
    fn sums_and_differences_keep_scalars_sorted_and_unique() {
        let mut symbols = Symbols::default();
        let (gpu, disk) = (symbols.intern("gpu"), symbols.intern("disk"));
        let a = Resources { cpu_milli: 1, ..Resources::default() }.with_scalars([(disk, 1), (gpu, 2)]);
        let b = Resources { cpu_milli: 2, ..Resources::default() }.with_scalars([(gpu, 5)]);
        assert_eq!(a.plus(&b).scalar(gpu), 7);
        assert_eq!(a.plus(&b).cpu_milli, 3);
        assert_eq!(b.minus(&a).scalar(disk), -1);
        assert_eq!(a.times(3).scalar(gpu), 6);
        assert_eq!(a.scalar(symbols.intern("other")), 0);
    }
}
