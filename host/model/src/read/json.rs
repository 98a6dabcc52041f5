//! JSON, item by item: no tree of the whole file is ever made.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::convert::{Kind, json_message};

use super::error::{Place, Problem, ReadError};
use super::locate::{Origin, Written};
use super::text::{Document, newlines};
use super::{Body, Head, Reader};

/// Lists may hold lists, but not without end.
pub(super) const MOST_LISTS: usize = 8;

/// The outermost fields of an object; everything else is only skimmed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline<'a> {
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
}

impl Outline<'_> {
    fn head(&self, of_list: Option<&ListHead>) -> Head {
        let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or("").to_owned();
        let metadata = self.metadata.as_ref();
        let mut head = Head {
            api_version: text(&self.api_version),
            kind: text(&self.kind),
            namespace: metadata.and_then(|metadata| metadata.namespace.as_deref().map(str::to_owned)),
            name: metadata.and_then(|metadata| metadata.name.as_deref().map(str::to_owned)),
        };
        if let Some(list) = of_list {
            list.fill(&mut head);
        }
        head
    }
}

/// What a typed list, such as a PodList, says of its items.
#[derive(Clone, Debug)]
pub(super) struct ListHead {
    api_version: String,
    kind: String,
}

impl ListHead {
    /// If `kind` is a list: what it says of its items. The kind is empty for lists of anything.
    pub(super) fn of(api_version: &str, kind: &str) -> Option<Self> {
        let item = kind.strip_suffix("List")?;
        if item.is_empty() {
            return Some(Self { api_version: String::new(), kind: String::new() });
        }
        Kind::find(api_version, item).map(|_| Self { api_version: api_version.to_owned(), kind: item.to_owned() })
    }

    /// Completes what an item does not say itself.
    pub(super) fn fill(&self, head: &mut Head) {
        if head.kind.is_empty() && head.api_version.is_empty() {
            head.kind.clone_from(&self.kind);
            head.api_version.clone_from(&self.api_version);
        }
    }
}

/// Reads all values of a document and gives how many objects there were.
pub(super) fn read(reader: &mut Reader, source: &Arc<str>, document: &Document<'_>) -> Result<usize, Box<ReadError>> {
    let content = document.content();
    let mut lines = Lines { source, text: content, at: 0, line: document.content_line() };
    let mut values = serde_json::Deserializer::from_str(content).into_iter::<Outline<'_>>();
    let mut objects = 0;
    loop {
        let rest = content.get(values.byte_offset()..).unwrap_or_default().trim_ascii_start();
        must_be_object(rest, &mut lines)?;
        let Some(outline) = values.next() else { return Ok(objects) };
        let outline = outline.map_err(|error| document_error(&error, &lines))?;
        let end = content.get(values.byte_offset()..).unwrap_or_default();
        let text = rest.get(..rest.len().saturating_sub(end.len())).unwrap_or_default();
        objects += object(reader, &mut lines, text, &outline, None, 0)?;
    }
}

fn must_be_object(text: &str, lines: &mut Lines<'_>) -> Result<(), Box<ReadError>> {
    match text.bytes().next() {
        None | Some(b'{') => Ok(()),
        Some(_) => {
            let line = lines.line_of(text);
            Err(ReadError::at(lines.place(line), Problem::NotAnObject { found: describe(text) }))
        }
    }
}

/// Takes an object, or the items of a list.
fn object(
    reader: &mut Reader,
    lines: &mut Lines<'_>,
    text: &str,
    outline: &Outline<'_>,
    of_list: Option<&ListHead>,
    depth: usize,
) -> Result<usize, Box<ReadError>> {
    let line = lines.line_of(text);
    let head = outline.head(of_list);
    if let Some(list) = ListHead::of(&head.api_version, &head.kind) {
        if depth == MOST_LISTS {
            return Err(ReadError::at(lines.place(line), Problem::Nested { limit: MOST_LISTS }));
        }
        return outline.items.map_or(Ok(0), |items| each(reader, lines, items.get(), &list, depth + 1));
    }
    reader.take(head, Body::Text(text), &Origin { source: lines.source, line, text: Written::Json(text) })?;
    Ok(1)
}

/// Takes one item of a list.
fn item(
    reader: &mut Reader,
    lines: &mut Lines<'_>,
    text: &str,
    list: &ListHead,
    depth: usize,
) -> Result<usize, Box<ReadError>> {
    must_be_object(text, lines)?;
    let outline = serde_json::from_str(text).map_err(|error| {
        let line = lines.line_of(text) + (error.line() as u64).saturating_sub(1);
        ReadError::at(lines.place(line), Problem::Shape { message: json_message(&error) })
    })?;
    object(reader, lines, text, &outline, Some(list), depth)
}

fn each(
    reader: &mut Reader,
    lines: &mut Lines<'_>,
    items: &str,
    list: &ListHead,
    depth: usize,
) -> Result<usize, Box<ReadError>> {
    let mut outcome = Ok(0);
    let visitor = Items(|text: &str| match item(reader, lines, text, list, depth) {
        Ok(count) => {
            outcome = outcome.as_ref().map_or(Ok(count), |sum| Ok(sum + count));
            true
        }
        Err(error) => {
            outcome = Err(error);
            false
        }
    });
    let walked = serde_json::Deserializer::from_str(items).deserialize_seq(visitor);
    if let (Err(_), Ok(_)) = (&walked, &outcome) {
        let line = lines.line_of(items);
        return Err(ReadError::at(lines.place(line), Problem::NotAnObject { found: describe(items) }));
    }
    outcome
}

/// Hands out the items of a list until told to stop.
struct Items<F>(F);

impl<'de, F: FnMut(&'de str) -> bool> Visitor<'de> for Items<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<&'de RawValue>()? {
            if !(self.0)(item.get()) {
                return Err(serde::de::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

/// Lines of parts of one text, counted as the parts go by.
struct Lines<'a> {
    source: &'a Arc<str>,
    text: &'a str,
    at: usize,
    line: u64,
}

impl Lines<'_> {
    /// Line in which a part of the text starts. Going back is possible, but costs a count from there.
    fn line_of(&mut self, part: &str) -> u64 {
        let at = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let between = |from: usize, to: usize| newlines(self.text.as_bytes().get(from..to).unwrap_or_default());
        self.line = if at >= self.at { self.line + between(self.at, at) } else { self.line - between(at, self.at) };
        self.at = at;
        self.line
    }

    fn place(&self, line: u64) -> Place {
        Place::new(self.source, line)
    }
}

/// An error that the parser met in the document; the document is read from its start on.
fn document_error(error: &serde_json::Error, lines: &Lines<'_>) -> Box<ReadError> {
    let first = lines.line - newlines(lines.text.as_bytes().get(..lines.at).unwrap_or_default());
    let place = lines.place(first + (error.line() as u64).saturating_sub(1));
    let exact = Place { column: Some(error.column() as u64), ..place.clone() };
    let message = json_message(error);
    match error.classify() {
        Category::Data => ReadError::at(place, Problem::Shape { message }),
        Category::Eof => ReadError::at(exact, Problem::CutOff),
        Category::Syntax | Category::Io => ReadError::at(exact, Problem::Syntax { format: "JSON", message }),
    }
}

fn describe(text: &str) -> String {
    match text.bytes().next() {
        Some(b'[') => "a list".to_owned(),
        Some(b'{') => "an object".to_owned(),
        _ => {
            let short: String = text.chars().take(40).collect();
            if short.len() < text.len() { format!("{short}…") } else { short }
        }
    }
}
