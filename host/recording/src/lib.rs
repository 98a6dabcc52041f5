//! What loops saw and heard, written down so that they can be run again.
//!
//! ```text
//!  driver ──► Recorder ──► gzip ── header │ inputs │ answers … │ decisions │ inputs │ … ──► Recording ──► replay::again
//!                                          └────────── one loop ──────────┘
//! ```
//!
//! A loop of the core is a function of what it sees and of the answers it gets. Both are here: the cluster as the model has
//! it, the clouds' last state with templates and prices, settings, memory and clock; and what expanders said, and what
//! became of each write. What the loop decided is written down too, in words, so that a replay can tell whether it is the
//! same.
//!
//! Each loop is written as what differs from the one before it, so its size follows from what changed. Every record is
//! flushed: the file of a process that was killed can be read to the last record.
//!
//! Secrets cannot get in: the model does not hold containers' environments, annotations or Secrets; of ConfigMaps only the
//! one with the priorities is written; plug-ins' settings and credentials are not part of what a loop sees.

mod change;
mod decisions;
mod format;
mod inputs;
mod recorder;
mod recording;
pub mod replay;

pub use decisions::decisions;
pub use format::{Heard, RecordingError};
pub use recorder::{Recorder, Seen};
pub use recording::{Recorded, Recording};
