//! The workspace's guests: where they are, whether they changed, and how they become components.
//!
//! ```text
//!  sources ──► hash ──► same as last time? ──► target/guests/components/NAME.wasm
//!                          └── no ──► a nested cargo for each that changed ──► core modules ──► componentize ──┘
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::componentize::{ComponentizeError, componentize};
use super::toolchain::{self, ARGUMENTS, CHOICE_VARIABLE, Choice, Toolchain, ToolchainError};

/// Cargo profile of the workspace that guests are built with.
const PROFILE: &str = "guest";
/// Files and folders that every guest depends on, from the root of the workspace.
const SHARED_SOURCES: &[&str] = &["Cargo.toml", "Cargo.lock", "wit/v0", "guest-sdk/Cargo.toml", "guest-sdk/src"];
/// File that cargo puts into a target folder, and nowhere else.
const TARGET_FOLDER_MARK: &str = "CACHEDIR.TAG";

/// Which folder of the workspace a guest lives in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuestKind {
    /// `providers/`.
    Provider,
    /// `expanders/`.
    Expander,
    /// `tests/hostile/`: guests that misbehave.
    Hostile,
}

impl GuestKind {
    fn folder(self) -> &'static str {
        match self {
            Self::Provider => "providers",
            Self::Expander => "expanders",
            Self::Hostile => "tests/hostile",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Expander => "expander",
            Self::Hostile => "hostile",
        }
    }
}

/// One guest of the workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guest {
    /// Provider or expander.
    pub kind: GuestKind,
    /// Name of its folder, such as `least-waste`.
    pub name: String,
}

impl Guest {
    /// An expander.
    pub fn expander(name: &str) -> Self {
        Self { kind: GuestKind::Expander, name: name.to_owned() }
    }

    /// A provider.
    pub fn provider(name: &str) -> Self {
        Self { kind: GuestKind::Provider, name: name.to_owned() }
    }

    /// A guest that misbehaves.
    pub fn hostile(name: &str) -> Self {
        Self { kind: GuestKind::Hostile, name: name.to_owned() }
    }

    /// Name of its file, such as `expander-least-waste.wasm`.
    pub fn file_name(&self) -> String {
        format!("{}-{}.wasm", self.kind.word(), self.name)
    }

    /// Its folder, from the root of the workspace.
    pub fn folder(&self) -> PathBuf {
        Path::new(self.kind.folder()).join(&self.name)
    }

    fn package(&self) -> String {
        format!("plimsoll-{}-{}", self.kind.word(), self.name)
    }
}

/// The workspace that guests are built in.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
    target_folder: PathBuf,
    guests_folder: PathBuf,
}

impl Workspace {
    /// A workspace at `root`; its target folder is the one that holds `built`, some file that cargo made.
    ///
    /// # Errors
    /// No folder above `built` is a target folder.
    pub fn new(root: &Path, built: &Path) -> Result<Self, BuildError> {
        let marked = built.ancestors().find(|folder| folder.join(TARGET_FOLDER_MARK).exists());
        // A folder that cargo did not make itself, such as a mounted cache, has no mark. Then it is the one above the
        // profile's folder: TARGET/PROFILE/build/PACKAGE/out, or TARGET/PROFILE/PROGRAM.
        let of_build =
            built.ancestors().find(|folder| folder.ends_with("build")).and_then(|build| build.ancestors().nth(2));
        let target = marked.or(of_build).or_else(|| built.ancestors().nth(2));
        let target = target.ok_or_else(|| BuildError::NoTargetFolder(built.to_owned()))?;
        Ok(Self { root: root.to_owned(), guests_folder: target.join("guests"), target_folder: target.to_owned() })
    }

    /// Cargo's target folder.
    pub fn target_folder(&self) -> &Path {
        &self.target_folder
    }

