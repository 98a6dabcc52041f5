//! Writes loops down as they go.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_core::observation::CloudView;
use plimsoll_core::ranking::Ranking;
use plimsoll_core::{Action, Memory, Observation, Outcome, Plan, Settings};
use plimsoll_model::{Cluster, Time};

use crate::change::Changed;
use crate::decisions::decisions;
use crate::format::{self, FORMAT, Header, Heard, Record, RecordingError, VERSION};
use crate::inputs::{Inputs, State};

/// What a loop sees, before it decides anything.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Now.
    pub at: Time,
    /// The operator's settings.
    pub settings: &'a Settings,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The clouds.
    pub clouds: CloudView<'a>,
    /// What the loop before left.
    pub memory: &'a Memory,
}

/// Writes loops down as they go. What cannot be written ends the recording, not the loop.
pub struct Recorder {
    /// None after something could not be written.
    out: Option<GzEncoder<Box<dyn Write + Send>>>,
    trouble: Option<RecordingError>,
    before: State,
    decided: Vec<String>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("trouble", &self.trouble).finish_non_exhaustive()
    }
}

impl Recorder {
    /// A recording that begins here.
    ///
    /// # Errors
    ///
    /// If its header cannot be written.
    pub fn begin(out: Box<dyn Write + Send>) -> Result<Self, RecordingError> {
        let mut out = GzEncoder::new(out, Compression::fast());
        let program = env!("CARGO_PKG_VERSION").to_owned();
        format::write(&mut out, &Header { format: FORMAT.to_owned(), version: VERSION, program })?;
        Ok(Self { out: Some(out), trouble: None, before: State::default(), decided: vec![] })
    }

    /// A loop begins.
    pub fn begins(&mut self, seen: &Seen<'_>) {
        if self.out.is_some() {
            let inputs = Inputs::advance(&mut self.before, seen);
            self.write(&Record::Begins(Box::new(inputs)));
        }
    }

    /// It got a ranking.
    pub fn ranked(&mut self, expander: &str, ranking: &Ranking) {
        let (expander, ranking) = (expander.to_owned(), ranking.clone());
        self.write(&Record::Heard(Box::new(Heard::Ranking { expander, ranking })));
    }

    /// It got to know what became of a write.
    pub fn acted(&mut self, action: &Action, outcome: &Outcome) {
        let (action, outcome) = (action.clone(), outcome.clone());
        self.write(&Record::Heard(Box::new(Heard::Outcome { action, outcome })));
    }

    /// It ends with this plan.
    pub fn ends(&mut self, plan: &Plan, observation: &Observation<'_>) {
        if self.out.is_none() {
            return;
        }
        let decided = decisions(plan, observation);
        let changed = Changed::between(&self.decided, &decided, String::as_str);
        self.write(&Record::Ends(changed));
        self.decided = decided;
    }

    /// Why the recording ended, told once.
    pub fn take_trouble(&mut self) -> Option<RecordingError> {
        self.trouble.take()
    }

    fn write(&mut self, record: &Record) {
        let Some(out) = &mut self.out else { return };
        if let Err(error) = format::write(out, record) {
            self.out = None;
            self.trouble = Some(error);
        }
    }
}
