//! The host's structured log. Size and rate are capped by the host; control characters are escaped.
//!
//! In a native test the messages are kept and can be read with [`testing::logged`](crate::testing::logged).

use crate::bindings::contract::types::KeyValue;

pub use crate::bindings::contract::log::Level;

/// Whether the host would keep a message of this level. Lets a plug-in skip costly formatting.
pub fn enabled(level: Level) -> bool {
    sink::enabled(level)
}

/// Write one message with fields, such as `&[("group", id)]`.
pub fn write(level: Level, message: &str, fields: &[(&str, &str)]) {
    let fields: Vec<_> = fields.iter().map(|&(key, value)| KeyValue::new(key, value)).collect();
    sink::write(level, message, &fields);
}

/// Every step.
pub fn trace(message: &str) {
    write(Level::Trace, message, &[]);
}

/// For the author.
pub fn debug(message: &str) {
    write(Level::Debug, message, &[]);
}

/// For the operator.
pub fn info(message: &str) {
    write(Level::Info, message, &[]);
}

/// The operator should look.
pub fn warn(message: &str) {
    write(Level::Warn, message, &[]);
}

/// Something failed.
pub fn error(message: &str) {
    write(Level::Error, message, &[]);
}

#[cfg(target_arch = "wasm32")]
use crate::bindings::contract::log as sink;
#[cfg(not(target_arch = "wasm32"))]
use crate::testing::log as sink;
