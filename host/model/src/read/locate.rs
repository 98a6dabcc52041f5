//! From a field path to a line of the file. Only done when there is an error to report.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::convert::{FieldPath, ObjectError, Segment, json_message};

use super::Head;
use super::error::{ObjectName, Place, Problem, ReadError};
use super::text::newlines;
use super::yaml;

/// Where an object comes from.
pub(super) struct Origin<'a> {
    /// Name of the file.
    pub(super) source: &'a Arc<str>,
    /// Line in which the object starts.
    pub(super) line: u64,
    /// Its text.
    pub(super) text: Written<'a>,
}

/// The text that a field can be looked up in.
pub(super) enum Written<'a> {
    /// The object as JSON.
    Json(&'a str),
    /// The document of YAML that it is in, the line in which that starts, and the path to the object there.
    Yaml { document: &'a str, line: u64, path: FieldPath },
}

impl Origin<'_> {
    /// Where the object starts.
    pub(super) fn place(&self) -> Place {
        Place::new(self.source, self.line)
    }

    /// Where a field is, or the nearest thing around it that is there.
    pub(super) fn place_of(&self, path: &FieldPath) -> Place {
        let line = match &self.text {
            Written::Json(text) => {
                self.line + newlines(text.as_bytes().get(..json_offset(text, path)).unwrap_or_default())
            }
            Written::Yaml { document, line, path: start } => {
                let whole: Vec<_> = start.segments().iter().chain(path.segments()).cloned().collect();
                yaml_line(document, &whole).map_or(self.line, |found| line + found - 1)
            }
        };
        Place::new(self.source, line)
    }

    /// An error about the object as a whole.
    pub(super) fn error(&self, head: &Head, problem: Problem) -> Box<ReadError> {
        let object = (!head.kind.is_empty()).then(|| name(head));
        Box::new(ReadError { place: self.place(), object, field: FieldPath::default(), problem })
    }

    /// An error about a field.
    pub(super) fn error_at(&self, head: &Head, field: FieldPath, problem: Problem) -> Box<ReadError> {
        Box::new(ReadError { place: self.place_of(&field), object: Some(name(head)), field, problem })
    }

    /// An error that the parser met in the object's text.
    pub(super) fn text_error(&self, head: &Head, error: &serde_json::Error) -> Box<ReadError> {
        let place = Place::new(self.source, self.line + (error.line() as u64).saturating_sub(1));
        let problem = Problem::Shape { message: json_message(error) };
        Box::new(ReadError { place, ..*self.error(head, problem) })
    }

    /// An error of the conversion.
    pub(super) fn field_error(&self, head: &Head, error: ObjectError) -> Box<ReadError> {
        match error {
            ObjectError::Shape { path, message } => self.error_at(head, path, Problem::Shape { message }),
            ObjectError::Value(error) => self.error_at(head, error.path, error.flaw.into()),
        }
    }
}

/// Which object something is about.
pub(super) fn name(head: &Head) -> ObjectName {
    ObjectName { kind: head.kind.clone(), namespace: head.namespace.clone(), name: head.name.clone() }
}

/// Position of a field in the text of a JSON object.
fn json_offset(text: &str, path: &FieldPath) -> usize {
    let mut found = text;
    for segment in path.segments() {
        let inner = match segment {
            Segment::Key(key) => serde_json::from_str::<BTreeMap<String, &RawValue>>(found)
                .ok()
                .and_then(|fields| fields.get(key.as_ref()).map(|value| value.get())),
            Segment::Index(index) => serde_json::from_str::<Vec<&RawValue>>(found)
                .ok()
                .and_then(|items| items.get(*index).map(|value| value.get())),
        };
        match inner {
            Some(inner) => found = inner,
            None => break,
        }
    }
    // Both are parts of the same text, the one within the other.
    (found.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// Line of a field in a YAML document, from 1; of what is nearest around it, if it is not there.
fn yaml_line(document: &str, path: &[Segment]) -> Option<u64> {
    (0..=path.len()).rev().find_map(|depth| {
        let path = path.get(..depth)?;
        serde_saphyr::with_deserializer_from_str_with_options(document, yaml::options(), |deserializer| {
            Step { path }.deserialize(deserializer)
        })
        .ok()
        .flatten()
    })
}

/// Follows a path and gives the line of its end.
struct Step<'a> {
    path: &'a [Segment],
}

impl<'de> DeserializeSeed<'de> for Step<'_> {
    type Value = Option<u64>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<u64>, D::Error> {
        if self.path.is_empty() {
            let here = serde_saphyr::Spanned::<IgnoredAny>::deserialize(deserializer)?;
            return Ok(Some(here.referenced.line()));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Step<'_> {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<u64>, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            match self.path.split_first() {
                Some((Segment::Key(wanted), path)) if *wanted == key => found = map.next_value_seed(Step { path })?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Option<u64>, A::Error> {
        let Some((Segment::Index(wanted), path)) = self.path.split_first() else {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(None);
        };
        for _ in 0..*wanted {
            items.next_element::<IgnoredAny>()?;
        }
        let found = items.next_element_seed(Step { path })?.flatten();
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}
