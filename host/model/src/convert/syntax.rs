//! The syntax of label keys and values, which decides whether a requirement of a selector counts (apimachinery
//! `validation.IsQualifiedName` and `IsValidLabelValue`).

/// Most bytes of a label value, and of a key without its prefix.
const NAME_MAX: usize = 63;
/// Most bytes of the prefix of a key.
const PREFIX_MAX: usize = 253;

/// Whether a text can be a label key: `name` or `dns.prefix/name`.
pub(crate) fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        None => is_name(text),
    }
}

/// Whether a text can be a label value: empty, or like the name of a key.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    bytes.len() <= NAME_MAX
        && ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_subdomain(text: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= PREFIX_MAX
        && text.split('.').map(str::as_bytes).all(|label| {
            label.first().is_some_and(plain)
                && label.last().is_some_and(plain)
                && label.iter().all(|byte| plain(byte) || *byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_keys() {
        let long = "a".repeat(64);
        for (key, valid) in [
            ("a", true),
            ("A-b_c.d", true),
            ("example.com/pool", true),
            ("a.b-c.d0/x", true),
            ("", false),
            ("/x", false),
            ("example.com/", false),
            ("a/b/c", false),
            ("Example.com/x", false),
            ("-a", false),
            ("a-", false),
            ("a b", false),
            ("é", false),
            ("a..b/x", false),
            ("-a.b/x", false),
            (&long[..63], true),
            (&long, false),
        ] {
            assert_eq!(is_qualified_name(key), valid, "{key:?}");
        }
    }

    #[test]
    fn label_values() {
        for (value, valid) in [
            ("", true),
            ("0206", true),
            ("v1.2_x-y", true),
            ("-5", false),
            ("+5", false),
            ("{{.x}}", false),
            ("a/b", false),
        ] {
            assert_eq!(is_label_value(value), valid, "{value:?}");
        }
    }
}
