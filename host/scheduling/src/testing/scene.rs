//! Scenes for table tests.

/// To come.
pub(crate) struct Scene;
