//! The house keeps its walls. See `tests/walls.rs`.
