//! Devices and claims to them.

pub(crate) mod cel;
