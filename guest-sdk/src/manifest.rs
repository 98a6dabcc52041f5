//! What a plug-in says about itself before it runs: the custom section `autoscaler:plugin`, as JSON.
//!
//! A manifest only wishes. What the plug-in gets is decided by the operator's grant; the host shows the difference.

/// Version of the contract that this crate is built for, as `MAJOR.MINOR`.
pub const API: &str = "0.1";

/// Which world a plug-in targets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// World `cloud-provider`.
    CloudProvider,
    /// World `expander`.
    Expander,
}

/// A wish for a credential that the host keeps and signs with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credential {
    /// Name by which requests refer to it (see [`Client::credential`](crate::http::Client::credential)).
    pub slot: &'static str,
    /// How the host signs, such as `bearer` or `alicloud-v3`.
    pub kind: &'static str,
    /// Hosts that it may be sent to.
    pub hosts: &'static [&'static str],
}

impl Credential {
    /// A token that the host sends as `authorization: Bearer …`.
    pub const fn bearer(slot: &'static str, hosts: &'static [&'static str]) -> Self {
        Self { slot, kind: "bearer", hosts }
    }

    /// A credential of another kind; the host's documentation lists the kinds that it can sign.
    pub const fn of_kind(kind: &'static str, slot: &'static str, hosts: &'static [&'static str]) -> Self {
        Self { slot, kind, hosts }
    }
}

/// What a plug-in is and what it wishes for. Build it in a constant:
///
/// ```
/// use plimsoll_guest::{Credential, Manifest};
///
/// const MANIFEST: Manifest = Manifest::provider("utho", "1.3.0")
///     .hosts(&["https://api.utho.com"])
///     .credentials(&[Credential::bearer("api", &["api.utho.com"])])
///     .memory_mib(64)
///     .call_seconds(20);
///
/// assert!(MANIFEST.to_json().contains(r#""hosts":["https://api.utho.com"]"#));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manifest {
    kind: Kind,
    name: &'static str,
    version: &'static str,
    hosts: &'static [&'static str],
    credentials: &'static [Credential],
    node_labels: &'static [&'static str],
    memory_mib: u32,
    call_seconds: u32,
    settings_schema: &'static str,
    optional: &'static [&'static str],
}

impl Manifest {
    /// Manifest of an expander. Normally `Manifest::expander("my-name", env!("CARGO_PKG_VERSION"))`.
    pub const fn expander(name: &'static str, version: &'static str) -> Self {
        Self::new(Kind::Expander, name, version)
    }

    /// Manifest of a cloud provider. Normally `Manifest::provider("my-cloud", env!("CARGO_PKG_VERSION"))`.
    pub const fn provider(name: &'static str, version: &'static str) -> Self {
        Self::new(Kind::CloudProvider, name, version)
    }

    const fn new(kind: Kind, name: &'static str, version: &'static str) -> Self {
        Self {
            kind,
            name,
            version,
            hosts: &[],
            credentials: &[],
            node_labels: &[],
            memory_mib: 0,
            call_seconds: 0,
            settings_schema: "",
            optional: &[],
        }
    }

