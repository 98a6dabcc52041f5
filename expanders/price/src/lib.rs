//! Expander price.
