//! What an operator wants to know about a plug-in before trusting it.

use std::collections::BTreeMap;
use std::fmt;

use plimsoll_grants::{HostPattern, borrowed};
use serde::Serialize;

use crate::config::Entry;
use crate::egress::Grant;
use crate::manifest::Manifest;
use crate::plugin::Kind;

/// A host that the plug-in wishes to talk to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct HostReport {
    /// The host, as in a grant.
    pub host: String,
    /// Whether it is granted; none: no grants were looked at.
    pub granted: Option<bool>,
}

/// A credential that the plug-in wishes to use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CredentialReport {
    /// The slot that its requests name.
    pub slot: String,
    /// How requests are signed.
    pub kind: String,
    /// Hosts that it is for.
    pub hosts: Vec<String>,
    /// Whether it is granted for all of them; none: no grants were looked at.
    pub granted: Option<bool>,
}

/// Everything about a plug-in that can be said without running it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// Its name: the configured one, or what it calls itself.
    pub name: String,
    /// Its version, as it says.
    pub version: Option<String>,
    /// What it is.
    pub kind: Option<Kind>,
    /// Version of the contract that it was built for.
    pub contract: Option<String>,
    /// Size of the component.
    pub size_bytes: usize,
    /// Digest of the component, in hex.
    pub sha256: String,
    /// Hosts that it wishes to talk to.
    pub hosts: Vec<HostReport>,
    /// Credentials that it wishes to use.
    pub credentials: Vec<CredentialReport>,
    /// Hosts that are granted although it does not wish for them.
    pub unasked_hosts: Vec<String>,
    /// What it imports.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
    /// Memory limit.
    pub memory_mib: usize,
    /// Longest call that changes nothing, in seconds.
    pub read_seconds: u64,
    /// Longest call that changes the cloud, in seconds.
    pub write_seconds: u64,
    /// The file that grants; none: no grants were looked at.
    pub grants_file: Option<String>,
    /// Works, but one should know.
    pub warnings: Vec<String>,
    /// Why it cannot be used; empty: it can.
    pub problems: Vec<String>,
    /// What to do about the problems.
    pub fix: Option<String>,
}

impl Report {
    /// Whether it can be used.
    pub fn is_usable(&self) -> bool {
        self.problems.is_empty()
    }

    /// Compares what the manifest wishes for with what is granted.
    pub(crate) fn wishes(&mut self, manifest: &Manifest, entry: Option<&Entry>) {
        let mut wished = vec![];
        for text in &manifest.hosts {
            let wish = match Grant::parse(text, true) {
                Ok(wish) => wish,
                Err(error) => {
                    self.warnings.push(format!("its manifest wishes for the host {text:?}, but {error}"));
                    continue;
                }
            };
            let granted = entry.map(|entry| entry.hosts.iter().any(|grant| grant.includes(&wish)));
            self.hosts.push(HostReport { host: wish.to_string(), granted });
            wished.push(wish);
        }
        for wish in &manifest.credentials {
            let granted = entry.map(|entry| {
                entry.credentials.get(&wish.slot).is_some_and(|credential| {
                    wish.hosts
                        .iter()
                        .all(|host| credential.hosts.iter().any(|granted| granted == host || covers(granted, host)))
                })
            });
            let (slot, kind, hosts) = (wish.slot.clone(), wish.kind.clone(), wish.hosts.clone());
            self.credentials.push(CredentialReport { slot, kind, hosts, granted });
        }
        for grant in entry.into_iter().flat_map(|entry| &entry.hosts) {
            if !wished.iter().any(|wish| wish.includes(grant) || grant.includes(wish)) {
                self.unasked_hosts.push(grant.to_string());
            }
        }
    }
}

fn covers(granted: &str, host: &str) -> bool {
    let pattern = HostPattern::parse(granted);
    pattern.is_ok_and(|pattern| url::Host::parse(host).is_ok_and(|host| pattern.covers(&borrowed(&host))))
}

/// `wasi:clocks/{monotonic-clock, wall-clock}`: one entry for each package.
fn by_package(names: &[String]) -> String {
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in names {
        let name = name.split('@').next().unwrap_or(name);
        let (package, interface) = name.split_once('/').unwrap_or(("", name));
        packages.entry(package).or_default().push(interface);
    }
    let show = |(package, interfaces): (&str, Vec<&str>)| match (package, interfaces.as_slice()) {
        ("", names) => names.join(", "),
        (package, [one]) => format!("{package}/{one}"),
        (package, several) => format!("{package}/{{{}}}", several.join(", ")),
    };
    packages.into_iter().map(show).collect::<Vec<_>>().join(", ")
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

fn yes_no(granted: bool) -> &'static str {
    if granted { "yes" } else { "no  → what needs it will be refused" }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(version) = &self.version {
            write!(f, " {version}")?;
        }
        if let Some(kind) = self.kind {
            write!(f, "   {kind}")?;
        }
        if let Some(contract) = &self.contract {
            write!(f, "   {} {contract}", crate::abi::v0::PACKAGE)?;
        }
        write!(f, "   {}   sha256:{}…", size(self.size_bytes), self.sha256.get(..12).unwrap_or_default())?;

        let mut wishes = vec![];
        let file = self.grants_file.as_deref().unwrap_or_default();
        for wish in &self.hosts {
            let granted = wish.granted.map(|granted| format!("granted by {file}: {}", yes_no(granted)));
            wishes.push((wish.host.clone(), granted));
        }
        for wish in &self.credentials {
            let only =
                if wish.hosts.is_empty() { String::new() } else { format!(", only for {}", wish.hosts.join(", ")) };
            let granted = wish.granted.map(|granted| format!("granted by {file}: {}", yes_no(granted)));
            wishes.push((format!("credential {:?} ({}){only}", wish.slot, wish.kind), granted));
        }
        for host in &self.unasked_hosts {
            wishes.push((host.clone(), Some(format!("granted by {file}, though it does not wish for it"))));
        }
        let width = wishes.iter().map(|(wish, _)| wish.chars().count()).max().unwrap_or(0);
        for (index, (wish, granted)) in wishes.iter().enumerate() {
            let label = if index == 0 { "wishes" } else { "" };
            match granted {
                Some(granted) => write!(f, "\n  {label:<9}  {wish:<width$}   {granted}")?,
                None => write!(f, "\n  {label:<9}  {wish}")?,
            }
        }
        if wishes.is_empty() {
            write!(f, "\n  {:<9}  nothing from the network", "wishes")?;
        }
        let imports = by_package(&self.imports);
        write!(f, "\n  {:<9}  {}", "imports", if imports.is_empty() { "nothing" } else { &imports })?;
        write!(f, "\n  {:<9}  {}", "exports", by_package(&self.exports))?;
        write!(
            f,
            "\n  {:<9}  {} MiB memory, {} s a read, {} s a write",
            "limits", self.memory_mib, self.read_seconds, self.write_seconds
        )?;
        for warning in &self.warnings {
            write!(f, "\n  {:<9}  {warning}", "note")?;
        }
        if !self.is_usable() {
            write!(f, "\n{}", self.refusal())?;
        }
        Ok(())
    }
}

impl Report {
    /// Why it cannot be used, and what to do.
    pub(crate) fn refusal(&self) -> String {
        let role = self.kind.map_or("a plugin", Kind::with_article);
        let mut text = format!("plugin {:?} cannot be used as {role}", self.name);
        for problem in &self.problems {
            text.push_str("\n  ");
            text.push_str(problem);
        }
        if let Some(fix) = &self.fix {
            text.push_str("\n  fix: ");
            text.push_str(fix);
        }
        text
    }
}
