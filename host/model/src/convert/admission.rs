//! What the API server would refuse or fill in, as far as decisions depend on it (`k8s.io/kubernetes/pkg/apis/*/validation`
//! and `defaults.go`, 1.37). Objects that people write into files may never have met it.
//!
//! Objects of a real cluster pass unchanged: they have been through the same checks.

mod amounts;
mod devices;
mod node;
mod pod;
mod selectors;
mod storage;
mod workloads;

use k8s_openapi::api::core::v1 as core;

use super::error::{ConvertError, Flaw, Within};

/// What a check says.
type Checked = Result<(), ConvertError>;

/// An object that may never have met the API server.
pub(super) trait Admit {
    /// Fills in what the API server fills in, and refuses what it refuses.
    ///
    /// # Errors
    ///
    /// If an amount is one that nothing can have, or a word is none of those that its field knows.
    fn admit(&mut self) -> Checked;
}

impl Admit for core::Namespace {
    fn admit(&mut self) -> Checked {
        Ok(())
    }
}

impl Admit for core::ConfigMap {
    fn admit(&mut self) -> Checked {
        Ok(())
    }
}

/// Checks every item of a list.
fn each<T>(items: &[T], check: impl Fn(&T) -> Checked) -> Checked {
    items.iter().enumerate().try_for_each(|(index, item)| check(item).index(index))
}

/// Checks every item of a list that may be absent.
fn each_of<T>(items: Option<&Vec<T>>, check: impl Fn(&T) -> Checked) -> Checked {
    items.map_or(Ok(()), |items| each(items, check))
}

/// A word that must be one of these.
fn word(found: &str, expected: &'static [&'static str]) -> Checked {
    match expected.contains(&found) {
        true => Ok(()),
        false => Err(Flaw::Word { found: found.to_owned(), expected }.into()),
    }
}

/// A word that may be left out.
fn optional_word(found: Option<&str>, expected: &'static [&'static str]) -> Checked {
    found.filter(|found| !found.is_empty()).map_or(Ok(()), |found| word(found, expected))
}

/// A text that must not be empty.
fn filled(text: &str) -> Checked {
    if text.is_empty() { Err(Flaw::Empty.into()) } else { Ok(()) }
}

/// A number that must not be below another.
fn at_least(least: i64, found: Option<impl Into<i64>>) -> Checked {
    match found.map(Into::into) {
        Some(found) if found < least => Err(Flaw::TooLow { found, least }.into()),
        _ => Ok(()),
    }
}
