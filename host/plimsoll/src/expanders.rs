//! The expanders of this process: the embedded ones, and files that replace them or add to them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_plugins::cache::CompileCache;
use plimsoll_plugins::clock::Clock;
use plimsoll_plugins::library::LibraryOptions;
use plimsoll_plugins::observer::{Event, Level, Observer, Requested};
use plimsoll_plugins::{HostOptions, Library, PluginConfig, PluginHost, RequestCounts};

use crate::exit::Exit;
use crate::terminal;

/// Adds the options that say where plug-ins are.
pub(crate) fn add_to(command: Command) -> Command {
    let heading = "Plug-ins";
    command
        .arg(
            Arg::new("plugin-dir")
                .long("plugin-dir")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help_heading(heading)
                .help("Folder with plug-ins; NAME.wasm replaces the built-in expander NAME, or adds a new one"),
        )
        .arg(
            Arg::new("plugin-config")
                .long("plugin-config")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help_heading(heading)
                .help("YAML file with what each plug-in is granted: hosts, credentials, settings, limits"),
        )
        .arg(
            Arg::new("plugin-cache")
                .long("plugin-cache")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help_heading(heading)
                .help("Folder, of this user alone, where compiled plug-ins are kept for the next start"),
        )
}

/// The host of all plug-ins of this process, with a clock of its own if none is given.
pub(crate) fn host(matches: &ArgMatches, clock: Option<Arc<dyn Clock>>, events: &Events) -> Result<PluginHost, Exit> {
    host_for(matches, clock, events, Arc::new(events.clone()))
}

/// The same, with somebody else in front of the events who hands them on.
pub(crate) fn host_for(
    matches: &ArgMatches,
    clock: Option<Arc<dyn Clock>>,
    events: &Events,
    observer: Arc<dyn Observer>,
) -> Result<PluginHost, Exit> {
    let mut options = HostOptions { observer, cache: cache(matches, events), ..HostOptions::default() };
    if let Some(clock) = clock {
        options.clock = clock;
    }
    PluginHost::new(options).context("cannot start").map_err(Exit::failed)
}

/// Where compiled plug-ins are kept. A folder that cannot be used costs time at each start, and nothing else.
fn cache(matches: &ArgMatches, events: &Events) -> Option<CompileCache> {
    let folder = matches.get_one::<PathBuf>("plugin-cache")?;
    CompileCache::open(folder)
        .inspect_err(|error| events.add(format!("--plugin-cache: {error}; plug-ins are compiled at each start")))
        .ok()
}

/// The grants that the operator gave; none if no file was named.
pub(crate) fn config(matches: &ArgMatches) -> Result<PluginConfig, Exit> {
    let Some(path) = matches.get_one::<PathBuf>("plugin-config") else { return Ok(PluginConfig::default()) };
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|error| Exit::bad_input(format!("{name}: cannot be read: {error}")))?;
    PluginConfig::parse(&name, &text).map_err(|error| Exit::bad_input(error.to_string()))
}

/// Where the expanders of this process come from.
pub(crate) fn library_options(matches: &ArgMatches) -> Result<LibraryOptions, Exit> {
    let folder = matches.get_one::<PathBuf>("plugin-dir").cloned();
    if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Exit::bad_input(format!("--plugin-dir: {} is no folder", folder.display())));
    }
    let embedded = plimsoll_bundled::EXPANDERS.to_vec();
    Ok(LibraryOptions { embedded, folder, config: config(matches)?, in_background: true })
}

/// Opens the expanders of a chain.
pub(crate) async fn open(matches: &ArgMatches, chain: &[String], events: &Events) -> Result<Library, Exit> {
    library(&host(matches, None, events)?, chain, matches, events).await
}

