//! The template that authors copy compiles against this crate, and its own tests pass.

#[path = "../templates/expander/src/lib.rs"]
mod expander;
