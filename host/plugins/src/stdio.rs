//! What a plug-in prints, as lines of its log. Nothing is kept beyond the line that is being written.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::log::Log;
use crate::observer::Level;

/// Longest line; longer ones are cut into several.
const MOST_LINE_BYTES: usize = 4 << 10;
/// Most bytes taken at once.
const PERMIT: usize = 8 << 10;

/// Standard output or standard error of one store.
#[derive(Clone)]
pub(crate) struct Printed {
    log: Log,
    level: Level,
    stream: &'static str,
    line: Arc<Mutex<Vec<u8>>>,
}

impl Printed {
    pub(crate) fn new(log: Log, level: Level, stream: &'static str) -> Self {
        Self { log, level, stream, line: Arc::default() }
    }

    fn take(&self, bytes: &[u8]) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        for byte in bytes {
            if *byte == b'\n' {
                self.emit(&mut line);
            } else {
                line.push(*byte);
                if line.len() == MOST_LINE_BYTES {
                    self.emit(&mut line);
                }
            }
        }
    }

    fn emit(&self, line: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(line);
        self.log.write(self.level, text.trim_end_matches('\r'), &[("stream".to_owned(), self.stream.to_owned())]);
        line.clear();
    }
}

impl IsTerminal for Printed {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Printed {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
    /// Only used by newer contracts of WASI, which are not linked.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Printed {
    async fn ready(&mut self) {}
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Printed {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }
    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }
    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::StoppedClock;
    use crate::observer::{Event, Recorder};

    #[test]
    fn prints_whole_lines_and_cuts_endless_ones() {
        let recorder = Arc::new(Recorder::default());
        let log = Log::new("p".into(), Level::Info, Arc::new(StoppedClock), recorder.clone());
        let mut printed = Printed::new(log, Level::Warn, "stderr");
        for text in ["thread panicked", " at x\r\nnext\nrest", &"y".repeat(MOST_LINE_BYTES)] {
            printed.write(Bytes::copy_from_slice(text.as_bytes())).unwrap();
        }
        let lines: Vec<_> = recorder
            .take()
            .into_iter()
            .map(|event| match event {
                Event::Log { message, .. } => message,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(lines[..2], ["thread panicked at x", "next"]);
        assert_eq!((lines.len(), lines[2].len(), &lines[2][..5]), (3, MOST_LINE_BYTES, "resty"));
    }
}
