//! Expander least-waste.
