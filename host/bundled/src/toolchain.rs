//! Finds a compiler for `wasm32-unknown-unknown`.
//!
//! Two ways lead there: the target's precompiled standard library, which rustup or a distribution installs, and Debian's
//! compiler, which comes with the library's source and builds it on the way.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable that forces one way: `rustup` or `debian`.
pub(crate) const CHOICE_VARIABLE: &str = "PLIMSOLL_WASM_TOOLCHAIN";

const TARGET: &str = "wasm32-unknown-unknown";

/// How cargo builds one guest. Only as a module, because it optimizes nothing across crates in a library that other
/// crates may use as well. The linker otherwise leaves room for the largest number at every call and address, five bytes
/// where one or two do; it shrinks what has no debug information, which the profile of guests strips.
pub(crate) const ARGUMENTS: [&str; 8] = [
    "rustc",
    "--lib",
    "--crate-type",
    "cdylib",
    "--target",
    TARGET,
    "--config",
    "target.wasm32-unknown-unknown.rustflags=[\"-Clink-arg=--compress-relocations\"]",
];

/// Variables of cargo's that a nested cargo may see: where its home, registries and jobserver are. Everything else
/// describes the outer build (its flags, its wrapper, such as clippy, its package) and would change the guests.
const KEPT_CARGO_VARIABLES: &[&str] = &[
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
    "CARGO_BUILD_JOBS",
    "CARGO_MAKEFLAGS",
];
/// Variables without that prefix that belong to the outer build.
const OUTER_VARIABLES: &[&str] = &[
    "RUSTFLAGS",
    "RUSTDOCFLAGS",
    "RUSTC",
    "RUSTDOC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_LINKER",
    "RUSTC_BOOTSTRAP",
    "CLIPPY_ARGS",
    "CLIPPY_CONF_DIR",
    "TARGET",
    "HOST",
    "OUT_DIR",
    "PROFILE",
    "DEBUG",
    "OPT_LEVEL",
    "NUM_JOBS",
    "LLVM_PROFILE_FILE",
];

/// Which of the two ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// The target's standard library is installed, by rustup or otherwise.
    Rustup,
    /// Debian's compiler with the source of its library.
    Debian,
}

impl Choice {
    /// What the environment variable `PLIMSOLL_WASM_TOOLCHAIN` says; none if it is unset or empty.
    ///
    /// # Errors
    /// It names no way.
    pub fn from_env() -> Result<Option<Self>, ToolchainError> {
        match env::var(CHOICE_VARIABLE).as_deref() {
            Ok("rustup") => Ok(Some(Self::Rustup)),
            Ok("debian") => Ok(Some(Self::Debian)),
            Ok("") | Err(_) => Ok(None),
            Ok(other) => Err(ToolchainError::UnknownChoice(other.to_owned())),
        }
    }
}

/// A cargo and a rustc that can build guests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Toolchain {
    cargo: PathBuf,
    rustc: PathBuf,
    /// Linker, if the standard library has to be built too.
    build_std: Option<PathBuf>,
}

impl Toolchain {
    /// Looks for a toolchain: the target installed for the compiler in use; else rustup is asked to install it; else
    /// Debian's. With a choice, only that way.
    ///
    /// # Errors
    /// There is none; the text lists both ways to get one.
    pub fn find(choice: Option<Choice>) -> Result<Self, ToolchainError> {
        let mut tried = Vec::new();
        if choice != Some(Choice::Debian) {
            match installed().or_else(|first| if add_with_rustup() { installed() } else { Err(first) }) {
                Ok(toolchain) => return Ok(toolchain),
                Err(why) => tried.push(why),
            }
        }
        if choice != Some(Choice::Rustup) {
            match debian() {
                Ok(toolchain) => return Ok(toolchain),
                Err(why) => tried.push(why),
            }
        }
        Err(ToolchainError::NotFound { tried })
    }

