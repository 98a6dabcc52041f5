//! What a plug-in remembers across restarts of itself: a few small values in the host's memory. A cache, no truth.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most keys.
pub(crate) const MOST_KEYS: usize = 64;
/// Longest value.
pub(crate) const MOST_VALUE_BYTES: usize = 64 << 10;
/// Longest key.
const MOST_KEY_BYTES: usize = 128;

/// Why a value was not kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotKept {
    InvalidKey,
    TooLarge,
    Full,
}

/// The values of one plug-in; outlives its stores. Clones are the same memory.
#[derive(Clone, Debug, Default)]
pub struct PluginMemory(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl PluginMemory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.lock().get(key).cloned()
    }

    pub(crate) fn set(&self, key: String, value: Vec<u8>) -> Result<(), NotKept> {
        let mut values = self.lock();
        if key.is_empty() || key.len() > MOST_KEY_BYTES {
            Err(NotKept::InvalidKey)
        } else if value.len() > MOST_VALUE_BYTES {
            Err(NotKept::TooLarge)
        } else if values.len() >= MOST_KEYS && !values.contains_key(&key) {
            Err(NotKept::Full)
        } else {
            values.insert(key, value);
            Ok(())
        }
    }

    pub(crate) fn remove(&self, key: &str) {
        self.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case::fits("k".into(), 10, Ok(()))]
    #[case::largest("k".repeat(128), MOST_VALUE_BYTES, Ok(()))]
    #[case::no_key(String::new(), 1, Err(NotKept::InvalidKey))]
    #[case::long_key("k".repeat(129), 1, Err(NotKept::InvalidKey))]
    #[case::large("k".into(), MOST_VALUE_BYTES + 1, Err(NotKept::TooLarge))]
    fn keeps_small_values(#[case] key: String, #[case] size: usize, #[case] expected: Result<(), NotKept>) {
        let memory = PluginMemory::default();
        assert_eq!(memory.set(key.clone(), vec![7; size]), expected);
        assert_eq!(memory.get(&key).map(|value| value.len()), expected.ok().map(|()| size));
    }

    #[test]
    fn when_full_old_keys_can_still_be_changed() {
        let memory = PluginMemory::default();
        for n in 0..MOST_KEYS {
            memory.set(n.to_string(), vec![]).unwrap();
        }
        assert_eq!(memory.set("one more".into(), vec![]), Err(NotKept::Full));
        assert_eq!(memory.clone().set("7".into(), vec![1]), Ok(()));
        memory.remove("7");
        assert_eq!(memory.set("one more".into(), vec![]), Ok(()));
    }
}
