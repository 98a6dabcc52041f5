//! What a plug-in writes to its log: filtered, cut, escaped and slowed down before anybody sees it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::egress::Denial;
use crate::observer::{Event, Level, Observer, Requested, announce};

/// Longest message, and longest key or value of a field.
const MOST_BYTES: usize = 8 << 10;
/// Most fields of one message.
const MOST_FIELDS: usize = 32;
/// Lines that may come at once.
const BURST: u32 = 200;
/// One more line may come each time that this has passed.
const REFILL: Duration = Duration::from_millis(50);

/// Where the lines of one plug-in go. Clones share the rate.
#[derive(Clone)]
pub(crate) struct Log {
    plugin: Arc<str>,
    least: Level,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
    bucket: Arc<Mutex<Bucket>>,
}

struct Bucket {
    lines: u32,
    filled_at: Duration,
    dropped: u64,
}

impl Bucket {
    /// Takes a line out. None: there is none; otherwise how many were dropped before this one.
    fn take(&mut self, now: Duration) -> Option<u64> {
        let refilled = now.saturating_sub(self.filled_at).as_nanos() / REFILL.as_nanos();
        if refilled > 0 {
            self.lines = self.lines.saturating_add(u32::try_from(refilled).unwrap_or(u32::MAX)).min(BURST);
            self.filled_at = now;
        }
        match self.lines.checked_sub(1) {
            Some(left) => {
                self.lines = left;
                Some(std::mem::take(&mut self.dropped))
            }
            None => {
                self.dropped += 1;
                None
            }
        }
    }
}

impl Log {
    pub(crate) fn new(plugin: Arc<str>, least: Level, clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Self {
        let bucket = Bucket { lines: BURST, filled_at: clock.monotonic(), dropped: 0 };
        Self { plugin, least, clock, observer, bucket: Arc::new(Mutex::new(bucket)) }
    }

    /// Whether a message of this level would be kept.
    pub(crate) fn keeps(&self, level: Level) -> bool {
        level >= self.least
    }

    pub(crate) fn write(&self, level: Level, message: &str, fields: &[(String, String)]) {
        if !self.keeps(level) || !self.admit() {
            return;
        }
        let mut kept: Vec<_> =
            fields.iter().take(MOST_FIELDS).map(|(key, value)| (escape(key), escape(value))).collect();
        if fields.len() > MOST_FIELDS {
            kept.push(("fields-left-out".to_owned(), (fields.len() - MOST_FIELDS).to_string()));
        }
        let plugin = self.plugin.to_string();
        self.tell(Event::Log { plugin, level, message: escape(message), fields: kept });
    }

    /// A request that was refused. Counts as a line: a guest that asks in a loop must not flood.
    pub(crate) fn denied(&self, denial: Denial) {
        if self.admit() {
            self.tell(Event::Denied { denial });
        }
    }

    /// Something that the operator should know about this plug-in.
    pub(crate) fn warn(&self, message: String) {
        if self.admit() {
            self.tell(Event::Warning { plugin: self.plugin.to_string(), message });
        }
    }

    /// A request is over. It is counted, not told, so no rate bounds it.
    pub(crate) fn requested(&self, requested: Requested) {
        self.observer.requested(requested);
    }

    fn tell(&self, event: Event) {
        announce(self.observer.as_ref(), event);
    }

    fn admit(&self) -> bool {
        let taken = self.bucket.lock().unwrap_or_else(PoisonError::into_inner).take(self.clock.monotonic());
        if let Some(dropped @ 1..) = taken {
            let message = format!("{dropped} lines were dropped because they came too fast");
            self.tell(Event::Warning { plugin: self.plugin.to_string(), message });
        }
        taken.is_some()
    }
}

/// Cuts the text, and writes out what would change how the line looks: control characters, and marks that turn the
/// direction of writing.
fn escape(text: &str) -> String {
    escaped(text, MOST_BYTES)
}

/// Longest text in an answer that people read: the message of an error, the reason for a score.
const MOST_BYTES_OF_AN_ANSWER: usize = 1 << 10;

/// A text of a plug-in's answer as one harmless line.
pub(crate) fn line(text: &str) -> String {
    escaped(text, MOST_BYTES_OF_AN_ANSWER)
}

fn escaped(text: &str, most: usize) -> String {
    let cut = text.floor_char_boundary(most);
    let (kept, rest) = text.split_at_checked(cut).unwrap_or((text, ""));
    let mut out = String::with_capacity(kept.len());
    for character in kept.chars() {
        let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || turns {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    if !rest.is_empty() {
        out.push_str(&format!("… ({} bytes more)", rest.len()));
    }
    out
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Time;

    #[test]
    fn answers_are_one_short_line() {
        assert_eq!(line("out of stock\r\nUP all \u{1b}[31m"), "out of stock\\r\\nUP all \\u{1b}[31m");
        assert!(line(&"x".repeat(5_000_000)).len() < 1100);
    }

    use super::*;
    use crate::clock::VirtualClock;
    use crate::observer::Recorder;

    fn log() -> (Log, Arc<Recorder>, VirtualClock) {
        let (recorder, clock) = (Arc::new(Recorder::default()), VirtualClock::new(Time::from_millis(0)));
        (Log::new("noisy".into(), Level::Info, Arc::new(clock.clone()), recorder.clone()), recorder, clock)
    }

    #[rstest::rstest]
    #[case::plain("read 3 groups", "read 3 groups")]
    #[case::lines("a\nfake line\r\n", "a\\nfake line\\r\\n")]
    #[case::terminal("\u{1b}[2Jgone", "\\u{1b}[2Jgone")]
    #[case::direction("a\u{202e}b", "a\\u{202e}b")]
    #[case::letters("größe 尺寸", "größe 尺寸")]
    fn escapes(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(escape(text), shown);
    }

    #[test]
    fn cuts_long_text_between_characters() {
        let shown = escape(&"ä".repeat(MOST_BYTES));
        assert!(shown.ends_with(&format!("… ({MOST_BYTES} bytes more)")), "{shown}");
    }

    #[test]
    fn keeps_only_important_levels() {
        let (log, recorder, _) = log();
        log.write(Level::Debug, "step", &[]);
        log.write(Level::Info, "done", &[("groups".into(), "3".into())]);
        let expected = Event::Log {
            plugin: "noisy".into(),
            level: Level::Info,
            message: "done".into(),
            fields: vec![("groups".into(), "3".into())],
        };
        assert_eq!(recorder.take(), [expected]);
    }

    #[test]
    fn a_flood_is_cut_and_counted() {
        let (log, recorder, clock) = log();
        for _ in 0..10_000 {
            log.write(Level::Error, "again", &[]);
        }
        assert_eq!(recorder.take().len(), BURST as usize);
        clock.set(Time::from_millis(1_000));
        for _ in 0..100 {
            log.write(Level::Error, "again", &[]);
        }
        let events = recorder.take();
        let dropped = Event::Warning {
            plugin: "noisy".into(),
            message: "9800 lines were dropped because they came too fast".into(),
        };
        assert_eq!((events.len(), &events[0]), (21, &dropped));
    }

    #[test]
    fn fields_are_counted_and_escaped() {
        let (log, recorder, _) = log();
        let fields: Vec<_> = (0..40).map(|n| (format!("k{n}"), "\n".to_owned())).collect();
        log.write(Level::Info, "many", &fields);
        let [Event::Log { fields, .. }] = &recorder.take()[..] else { panic!("one line") };
        assert_eq!((fields.len(), fields[0].1.as_str(), fields[32].1.as_str()), (33, "\\n", "8"));
    }
}
