//! What an operation may be asked with, and what it was asked with.

use std::collections::{BTreeMap, BTreeSet};

use super::error::ApiError;
use super::probes::Probes;

/// A bound that is known, or one that the facts leave open.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// Known.
    Is(i64),
    /// How many groups can be asked for at once.
    GroupIds,
    /// Longest page of instances.
    InstancePage,
}

impl Bound {
    fn value(self, probes: &Probes) -> i64 {
        match self {
            Self::Is(value) => value,
            Self::GroupIds => probes.group_ids_at_once,
            Self::InstancePage => probes.instance_page,
        }
    }
}

/// What a parameter looks like.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// Whole number within bounds.
    Number(i64, Bound),
    /// `true` or `false`. One of the vendor's own clients writes `True`, so case is free.
    Flag,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// `Name.1`, `Name.2`, …, at most so many.
    List(Bound),
    /// `Name.1.Field`, …, at most so many.
    Records(i64, &'static [&'static str]),
}

/// A parameter of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name.
    pub name: &'static str,
    /// Its name in API version 2022-02-22, if that is another.
    pub newer: &'static str,
    /// Its form.
    pub kind: Kind,
    /// Whether it must be there.
    pub required: bool,
}

/// An optional parameter.
pub const fn optional(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, newer: name, kind, required: false }
}

/// A required parameter.
pub const fn required(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, newer: name, kind, required: true }
}

impl Parameter {
    /// The same with another name in the newer version.
    pub const fn newer(mut self, newer: &'static str) -> Self {
        self.newer = newer;
        self
    }
}

/// Parameters, checked, under the names of the older version.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parameters {
    texts: BTreeMap<String, String>,
    lists: BTreeMap<String, Vec<String>>,
    records: BTreeMap<String, Vec<BTreeMap<String, String>>>,
    /// Asked in API version 2022-02-22.
    pub newer: bool,
}

impl Parameters {
    /// Check what was sent against what is known.
    ///
    /// # Errors
    /// The first wrong thing. All of them are faults of the client.
    pub fn check(
        sent: &BTreeMap<String, String>,
        known: &[Parameter],
        newer: bool,
        probes: &Probes,
    ) -> Result<Self, ApiError> {
        let mut checked = Self { newer, ..Self::default() };
        let mut used = BTreeSet::new();
        for parameter in known {
            checked.take(sent, *parameter, probes, &mut used)?;
        }
        match sent.keys().find(|name| !used.contains(*name)) {
            Some(name) => Err(ApiError::bad("InvalidParameter", format!("the parameter {name} is not known"))),
            None => Ok(checked),
        }
    }

