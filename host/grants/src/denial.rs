//! A request that was refused: what the guest, the operator and the log get to know.

use std::fmt;

use serde::Serialize;

use crate::address::ClosedAddress;
use crate::grant::Grant;

/// Longest path in a message.
const MOST_PATH: usize = 48;

/// Why a request was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A method that changes the connection, or an unknown one.
    Method,
    /// The address is very long.
    TooLong,
    /// It is no address.
    NoAddress,
    /// Neither `https` nor `http`.
    Scheme,
    /// The address holds a user name or password.
    UserInfo,
    /// No entry of `hosts` covers it.
    NoGrant {
        /// The entry that would.
        entry: String,
        /// Whether the request is encrypted.
        encrypted: bool,
    },
    /// The address is not public, and not opened.
    Address(ClosedAddress),
    /// Very many headers.
    TooManyHeaders,
    /// The guest brought its own `authorization`.
    Authorization,
    /// A header that is the host's to set.
    Header(http::HeaderName),
    /// The guest named two credentials.
    TwoSlots,
    /// There is no credential of this name.
    UnknownSlot {
        /// Its name.
        slot: String,
        /// The host that it was meant for.
        host: String,
    },
    /// The credential may not be used for this API action.
    Action {
        /// The credential.
        slot: String,
        /// The action; empty: none is named.
        action: String,
    },
    /// The credential may be used for this API action, but not with this method and path.
    Route {
        /// The credential.
        slot: String,
        /// The action.
        action: String,
        /// Method and path.
        route: String,
    },
    /// The request does not fit the way in which it would be signed.
    Unsignable(String),
    /// The credential may not be used for this host.
    SlotElsewhere {
        /// Its name.
        slot: String,
        /// The host that it was meant for.
        host: String,
    },
}

impl Refusal {
    fn reason(&self) -> String {
        match self {
            Self::Method => "this method is not passed on".to_owned(),
            Self::TooLong => "the address is too long".to_owned(),
            Self::NoAddress => "this is no address".to_owned(),
            Self::Scheme => "it is neither https nor http".to_owned(),
            Self::UserInfo => {
                "the address holds a user name or password; credentials are granted, not carried".to_owned()
            }
            Self::NoGrant { .. } => "no grant covers it".to_owned(),
            Self::Address(closed) => closed.to_string(),
            Self::TooManyHeaders => "it has too many headers, or too long ones".to_owned(),
            Self::Authorization => {
                "it brought its own authorization; a plug-in names a credential slot, and the host signs".to_owned()
            }
            Self::Header(name) => format!("it brought the header {name}, which only the host sets"),
            Self::Action { slot, action } if action.is_empty() => {
                format!(
                    "the credential {slot:?} is granted for some API actions only, and it names none in x-acs-action"
                )
            }
            Self::Action { slot, action } => format!("the credential {slot:?} is not granted for the action {action}"),
            Self::Route { slot, action, route } => {
                format!("the credential {slot:?} is granted for the action {action}, but not as {route}")
            }
            Self::Unsignable(reason) => reason.clone(),
            Self::TwoSlots => "it names two credentials".to_owned(),
            Self::UnknownSlot { slot, .. } => format!("it names the credential {slot:?}, which is not granted"),
            Self::SlotElsewhere { slot, host } => format!("the credential {slot:?} is not granted for {host}"),
        }
    }

    /// Keys below the plug-in's entry, and what to add there. `insecure_http` as the entry has it now.
    fn fix(&self, insecure_http: bool) -> Option<(String, String)> {
        match self {
            Self::NoGrant { entry, encrypted } if *encrypted || insecure_http => {
                Some(("hosts".to_owned(), format!("- {entry}")))
            }
            Self::NoGrant { entry, .. } => Some((
                "hosts".to_owned(),
                format!("- {entry}   (and beside hosts:  insecure-http: true, as it is not encrypted)"),
            )),
            Self::Address(closed) => {
                let prefix = if closed.address.is_ipv4() { 32 } else { 128 };
                Some(("cidrs".to_owned(), format!("- {}/{prefix}", closed.address)))
            }
            Self::UnknownSlot { slot, host } => Some((
                "credentials".to_owned(),
                format!("{slot}: {{kind: bearer, file: /path/to/token, hosts: [{host}]}}"),
            )),
            Self::Action { slot, action } if !action.is_empty() => {
                Some((format!("credentials.{slot}.actions"), format!("- {action}")))
            }
            Self::Route { slot, action, route } => {
                Some((format!("credentials.{slot}.actions"), format!("- {action} {route}")))
            }
            Self::SlotElsewhere { slot, host } => Some((format!("credentials.{slot}.hosts"), format!("- {host}"))),
            _ => None,
        }
    }
}

/// A request that was refused, for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Denial {
    /// Who asked.
    pub plugin: String,
    /// With which method.
    pub method: String,
    /// For what; without the query, which may hold private data.
    pub url: String,
    /// Why it was refused.
    pub reason: String,
    /// What is granted.
    pub granted: Vec<String>,
    /// File with the grants; empty if there is none.
    pub file: String,
    /// Where to add something to allow it.
    pub fix_key: Option<String>,
    /// What to add there.
    pub fix_entry: Option<String>,
}

/// What the plug-in is granted, for the message.
#[derive(Clone, Copy, Debug)]
pub struct Granted<'a> {
    /// Places that it may talk to.
    pub hosts: &'a [Grant],
    /// Whether they may be without encryption.
    pub insecure_http: bool,
    /// File that says so; empty if there is none.
    pub file: &'a str,
}

impl Denial {
    /// A request of `plugin` that was refused.
    pub fn new(plugin: &str, method: &str, uri: &http::Uri, refusal: &Refusal, granted: Granted<'_>) -> Self {
        let (fix_key, fix_entry) = match refusal.fix(granted.insecure_http) {
            Some((key, entry)) => (Some(format!("plugins.{plugin}.{key}")), Some(entry)),
            None => (None, None),
        };
        Self {
            plugin: plugin.to_owned(),
            method: method.to_owned(),
            url: short(uri),
            reason: refusal.reason(),
            granted: granted.hosts.iter().map(ToString::to_string).collect(),
            file: granted.file.to_owned(),
            fix_key,
            fix_entry,
        }
    }
}

/// The address without user, query, and most of a long path.
fn short(uri: &http::Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or("https");
    let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let path = uri.path();
    let cut = path.floor_char_boundary(MOST_PATH);
    let kept = path.get(..cut).unwrap_or(path);
    let more = if kept.len() < path.len() || uri.query().is_some() { "…" } else { "" };
    format!("{scheme}://{authority}{kept}{more}")
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plugin, url, reason, granted, .. } = self;
        write!(f, "plugin {plugin:?} asked for {url} and was refused: {reason}")?;
        let file = if self.file.is_empty() { "the configuration" } else { &self.file };
        if granted.is_empty() {
            write!(f, "\n  {file} grants it no host")?;
        } else {
            write!(f, "\n  {file} grants it: {}", granted.join(", "))?;
        }
        if let (Some(key), Some(entry)) = (&self.fix_key, &self.fix_entry) {
            write!(f, "\n  to allow it, add under {key}:  {entry}")?;
        }
        Ok(())
    }
}
