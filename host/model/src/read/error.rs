//! What is wrong with a file, and where.

use std::fmt;
use std::sync::Arc;

use crate::convert::{FieldPath, Flaw};
use crate::quantity::QuantityError;

use super::node_group;

/// A line of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Name of the file.
    pub source: Arc<str>,
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1, where the syntax breaks.
    pub column: Option<u64>,
}

impl Place {
    pub(super) fn new(source: &Arc<str>, line: u64) -> Self {
        Self { source: Arc::clone(source), line, column: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.line)?;
        self.column.map_or(Ok(()), |column| write!(f, ":{column}"))
    }
}

/// Which object something is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectName {
    /// Kind.
    pub kind: String,
    /// Namespace, if it lives in one.
    pub namespace: Option<String>,
    /// Name, if it has one.
    pub name: Option<String>,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.namespace, &self.name) {
            (_, None) => write!(f, "{} without a name", self.kind),
            (_, Some(name)) if self.kind == node_group::KIND => write!(f, "nodeGroup {name:?}"),
            (None, Some(name)) => write!(f, "{} {name}", self.kind),
            (Some(namespace), Some(name)) => write!(f, "{} {namespace}/{name}", self.kind),
        }
    }
}

/// A file that cannot be read, or that contradicts another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// Where.
    pub place: Place,
    /// In which object, once that is known.
    pub object: Option<ObjectName>,
    /// In which field of it.
    pub field: FieldPath,
    /// What is wrong.
    pub problem: Problem,
}

impl ReadError {
    pub(super) fn at(place: Place, problem: Problem) -> Box<Self> {
        Box::new(Self { place, object: None, field: FieldPath::default(), problem })
    }
}

impl std::error::Error for ReadError {}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        if !self.field.is_root() && !self.problem.names_its_field() {
            write!(f, "{}: ", self.field)?;
        }
        self.problem.fmt(f)
    }
}

/// What can be wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// Nothing is in the file.
    #[error("the file is empty; expected what kubectl get -o json or -o yaml prints (did that command fail?)")]
    Empty,
    /// UTF-16, which some shells write.
    #[error("the file is UTF-16 text; save it as UTF-8 and try again")]
    Utf16,
    /// Packed.
    #[error("the file is compressed with gzip; unpack it and try again")]
    Gzip,
    /// Bytes that are no text.
    #[error("the file is not text: byte {offset} is not UTF-8; expected JSON or YAML")]
    NotText {
        /// Position of the first bad byte, from 0.
        offset: usize,
    },
    /// Text, but of nothing that can be read.
    #[error(
        "this is neither JSON nor YAML of Kubernetes objects: it starts with {start:?}; expected apiVersion and kind"
    )]
    Foreign {
        /// How it starts.
        start: String,
    },
    /// The text breaks the rules of its format.
    #[error("this is not {format}: {message}; correct it, or fetch the objects again")]
    Syntax {
        /// JSON or YAML.
        format: &'static str,
        /// What the parser said.
        message: String,
    },
    /// A field that is given twice, of which only one can be meant.
    #[error("{key:?} is there twice; keep one of them")]
    KeyTwice {
        /// The field.
        key: String,
    },
    /// A small text that means something enormous.
    #[error("the YAML is nested more than {depth} deep, or repeats too much by aliases; write it out plainly")]
    Unbounded {
        /// How deep it may be nested.
        depth: usize,
    },
    /// JSON that stops early.
    #[error("the JSON ends in the middle of an object; the file was cut off, fetch the objects again")]
    CutOff,
    /// A value where an object must be.
    #[error("expected an object with apiVersion and kind, found {found}")]
    NotAnObject {
        /// What is there.
        found: String,
    },
    /// No API version or no kind.
    #[error("the object does not say its apiVersion and kind; expected for instance apiVersion: v1 and kind: Pod")]
    Unmarked,
    /// Lists in lists in lists.
    #[error("lists are nested more than {limit} deep; put the objects into one list")]
    Nested {
        /// How deep they may be.
        limit: usize,
    },
    /// One of our own kinds that there is not.
    #[error("{found} is not known; expected {} {}", node_group::API_VERSION, node_group::KIND)]
    UnknownOwnKind {
        /// API version and kind.
        found: String,
    },
    /// A field that does not have the shape it must have.
    #[error("{message}")]
    Shape {
        /// What was found and expected.
        message: String,
    },
    /// Containers that ask for an impossible amount together.
    #[error("its containers together ask for more than can be counted; expected less than 8Ei, or 8Pi of cpu")]
    TooMuchTogether,
    /// A group without a name.
    #[error("it is empty; give the group a name")]
    EmptyName,
    /// A value of a Kubernetes object that cannot be read.
    #[error(transparent)]
    Value(#[from] Flaw),
    /// The same object twice.
    #[error("it is already in {first}; remove one of the two")]
    Duplicate {
        /// Where it was first.
        first: Place,
    },
    /// A size that is none.
    #[error("{field} {found} is not a size; set it to a whole number from 0 to 1000000")]
    Size {
        /// Field.
        field: &'static str,
        /// What it is.
        found: i64,
    },
    /// The greatest size is below the least.
    #[error("maxSize {max} is below minSize {min}; set maxSize to {min} or more")]
    SizeOrder {
        /// Least.
        min: u32,
        /// Greatest.
        max: u32,
    },
    /// The target is above the greatest size.
    #[error("targetSize {target} is above maxSize {max}; set maxSize to {target} or more, or a lower targetSize")]
    TargetAboveMax {
        /// Target.
        target: u32,
        /// Greatest.
        max: u32,
    },
    /// Several ways to say which nodes belong to a group.
    #[error("it has {first} and {second}; keep one of them")]
    TwoMemberships {
        /// One field.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// Pods or devices for a template that is not there.
    #[error("{field} belong to a template, and there is none; add a template or remove them")]
    PodsWithoutTemplate {
        /// Where they are.
        field: &'static str,
    },
    /// A price that is none.
    #[error("{found:?} is not a price; expected an amount of 0 or more such as \"0.40\"")]
    Price {
        /// What it is.
        found: String,
        /// Why it cannot be read; none: it is negative.
        error: Option<QuantityError>,
    },
    /// An option that does not exist for groups.
    #[error("{name:?} is not an option of a group; {}", suggestion(.nearest.as_deref()))]
    UnknownOption {
        /// What it is called.
        name: String,
        /// The option that is meant, as far as one can guess.
        nearest: Option<&'static str>,
    },
    /// A value that the option does not take.
    #[error("{found:?} is no value of this option; expected {expected}")]
    OptionValue {
        /// The value.
        found: String,
        /// What it takes.
        expected: &'static str,
    },
    /// A node in two groups.
    #[error("node {node} is in nodeGroup {other:?} ({first}) too; leave it in one of them")]
    TwoGroups {
        /// Node.
        node: String,
        /// The other group.
        other: String,
        /// Where the other group is.
        first: Place,
    },
}

impl Problem {
    /// Whether its text names the field in its own words.
    fn names_its_field(&self) -> bool {
        matches!(
            self,
            Self::Size { .. }
                | Self::SizeOrder { .. }
                | Self::TargetAboveMax { .. }
                | Self::TwoMemberships { .. }
                | Self::PodsWithoutTemplate { .. }
                | Self::UnknownOption { .. }
        )
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("did you mean {name}?"),
        None => format!("expected one of {}", node_group::option_names().collect::<Vec<_>>().join(", ")),
    }
}
