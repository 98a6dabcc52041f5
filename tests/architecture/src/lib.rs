//! The house keeps its walls: dependency rules.
