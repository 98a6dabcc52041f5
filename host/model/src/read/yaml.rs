//! YAML, item by item.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::{Error, Spanned};

use crate::convert::{FieldPath, Segment, plain};

use super::error::{Place, Problem, ReadError};
use super::json::{ListHead, MOST_LISTS};
use super::locate::{Origin, Written};
use super::text::Document;
use super::{Body, Head, Reader};

/// Deeper than any object that is read, and shallow enough for the stack of any thread.
const MOST_NESTED: usize = 48;

/// How much aliases may repeat, in tokens. Nobody writes so much by hand, and programs write no aliases.
const MOST_REPEATED: usize = 100_000;

/// How YAML is read. Sizes are not limited, since dumps of clusters are large; nesting and aliases are, since small texts
/// can mean enormous things by them.
pub(super) fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_depth: MOST_NESTED,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MOST_REPEATED },
        emit_comments: false,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    }
}

/// Reads a document and gives how many objects there were.
pub(super) fn read(reader: &mut Reader, source: &Arc<str>, document: &Document<'_>) -> Result<usize, Box<ReadError>> {
    let content = document.content();
    let first_line = content.lines().next().unwrap_or("");
    if !first_line.contains(':') && !first_line.starts_with('{') {
        let start = first_line.chars().take(40).collect();
        return Err(ReadError::at(Place::new(source, document.content_line()), Problem::Foreign { start }));
    }
    let mut failure = None;
    let taken = serde_saphyr::with_deserializer_from_str_with_options(document.text, options(), |deserializer| {
        Root { taking: Taking { reader, source, document, failure: &mut failure, taken: 0 } }.deserialize(deserializer)
    });
    match (failure, taken) {
        (Some(failure), _) => Err(failure),
        (None, Ok(taken)) => Ok(taken),
        (None, Err(error)) => Err(syntax_error(source, document, &error)),
    }
}

fn syntax_error(source: &Arc<str>, document: &Document<'_>, error: &serde_saphyr::Error) -> Box<ReadError> {
    let location = error.location();
    let place = Place {
        column: location.map(|location| location.column()),
        ..Place::new(source, document.line + location.map_or(0, |location| location.line().saturating_sub(1)))
    };
    let mut cause = error.without_snippet();
    while let Error::AliasError { error, .. } = cause {
        cause = error;
    }
    let problem = match cause {
        Error::Budget { .. } | Error::AliasReplayLimitExceeded { .. } => Problem::Unbounded { depth: MOST_NESTED },
        Error::DuplicateMappingKey { key: Some(key), .. } => Problem::KeyTwice { key: key.clone() },
        other => {
            let text = other.render_with_formatter(&serde_saphyr::UserMessageFormatter);
            let message = text.lines().next().unwrap_or("");
            let message = message.split_once(" at line ").map_or(message, |(message, _)| message);
            Problem::Syntax { format: "YAML", message: plain(message) }
        }
    };
    ReadError::at(place, problem)
}

/// Takes objects while the parser goes on.
struct Taking<'r, 'd> {
    reader: &'r mut Reader,
    source: &'r Arc<str>,
    document: &'r Document<'d>,
    /// The first object that could not be taken; the parser is stopped then.
    failure: &'r mut Option<Box<ReadError>>,
    taken: usize,
}

impl<'r> Taking<'r, '_> {
    /// Takes an object, or the items of a list; `line` counts from the start of the document, from 1.
    fn take<E: serde::de::Error>(
        &mut self,
        tree: Value,
        line: u64,
        path: FieldPath,
        head: Head,
        depth: usize,
    ) -> Result<(), E> {
        if let Some(list) = ListHead::of(&head.api_version, &head.kind) {
            return self.take_list(tree, line, &path, &list, depth + 1);
        }
        let origin = self.origin(line, path);
        let outcome = if tree.is_object() {
            self.reader.take(head, Body::Tree(tree), &origin)
        } else {
            Err(ReadError::at(origin.place(), Problem::NotAnObject { found: describe(&tree) }))
        };
        self.taken += 1;
        outcome.map_err(|error| self.stop(error))
    }

    /// Takes the items of a list within a list.
    fn take_list<E: serde::de::Error>(
        &mut self,
        mut tree: Value,
        line: u64,
        path: &FieldPath,
        list: &ListHead,
        depth: usize,
    ) -> Result<(), E> {
        if depth == MOST_LISTS {
            let error = ReadError::at(self.origin(line, path.clone()).place(), Problem::Nested { limit: MOST_LISTS });
            return Err(self.stop(error));
        }
        let items = match tree.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        for (index, item) in items.into_iter().enumerate() {
            let mut head = item.as_object().map(head).unwrap_or_default();
            list.fill(&mut head);
            self.take(item, line, item_path(path, index), head, depth)?;
        }
        Ok(())
    }

    fn origin(&self, line: u64, path: FieldPath) -> Origin<'r> {
        Origin {
            source: self.source,
            line: self.document.line + line.saturating_sub(1),
            text: Written::Yaml { document: self.document.text, line: self.document.line, path },
        }
    }

    /// Keeps an error and makes the one that stops the parser.
    fn stop<E: serde::de::Error>(&mut self, error: Box<ReadError>) -> E {
        *self.failure = Some(error);
        E::custom("stopped")
    }
}

