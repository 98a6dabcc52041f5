//! Expander least-nodes.
