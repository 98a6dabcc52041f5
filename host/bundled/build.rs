//! Builds the embedded guests for the library's constants.

#![allow(clippy::print_stdout, reason = "this is how a build script talks to cargo")]
#![allow(unreachable_pub, reason = "the modules are the library's too")]

#[path = "src/componentize.rs"]
mod componentize;
#[path = "src/embedded.rs"]
mod embedded;
#[path = "src/guests.rs"]
#[expect(dead_code, reason = "the library uses the rest")]
mod guests;
#[path = "src/toolchain.rs"]
mod toolchain;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use guests::{Guest, Workspace};

/// Environment variable that names a folder of components to embed instead of building them.
const PREBUILT_VARIABLE: &str = "PLIMSOLL_COMPONENTS_DIR";

fn main() -> ExitCode {
    match embed() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Cargo shows this, unlike a panic, without a backtrace.
            for line in error.to_string().lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn embed() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let manifest_folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = manifest_folder.join("../..").canonicalize()?;
    let guests: Vec<Guest> = embedded::EXPANDERS
        .iter()
        .map(|name| Guest::expander(name))
        .chain(embedded::PROVIDERS.iter().map(|name| Guest::provider(name)))
        .chain([Guest::provider(embedded::SIMULATED)])
        .collect();

    println!("cargo::rerun-if-env-changed={PREBUILT_VARIABLE}");
    println!("cargo::rerun-if-env-changed={}", toolchain::CHOICE_VARIABLE);
    println!("cargo::rerun-if-changed=build.rs");
    let files = match env::var_os(PREBUILT_VARIABLE) {
        Some(folder) => {
            let folder = Path::new(&folder);
            println!("cargo::rerun-if-changed={}", folder.display());
            guests.iter().map(|guest| folder.join(guest.file_name())).collect()
        }
        None => {
            let workspace = Workspace::new(&root, &out)?;
            for source in workspace.sources(&guests) {
                println!("cargo::rerun-if-changed={}", source.display());
            }
            workspace.build(&guests)?
        }
    };
    for (guest, file) in guests.iter().zip(files) {
        fs::copy(&file, out.join(guest.file_name()))
            .map_err(|error| format!("cannot embed {}: {error}", file.display()))?;
    }
    Ok(())
}
