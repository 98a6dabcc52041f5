//! Reads a recording, loop by loop.

use std::io::Read;

use flate2::read::MultiGzDecoder;

use crate::format::{self, FORMAT, Header, Heard, Record, RecordingError, VERSION};
use crate::inputs::{Inputs, State};

/// One loop of a recording: what it saw is in [`Recording`], as long as no further loop was read.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Which loop, counted from 1.
    pub number: usize,
    /// Answers, in their order.
    pub heard: Vec<Heard>,
    /// What was decided, in words. None: the process ended in the middle.
    pub decided: Option<Vec<String>>,
}

/// A recording that is being read.
pub struct Recording<R: Read> {
    from: MultiGzDecoder<R>,
    /// Records read so far.
    records: usize,
    loops: usize,
    /// The first record of the next loop.
    next: Option<Box<Inputs>>,
    decided: Vec<String>,
    pub(crate) state: State,
}

impl<R: Read> Recording<R> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// If it is no recording, or one of a newer form.
    pub fn open(from: R) -> Result<Self, RecordingError> {
        let mut from = MultiGzDecoder::new(from);
        let header = match format::read::<Header>(&mut from, 1) {
            Ok(Some(header)) if header.format == FORMAT => header,
            Ok(_) | Err(RecordingError::BadRecord { .. }) => return Err(RecordingError::NotARecording),
            Err(RecordingError::Io(error)) if error.kind() == std::io::ErrorKind::InvalidInput => {
                return Err(RecordingError::NotARecording);
            }
            Err(error) => return Err(error),
        };
        if header.version > VERSION {
            return Err(RecordingError::Newer { version: header.version, program: header.program });
        }
        let mut recording = Self { from, records: 1, loops: 0, next: None, decided: vec![], state: State::default() };
        recording.next = match recording.record()? {
            Some(Record::Begins(inputs)) => Some(inputs),
            None => None,
            Some(_) => return Err(recording.bad("it belongs to no loop")),
        };
        Ok(recording)
    }

    fn bad(&self, problem: &str) -> RecordingError {
        RecordingError::BadRecord { number: self.records, problem: problem.to_owned() }
    }

    fn record(&mut self) -> Result<Option<Record>, RecordingError> {
        self.records += 1;
        format::read(&mut self.from, self.records)
    }

    /// The next loop. None at the end.
    ///
    /// # Errors
    ///
    /// If a record cannot be read, or does not follow from those before it.
    pub fn next_loop(&mut self) -> Result<Option<Recorded>, RecordingError> {
        let Some(inputs) = self.next.take() else { return Ok(None) };
        inputs.apply(&mut self.state).ok_or_else(|| self.bad("it does not follow from the loop before it"))?;
        self.loops += 1;
        let mut recorded = Recorded { number: self.loops, heard: vec![], decided: None };
        while let Some(record) = self.record()? {
            match record {
                Record::Begins(inputs) => {
                    self.next = Some(inputs);
                    break;
                }
                Record::Heard(heard) => recorded.heard.push(*heard),
                Record::Ends(changed) => {
                    let decided = changed.apply(&self.decided);
                    let decided = decided.ok_or_else(|| self.bad("its decisions do not follow from those before"))?;
                    self.decided.clone_from(&decided);
                    recorded.decided = Some(decided);
                }
            }
        }
        Ok(Some(recorded))
    }
}
