//! The expanders of a chain: embedded ones, each of which a file of the same name replaces while the host runs.
//!
//! A file that cannot be used changes nothing: what served goes on. A file that is gone gives its place back to the
//! embedded expander, or to nobody; then the next in the chain decides.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use plimsoll_core::ranking::{RankRequest, Ranking, RankingFailure};

use crate::config::PluginConfig;
use crate::engine::PluginHost;
use crate::expander::{Expander, ExpanderOptions, RoleError};
use crate::folder::{blocking, source};
use crate::limits::Limits;
use crate::load::LoadError;
use crate::observer::{Event, Level};
use crate::plugin::{Kind, Origin, Source, sha256};

/// Where expanders come from.
#[derive(Clone, Debug, Default)]
pub struct LibraryOptions {
    /// Embedded expanders: name and component.
    pub embedded: Vec<(&'static str, &'static [u8])>,
    /// Folder with `NAME.wasm`.
    pub folder: Option<PathBuf>,
    /// Files, settings and limits by name.
    pub config: PluginConfig,
    /// A file that takes the place of an expander that serves is compiled while that goes on serving, and found ready at a
    /// later look. Without it a look takes as long as the compiler.
    pub in_background: bool,
}

/// A named set of expanders.
pub struct Library {
    host: PluginHost,
    options: LibraryOptions,
    slots: RwLock<BTreeMap<String, Slot>>,
    /// One look at the files at a time.
    looking: tokio::sync::Mutex<()>,
}

/// The place of one expander.
#[derive(Clone, Default)]
struct Slot {
    serving: Option<Arc<Expander>>,
    /// What was found at the last look and could not be used; told once.
    rejected: Option<String>,
    /// Why nothing serves.
    missing: String,
    /// What is being compiled.
    coming: Option<Coming>,
}

/// An expander that is being compiled.
#[derive(Clone)]
struct Coming {
    sha256: String,
    done: Arc<OnceLock<Result<Arc<Expander>, String>>>,
}

/// What a look at the files found for one expander.
enum Found {
    File(Source),
    /// There is a file, and it cannot be read.
    Bad(LoadError),
    NoFile,
}

impl Library {
    /// Loads the expanders that a chain names. One that cannot be had is not an error: the chain goes on without it,
    /// and the observer is told.
    pub async fn open(host: &PluginHost, chain: &[String], options: LibraryOptions) -> Self {
        let slots = chain.iter().map(|name| (name.clone(), Slot::default())).collect();
        let library =
            Self { host: host.clone(), options, slots: RwLock::new(slots), looking: tokio::sync::Mutex::default() };
        library.poll().await;
        library
    }

