//! Percent-encoding as AliCloud signs it (RFC 3986): a space is `%20`, never `+`; `*` and `/` are encoded, `~` is not.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// One name or value.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// `name=value&name=value`, in the order given.
pub(in crate::credentials) fn query<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs = parameters.into_iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// The same in byte order of names, as it is signed.
pub(super) fn canonical(parameters: &[(String, String)]) -> String {
    let mut sorted: Vec<_> = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    sorted.sort_unstable();
    query(sorted)
}

/// Lower-case hex.
pub(in crate::credentials) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_encoded_like_the_reference() {
        for character in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let mut bytes = [0; 4];
            let text = character.encode_utf8(&mut bytes);
            let expected: String = match text.as_bytes() {
                [byte] if byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) => text.to_owned(),
                bytes => bytes.iter().map(|byte| format!("%{byte:02X}")).collect(),
            };
            assert_eq!(encode(text), expected, "{character:?}");
        }
    }

    #[test]
    fn names_are_in_byte_order() {
        let parameters =
            ["a", "InstanceId.2", "InstanceId.10", "B", "InstanceId.1"].map(|n| (n.to_owned(), "1".into()));
        assert_eq!(canonical(&parameters), "B=1&InstanceId.1=1&InstanceId.10=1&InstanceId.2=1&a=1");
    }
}