    /// Origins that it wishes to reach, such as `https://api.utho.com` (providers only).
    pub const fn hosts(self, hosts: &'static [&'static str]) -> Self {
        Self { hosts, ..self }
    }

    /// Credentials that it wishes to be signed for with (providers only).
    pub const fn credentials(self, credentials: &'static [Credential]) -> Self {
        Self { credentials, ..self }
    }

    /// Node labels that it wishes to see in each option's template (expanders only).
    pub const fn node_labels(self, node_labels: &'static [&'static str]) -> Self {
        Self { node_labels, ..self }
    }

    /// Memory that it needs at most, in MiB.
    pub const fn memory_mib(self, memory_mib: u32) -> Self {
        Self { memory_mib, ..self }
    }

    /// Time that one call needs at most, in seconds.
    pub const fn call_seconds(self, call_seconds: u32) -> Self {
        Self { call_seconds, ..self }
    }

    /// JSON Schema of its settings (see [`config`](crate::config)), as JSON text. Defaults are applied by the host.
    pub const fn settings_schema(self, settings_schema: &'static str) -> Self {
        Self { settings_schema, ..self }
    }

    /// Optional interfaces that it exports. The export macro fills this in.
    #[doc(hidden)]
    pub const fn optional(self, optional: &'static [&'static str]) -> Self {
        Self { optional, ..self }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its version.
    pub const fn version(&self) -> &'static str {
        self.version
    }

    /// The text of the custom section.
    pub fn to_json(&self) -> String {
        let mut json = vec![0; self.json_len()];
        let mut sink = Sink { bytes: &mut json, len: 0 };
        self.write(&mut sink);
        String::from_utf8_lossy(&json).into_owned()
    }

    /// Length of the text in bytes.
    #[doc(hidden)]
    pub const fn json_len(&self) -> usize {
        let mut sink = Sink { bytes: &mut [], len: 0 };
        self.write(&mut sink);
        sink.len
    }

    /// The text as an array, for a static.
    #[doc(hidden)]
    pub const fn json<const LENGTH: usize>(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let mut sink = Sink { bytes: &mut bytes, len: 0 };
        self.write(&mut sink);
        bytes
    }

    const fn write(&self, out: &mut Sink<'_>) {
        out.raw("{\"kind\":");
        out.text(match self.kind {
            Kind::CloudProvider => "cloud-provider",
            Kind::Expander => "expander",
        });
        out.raw(",\"name\":");
        out.text(self.name);
        out.raw(",\"version\":");
        out.text(self.version);
        out.raw(",\"api\":");
        out.text(API);
        if !self.hosts.is_empty() {
            out.raw(",\"hosts\":");
            out.texts(self.hosts);
        }
        if !self.credentials.is_empty() {
            out.raw(",\"credentials\":[");
            self.write_credentials(out);
            out.raw("]");
        }
        if !self.node_labels.is_empty() {
            out.raw(",\"labels\":");
            out.texts(self.node_labels);
        }
        self.write_limits(out);
        if !self.optional.is_empty() {
            out.raw(",\"optional\":");
            out.texts(self.optional);
        }
        if !self.settings_schema.is_empty() {
            out.raw(",\"settings-schema\":");
            out.raw(self.settings_schema);
        }
        out.raw("}");
    }

    const fn write_credentials(&self, out: &mut Sink<'_>) {
        let mut rest = self.credentials;
        while let [first, tail @ ..] = rest {
            out.raw("{\"slot\":");
            out.text(first.slot);
            out.raw(",\"kind\":");
            out.text(first.kind);
            out.raw(",\"hosts\":");
            out.texts(first.hosts);
            out.raw("}");
            if !tail.is_empty() {
                out.raw(",");
            }
            rest = tail;
        }
    }

    const fn write_limits(&self, out: &mut Sink<'_>) {
        if self.memory_mib == 0 && self.call_seconds == 0 {
            return;
        }
        out.raw(",\"limits\":{");
        if self.memory_mib != 0 {
            out.raw("\"memory-mib\":");
            out.number(self.memory_mib);
        }
        if self.call_seconds != 0 {
            if self.memory_mib != 0 {
                out.raw(",");
            }
            out.raw("\"call-seconds\":");
            out.number(self.call_seconds);
        }
        out.raw("}");
    }
}