fn describe(tree: &Value) -> String {
    match tree {
        Value::Array(_) => "a list".to_owned(),
        other => other.to_string().chars().take(40).collect(),
    }
}

fn head(fields: &Map<String, Value>) -> Head {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let metadata = fields.get("metadata");
    Head {
        api_version: text(fields.get("apiVersion")).unwrap_or_default(),
        kind: text(fields.get("kind")).unwrap_or_default(),
        namespace: text(metadata.and_then(|metadata| metadata.get("namespace"))),
        name: text(metadata.and_then(|metadata| metadata.get("name"))),
    }
}

fn item_path(list: &FieldPath, index: usize) -> FieldPath {
    let item = [Segment::Key("items".into()), Segment::Index(index)];
    list.segments().iter().cloned().chain(item).collect()
}

/// The object of a document: its fields, or the items of a list as they come.
struct Root<'r, 'd> {
    taking: Taking<'r, 'd>,
}

impl<'de> DeserializeSeed<'de> for Root<'_, '_> {
    type Value = usize;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Root<'_, '_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with apiVersion and kind")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<usize, A::Error> {
        let mut fields = Map::new();
        let mut first_line = None;
        let mut is_list = false;
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            first_line.get_or_insert(key.referenced.line());
            if key.value == "items" {
                let known = head(&fields);
                let list = known.is_marked().then(|| ListHead::of(&known.api_version, &known.kind));
                is_list = map.next_value_seed(Items { taking: &mut self.taking, list })?;
            } else {
                fields.insert(key.value, map.next_value()?);
            }
        }
        let own = head(&fields);
        if !is_list {
            self.taking.take(Value::Object(fields), first_line.unwrap_or(1), FieldPath::default(), own, 0)?;
        }
        Ok(self.taking.taken)
    }
}

/// The items of a list, taken as they come. Gives whether they are items of a list at all.
struct Items<'t, 'r, 'd> {
    taking: &'t mut Taking<'r, 'd>,
    /// What the object around the items says of them, once that is known; none in it: it is no list.
    list: Option<Option<ListHead>>,
}

impl Items<'_, '_, '_> {
    /// Completes what an item does not say itself; false: the object around it is no list.
    fn complete<E: serde::de::Error>(&mut self, head: &mut Head) -> Result<bool, E> {
        if self.list.is_none() {
            let document = self.taking.document;
            let marks = marks(document).map_err(|error| {
                let error = syntax_error(self.taking.source, document, &error);
                self.taking.stop(error)
            })?;
            self.list = Some(ListHead::of(&marks.api_version, &marks.kind));
        }
        let list = self.list.as_ref().and_then(Option::as_ref);
        if let Some(list) = list {
            list.fill(head);
        }
        Ok(list.is_some())
    }
}

/// What a document says of itself, wherever it says so.
fn marks(document: &Document<'_>) -> Result<Marks, Error> {
    serde_saphyr::with_deserializer_from_str_with_options(document.text, options(), |deserializer| {
        Marks::deserialize(deserializer)
    })
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Marks {
    api_version: String,
    kind: String,
}

impl<'de> DeserializeSeed<'de> for Items<'_, '_, '_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_unit<E: serde::de::Error>(mut self) -> Result<bool, E> {
        self.complete(&mut Head::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<bool, A::Error> {
        let mut index = 0;
        while let Some(item) = items.next_element::<Spanned<Value>>()? {
            let mut head = item.value.as_object().map(head).unwrap_or_default();
            let is_foreign = matches!(self.list, Some(None));
            if is_foreign || (!head.is_marked() && !self.complete(&mut head)?) {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(false);
            }
            let path = item_path(&FieldPath::default(), index);
            self.taking.take(item.value, item.referenced.line(), path, head, 0)?;
            index += 1;
        }
        if index == 0 { self.complete(&mut Head::default()) } else { Ok(true) }
    }
}
