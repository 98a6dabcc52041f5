//! What a provider asks of its caller: not to read too often, and not to delete too much at once. Kept here, so that no
//! caller can forget it.

use std::time::Duration;

use plimsoll_core::cloud::{
    CloudError, DeleteOutcome, DeleteStatus, ErrorClass, ErrorScope, InstanceId, Refresh, Snapshot, WriteOptions,
};

use super::RefreshRequest;

/// The last whole read, for callers that ask again too soon.
#[derive(Default)]
pub(super) struct LastRead(Option<Read>);

struct Read {
    /// On the host's monotonic clock.
    at: Duration,
    answer: Refresh,
    snapshot: Option<Snapshot>,
}

impl LastRead {
    /// The answer to a question that comes before `interval` has passed since the last read: the same again, with the
    /// time when it was read. None: ask the provider.
    pub(super) fn again(&self, request: &RefreshRequest, now: Duration, interval: Duration) -> Option<Refresh> {
        let read = self.0.as_ref().filter(|read| now.saturating_sub(read.at) < interval)?;
        if !request.only_groups.is_empty() {
            return None;
        }
        let known = request.previous_revision.as_ref() == Some(&read.answer.revision);
        let snapshot = if known { None } else { Some(read.snapshot.clone()?) };
        let next_refresh = Some(interval.saturating_sub(now.saturating_sub(read.at)));
        Some(Refresh { snapshot, next_refresh, ..read.answer.clone() })
    }

    /// Remembers an answer.
    pub(super) fn note(&mut self, request: &RefreshRequest, answer: &Refresh, now: Duration, interval: Duration) {
        if interval.is_zero() || !request.only_groups.is_empty() {
            return;
        }
        // An answer that nothing changed is about the snapshot that came before.
        let before = self.0.take().filter(|read| read.answer.revision == answer.revision);
        let snapshot = answer.snapshot.clone().or_else(|| before.and_then(|read| read.snapshot));
        let answer = Refresh { snapshot: None, ..answer.clone() };
        self.0 = Some(Read { at: now, answer, snapshot });
    }

    /// Another plug-in takes over: the last read says nothing any more.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }
}

/// The options of one batch of a delete. The key of a batch follows from that of the whole, so a repetition finds the
/// same keys.
pub(super) fn options(whole: &WriteOptions, batch: usize) -> WriteOptions {
    let idempotency_key = match batch {
        0 => whole.idempotency_key.clone(),
        batch => format!("{}-{}", whole.idempotency_key, batch + 1),
    };
    WriteOptions { idempotency_key, ..whole.clone() }
}

/// The outcome of several batches.
pub(super) struct Batches {
    outcome: DeleteOutcome,
}

impl Batches {
    /// None yet; the target is what the caller expects.
    pub(super) fn new(expected_target: u32) -> Self {
        Self { outcome: DeleteOutcome { target_size: expected_target, results: vec![], activity: None } }
    }

    /// The target that the next batch should find.
    pub(super) fn target(&self) -> u32 {
        self.outcome.target_size
    }

    /// A batch was answered.
    pub(super) fn add(&mut self, answer: DeleteOutcome) {
        self.outcome.target_size = answer.target_size;
        self.outcome.results.extend(answer.results);
        self.outcome.activity = answer.activity.or(self.outcome.activity.take());
    }

    /// A batch was refused as a whole: its machines, and those behind it, stay.
    pub(super) fn refuse(&mut self, rest: &[InstanceId], error: &CloudError) {
        let refused = |id: &InstanceId| (id.clone(), DeleteStatus::Failed(error.clone()));
        self.outcome.results.extend(rest.iter().map(refused));
    }

    pub(super) fn finish(self) -> DeleteOutcome {
        self.outcome
    }
}

/// There was no time for a batch.
pub(super) fn too_late() -> CloudError {
    CloudError {
        class: ErrorClass::Transient,
        scope: ErrorScope::Provider,
        code: "not-sent".to_owned(),
        message: "the deadline passed before this batch was sent".to_owned(),
        retry_after: None,
        outcome_unknown: false,
        request_id: None,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Time;

    use super::*;

    fn answer(revision: &str, snapshot: bool) -> Refresh {
        Refresh {
            revision: revision.into(),
            observed_at: Time::from_millis(7),
            snapshot: snapshot.then(Snapshot::default),
            diagnostics: vec![],
            next_refresh: None,
        }
    }

    fn asking(revision: Option<&str>) -> RefreshRequest {
        RefreshRequest { previous_revision: revision.map(Into::into), ..RefreshRequest::default() }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_question_that_comes_too_soon_gets_the_last_answer() {
        let mut last = LastRead::default();
        let interval = 10 * SECOND;
        assert_eq!(last.again(&asking(None), SECOND, interval), None);
        last.note(&asking(None), &answer("a", true), SECOND, interval);
        let again = last.again(&asking(None), 5 * SECOND, interval).unwrap();
        assert_eq!((again.snapshot.is_some(), again.observed_at), (true, Time::from_millis(7)));
        assert_eq!(again.next_refresh, Some(6 * SECOND));
        let known = last.again(&asking(Some("a")), 5 * SECOND, interval).unwrap();
        assert_eq!((known.snapshot, known.revision.as_str()), (None, "a"));
        assert_eq!(last.again(&asking(None), 11 * SECOND, interval), None, "the interval is over");
        let some = RefreshRequest { only_groups: vec!["g".into()], ..RefreshRequest::default() };
        assert_eq!(last.again(&some, 5 * SECOND, interval), None, "another question");
        last.forget();
        assert_eq!(last.again(&asking(None), 5 * SECOND, interval), None);
    }

    #[test]
    fn an_answer_that_nothing_changed_keeps_the_snapshot_before_it() {
        let mut last = LastRead::default();
        let interval = 10 * SECOND;
        last.note(&asking(None), &answer("a", true), SECOND, interval);
        last.note(&asking(Some("a")), &answer("a", false), 20 * SECOND, interval);
        assert!(last.again(&asking(None), 21 * SECOND, interval).unwrap().snapshot.is_some());
        // Nothing is known of a revision whose snapshot this host never saw.
        last.note(&asking(Some("b")), &answer("b", false), 40 * SECOND, interval);
        assert_eq!(last.again(&asking(None), 41 * SECOND, interval), None);
        assert!(last.again(&asking(Some("b")), 41 * SECOND, interval).is_some());
    }

    #[test]
    fn without_an_interval_nothing_is_kept() {
        let mut last = LastRead::default();
        last.note(&asking(None), &answer("a", true), SECOND, Duration::ZERO);
        assert!(last.0.is_none());
    }
}
