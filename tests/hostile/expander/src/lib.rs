//! An expander that misbehaves in the way that the setting `misdeed` names: `spin`, `trap` or `hog`.

use plimsoll_guest::{Expander, Manifest, PluginError, RankRequest, Verdict, config, export_expander};

struct Hostile;

impl Expander for Hostile {
    const MANIFEST: Manifest = Manifest::expander("hostile", env!("CARGO_PKG_VERSION"));

    fn rank(_: &RankRequest) -> Result<Vec<Verdict>, PluginError> {
        match config::get("misdeed").as_deref() {
            Some("spin") => spin(),
            Some("trap") => std::process::abort(),
            Some("hog") => Ok(hog()),
            other => Err(PluginError::config(format!("misdeed is {other:?}; expected spin, trap or hog"))),
        }
    }
}

export_expander!(Hostile);

fn spin() -> ! {
    let mut turns: u64 = 0;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

/// Asks for four gigabytes, one block after the other, and keeps them all.
fn hog() -> Vec<Verdict> {
    const BLOCK: usize = 16 << 20;
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    while (blocks.len() as u64) * (BLOCK as u64) < 4 << 30 {
        blocks.push(std::hint::black_box(vec![1; BLOCK]));
    }
    Vec::new()
}
