//! Compiled plug-ins, kept between runs of the host. Compiling takes a tenth of a second to seconds; reading what was
//! compiled takes milliseconds.
//!
//! Machine code does whatever it says, so only the host may put it there: the folder must belong to the host's user and be
//! writable for nobody else, each file holds a digest of itself, and a `.cwasm` from anybody else is refused as a plug-in.
//! A file that does not fit this host or is broken counts as missing.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

/// Length of the digest in front of the machine code.
const DIGEST: usize = 32;

/// A folder of compiled plug-ins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompileCache {
    folder: PathBuf,
}

/// Why a folder cannot hold compiled plug-ins.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// It cannot be made or looked at.
    #[error("the folder for compiled plug-ins {folder} cannot be used: {error}")]
    Unusable {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Somebody else may write there.
    #[error(
        "the folder for compiled plug-ins {folder} can be written by others, who could so run code as this host; give a \
         folder that belongs to the host's user and has mode 0700"
    )]
    Open {
        /// The folder.
        folder: PathBuf,
    },
}

impl CompileCache {
    /// Uses this folder; makes it if it is not there.
    ///
    /// # Errors
    /// If it cannot be used, or if others may write there.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, CacheError> {
        let folder = folder.into();
        match private(&folder) {
            Ok(true) => Ok(Self { folder }),
            Ok(false) => Err(CacheError::Open { folder }),
            Err(error) => Err(CacheError::Unusable { folder, error }),
        }
    }

    fn file(&self, engine: &Engine, wasm: &[u8]) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let digest: String = Sha256::digest(wasm).iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{digest}-{:016x}.cwasm", hasher.finish()))
    }

    /// What was compiled from these bytes by such an engine.
    pub(crate) fn get(&self, engine: &Engine, wasm: &[u8]) -> Option<Component> {
        let file = self.file(engine, wasm);
        let bytes = std::fs::read(&file).ok()?;
        let (digest, code) = bytes.split_at_checked(DIGEST)?;
        // The folder may have been opened to others since it was checked.
        if Sha256::digest(code).as_slice() != digest || !matches!(private(&self.folder), Ok(true)) {
            tracing::warn!(file = %file.display(), "a compiled plug-in is broken or in an open folder and is not used");
            return None;
        }
        #[allow(unsafe_code, reason = "the one place where machine code is taken from a file")]
        // SAFETY: the bytes are what `Component::serialize` gave, by the digest, put there by `put`: the folder belongs to
        // this user, and nobody else may write there. The engine itself checks that they were made for it.
        let component = unsafe { Component::deserialize(engine, code) };
        component.inspect_err(|error| tracing::debug!("a compiled plug-in does not fit: {error:#}")).ok()
    }

    /// Keeps what was compiled. That it cannot be kept is no error: it will be compiled again.
    pub(crate) fn put(&self, engine: &Engine, wasm: &[u8], component: &Component) {
        let file = self.file(engine, wasm);
        let kept = component
            .serialize()
            .map_err(|error| format!("{error:#}"))
            .and_then(|code| write(&self.folder, &file, &code).map_err(|error| error.to_string()));
        if let Err(error) = kept {
            tracing::warn!(file = %file.display(), "a compiled plug-in cannot be kept: {error}");
        }
    }
}

/// Whole or not at all: readers never see half of a file.
fn write(folder: &Path, file: &Path, code: &[u8]) -> io::Result<()> {
    let mut part = tempfile::NamedTempFile::new_in(folder)?;
    part.write_all(&Sha256::digest(code))?;
    part.write_all(code)?;
    part.persist(file).map(drop).map_err(|error| error.error)
}

/// Whether the folder belongs to this process's user, and only that user may write there.
#[cfg(unix)]
fn private(folder: &Path) -> io::Result<bool> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = std::fs::metadata(folder)?;
    // A new file belongs to whoever makes it.
    let ours = tempfile::NamedTempFile::new_in(folder)?.as_file().metadata()?.uid();
    Ok(found.uid() == ours && found.mode() & 0o022 == 0)
}

/// Who may write where cannot be told here.
#[cfg(not(unix))]
fn private(_: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn wasm() -> Vec<u8> {
        wat::parse_str("(component (core module))").unwrap()
    }

    fn folder(mode: u32) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        folder
    }

    fn only_file(folder: &Path) -> PathBuf {
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }

    #[test]
    fn what_was_compiled_is_found_again_by_its_bytes_and_engine() {
        let folder = folder(0o700);
        let cache = CompileCache::open(folder.path().join("new/folder")).unwrap();
        let engine = Engine::default();
        assert!(cache.get(&engine, &wasm()).is_none());
        cache.put(&engine, &wasm(), &Component::new(&engine, wasm()).unwrap());
        assert!(cache.get(&engine, &wasm()).is_some());
        assert!(cache.get(&engine, b"other").is_none());
        let other = Engine::new(wasmtime::Config::new().consume_fuel(true)).unwrap();
        assert!(cache.get(&other, &wasm()).is_none(), "another engine makes other code");
    }

    #[test]
    fn a_file_that_was_changed_is_not_used() {
        let folder = folder(0o700);
        let cache = CompileCache::open(folder.path()).unwrap();
        let engine = Engine::default();
        cache.put(&engine, &wasm(), &Component::new(&engine, wasm()).unwrap());
        let file = only_file(folder.path());
        let good = std::fs::read(&file).unwrap();
        let mut bad = good.clone();
        let last = bad.len() - 1;
        bad[last] ^= 1;
        for bytes in [&bad[..], &good[..good.len() / 2], &good[..7], b""] {
            std::fs::write(&file, bytes).unwrap();
            assert!(cache.get(&engine, &wasm()).is_none());
        }
        std::fs::write(&file, good).unwrap();
        assert!(cache.get(&engine, &wasm()).is_some());
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused() {
        for mode in [0o770, 0o707, 0o777] {
            let folder = folder(mode);
            let error = CompileCache::open(folder.path()).unwrap_err();
            assert!(matches!(error, CacheError::Open { .. }), "{error}");
        }
        let later = folder(0o700);
        let cache = CompileCache::open(later.path()).unwrap();
        let engine = Engine::default();
        cache.put(&engine, &wasm(), &Component::new(&engine, wasm()).unwrap());
        std::fs::set_permissions(later.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(cache.get(&engine, &wasm()).is_none());
    }
}
