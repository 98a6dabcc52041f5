//! Expander priority.
