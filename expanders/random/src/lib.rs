//! Expander random.