/// Opens the expanders of a chain in a host. Without any that can be used there would be no choice but by lot.
pub(crate) async fn library(
    host: &PluginHost,
    chain: &[String],
    matches: &ArgMatches,
    events: &Events,
) -> Result<Library, Exit> {
    let library = Library::open(host, chain, library_options(matches)?).await;
    if chain.iter().all(|name| library.get(name).is_none()) {
        let mut reasons = events.take();
        if chain.iter().any(|name| name == "grpc") {
            reasons.push("an expander behind gRPC is a plug-in here: see guest-sdk/templates/expander".to_owned());
        }
        return Err(Exit::bad_input(format!("--expander={}: {}", chain.join(","), reasons.join("; "))));
    }
    // A provider that is named may come later.
    let provider = matches.try_get_many::<String>("cloud-provider").ok().flatten();
    let named: Vec<String> = chain.iter().chain(provider.into_iter().flatten()).cloned().collect();
    for name in unknown_entries(&library_options(matches)?, &named) {
        events.add(format!(
            "the plug-in configuration grants something to {name:?}, but there is no plug-in of this name"
        ));
    }
    Ok(library)
}

/// Entries of the plug-in configuration that are about nothing: neither built in, nor a file, nor named by it.
fn unknown_entries(options: &LibraryOptions, chain: &[String]) -> Vec<String> {
    let is_known = |name: &str| {
        let built_in =
            plimsoll_bundled::EXPANDERS.iter().chain(plimsoll_bundled::PROVIDERS).any(|&(known, _)| known == name);
        let file = options.folder.as_ref().is_some_and(|folder| folder.join(format!("{name}.wasm")).exists());
        built_in || file || chain.iter().any(|known| known == name)
    };
    let entries = options.config.plugins.iter().filter(|(name, entry)| entry.file.is_none() && !is_known(name));
    entries.map(|(name, _)| name.clone()).collect()
}

/// What plug-ins did that an operator should know, in words, until it is taken; and how many requests they made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    texts: Arc<Mutex<Vec<String>>>,
    turns: Arc<Mutex<Vec<String>>>,
    requests: Arc<RequestCounts>,
}

impl Events {
    /// What happened since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.texts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Something that the program itself noticed.
    pub(crate) fn add(&self, text: String) {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// Something changed, for better or worse: each time that is news.
    pub(crate) fn turn(&self, text: String) {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// What changed since the last call.
    pub(crate) fn take_turns(&self) -> Vec<String> {
        std::mem::take(&mut self.turns.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Requests since the start.
    pub(crate) fn requests(&self) -> &RequestCounts {
        &self.requests
    }
}

impl Observer for Events {
    fn notice(&self, event: Event) {
        match &event {
            Event::BackingOff { plugin, failures: 1, .. } => {
                self.turn(format!("plugin {plugin:?} failed and rests; it is tried again after pauses that grow"));
            }
            Event::Recovered { plugin, failures } => {
                let failures = terminal::plural(*failures as usize, "failure");
                self.turn(format!("plugin {plugin:?} serves again, after {failures} in a row"));
            }
            event => self.texts.lock().unwrap_or_else(PoisonError::into_inner).extend(in_words(event)),
        }
    }

    fn requested(&self, request: Requested) {
        self.requests.count(request);
    }
}

/// An event in words; none if it is of no interest to an operator.
pub(crate) fn in_words(event: &Event) -> Option<String> {
    Some(match event {
        Event::Log { plugin, level: Level::Warn | Level::Error, message, .. } => {
            format!("plugin {plugin:?}: {message}")
        }
        Event::Log { .. }
        | Event::Started { .. }
        | Event::Loaded { .. }
        | Event::BackingOff { .. }
        | Event::Recovered { .. } => return None,
        Event::Denied { denial } => denial.to_string(),
        Event::CallFailed { reason, .. } | Event::Rejected { reason, .. } => reason.clone(),
        Event::Quarantined { plugin, failures, reason } => {
            format!("plugin {plugin:?} failed {failures} times lately and is not called any more: {reason}")
        }
        Event::FellBack { plugin, to: Some(to), reason } => format!("plugin {plugin:?}: {reason}; {to} serves instead"),
        Event::FellBack { plugin, to: None, reason } => format!("plugin {plugin:?}: {reason}; nothing serves instead"),
        Event::Warning { message, .. } => message.clone(),
    })
}
