//! Settings that the operator gave this plug-in. There are no secrets among them: the host signs requests.
//!
//! Declare them in the manifest ([`Manifest::settings_schema`](crate::Manifest::settings_schema)). In a native test they
//! come from [`testing::set_config`](crate::testing::set_config).

use std::fmt::Display;
use std::str::FromStr;

use crate::PluginError;

/// Value of a setting; none if it is unset and has no default.
pub fn get(key: &str) -> Option<String> {
    source::get(key)
}

/// Value of a setting, read as a number, a truth value, or anything else that can be read from text.
///
/// # Errors
/// Class `config` if the text cannot be read as `T`.
pub fn parse<T>(key: &str) -> Result<Option<T>, PluginError>
where
    T: FromStr<Err: Display>,
{
    let Some(text) = get(key) else { return Ok(None) };
    let value = text.trim().parse().map_err(|error| {
        PluginError::config(format!("setting {key:?} is {text:?}, which cannot be read: {error}"))
            .with_code("bad-setting")
    })?;
    Ok(Some(value))
}

#[cfg(target_arch = "wasm32")]
use crate::bindings::contract::config as source;
#[cfg(not(target_arch = "wasm32"))]
use crate::testing::config as source;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::set_config;

    #[test]
    fn values_are_parsed() {
        set_config("page-size", Some(" 50 "));
        assert_eq!(parse::<u32>("page-size").unwrap(), Some(50));
        assert_eq!(parse::<u32>("other").unwrap(), None);
    }

    #[test]
    fn a_bad_value_is_named() {
        set_config("page-size", Some("many"));
        let error = parse::<u32>("page-size").unwrap_err();
        assert_eq!(error.class, crate::ErrorClass::Config);
        assert!(error.message.contains(r#""page-size" is "many""#), "{}", error.message);
    }
}