    /// A build of one guest, free of the outer build's settings; the package and folders are still to be added.
    pub fn cargo_build(&self) -> Command {
        let mut command = Command::new(&self.cargo);
        for (name, _) in env::vars_os() {
            if belongs_to_outer_build(&name) {
                command.env_remove(name);
            }
        }
        command.env("RUSTC", &self.rustc).args(ARGUMENTS);
        if let Some(linker) = &self.build_std {
            command
                .env_remove("RUSTUP_TOOLCHAIN")
                .env("RUSTC_BOOTSTRAP", "1")
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
                .args(["-Z", "build-std=std,panic_abort"]);
        }
        command
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rustc.display())?;
        if self.build_std.is_some() { f.write_str(" with its library from source") } else { Ok(()) }
    }
}

/// Folder below a target folder that cargo puts modules into, by target and profile.
pub(crate) fn output_folder(profile: &str) -> PathBuf {
    Path::new(TARGET).join(profile)
}

fn belongs_to_outer_build(name: &OsString) -> bool {
    let Some(name) = name.to_str() else { return false };
    if name.starts_with("CARGO_") {
        return !KEPT_CARGO_VARIABLES.iter().any(|kept| name.starts_with(kept));
    }
    name == "CARGO" || name.starts_with("DEP_") || OUTER_VARIABLES.contains(&name)
}

fn installed() -> Result<Toolchain, String> {
    let cargo = env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let rustc = env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
    let library = output_of(Command::new(&rustc).args(["--print", "target-libdir", "--target", TARGET]))?;
    let library = PathBuf::from(library.trim());
    let has_library = library.read_dir().is_ok_and(|mut files| files.next().is_some());
    if !has_library {
        return Err(format!("{} has no library for {TARGET} ({} is missing)", rustc.display(), library.display()));
    }
    Ok(Toolchain { cargo, rustc, build_std: None })
}

