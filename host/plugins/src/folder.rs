//! Plug-ins as files: read one, read a folder, notice that one changed.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{Entry, PluginConfig};
use crate::engine::PluginHost;
use crate::load::{LoadError, MOST_BYTES, Problem};
use crate::plugin::{Kind, Origin, Plugin, Source, sha256};

/// Ending of the files that are plug-ins.
const ENDING: &str = "wasm";

/// The plug-ins of a folder: name and path of every `NAME.wasm`, sorted. Hidden files are left out.
///
/// # Errors
/// If the folder cannot be read.
pub fn scan(folder: &Path) -> std::io::Result<Vec<(String, PathBuf)>> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let ends = path.extension().is_some_and(|ending| ending == ENDING);
        if ends && !name.starts_with('.') && path.is_file() {
            found.push((name.to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

/// Content of a file, unless it is too large to be looked at.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    let unreadable = |error: std::io::Error| Problem::Unreadable(error.to_string());
    let data = std::fs::metadata(path).map_err(unreadable)?;
    if !data.is_file() {
        return Err(Problem::Unreadable("it is not a regular file".to_owned()));
    }
    let size = data.len();
    if size > u64::try_from(MOST_BYTES).unwrap_or(u64::MAX) {
        return Err(Problem::TooLarge { bytes: size });
    }
    std::fs::read(path).map_err(unreadable)
}

/// A file as a source of a plug-in.
///
/// # Errors
/// If it cannot be read, or is too large.
pub fn source(name: &str, path: &Path, kind: Option<Kind>) -> Result<Source, LoadError> {
    let origin = Origin::File(path.to_owned());
    match read(path) {
        Ok(bytes) => Ok(Source { name: name.into(), origin, kind, bytes: Cow::Owned(bytes) }),
        Err(problem) => Err(LoadError { plugin: name.to_owned(), origin, problem }),
    }
}

impl PluginHost {
    /// Loads a plug-in from a file.
    ///
    /// # Errors
    /// If it cannot be read or used.
    pub async fn load_file(
        &self,
        name: &str,
        path: &Path,
        kind: Option<Kind>,
        entry: Option<(&str, &Entry)>,
    ) -> Result<Plugin, LoadError> {
        let (name, path) = (name.to_owned(), path.to_owned());
        self.load(blocking(move || source(&name, &path, kind)).await?, entry).await
    }

    /// Loads every plug-in of a folder; a bad file keeps no other from being loaded. What a file is, it says itself.
    ///
    /// # Errors
    /// If the folder cannot be read. Files that cannot be used are in the list.
    pub async fn load_folder(
        &self,
        folder: &Path,
        config: &PluginConfig,
    ) -> std::io::Result<Vec<Result<Plugin, LoadError>>> {
        let mut loaded = vec![];
        for (name, path) in scan(folder)? {
            let entry = config.entry(&name);
            loaded.push(self.load_file(&name, &path, entry.kind, Some((&config.file, &entry))).await);
        }
        Ok(loaded)
    }
}

/// Work that reads files or computes for long.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LoadError> + Send + 'static,
) -> Result<T, LoadError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => {
            Err(LoadError { plugin: String::new(), origin: Origin::BuiltIn, problem: Problem::Host(error.to_string()) })
        }
    }
}

/// Notices that the file of a plug-in changed. For a provider: what [`poll`](Self::poll) loads goes to
/// [`Provider::replace`](crate::Provider::replace).
#[derive(Debug)]
pub struct FileWatch {
    name: Arc<str>,
    path: PathBuf,
    kind: Kind,
    seen: String,
}

impl FileWatch {
    /// Watches the file that this plug-in was loaded from. None: it is no file.
    pub fn of(plugin: &Plugin) -> Option<Self> {
        let Origin::File(path) = plugin.origin() else { return None };
        Some(Self {
            name: plugin.name.clone(),
            path: path.clone(),
            kind: plugin.kind(),
            seen: plugin.sha256().to_owned(),
        })
    }

    /// Reads the file. None: it is as it was. A bad or missing file is told once, not at every look.
    pub async fn poll(
        &mut self,
        host: &PluginHost,
        entry: Option<(&str, &Entry)>,
    ) -> Option<Result<Plugin, LoadError>> {
        let (name, path, kind) = (self.name.clone(), self.path.clone(), self.kind);
        let source = match blocking(move || source(&name, &path, Some(kind))).await {
            Ok(source) => source,
            Err(error) => {
                let seen = std::mem::replace(&mut self.seen, error.to_string());
                return (seen != self.seen).then_some(Err(error));
            }
        };
        let digest = sha256(&source.bytes);
        if digest == self.seen {
            return None;
        }
        self.seen = digest;
        Some(host.load(source, entry).await)
    }
}
