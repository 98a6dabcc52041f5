//! What is wrong with an object, and in which field.

use std::borrow::Cow;
use std::fmt;

use crate::quantity::QuantityError;

/// One step into an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Segment {
    /// A field of an object or a key of a map.
    Key(Cow<'static, str>),
    /// An element of a list.
    Index(usize),
}

/// Where a field is within its object, outermost step first: `spec.containers[0].resources.requests.cpu`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FieldPath(Vec<Segment>);

impl FieldPath {
    /// The steps, outermost first.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Whether it is the object itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The same path seen from one level further out.
    pub fn under(mut self, segment: Segment) -> Self {
        self.0.insert(0, segment);
        self
    }
}

impl FromIterator<Segment> for FieldPath {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

/// Keys that are no plain names are put in brackets: `requests["nvidia.com/gpu"]`.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if !is_plain(key) => write!(f, "[{key:?}]")?,
                Segment::Key(key) if position == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// What is wrong with a value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Flaw {
    /// Not an amount.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// Not an effect of a taint.
    #[error("{0:?} is not a taint effect; expected NoSchedule, PreferNoSchedule or NoExecute")]
    TaintEffect(String),
    /// A port of a node that cannot be one.
    #[error("{0} is not a port number; expected 1 to 65535")]
    Port(i32),
    /// A slice of a template whose devices are not on its node.
    #[error("the devices of a template's slice are on its own node; give the template's name as nodeName")]
    SliceWithoutNode,
    /// Less than nothing.
    #[error("{0} is negative; expected an amount of 0 or more")]
    Negative(String),
    /// More than fits into the numbers that Kubernetes counts with.
    #[error("{0} is more than can be counted; expected less than 8Ei, or 8Pi of cpu")]
    TooMuch(String),
    /// A part of something that is counted in whole.
    #[error("{0} is not a whole number; expected one, as nobody can have a part of this resource")]
    Fraction(String),
    /// More is asked for than may be used.
    #[error("{request} is above the limit {limit}; expected a request that is not")]
    AboveLimit {
        /// What is asked for.
        request: String,
        /// The most that may be used.
        limit: String,
    },
    /// A number below the least that makes sense.
    #[error("{found} is too low; expected {least} or more")]
    TooLow {
        /// The number.
        found: i64,
        /// The least.
        least: i64,
    },
    /// A word that the field does not know.
    #[error("{found:?} is not known here; expected {}", choice(expected))]
    Word {
        /// The word.
        found: String,
        /// Those that the field knows.
        expected: &'static [&'static str],
    },
    /// Nothing, where there must be something.
    #[error("it is missing or empty; expected a text")]
    Empty,
    /// Values that an operator does not take.
    #[error("{operator} takes {expected}, found {}", quoted(found))]
    Values {
        /// The operator.
        operator: String,
        /// The values.
        found: String,
        /// What it takes.
        expected: &'static str,
    },
    /// Not the key of a label.
    #[error("{0:?} is not the key of a label; expected a name such as app or example.com/app")]
    LabelKey(String),
    /// Not the value of a label.
    #[error("{0:?} is not the value of a label; expected at most 63 letters, digits, dashes, dots or underscores")]
    LabelValue(String),
    /// A name that every object must have.
    #[error("the object has no name; give it one")]
    Nameless,
}

fn choice(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn quoted(values: &str) -> String {
    if values.is_empty() { "none".to_owned() } else { format!("{values:?}") }
}

/// An object that cannot be converted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{path}: {flaw}")]
pub struct ConvertError {
    /// The field.
    pub path: FieldPath,
    /// What is wrong with it.
    pub flaw: Flaw,
}

impl From<Flaw> for ConvertError {
    fn from(flaw: Flaw) -> Self {
        Self { path: FieldPath::default(), flaw }
    }
}

impl From<QuantityError> for ConvertError {
    fn from(error: QuantityError) -> Self {
        Flaw::from(error).into()
    }
}

impl ConvertError {
    /// The same error seen from one level further out.
    pub(crate) fn under(self, segment: Segment) -> Self {
        Self { path: self.path.under(segment), flaw: self.flaw }
    }
}

/// Says where an error happened, from the inside out. Costs nothing while there is none.
pub(crate) trait Within {
    /// It was in this field.
    fn field(self, name: &'static str) -> Self;
    /// It was under this key of a map.
    fn key(self, key: &str) -> Self;
    /// It was in this element of a list.
    fn index(self, index: usize) -> Self;
}

impl<T> Within for Result<T, ConvertError> {
    fn field(self, name: &'static str) -> Self {
        self.map_err(|error| error.under(Segment::Key(Cow::Borrowed(name))))
    }
    fn key(self, key: &str) -> Self {
        self.map_err(|error| error.under(Segment::Key(Cow::Owned(key.to_owned()))))
    }
    fn index(self, index: usize) -> Self {
        self.map_err(|error| error.under(Segment::Index(index)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_like_field_paths() {
        let error: Result<(), ConvertError> = Err(Flaw::Port(70_000).into());
        let error = error.key("nvidia.com/gpu").field("requests").index(3).field("containers").field("spec");
        assert_eq!(
            error.unwrap_err().to_string(),
            "spec.containers[3].requests[\"nvidia.com/gpu\"]: 70000 is not a port number; expected 1 to 65535"
        );
    }
}
