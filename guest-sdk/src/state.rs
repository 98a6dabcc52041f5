//! Small key-value memory that outlives restarts of the plug-in. A cache: correctness must not depend on it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::PluginError;
pub use crate::bindings::contract::state::StateError;

/// Value under a key.
pub fn get(key: &str) -> Option<Vec<u8>> {
    store::get(key)
}

/// Keep a value, replacing an older one.
///
/// # Errors
/// The key is empty or too long, the value too large, or there is no room for another key.
pub fn set(key: &str, value: &[u8]) -> Result<(), StateError> {
    store::set(key, value)
}

/// Forget a value; nothing happens if there is none.
pub fn remove(key: &str) {
    store::remove(key);
}

/// Value under a key, read as JSON; none if there is none or if it is not a `T` (an older version may have written it).
pub fn get_json<T: DeserializeOwned>(key: &str) -> Option<T> {
    serde_json::from_slice(&get(key)?).ok()
}

/// Keep a value as JSON.
///
/// # Errors
/// Class `other`, code `state`: the value has no JSON form, or it is refused as by [`set`].
pub fn set_json<T: Serialize>(key: &str, value: &T) -> Result<(), PluginError> {
    let failed = |why: String| PluginError::other("state", format!("cannot keep {key:?}: {why}"));
    let json = serde_json::to_vec(value).map_err(|error| failed(error.to_string()))?;
    set(key, &json).map_err(|error| {
        failed(match error {
            StateError::InvalidKey => "the key is empty or longer than 128 bytes".to_owned(),
            StateError::TooLarge(limit) => format!("{} bytes are more than the {limit} allowed", json.len()),
            StateError::Full(limit) => format!("all {limit} places are taken"),
        })
    })
}

#[cfg(target_arch = "wasm32")]
use crate::bindings::contract::state as store;
#[cfg(not(target_arch = "wasm32"))]
use crate::testing::state as store;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_replaced_and_forgotten() {
        assert_eq!(get("a"), None);
        set("a", b"1").unwrap();
        set("a", b"2").unwrap();
        assert_eq!(get("a").as_deref(), Some(&b"2"[..]));
        remove("a");
        assert_eq!(get("a"), None);
    }

    #[test]
    fn json_goes_in_and_out_and_strangers_are_ignored() {
        set_json("seen", &vec![("m-1".to_owned(), 5u64)]).unwrap();
        assert_eq!(get_json("seen"), Some(vec![("m-1".to_owned(), 5u64)]));
        assert_eq!(get_json::<u8>("seen"), None);
    }

    #[test]
    fn bad_keys_are_refused() {
        assert_eq!(set("", b""), Err(StateError::InvalidKey));
        assert_eq!(set(&"k".repeat(129), b""), Err(StateError::InvalidKey));
        assert_eq!(set_json("", &1).unwrap_err().code, "state");
    }
}