/// Counts bytes, and keeps those that there is room for.
struct Sink<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl Sink<'_> {
    const fn byte(&mut self, byte: u8) {
        if self.len < self.bytes.len() {
            #[expect(clippy::indexing_slicing, reason = "checked above; `get_mut` is not const")]
            {
                self.bytes[self.len] = byte;
            }
        }
        self.len += 1;
    }

    const fn raw(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while let [first, tail @ ..] = rest {
            self.byte(*first);
            rest = tail;
        }
    }

    const fn text(&mut self, text: &str) {
        self.byte(b'"');
        let mut rest = text.as_bytes();
        while let [first, tail @ ..] = rest {
            match *first {
                b'"' | b'\\' => {
                    self.byte(b'\\');
                    self.byte(*first);
                }
                control @ 0..0x20 => {
                    self.raw("\\u00");
                    self.byte(b'0' + (control >> 4));
                    self.byte(hex_digit(control & 15));
                }
                other => self.byte(other),
            }
            rest = tail;
        }
        self.byte(b'"');
    }

    const fn texts(&mut self, texts: &[&str]) {
        self.byte(b'[');
        let mut rest = texts;
        while let [first, tail @ ..] = rest {
            self.text(first);
            if !tail.is_empty() {
                self.byte(b',');
            }
            rest = tail;
        }
        self.byte(b']');
    }

    const fn number(&mut self, number: u32) {
        let mut unit = 1;
        while number / unit >= 10 {
            unit *= 10;
        }
        while unit > 0 {
            // A single digit always fits.
            self.byte(b'0' + (number / unit % 10) as u8);
            unit /= 10;
        }
    }
}

const fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parsed(manifest: Manifest) -> Value {
        serde_json::from_str(&manifest.to_json()).unwrap()
    }

    #[test]
    fn every_field_is_written() {
        const FULL: Manifest = Manifest::provider("utho", "1.3.0")
            .hosts(&["https://api.utho.com", "https://b.example:8443"])
            .credentials(&[
                Credential::bearer("api", &["api.utho.com"]),
                Credential::of_kind("alicloud-v3", "ram", &[]),
            ])
            .memory_mib(64)
            .call_seconds(20)
            .settings_schema(r#"{"type":"object"}"#)
            .optional(&["pricing"]);
        let expected = json!({
            "kind": "cloud-provider", "name": "utho", "version": "1.3.0", "api": "0.1",
            "hosts": ["https://api.utho.com", "https://b.example:8443"],
            "credentials": [
                {"slot": "api", "kind": "bearer", "hosts": ["api.utho.com"]},
                {"slot": "ram", "kind": "alicloud-v3", "hosts": []},
            ],
            "limits": {"memory-mib": 64, "call-seconds": 20},
            "optional": ["pricing"],
            "settings-schema": {"type": "object"},
        });
        assert_eq!(parsed(FULL), expected);
    }

    #[test]
    fn wishes_that_are_not_made_are_left_out() {
        let expected = json!({"kind": "expander", "name": "x", "version": "0", "api": "0.1"});
        assert_eq!(parsed(Manifest::expander("x", "0")), expected);
    }

    #[test]
    fn one_limit_alone() {
        assert_eq!(parsed(Manifest::expander("x", "0").call_seconds(3))["limits"], json!({"call-seconds": 3}));
        assert_eq!(parsed(Manifest::expander("x", "0").memory_mib(1000))["limits"], json!({"memory-mib": 1000}));
    }

    #[test]
    fn text_is_escaped() {
        let text = "a \"quoted\" back\\slash, a\ttab, a\u{1}bell, naïve 日本";
        assert_eq!(parsed(Manifest::expander("x", text))["version"], json!(text));
    }

    #[test]
    fn labels_are_listed() {
        assert_eq!(parsed(Manifest::expander("x", "0").node_labels(&["a", "b"]))["labels"], json!(["a", "b"]));
    }

    #[test]
    fn the_array_holds_the_same_text() {
        const SMALL: Manifest = Manifest::expander("x", "0").node_labels(&["a", "b"]);
        const BYTES: [u8; SMALL.json_len()] = SMALL.json();
        assert_eq!(SMALL.to_json().as_bytes(), BYTES);
    }
}
