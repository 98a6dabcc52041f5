//! Domains: which value of a topology key each node has, as small numbers.

use plimsoll_model::Symbol;
use rustc_hash::FxHashMap;

use super::base::NodeId;
use crate::table::{Id, Table, ids};

ids! {
    /// A topology key.
    pub(crate) KeyId;
    /// A value of one topology key.
    pub(crate) DomainId;
}

/// Domain of nodes that lack the key.
pub(crate) const NOWHERE: DomainId = DomainId(0);

/// One topology key.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) key: Symbol,
    domain: Table<NodeId, DomainId>,
    by_value: FxHashMap<Symbol, DomainId>,
}

impl Column {
    pub(crate) fn new(key: Symbol) -> Self {
        Self { key, domain: Table::default(), by_value: FxHashMap::default() }
    }

    /// Adds the next node, by its value of the key.
    pub(crate) fn push(&mut self, value: Option<Symbol>) {
        let next = DomainId::at(self.by_value.len() + 1);
        let domain = value.map_or(NOWHERE, |value| *self.by_value.entry(value).or_insert(next));
        self.domain.push(domain);
    }

    /// Takes the last node away. Its domain keeps its number.
    pub(crate) fn pop(&mut self) {
        self.domain.pop();
    }

    /// How many different values have been seen.
    pub(crate) fn domains(&self) -> usize {
        self.by_value.len()
    }
}

/// The columns of all topology keys that have been asked for.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    pub(crate) columns: Table<KeyId, Column>,
    by_key: FxHashMap<Symbol, KeyId>,
}

impl Topology {
    pub(crate) fn find(&self, key: Symbol) -> Option<KeyId> {
        self.by_key.get(&key).copied()
    }

    pub(crate) fn insert(&mut self, column: Column) -> KeyId {
        let key = column.key;
        let id = self.columns.push(column);
        self.by_key.insert(key, id);
        id
    }

    /// The node's domain; [`NOWHERE`] if it lacks the key.
    pub(crate) fn domain(&self, key: KeyId, node: NodeId) -> DomainId {
        self.columns[key].domain[node]
    }
}

/// A count per domain of one key. Dense while few domains are known, sparse otherwise.
#[derive(Debug)]
pub(crate) enum Counts {
    Dense(Table<DomainId, i64>),
    Sparse(FxHashMap<DomainId, i64>),
}

/// Up to so many domains a dense table is smaller than a hash table with a few entries.
const DENSE_DOMAINS: usize = 64;

impl Counts {
    pub(crate) fn new(column: &Column) -> Self {
        match column.domains() <= DENSE_DOMAINS {
            true => Self::Dense(Table::default()),
            false => Self::Sparse(FxHashMap::default()),
        }
    }

    pub(crate) fn get(&self, domain: DomainId) -> i64 {
        match self {
            Self::Dense(counts) => counts.get(domain).copied().unwrap_or(0),
            Self::Sparse(counts) => counts.get(&domain).copied().unwrap_or(0),
        }
    }

    /// Changes a count and gives the old and the new one.
    pub(crate) fn add(&mut self, domain: DomainId, delta: i64) -> (i64, i64) {
        let count = match self {
            Self::Dense(counts) => counts.grown(domain),
            Self::Sparse(counts) => counts.entry(domain).or_insert(0),
        };
        let old = *count;
        *count += delta;
        let new = *count;
        if let Self::Sparse(counts) = self
            && new == 0
        {
            counts.remove(&domain);
        }
        (old, new)
    }
}
