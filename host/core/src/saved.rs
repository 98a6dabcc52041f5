//! The memory as it outlives the process: one compressed, versioned text of bounded size.
//!
//! ```text
//! {"format":"plimsoll-memory","version":1,"memory":{…}}   as JSON, deflated (zlib, RFC 1950)
//! ```
//!
//! The form is small enough for a ConfigMap, and a person can read it with any zlib tool. What cannot be read is never
//! guessed: the loop then starts with an empty memory, in which every wait begins anew and no write is under way.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

use crate::memory::Memory;

/// Most bytes of the saved form: an API server refuses objects above 1.5 MiB, a ConfigMap above 1 MiB.
pub const MOST_BYTES: usize = 900 << 10;

/// Most bytes of the text inside, so that a bad file cannot fill the machine.
const MOST_TEXT_BYTES: u64 = 64 << 20;

const FORMAT: &str = "plimsoll-memory";
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Written<'a> {
    format: &'static str,
    version: u32,
    memory: &'a Memory,
}

#[derive(Deserialize)]
struct Envelope {
    format: String,
    version: u32,
}

#[derive(Deserialize)]
struct Body {
    memory: Memory,
}

/// What saving left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LeftOut {
    /// Nodes whose unneeded time will begin anew after a restart.
    pub unneeded: usize,
}

/// Why a memory was not saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// It does not fit, even without what can be left out.
    #[error("the memory takes {0} bytes, above the {MOST_BYTES} that it may take")]
    TooLarge(usize),
    /// It is not what was saved.
    #[error("it is no saved memory: {0}")]
    Unreadable(String),
    /// It was saved by something newer.
    #[error("it was saved in version {0} of the form; this program reads versions up to {VERSION}")]
    Newer(u32),
}

/// The saved form. When it would be too large, the youngest unneeded times are left out first: after a restart these nodes
/// wait a little longer, and nothing else changes.
///
/// # Errors
///
/// [`SaveError::TooLarge`] if that is not enough.
pub fn save(memory: &Memory) -> Result<(Vec<u8>, LeftOut), SaveError> {
    save_within(memory, MOST_BYTES)
}

fn save_within(memory: &Memory, most: usize) -> Result<(Vec<u8>, LeftOut), SaveError> {
    let bytes = encode(memory)?;
    if bytes.len() <= most {
        return Ok((bytes, LeftOut::default()));
    }
    let mut oldest: Vec<(i64, String)> =
        memory.unneeded_since_ms.iter().map(|(name, since)| (*since, name.clone())).collect();
    oldest.sort_unstable();
    let mut kept = oldest.len();
    loop {
        kept /= 2;
        let mut smaller = memory.clone();
        smaller.unneeded_since_ms = oldest.iter().take(kept).map(|(since, name)| (name.clone(), *since)).collect();
        let bytes = encode(&smaller)?;
        if bytes.len() <= most {
            return Ok((bytes, LeftOut { unneeded: oldest.len() - kept }));
        }
        if kept == 0 {
            return Err(SaveError::TooLarge(bytes.len()));
        }
    }
}

fn encode(memory: &Memory) -> Result<Vec<u8>, SaveError> {
    let failed = |error: String| SaveError::Unreadable(error);
    let text = serde_json::to_vec(&Written { format: FORMAT, version: VERSION, memory })
        .map_err(|error| failed(error.to_string()))?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&text).map_err(|error| failed(error.to_string()))?;
    encoder.finish().map_err(|error| failed(error.to_string()))
}

/// The memory that was saved.
///
/// # Errors
///
/// Why it cannot be read.
pub fn restore(bytes: &[u8]) -> Result<Memory, SaveError> {
    let mut text = Vec::new();
    let read = ZlibDecoder::new(bytes).take(MOST_TEXT_BYTES).read_to_end(&mut text);
    read.map_err(|error| SaveError::Unreadable(error.to_string()))?;
    let failed = |error: serde_json::Error| SaveError::Unreadable(error.to_string());
    let envelope: Envelope = serde_json::from_slice(&text).map_err(failed)?;
    if envelope.format != FORMAT {
        return Err(SaveError::Unreadable(format!("its format is {:?}, not {FORMAT:?}", envelope.format)));
    }
    if envelope.version > VERSION {
        return Err(SaveError::Newer(envelope.version));
    }
    serde_json::from_slice::<Body>(&text).map(|body| body.memory).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_model::Time;

    use super::*;
    use crate::cloud::GroupId;
    use crate::settings::Settings;

    fn memory(nodes: usize) -> Memory {
        let mut memory = Memory::default();
        let at = Time::from_millis(1_000);
        memory.unneeded_since_ms =
            (0..nodes).map(|index| (format!("node-{index:x}"), i64::try_from(index).unwrap())).collect();
        memory.back_off(&GroupId::from("a"), at, "sold out".to_owned(), &Settings::default());
        let intent = memory.ledger.new_intent();
        memory.ledger.ask(intent, &GroupId::from("a"), 2, 1, at, Duration::from_secs(60));
        memory
    }

    fn text(memory: &Memory) -> String {
        serde_json::to_string(memory).unwrap()
    }

    #[test]
    fn comes_back_as_it_was() {
        let before = memory(100);
        let (bytes, left_out) = save(&before).unwrap();
        assert_eq!(left_out, LeftOut::default());
        assert_eq!(text(&restore(&bytes).unwrap()), text(&before));
    }

    #[test]
    fn the_youngest_waits_are_left_out_first() {
        let before = memory(10_000);
        let whole = save(&before).unwrap().0.len();
        let (bytes, left_out) = save_within(&before, whole / 3).unwrap();
        let after = restore(&bytes).unwrap();
        assert!(bytes.len() <= whole / 3);
        assert_eq!(left_out.unneeded, 10_000 - after.unneeded_since_ms.len());
        assert!(
            after.unneeded_since_ms.values().all(|since| *since < 10_000 - i64::try_from(left_out.unneeded).unwrap())
        );
        assert_eq!(after.ledger.increases(), before.ledger.increases());
        assert!(matches!(save_within(&before, 10), Err(SaveError::TooLarge(_))));
    }

    #[test]
    fn what_is_no_memory_is_refused() {
        let deflated = |text: &str| {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let (whole, _) = save(&memory(3)).unwrap();
        for (name, bytes) in [
            ("empty", vec![]),
            ("text", b"hello".to_vec()),
            ("cut", whole[..whole.len() / 2].to_vec()),
            ("no JSON", deflated("hello")),
            ("other object", deflated("{}")),
            ("other format", deflated(r#"{"format":"x","version":1,"memory":{}}"#)),
            ("no memory", deflated(r#"{"format":"plimsoll-memory","version":1}"#)),
        ] {
            assert!(matches!(restore(&bytes), Err(SaveError::Unreadable(_))), "{name}");
        }
        let newer = deflated(r#"{"format":"plimsoll-memory","version":9,"memory":"?"}"#);
        assert!(matches!(restore(&newer), Err(SaveError::Newer(9))));
    }
}
