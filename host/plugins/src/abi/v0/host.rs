//! What the host offers to plug-ins besides WASI: log, settings, a small memory.

use super::bindings::{config, log, state, types};
use super::cloud::attributes;
use crate::memory::{MOST_KEYS, MOST_VALUE_BYTES, NotKept};
use crate::observer::Level;
use crate::store::PluginState;

impl types::Host for PluginState {}

impl From<log::Level> for Level {
    fn from(level: log::Level) -> Self {
        match level {
            log::Level::Trace => Self::Trace,
            log::Level::Debug => Self::Debug,
            log::Level::Info => Self::Info,
            log::Level::Warn => Self::Warn,
            log::Level::Error => Self::Error,
        }
    }
}

impl log::Host for PluginState {
    fn enabled(&mut self, level: log::Level) -> wasmtime::Result<bool> {
        Ok(self.log().keeps(level.into()))
    }
    fn write(&mut self, level: log::Level, message: String, fields: types::Attributes) -> wasmtime::Result<()> {
        self.log().write(level.into(), &message, &attributes(fields));
        Ok(())
    }
}

impl config::Host for PluginState {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.settings().get(&key).cloned())
    }
}

impl state::Host for PluginState {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<Vec<u8>>> {
        Ok(self.memory().get(&key))
    }
    fn set(&mut self, key: String, value: Vec<u8>) -> wasmtime::Result<Result<(), state::StateError>> {
        let most = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(self.memory().set(key, value).map_err(|reason| match reason {
            NotKept::InvalidKey => state::StateError::InvalidKey,
            NotKept::TooLarge => state::StateError::TooLarge(most(MOST_VALUE_BYTES)),
            NotKept::Full => state::StateError::Full(most(MOST_KEYS)),
        }))
    }
    fn remove(&mut self, key: String) -> wasmtime::Result<()> {
        self.memory().remove(&key);
        Ok(())
    }
}
