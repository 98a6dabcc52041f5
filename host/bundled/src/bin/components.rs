//! `components [FOLDER]`: builds every provider and expander of this workspace to a component.
//!
//! Writes `expander-NAME.wasm` and `provider-NAME.wasm` into the folder, by default `components` in the target folder.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use plimsoll_bundled::Workspace;

fn main() -> ExitCode {
    match build_all() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn build_all() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let workspace = Workspace::new(&root, &env::current_exe()?)?;
    let folder = env::args_os().nth(1).map_or_else(|| workspace.target_folder().join("components"), PathBuf::from);
    fs::create_dir_all(&folder)?;
    let guests = workspace.guests()?;
    for (guest, built) in guests.iter().zip(workspace.build(&guests)?) {
        let file = folder.join(guest.file_name());
        let bytes = fs::copy(&built, &file).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        println!("{bytes:>8} bytes  {}", file.display());
    }
    Ok(())
}
