//! What is odd about the input but stops nothing.

use super::error::Place;

/// Something that the person who wrote the files should know.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Warning {
    /// A file with no object in it.
    #[error("{file}: no objects in this file")]
    NoObjects {
        /// Name of the file.
        file: String,
    },
    /// Objects of a kind that is not read.
    #[error("{first}: {} of kind {kind} ({api_version}) not used", counted(*.count, "object"))]
    UnreadKind {
        /// API version.
        api_version: String,
        /// Kind.
        kind: String,
        /// How many.
        count: usize,
        /// Where the first is.
        first: Place,
    },
    /// Pods that ask for nothing.
    #[error("{first}: {} without requests, such as {pod}; they need only a free pod slot", counted(*.count, "pod"))]
    WithoutRequests {
        /// How many.
        count: usize,
        /// The first of them.
        pod: String,
        /// Where the first is.
        first: Place,
    },
    /// Pods of a RuntimeClass that is not there.
    #[error(
        "{first}: runtimeClass {class:?} is not in the input; the overhead of {}, such as {pod}, is not counted",
        counted(*.count, "pod")
    )]
    NoRuntimeClass {
        /// The class.
        class: String,
        /// How many.
        count: usize,
        /// The first of them.
        pod: String,
        /// Where the first is.
        first: Place,
    },
    /// A group claims a node that is not in the input.
    #[error("{place}: nodeGroup {group:?}: {} not in the input, such as {first:?}", counted(*.count, "node"))]
    UnknownNodes {
        /// The group.
        group: String,
        /// How many.
        count: usize,
        /// Name or provider id of the first.
        first: String,
        /// Where the group is.
        place: Place,
    },
    /// A group that nothing is known about.
    #[error(
        "{place}: nodeGroup {group:?} has neither a template nor a node in the input, so it cannot grow; add a template"
    )]
    NoModel {
        /// The group.
        group: String,
        /// Where it is.
        place: Place,
    },
    /// A template that no pod fits on.
    #[error("{place}: nodeGroup {group:?}: nodes of its template take no pods; add pods: \"110\" to its allocatable")]
    NoPodSlots {
        /// The group.
        group: String,
        /// Where the template is.
        place: Place,
    },
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
