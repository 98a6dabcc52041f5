//! The records of a recording, and how they are framed.

use std::io::{Read, Write};

use plimsoll_core::ranking::Ranking;
use plimsoll_core::{Action, Outcome};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::change::Changed;
use crate::inputs::Inputs;

pub(crate) const FORMAT: &str = "plimsoll-recording";
/// Raised when a record changes in a way that older programs would misread.
pub(crate) const VERSION: u32 = 1;

/// Most bytes of one record, so that a bad file cannot fill the machine.
const MOST_RECORD_BYTES: u64 = 2 << 30;

/// The first record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) version: u32,
    /// Version of the program that wrote it, for people.
    pub(crate) program: String,
}

/// Every other record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Record {
    /// A loop begins.
    Begins(Box<Inputs>),
    /// It got an answer.
    Heard(Box<Heard>),
    /// It ended with these decisions.
    Ends(Changed<String>),
}

/// An answer that a loop got.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Heard {
    /// What an expander said.
    Ranking {
        /// The expander's name in the chain.
        expander: String,
        /// Its answer.
        ranking: Ranking,
    },
    /// What became of a write.
    Outcome {
        /// The write.
        action: Action,
        /// Its outcome.
        outcome: Outcome,
    },
}

/// Why a recording cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file or pipe failed.
    #[error("the recording cannot be read or written: {0}")]
    Io(#[from] std::io::Error),
    /// It is something else.
    #[error("it is no recording of plimsoll; expected a file that --record wrote")]
    NotARecording,
    /// It was written by something newer.
    #[error(
        "it was written by plimsoll {program} in version {version} of the form; this program reads versions up to {VERSION}"
    )]
    Newer {
        /// The form's version.
        version: u32,
        /// The program's.
        program: String,
    },
    /// A record cannot be understood.
    #[error("record {number} cannot be read: {problem}")]
    BadRecord {
        /// Which, counted from 1; the header is the first.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A record cannot be written.
    #[error("a record cannot be written: {0}")]
    Encoding(String),
}

/// Writes one record: its length, four bytes, the least significant first, and its MessagePack form.
pub(crate) fn write(out: &mut impl Write, record: &impl Serialize) -> Result<(), RecordingError> {
    let bytes = rmp_serde::to_vec_named(record).map_err(|error| RecordingError::Encoding(error.to_string()))?;
    let length = u32::try_from(bytes.len()).ok().filter(|&length| u64::from(length) <= MOST_RECORD_BYTES);
    let length = length.ok_or_else(|| RecordingError::Encoding(format!("it takes {} bytes", bytes.len())))?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&bytes)?;
    Ok(out.flush()?)
}

/// Reads one record. None at the end, also at one in the middle of a record: the writer was killed there.
pub(crate) fn read<T: DeserializeOwned>(from: &mut impl Read, number: usize) -> Result<Option<T>, RecordingError> {
    let mut length = [0; 4];
    if !fill(from, &mut length)? {
        return Ok(None);
    }
    let length = u64::from(u32::from_le_bytes(length));
    let bad = |problem: String| RecordingError::BadRecord { number, problem };
    if length > MOST_RECORD_BYTES {
        return Err(bad(format!("it is {length} bytes long")));
    }
    let mut bytes = Vec::new();
    match from.take(length).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 == length => {}
        Ok(_) => return Ok(None),
        Err(error) if is_end(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    rmp_serde::from_slice(&bytes).map(Some).map_err(|error| bad(error.to_string()))
}

fn fill(from: &mut impl Read, bytes: &mut [u8]) -> Result<bool, RecordingError> {
    match from.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if is_end(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_end(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::UnexpectedEof
}