    /// Every guest in `providers/` and `expanders/`, sorted.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn guests(&self) -> Result<Vec<Guest>, BuildError> {
        let mut guests = Vec::new();
        for kind in [GuestKind::Expander, GuestKind::Provider] {
            let folder = self.root.join(kind.folder());
            for entry in folder.read_dir().map_err(reading(&folder))? {
                let path = entry.map_err(reading(&folder))?.path();
                if let (true, Some(name)) =
                    (path.join("Cargo.toml").exists(), path.file_name().and_then(|name| name.to_str()))
                {
                    guests.push(Guest { kind, name: name.to_owned() });
                }
            }
        }
        guests.sort_by_key(Guest::file_name);
        Ok(guests)
    }

    /// Every file and folder that decides what these guests become.
    pub fn sources(&self, guests: &[Guest]) -> Vec<PathBuf> {
        let own = guests.iter().flat_map(|guest| ["Cargo.toml", "src"].map(|part| guest.folder().join(part)));
        let shared = SHARED_SOURCES.iter().map(PathBuf::from);
        shared.chain(own).map(|path| self.root.join(path)).collect()
    }

    /// Files of the components of these guests, in the same order. Guests whose sources did not change since they were
    /// built are not built again, and then no compiler is needed.
    ///
    /// # Errors
    /// A file cannot be read or written, no compiler is found, or a guest does not build.
    pub fn build(&self, guests: &[Guest]) -> Result<Vec<PathBuf>, BuildError> {
        let folder = self.guests_folder.join("components");
        fs::create_dir_all(&folder).map_err(writing(&folder))?;
        let mut stale = Vec::new();
        for guest in guests {
            let (file, inputs) = (folder.join(guest.file_name()), self.inputs(guest)?);
            let recorded = fs::read_to_string(file.with_extension("inputs")).unwrap_or_default();
            if recorded != inputs || !file.exists() {
                stale.push((guest, file, inputs));
            }
        }
        if !stale.is_empty() {
            let packages: Vec<_> = stale.iter().map(|(guest, ..)| guest.package()).collect();
            self.compile(&packages)?;
        }
        for (guest, file, inputs) in stale {
            let module =
                self.guests_folder.join(toolchain::output_folder(PROFILE)).join(guest.package().replace('-', "_"));
            let module = module.with_extension("wasm");
            let bytes = fs::read(&module).map_err(reading(&module))?;
            let component =
                componentize(&bytes).map_err(|source| BuildError::Componentize { guest: guest.package(), source })?;
            replace(&file, &component)?;
            replace(&file.with_extension("inputs"), inputs.as_bytes())?;
        }
        Ok(guests.iter().map(|guest| folder.join(guest.file_name())).collect())
    }

    fn compile(&self, packages: &[String]) -> Result<(), BuildError> {
        let toolchain = Toolchain::find(Choice::from_env()?)?;
        for package in packages {
            let mut cargo = toolchain.cargo_build();
            // A target folder of its own, because the outer cargo holds the lock of the other.
            cargo.current_dir(&self.root).args(["--profile", PROFILE, "--target-dir"]).arg(&self.guests_folder);
            let output =
                cargo.args(["-p", package]).output().map_err(|error| BuildError::NoCargo(error.to_string()))?;
            if !output.status.success() {
                let text = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(BuildError::Compile { toolchain: toolchain.to_string(), text });
            }
        }
        Ok(())
    }

    /// A name for everything that decides what the guest becomes, the forced toolchain and cargo's arguments included.
    fn inputs(&self, guest: &Guest) -> Result<String, BuildError> {
        let mut files = Vec::new();
        for source in self.sources(std::slice::from_ref(guest)) {
            collect_files(&source, &mut files)?;
        }
        files.sort();
        let mut hash = Sha256::new();
        hash.update(std::env::var(CHOICE_VARIABLE).unwrap_or_default());
        hash.update(ARGUMENTS.join(" "));
        for file in files {
            let content = fs::read(&file).map_err(reading(&file))?;
            let name = file.strip_prefix(&self.root).unwrap_or(&file).to_string_lossy().into_owned();
            hash.update(format!("\n{name} {}\n", content.len()));
            hash.update(content);
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn collect_files(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), BuildError> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in path.read_dir().map_err(reading(path))? {
        collect_files(&entry.map_err(reading(path))?.path(), files)?;
    }
    Ok(())
}

/// Writes beside the file and renames, so that another build never reads half of it.
fn replace(file: &Path, content: &[u8]) -> Result<(), BuildError> {
    let draft = file.with_extension(format!("draft-{}", std::process::id()));
    fs::write(&draft, content).and_then(|()| fs::rename(&draft, file)).map_err(writing(file))
}

fn reading(path: &Path) -> impl Fn(io::Error) -> BuildError {
    let path = path.to_owned();
    move |source| BuildError::Read { path: path.clone(), source }
}

fn writing(path: &Path) -> impl Fn(io::Error) -> BuildError {
    let path = path.to_owned();
    move |source| BuildError::Write { path: path.clone(), source }
}

/// Why guests were not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The place of the build is unknown.
    #[error(
        "cargo's target folder cannot be found: no folder above {0} holds {TARGET_FOLDER_MARK}; put that file there"
    )]
    NoTargetFolder(PathBuf),
    /// A source or a module cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A component cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No compiler.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// Cargo itself does not start.
    #[error("cannot run cargo: {0}")]
    NoCargo(String),
    /// A guest does not compile.
    #[error("the guests do not build with {toolchain}:\n{text}")]
    Compile {
        /// Which compiler.
        toolchain: String,
        /// What cargo said.
        text: String,
    },
    /// A guest compiles, but not to what its world asks for.
    #[error("{guest}: {source}")]
    Componentize {
        /// Package of the guest.
        guest: String,
        /// Why.
        source: ComponentizeError,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of one expander and one provider, with a target folder below it.
    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for file in [
            "Cargo.toml",
            "Cargo.lock",
            "wit/v0/types.wit",
            "guest-sdk/Cargo.toml",
            "guest-sdk/src/lib.rs",
            "expanders/one/Cargo.toml",
            "expanders/one/src/lib.rs",
            "expanders/notes.txt",
            "providers/two/Cargo.toml",
            "providers/two/src/lib.rs",
            "target/CACHEDIR.TAG",
            "target/debug/build/bundled/out/x",
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let workspace = Workspace::new(root, &root.join("target/debug/build/bundled/out")).unwrap();
        (folder, workspace)
    }

    #[test]
    fn guests_are_found_by_their_folders() {
        let (_folder, workspace) = workspace();
        let guests = workspace.guests().unwrap();
        assert_eq!(guests, [Guest::expander("one"), Guest::provider("two")]);
        assert_eq!(guests[0].file_name(), "expander-one.wasm");
        assert_eq!(guests[1].package(), "plimsoll-provider-two");
    }

    #[test]
    fn guests_lie_below_the_target_folder() {
        let (folder, workspace) = workspace();
        assert_eq!(workspace.guests_folder, folder.path().join("target/guests"));
        let elsewhere = Workspace::new(folder.path(), Path::new("/"));
        assert!(matches!(elsewhere, Err(BuildError::NoTargetFolder(_))));
    }

    #[test]
    fn what_a_guest_is_made_of_decides_its_inputs() {
        let (folder, workspace) = workspace();
        let (one, two) = (Guest::expander("one"), Guest::provider("two"));
        let inputs = |guest| workspace.inputs(guest).unwrap();
        let before = (inputs(&one), inputs(&two));
        let write = |file: &str, content: &str| fs::write(folder.path().join(file), content).unwrap();

        write("providers/two/src/lib.rs", "changed");
        assert_eq!(inputs(&one), before.0, "another guest changed");
        assert_ne!(inputs(&two), before.1, "its own source changed");
        write("providers/two/src/lib.rs", "providers/two/src/lib.rs");
        assert_eq!(inputs(&two), before.1, "the content is the old one again");

        write("wit/v0/new.wit", "");
        assert_ne!(inputs(&one), before.0, "the contract changed");
        fs::remove_file(folder.path().join("wit/v0/new.wit")).unwrap();
        write("guest-sdk/src/lib.rs", "");
        assert_ne!(inputs(&one), before.0, "the SDK changed");
    }

    #[test]
    fn unchanged_guests_are_not_built_again() {
        let (folder, workspace) = workspace();
        let guest = Guest::expander("one");
        let file = folder.path().join("target/guests/components/expander-one.wasm");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "a component").unwrap();
        fs::write(file.with_extension("inputs"), workspace.inputs(&guest).unwrap()).unwrap();

        // The sources are no Rust, so any attempt to build them would fail.
        assert_eq!(workspace.build(std::slice::from_ref(&guest)).unwrap(), std::slice::from_ref(&file));
        assert_eq!(fs::read(&file).unwrap(), b"a component");

        fs::remove_file(&file).unwrap();
        assert!(workspace.build(&[guest]).is_err());
    }
}
