//! Short names for content: equal content, equal name. Not for secrets.

/// FNV-1a with 64 bits, over parts that cannot run into each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// Of nothing yet.
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// With one more part.
    pub(crate) fn with(self, part: &str) -> Self {
        // The byte between parts is in no UTF-8 text.
        Self(
            part.bytes()
                .chain([0xff])
                .fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)),
        )
    }

    /// With one more number.
    pub(crate) fn with_number(self, number: u64) -> Self {
        number
            .to_le_bytes()
            .iter()
            .fold(self, |print, byte| Self((print.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    /// The name, 16 hexadecimal digits.
    pub(crate) fn name(self) -> String {
        format!("{:016x}", self.0)
    }

    /// The number behind it.
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

/// A client token for a write: at most 64 ASCII characters, the same for the same key and parts.
pub(crate) fn client_token(key: &str, parts: &[&str]) -> String {
    let one = parts.iter().fold(Fingerprint::new().with(key), |print, part| print.with(part));
    let two = one.with(key).with("again");
    format!("plimsoll-{}{}", one.name(), two.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(Fingerprint::new().with("ab").with("c").name(), Fingerprint::new().with("a").with("bc").name());
        assert_eq!(Fingerprint::new().with("ab").name(), Fingerprint::new().with("ab").name());
    }

    #[test]
    fn a_token_is_short_and_depends_on_key_and_parts() {
        let long = "k".repeat(500);
        let token = client_token(&long, &["asg-1"]);
        assert!(token.is_ascii() && token.len() <= 64, "{token}");
        assert_eq!(token, client_token(&long, &["asg-1"]));
        assert_ne!(token, client_token(&long, &["asg-2"]));
        assert_ne!(token, client_token("other", &["asg-1"]));
    }
}
