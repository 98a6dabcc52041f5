//! The live cluster: watches in, careful writes out, one leader.

pub mod lists;