    fn take(
        &mut self,
        sent: &BTreeMap<String, String>,
        parameter: Parameter,
        probes: &Probes,
        used: &mut BTreeSet<String>,
    ) -> Result<(), ApiError> {
        let name = if self.newer { parameter.newer } else { parameter.name };
        let found = match parameter.kind {
            Kind::List(most) => {
                let list = list(sent, name, used)?;
                at_most(name, list.len(), most.value(probes))?;
                let found = !list.is_empty();
                self.lists.insert(parameter.name.to_owned(), list);
                found
            }
            Kind::Records(most, fields) => {
                let records = records(sent, name, fields, used)?;
                at_most(name, records.len(), most)?;
                let found = !records.is_empty();
                self.records.insert(parameter.name.to_owned(), records);
                found
            }
            kind => match sent.get(name) {
                Some(value) => {
                    used.insert(name.to_owned());
                    scalar(name, value, kind, probes)?;
                    self.texts.insert(parameter.name.to_owned(), value.clone());
                    true
                }
                None => false,
            },
        };
        if parameter.required && !found {
            let message = format!(
                "The input parameter \"{name}\" that is mandatory for processing this request is not supplied."
            );
            return Err(ApiError::bad("MissingParameter", message));
        }
        Ok(())
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|text| text.parse().ok())
    }

    /// A flag.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).map(is_true)
    }

    /// A list; empty if it was not sent.
    pub fn list(&self, name: &str) -> &[String] {
        self.lists.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Records; empty if they were not sent.
    pub fn records(&self, name: &str) -> &[BTreeMap<String, String>] {
        self.records.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

fn is_true(text: &str) -> bool {
    text.eq_ignore_ascii_case("true")
}

fn invalid(name: &str, why: &str) -> ApiError {
    ApiError::bad(&format!("InvalidParameter.{name}"), format!("the value of {name} is not valid: {why}"))
}

fn at_most(name: &str, length: usize, most: i64) -> Result<(), ApiError> {
    let fits = i64::try_from(length).is_ok_and(|length| length <= most);
    fits.then_some(()).ok_or_else(|| invalid(name, &format!("{length} entries, at most {most} are allowed")))
}

fn scalar(name: &str, value: &str, kind: Kind, probes: &Probes) -> Result<(), ApiError> {
    match kind {
        Kind::Text if value.is_empty() => Err(invalid(name, "it is empty; leave it out instead")),
        Kind::Number(least, most) => {
            let most = most.value(probes);
            let inside = value.parse::<i64>().is_ok_and(|number| (least..=most).contains(&number));
            inside
                .then_some(())
                .ok_or_else(|| invalid(name, &format!("{value:?} is not a number from {least} to {most}")))
        }
        Kind::Flag if !is_true(value) && !value.eq_ignore_ascii_case("false") => {
            Err(invalid(name, &format!("{value:?} is neither true nor false")))
        }
        Kind::OneOf(choices) if !choices.contains(&value) => {
            Err(invalid(name, &format!("{value:?} is not one of {}", choices.join(", "))))
        }
        _ => Ok(()),
    }
}

/// Index of `Prefix.N` or `Prefix.N.rest`, and the rest. None for other names.
fn indexed<'a>(name: &'a str, prefix: &str) -> Option<(&'a str, &'a str)> {
    let rest = name.strip_prefix(prefix)?.strip_prefix('.')?;
    Some(rest.split_once('.').unwrap_or((rest, "")))
}

fn index(name: &str, text: &str) -> Result<usize, ApiError> {
    let number = text.parse::<usize>().ok().filter(|number| *number > 0 && number.to_string() == text);
    number.ok_or_else(|| ApiError::bad("InvalidParameter", format!("{name} is not numbered from 1")))
}

fn list(sent: &BTreeMap<String, String>, prefix: &str, used: &mut BTreeSet<String>) -> Result<Vec<String>, ApiError> {
    let mut entries = BTreeMap::new();
    for (name, value) in sent {
        if let Some((number, "")) = indexed(name, prefix) {
            entries.insert(index(name, number)?, value.clone());
            used.insert(name.clone());
        }
    }
    gapless(prefix, entries)
}

fn records(
    sent: &BTreeMap<String, String>,
    prefix: &str,
    fields: &[&str],
    used: &mut BTreeSet<String>,
) -> Result<Vec<BTreeMap<String, String>>, ApiError> {
    let mut entries: BTreeMap<usize, BTreeMap<String, String>> = BTreeMap::new();
    for (name, value) in sent {
        if let Some((number, field)) = indexed(name, prefix)
            && fields.contains(&field)
        {
            entries.entry(index(name, number)?).or_default().insert(field.to_owned(), value.clone());
            used.insert(name.clone());
        }
    }
    gapless(prefix, entries)
}

fn gapless<T>(prefix: &str, entries: BTreeMap<usize, T>) -> Result<Vec<T>, ApiError> {
    let gap = entries.keys().enumerate().find(|(position, number)| position + 1 != **number);
    match gap {
        Some((position, number)) => {
            let message = format!("{prefix}.{number} is there and {prefix}.{} is not", position + 1);
            Err(ApiError::bad("InvalidParameter", message))
        }
        None => Ok(entries.into_values().collect()),
    }
}
