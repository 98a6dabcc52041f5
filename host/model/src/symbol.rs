//! Interned strings.

use serde::{Deserialize, Serialize};

use std::num::NonZeroU32;

use rustc_hash::FxBuildHasher;
use string_interner::StringInterner;
use string_interner::backend::StringBackend;

/// A string of one [`Symbols`] table. Equal symbols of one table are equal strings; the order is that of arrival, not of
/// the alphabet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Symbol(NonZeroU32);

impl Symbol {
    /// Position in the table, dense from 0; for arrays that are indexed by symbol.
    #[inline]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// A symbol that no table gives out, and whose text is empty: the name of something that does not exist yet. Equal
    /// numbers are equal names. [`index`](Self::index) is far beyond every table, as long as the number is not.
    pub const fn nameless(number: u32) -> Self {
        match NonZeroU32::new(u32::MAX - number) {
            Some(number) => Self(number),
            None => Self(NonZeroU32::MIN),
        }
    }

    const fn at(index: u32) -> Self {
        match NonZeroU32::new(index + 1) {
            Some(number) => Self(number),
            None => Self(NonZeroU32::MAX),
        }
    }
}

impl string_interner::Symbol for Symbol {
    fn try_from_usize(index: usize) -> Option<Self> {
        u32::try_from(index).ok()?.checked_add(1).and_then(NonZeroU32::new).map(Self)
    }
    fn to_usize(self) -> usize {
        self.index()
    }
}

/// Every string that the model holds, once. Only grows.
#[derive(Clone, Debug)]
pub struct Symbols {
    table: StringInterner<StringBackend<Symbol>, FxBuildHasher>,
}

macro_rules! known {
    ($($(#[$doc:meta])* $name:ident = $text:literal),* $(,)?) => {
        /// Symbols that every table holds, so that rules can compare with them without a look-up.
        pub mod known {
            use super::Symbol;
            #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "only counts the constants below")]
            enum Position { $($name),* }
            $($(#[$doc])* pub const $name: Symbol = Symbol::at(Position::$name as u32);)*
        }
        const KNOWN: &[&str] = &[$($text),*];
    };
}

known! {
    /// The empty string.
    EMPTY = "",
    /// Label and topology key of a node's own name.
    HOSTNAME = "kubernetes.io/hostname",
    /// Label of the zone.
    ZONE = "topology.kubernetes.io/zone",
    /// Label of the region.
    REGION = "topology.kubernetes.io/region",
    /// Older label of the zone.
    BETA_ZONE = "failure-domain.beta.kubernetes.io/zone",
    /// Older label of the region.
    BETA_REGION = "failure-domain.beta.kubernetes.io/region",
    /// Label of the CPU architecture.
    ARCH = "kubernetes.io/arch",
    /// Label of the operating system.
    OS = "kubernetes.io/os",
    /// Label of the machine type.
    INSTANCE_TYPE = "node.kubernetes.io/instance-type",
    /// Taint that a cordoned node carries, and that a pod must tolerate to land there.
    UNSCHEDULABLE = "node.kubernetes.io/unschedulable",
    /// Taint of a node that the autoscaler is removing.
    TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler",
    /// Soft taint of a node that the autoscaler finds unneeded.
    DELETION_CANDIDATE = "DeletionCandidateOfClusterAutoscaler",
    /// The wildcard host address of a port.
    ANY_ADDRESS = "0.0.0.0",
    /// Protocol of a port that names none.
    TCP = "TCP",
    /// Field that node selector terms may name.
    METADATA_NAME = "metadata.name",
    /// Namespace of system pods.
    KUBE_SYSTEM = "kube-system",
    /// Namespace of objects that name none.
    DEFAULT = "default",
    /// Name of the scheduler of pods that name none.
    DEFAULT_SCHEDULER = "default-scheduler",
    /// Label that the autoscaler puts on template nodes.
    TEMPLATE_NODE = "cluster-autoscaler.kubernetes.io/template-node",
    /// The text `true`.
    TRUE = "true",
}

impl Default for Symbols {
    fn default() -> Self {
        let mut table = StringInterner::with_hasher(FxBuildHasher);
        for text in KNOWN {
            table.get_or_intern_static(text);
        }
        Self { table }
    }
}

impl Symbols {
    /// The symbol of a text, made if it is new.
    pub fn intern(&mut self, text: &str) -> Symbol {
        self.table.get_or_intern(text)
    }

    /// The symbol of a text, if some object has it.
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.table.get(text)
    }

    /// The text of a symbol of this table; empty for a symbol of another table that is out of range.
    #[inline]
    pub fn text(&self, symbol: Symbol) -> &str {
        self.table.resolve(symbol).unwrap_or("")
    }

    /// All strings in the order of their symbols.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.table.iter().map(|(_, text)| text)
    }

    /// How many strings there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Never true: the [`known`] symbols are always there.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_symbols_have_their_texts() {
        let symbols = Symbols::default();
        assert_eq!(symbols.text(known::EMPTY), "");
        assert_eq!(symbols.text(known::HOSTNAME), "kubernetes.io/hostname");
        assert_eq!(symbols.text(known::TRUE), "true");
        assert_eq!(symbols.len(), KNOWN.len());
    }

    #[test]
    fn nameless_symbols_are_distinct_and_have_no_text() {
        let mut symbols = Symbols::default();
        let named = symbols.intern("a");
        let (first, second) = (Symbol::nameless(0), Symbol::nameless(1));
        assert_ne!(first, second);
        assert_ne!(first, named);
        assert_eq!(first, Symbol::nameless(0));
        assert_eq!(symbols.text(first), "");
    }

    #[test]
    fn equal_texts_share_a_symbol() {
        let mut symbols = Symbols::default();
        let first = symbols.intern("a");
        assert_eq!(symbols.intern("a"), first);
        assert_ne!(symbols.intern("b"), first);
        assert_eq!(symbols.find("a"), Some(first));
        assert_eq!(symbols.find("c"), None);
    }
}
