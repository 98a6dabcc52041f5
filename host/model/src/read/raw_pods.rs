//! Pods that have not met the API server: other objects may add to them, wherever these are in the files.

use super::error::{Place, Problem, ReadError};
use super::locate::{Origin, Written};
use super::warning::Warning;
use super::{Head, Reader};

/// A pod that has not met the API server.
#[derive(Debug)]
pub(super) struct RawPod {
    /// Its number in the cluster.
    pub(super) at: usize,
    /// The object as JSON.
    pub(super) text: Box<str>,
    pub(super) head: Head,
    pub(super) place: Place,
}

/// Something that pods have in common: how many, the first, and where it is.
pub(super) type Several = (usize, String, Place);

impl Reader {
    /// Whether the API server has never seen a pod: what it has seen it has given an id and a time.
    pub(super) fn is_raw(&self, at: usize) -> bool {
        self.cluster.pods.get(at).is_some_and(|pod| pod.uid.is_empty() && pod.created_at.is_none())
    }

    /// Adds to all such pods what other objects add.
    pub(super) fn complete_pods(&mut self) -> Result<(), Box<ReadError>> {
        for pod in std::mem::take(&mut self.raw_pods) {
            let RawPod { at, text, head, place } = &pod;
            let completed = self.defaults.complete(&mut self.cluster, *at, text);
            let missing = completed.map_err(|error| {
                let origin = Origin { source: &place.source, line: place.line, text: Written::Json(text) };
                origin.field_error(head, error)
            })?;
            if let Some(class) = missing {
                let pod = self.cluster.pods.get(*at).map(|pod| self.cluster.pod_name(pod)).unwrap_or_default();
                self.missing_classes.entry(class).or_insert_with(|| (0, pod, place.clone())).0 += 1;
            }
            self.look_at_requests(*at, head, place)?;
        }
        let missing = std::mem::take(&mut self.missing_classes).into_iter();
        self.warnings.extend(missing.map(|(class, (count, pod, first))| Warning::NoRuntimeClass {
            class,
            count,
            pod,
            first,
        }));
        Ok(())
    }

    /// Refuses a pod whose containers ask for an impossible amount together, and counts pods that ask for nothing.
    pub(super) fn look_at_requests(&mut self, at: usize, head: &Head, place: &Place) -> Result<(), Box<ReadError>> {
        let Some(pod) = self.cluster.pods.get(at) else { return Ok(()) };
        let requests = &self.cluster.specs[pod.spec].requests;
        if requests.is_beyond_count() {
            let object = super::locate::name(head);
            let error = ReadError::at(place.clone(), Problem::TooMuchTogether);
            return Err(Box::new(ReadError { object: Some(object), ..*error }));
        }
        let nothing = crate::Resources { pods: requests.pods, ..crate::Resources::default() };
        if !pod.is_terminal() && *requests == nothing {
            let named = || (0, self.cluster.pod_name(pod), place.clone());
            self.without_requests.get_or_insert_with(named).0 += 1;
        }
        Ok(())
    }
}
