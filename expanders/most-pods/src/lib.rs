//! Expander most-pods.
