//! From bytes to documents.

use memchr::{memchr_iter, memmem};

use super::error::Problem;

/// The bytes as text, or what is wrong and in which line.
pub(super) fn decode(bytes: &[u8]) -> Result<&str, (u64, Problem)> {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Err((1, Problem::Utf16)),
        [0x1f, 0x8b, ..] => return Err((1, Problem::Gzip)),
        _ => {}
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to();
        let line = 1 + newlines(bytes.get(..offset).unwrap_or_default());
        (line, Problem::NotText { offset })
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_ascii().is_empty() {
        return Err((1, Problem::Empty));
    }
    Ok(text)
}

pub(super) fn newlines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// A document of a file: what stands between two lines that start with `---`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document<'a> {
    /// Its text.
    pub(super) text: &'a str,
    /// Line of the file that it starts in, from 1.
    pub(super) line: u64,
}

/// The documents of a file, empty ones too.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Document<'_>> {
    let bytes = text.as_bytes();
    let breaks = memmem::find_iter(bytes, b"\n---").filter(|at| {
        let after = bytes.get(at + 4);
        after.is_none_or(|byte| byte.is_ascii_whitespace())
    });
    let ends = breaks.map(|at| at + 1).chain([text.len()]);
    let (mut start, mut line) = (0, 1);
    ends.map(move |end| {
        let document = Document { text: text.get(start..end).unwrap_or_default(), line };
        line += newlines(document.text.as_bytes());
        start = end;
        document
    })
}

impl<'a> Document<'a> {
    /// Whether it looks like JSON rather than YAML in braces, whose keys need no quotes.
    pub(super) fn is_json(&self) -> bool {
        let Some(inside) = self.content().strip_prefix(['{', '[']) else { return false };
        matches!(inside.trim_ascii_start().bytes().next(), None | Some(b'"' | b'{' | b'[' | b'}' | b']'))
    }

    /// What is left after comments, directives, markers and blank lines at the start.
    pub(super) fn content(&self) -> &'a str {
        let mut rest = self.text;
        loop {
            rest = rest.trim_ascii_start();
            if let Some(after) =
                rest.strip_prefix("---").filter(|after| after.is_empty() || after.starts_with(is_blank))
            {
                rest = after;
            } else if rest.starts_with(['#', '%']) || rest.trim_ascii_end() == "..." {
                rest = rest.split_once('\n').map_or("", |(_, after)| after);
            } else {
                return rest;
            }
        }
    }

    /// Whether there is anything but comments and markers.
    pub(super) fn has_content(&self) -> bool {
        !self.content().is_empty()
    }

    /// Line of the file in which its content starts.
    pub(super) fn content_line(&self) -> u64 {
        let skipped = self.text.len() - self.content().len();
        self.line + newlines(self.text.get(..skipped).unwrap_or_default().as_bytes())
    }
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_split_at_markers() {
        for (name, text, expected) in [
            ("one", "a: 1\n", vec![(1, "a: 1\n")]),
            ("two", "a: 1\n---\nb: 2\n", vec![(1, "a: 1\n"), (2, "---\nb: 2\n")]),
            ("marker first", "--- \na: 1\n---", vec![(1, "--- \na: 1\n"), (3, "---")]),
            ("content on the marker's line", "a: 1\n--- {b: 2}\n", vec![(1, "a: 1\n"), (2, "--- {b: 2}\n")]),
            ("no marker", "a: |\n  x\n----\n", vec![(1, "a: |\n  x\n----\n")]),
            ("windows lines", "a: 1\r\n---\r\nb: 2", vec![(1, "a: 1\r\n"), (2, "---\r\nb: 2")]),
        ] {
            let found: Vec<_> = documents(text).map(|document| (document.line, document.text)).collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn formats_are_told_apart() {
        for (text, is_json, has_content) in [
            ("{\"a\": 1}", true, true),
            ("  {\n \"a\": 1}", true, true),
            ("{", true, true),
            ("[{\"a\": 1}]", true, true),
            ("{a: 1}", false, true),
            ("a: {\"b\": 1}", false, true),
            ("---\n{\"a\": 1}", true, true),
            ("# {\"a\": 1}\n", false, false),
            ("%YAML 1.2\n---\n# nothing\n...\n", false, false),
            ("...", false, false),
        ] {
            let document = Document { text, line: 1 };
            assert_eq!((document.is_json(), document.has_content()), (is_json, has_content), "{text:?}");
        }
    }
}
