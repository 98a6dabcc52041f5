//! From the cloud's codes to classes and scopes. A code decides first, then a pattern, then the HTTP status.

mod table;

use plimsoll_guest::{ErrorClass, ErrorScope, PluginError};
use std::time::Duration;

pub(crate) use self::table::Reach;

/// Longest text of the cloud that is passed on, in characters.
const LONGEST_MESSAGE: usize = 400;
/// When another activity is in the way, it is worth trying again after this time.
const CONFLICT_WAIT: Duration = Duration::from_secs(10);

/// What the cloud said when it refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal<'a> {
    /// Its code.
    pub(crate) code: &'a str,
    /// Its words.
    pub(crate) message: &'a str,
    /// HTTP status; 0 if there was none.
    pub(crate) status: u16,
    /// What was asked, as in a RAM policy; empty for something that went wrong later.
    pub(crate) action: &'a str,
    /// The group that it was about.
    pub(crate) group: Option<&'a str>,
}

/// The tables, with the operator's additions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classifier {
    overrides: Vec<(String, ErrorClass)>,
}

impl Classifier {
    /// Codes of the operator come before all others; they may hold `*`.
    pub(crate) fn with_overrides(overrides: Vec<(String, ErrorClass)>) -> Self {
        Self { overrides }
    }

    /// Class and reach of a code.
    pub(crate) fn class(&self, code: &str, status: u16) -> (ErrorClass, Reach) {
        let builtin = || {
            let exact = table::EXACT.iter().find(|(known, ..)| *known == code);
            let found = exact.or_else(|| table::PATTERNS.iter().find(|(pattern, ..)| fits(pattern, code)));
            found.map(|(_, class, reach)| (*class, *reach))
        };
        let by_operator = self.overrides.iter().find(|(pattern, _)| fits(pattern, code)).map(|(_, class)| *class);
        match by_operator {
            Some(class) => (class, builtin().map_or(Reach::Group, |(_, reach)| reach)),
            None => builtin().unwrap_or_else(|| by_status(status)),
        }
    }

    /// The failure as the contract has it.
    pub(crate) fn error(&self, refusal: &Refusal<'_>) -> PluginError {
        let (class, reach) = self.class(refusal.code, refusal.status);
        let error = PluginError::new(class, words(refusal, class)).with_code(refusal.code).about(scope(refusal, reach));
        let busy = matches!(refusal.code, "ScalingActivityInProgress" | "IDEMPOTENCE_PROCESSING");
        let error = if busy { error.with_retry_after(CONFLICT_WAIT) } else { error };
        // The first request with this token still runs.
        if refusal.code == "IDEMPOTENCE_PROCESSING" { error.with_unknown_outcome() } else { error }
    }
}

fn by_status(status: u16) -> (ErrorClass, Reach) {
    match status {
        401 | 403 => (ErrorClass::Auth, Reach::Provider),
        429 => (ErrorClass::Throttled, Reach::Provider),
        500.. => (ErrorClass::Transient, Reach::Provider),
        _ => (ErrorClass::Other, Reach::Group),
    }
}

/// Whether a text fits a pattern in which `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    true
}

fn scope(refusal: &Refusal<'_>, reach: Reach) -> ErrorScope {
    let group = || refusal.group.map_or(ErrorScope::Provider, |group| ErrorScope::Group(group.to_owned()));
    match reach {
        Reach::Provider => ErrorScope::Provider,
        Reach::Group => group(),
        Reach::Type => instance_type_in(refusal.message).map_or_else(group, ErrorScope::InstanceType),
    }
}

/// A machine type that a message of the cloud names, such as `ecs.g7.xlarge`.
pub(crate) fn instance_type_in(message: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
    let mut words = message.split(|c| !is_part(c)).map(|word| word.trim_matches(['.', '-']));
    words.find(|word| word.starts_with("ecs.") && word.split('.').count() >= 3).map(str::to_owned)
}

/// A zone of a region that a message of the cloud names, such as `cn-hangzhou-h`.
pub(crate) fn zone_in(message: &str, region: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let mut words = message.split(|c| !is_part(c)).map(|word| word.trim_matches('-'));
    let is_zone = |word: &&str| word.strip_prefix(region).is_some_and(|rest| matches!(rest.len(), 1..=3));
    words.find(is_zone).map(str::to_owned)
}

/// The cloud's words, with what helps and without what is secret.
fn words(refusal: &Refusal<'_>, class: ErrorClass) -> String {
    let mut message = refusal.message;
    if refusal.code.contains("Signature") {
        // What follows is the signed text, with the key's name and the token in it.
        message = message.split("server string to sign").next().unwrap_or_default().trim();
    }
    let mut text = String::new();
    if !refusal.action.is_empty() {
        text = format!("{} was refused: ", refusal.action);
    }
    text.extend(message.chars().take(LONGEST_MESSAGE));
    if class == ErrorClass::Auth && refusal.code.starts_with("InvalidTimeStamp") {
        text += "; check the clock of this machine";
    } else if class == ErrorClass::Auth && !refusal.action.is_empty() && is_permission(refusal.code) {
        text += &format!("; allow {} in the RAM policy", refusal.action);
    }
    text
}

fn is_permission(code: &str) -> bool {
    ["Forbidden", "NoPermission"].iter().any(|start| code.starts_with(start))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