/// Whether rustup could add the target to the toolchain in use.
fn add_with_rustup() -> bool {
    let mut add = Command::new("rustup");
    add.args(["target", "add", TARGET]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    add.status().is_ok_and(|status| status.success())
}

fn debian() -> Result<Toolchain, String> {
    let (cargo, rustc) = (PathBuf::from("/usr/bin/cargo"), PathBuf::from("/usr/bin/rustc"));
    for tool in [&cargo, &rustc] {
        if !tool.exists() {
            return Err(format!("{} is missing", tool.display()));
        }
    }
    let sysroot = output_of(Command::new(&rustc).env_remove("RUSTUP_TOOLCHAIN").args(["--print", "sysroot"]))?;
    let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
    if !source.exists() {
        return Err(format!("the library's source is missing ({})", source.display()));
    }
    let version = output_of(Command::new(&rustc).env_remove("RUSTUP_TOOLCHAIN").arg("-vV"))?;
    let linker = linker_for(&version, Path::new("/usr/bin")).ok_or("wasm-ld is missing")?;
    Ok(Toolchain { cargo, rustc, build_std: Some(linker) })
}

/// The WebAssembly linker of the compiler's own LLVM, or else any.
fn linker_for(verbose_version: &str, folder: &Path) -> Option<PathBuf> {
    let line = verbose_version.lines().find_map(|line| line.strip_prefix("LLVM version:"));
    let own = line.and_then(|version| version.trim().split('.').next()).map(|major| format!("wasm-ld-{major}"));
    let own = own.map(|name| folder.join(name)).filter(|path| path.exists());
    own.or_else(|| Some(folder.join("wasm-ld")).filter(|path| path.exists())).or_else(|| {
        let names = folder.read_dir().ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let versions = names.filter_map(|name| name.strip_prefix("wasm-ld-")?.parse::<u32>().ok());
        versions.max().map(|newest| folder.join(format!("wasm-ld-{newest}")))
    })
}

fn output_of(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot run {name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{name} did not answer in UTF-8"))
}

/// Why there is no compiler for guests.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolchainError {
    /// The variable names no way.
    #[error("{CHOICE_VARIABLE} is {0:?}; expected `rustup` or `debian`, or leave it unset")]
    UnknownChoice(String),
    /// Neither way leads to one.
    #[error(
        "no compiler for {TARGET} was found: {}\n\
         install one of these and build again:\n  \
         rustup target add {TARGET}\n  \
         apt-get install -y --no-install-recommends rustc-web cargo-web rust-web-src lld-19   (Debian; see scripts/wasm-toolchain.sh)",
        tried.join("; ")
    )]
    NotFound {
        /// What was tried, and what was missing.
        tried: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::package("CARGO_PKG_NAME", true)]
    #[case::flags("CARGO_ENCODED_RUSTFLAGS", true)]
    #[case::plain_flags("RUSTFLAGS", true)]
    #[case::clippy("RUSTC_WORKSPACE_WRAPPER", true)]
    #[case::clippy_arguments("CLIPPY_ARGS", true)]
    #[case::target_folder("CARGO_TARGET_DIR", true)]
    #[case::build_target("CARGO_BUILD_TARGET", true)]
    #[case::features("CARGO_FEATURE_DEFAULT", true)]
    #[case::links("DEP_Z_INCLUDE", true)]
    #[case::profile("CARGO_PROFILE_RELEASE_LTO", true)]
    #[case::home("CARGO_HOME", false)]
    #[case::offline("CARGO_NET_OFFLINE", false)]
    #[case::proxy("CARGO_HTTP_PROXY", false)]
    #[case::mirror("CARGO_SOURCE_CRATES_IO_REPLACE_WITH", false)]
    #[case::registry("CARGO_REGISTRIES_OURS_INDEX", false)]
    #[case::jobserver("CARGO_MAKEFLAGS", false)]
    #[case::toolchain("RUSTUP_TOOLCHAIN", false)]
    #[case::path("PATH", false)]
    fn variables_of_the_outer_build(#[case] name: &str, #[case] removed: bool) {
        assert_eq!(belongs_to_outer_build(&name.into()), removed);
    }

    #[rstest]
    #[case::the_compilers_own("LLVM version: 19.1.7", &["wasm-ld-18", "wasm-ld-19", "wasm-ld-20"], Some("wasm-ld-19"))]
    #[case::unversioned("LLVM version: 21.0.0", &["wasm-ld", "wasm-ld-19"], Some("wasm-ld"))]
    #[case::newest("LLVM version: 21.0.0", &["wasm-ld-9", "wasm-ld-19"], Some("wasm-ld-19"))]
    #[case::version_unknown("", &["wasm-ld-19"], Some("wasm-ld-19"))]
    #[case::other_linkers("LLVM version: 19.1.7", &["ld.lld-19", "wasm-ld-x"], None)]
    fn linkers(#[case] version: &str, #[case] present: &[&str], #[case] expected: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        for name in present {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let version = format!("rustc 1.96.0\nhost: x86_64\n{version}\n");
        assert_eq!(linker_for(&version, folder.path()), expected.map(|name| folder.path().join(name)));
    }

    #[test]
    fn the_library_is_built_only_where_it_is_not_installed() {
        let arguments = |build_std| {
            let command = Toolchain { cargo: "cargo".into(), rustc: "rustc".into(), build_std }.cargo_build();
            let arguments: Vec<_> =
                command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
            arguments.join(" ")
        };
        let always = ARGUMENTS.join(" ");
        assert!(always.starts_with("rustc --lib --crate-type cdylib --target wasm32-unknown-unknown "), "{always}");
        assert_eq!(arguments(None), always);
        assert_eq!(arguments(Some("wasm-ld-19".into())), format!("{always} -Z build-std=std,panic_abort"));
    }

    #[test]
    fn without_a_compiler_both_ways_are_told() {
        let text = ToolchainError::NotFound { tried: vec!["rustc has no library".into()] }.to_string();
        for part in ["rustc has no library", "rustup target add wasm32-unknown-unknown", "apt-get install"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