    /// What serves under a name now.
    pub fn get(&self, name: &str) -> Option<Arc<Expander>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).get(name).and_then(|slot| slot.serving.clone())
    }

    /// Asks an expander.
    ///
    /// # Errors
    /// If there is none of this name, or it gives no usable answer.
    pub async fn rank(&self, name: &str, request: &RankRequest) -> Ranking {
        match self.get(name) {
            Some(expander) => expander.rank(request).await,
            None => Err(RankingFailure::Missing { name: name.to_owned(), reason: self.why_missing(name) }),
        }
    }

    fn why_missing(&self, name: &str) -> String {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(name).map_or_else(|| "it is not in the chain".to_owned(), |slot| slot.missing.clone())
    }

    /// Looks at all files and takes over what changed. The driver calls it now and then; it is cheap if nothing did.
    pub async fn poll(&self) {
        let _alone = self.looking.lock().await;
        let names: Vec<_> = {
            let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
            slots.iter().map(|(name, slot)| (name.clone(), slot.clone())).collect()
        };
        for (name, slot) in names {
            let slot = self.look(&name, slot).await;
            self.slots.write().unwrap_or_else(PoisonError::into_inner).insert(name, slot);
        }
    }

    /// The file that should serve: the one that the configuration names, or the one in the folder.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let configured = self.options.config.plugins.get(name).and_then(|entry| entry.file.clone());
        let file_name = || format!("{name}.wasm");
        configured.or_else(|| self.options.folder.as_ref().map(|folder| folder.join(file_name())))
    }

    async fn find(&self, name: &str) -> Found {
        let Some(path) = self.path(name) else { return Found::NoFile };
        let owned = name.to_owned();
        let found = blocking(move || match path.try_exists() {
            Ok(false) => Ok(None),
            _ => source(&owned, &path, Some(Kind::Expander)).map(Some),
        });
        match found.await {
            Ok(Some(source)) => Found::File(source),
            Ok(None) => Found::NoFile,
            Err(error) => Found::Bad(error),
        }
    }

    async fn look(&self, name: &str, slot: Slot) -> Slot {
        let source = match self.find(name).await {
            Found::File(source) => source,
            Found::Bad(error) => {
                return self.reject(name, slot, error.to_string(), &error.origin, error.to_string()).await;
            }
            Found::NoFile => return self.without_file(name, slot).await,
        };
        let digest = sha256(&source.bytes);
        let serving = slot.serving.as_ref().map(|expander| expander.plugin());
        if serving.is_some_and(|plugin| plugin.sha256() == digest && *plugin.origin() == source.origin) {
            return Slot { rejected: None, ..slot };
        }
        if slot.rejected.as_deref() == Some(digest.as_str()) {
            return slot;
        }
        let origin = source.origin.clone();
        let taken = match slot.coming.as_ref().filter(|coming| coming.sha256 == digest) {
            Some(coming) => match coming.done.get() {
                Some(taken) => taken.clone(),
                None => return slot,
            },
            None if self.options.in_background && slot.serving.is_some() => {
                return Slot { coming: Some(self.begin(source, digest)), ..slot };
            }
            None => self.take(source).await,
        };
        match taken {
            Ok(expander) => self.serve(expander),
            Err(reason) => self.reject(name, Slot { coming: None, ..slot }, digest, &origin, reason).await,
        }
    }

    fn begin(&self, source: Source, sha256: String) -> Coming {
        let coming = Coming { sha256, done: Arc::default() };
        let (taken, done) = (self.take(source), coming.done.clone());
        tokio::spawn(async move {
            // Nobody else sets it.
            let _ = done.set(taken.await);
        });
        coming
    }

    /// The file cannot be used: what served goes on, or the embedded one does.
    async fn reject(&self, name: &str, slot: Slot, mark: String, origin: &Origin, reason: String) -> Slot {
        if slot.rejected.as_deref() == Some(mark.as_str()) {
            return slot;
        }
        let event = Event::Rejected { plugin: name.to_owned(), origin: origin.to_string(), reason: reason.clone() };
        self.host.announce(event);
        if slot.serving.is_some() {
            return Slot { rejected: Some(mark), ..slot };
        }
        let slot = self.embedded(name, slot, &reason).await;
        Slot { rejected: Some(mark), ..slot }
    }

    async fn without_file(&self, name: &str, slot: Slot) -> Slot {
        match slot.serving.as_ref().map(|expander| expander.plugin().origin().clone()) {
            Some(Origin::BuiltIn) => Slot { rejected: None, ..slot },
            Some(Origin::File(path)) => {
                let reason = format!("{} is gone", path.display());
                let slot = self.embedded(name, Slot::default(), &reason).await;
                let to = slot.serving.as_ref().map(|expander| expander.plugin().origin().to_string());
                self.host.announce(Event::FellBack { plugin: name.to_owned(), to, reason });
                slot
            }
            None if slot.missing.is_empty() => {
                let names: Vec<_> = self.options.embedded.iter().map(|(name, _)| *name).collect();
                let built_in = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
                let file = match self.path(name) {
                    Some(path) => format!("there is no file {}", path.display()),
                    None => "no folder for plug-ins is set".to_owned(),
                };
                self.embedded(name, slot, &format!("{file}, and built in are {built_in}")).await
            }
            None => slot,
        }
    }

    /// Puts the embedded expander in its place, if there is one.
    async fn embedded(&self, name: &str, slot: Slot, why_not_a_file: &str) -> Slot {
        let Some((_, bytes)) = self.options.embedded.iter().find(|(embedded, _)| *embedded == name) else {
            let missing = why_not_a_file.to_owned();
            // In the words of the answer to the first question, so that who hears both knows that it is one thing.
            let failure = RankingFailure::Missing { name: name.to_owned(), reason: missing.clone() };
            self.host.announce(Event::Warning { plugin: name.to_owned(), message: failure.to_string() });
            return Slot { serving: None, missing, ..slot };
        };
        let bytes = Cow::Borrowed(*bytes);
        let source = Source { name: name.into(), origin: Origin::BuiltIn, kind: Some(Kind::Expander), bytes };
        match self.take(source).await {
            Ok(expander) => self.serve(expander),
            Err(missing) => {
                let (plugin, origin) = (name.to_owned(), Origin::BuiltIn.to_string());
                self.host.announce(Event::Rejected { plugin, origin, reason: missing.clone() });
                Slot { serving: None, missing, ..slot }
            }
        }
    }

    fn serve(&self, expander: Arc<Expander>) -> Slot {
        let plugin = expander.plugin();
        self.host.announce(Event::Loaded {
            plugin: plugin.name().to_owned(),
            origin: plugin.origin().to_string(),
            sha256: plugin.sha256().to_owned(),
        });
        Slot { serving: Some(expander), ..Slot::default() }
    }

    /// Compiles and takes into service; needs nothing of `self` until it is done.
    fn take(&self, source: Source) -> impl Future<Output = Result<Arc<Expander>, String>> + Send + 'static {
        let (host, entry) = (self.host.clone(), self.options.config.entry(&source.name));
        let file = self.options.config.file.clone();
        async move {
            let plugin = host.load(source, Some((&file, &entry))).await.map_err(|error| error.to_string())?;
            let defaults = ExpanderOptions::default();
            let mut limits = defaults.limits;
            if entry.memory_mib.is_some() {
                limits = Limits { memory_bytes: Limits::of(&entry).memory_bytes, ..limits };
            }
            if entry.call_seconds.is_some() {
                limits = Limits { read: Limits::of(&entry).read, ..limits };
            }
            let options = ExpanderOptions { limits, settings: entry.settings.clone(), log_level: Level::Info };
            let expander = Expander::new(&host, &plugin, options).map_err(|error: RoleError| error.to_string())?;
            Ok(Arc::new(expander))
        }
    }
}
