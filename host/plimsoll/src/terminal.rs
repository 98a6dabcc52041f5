//! How text is shown: colour or not, numbers, plurals.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};

/// Whether text may carry colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ink {
    colour: bool,
}

impl Ink {
    /// Colour for a terminal, unless `NO_COLOR` is set.
    pub(crate) fn for_stdout() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { colour: wanted && std::io::stdout().is_terminal() }
    }

    fn style(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A heading.
    pub(crate) fn heading(self, text: &str) -> String {
        self.style("1", text)
    }

    /// Something to look at.
    pub(crate) fn warning(self, text: &str) -> String {
        self.style("33", text)
    }
}

/// Styles that this program writes itself.
const STYLES: &[&str] = &["\x1b[0m", "\x1b[1m", "\x1b[33m"];

/// Text for a terminal: whatever names and messages hold, only our own styles, line ends and tabs have an effect there.
/// Characters that change the direction of writing are shown too.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let tricky = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(tricky) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(style) = STYLES.iter().find(|style| rest.starts_with(**style)) {
            shown.push_str(style);
            rest = rest.get(style.len()..).unwrap_or_default();
            continue;
        }
        match tricky(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    Cow::Owned(shown)
}

/// Writes to standard output. A reader that went away is no error.
pub(crate) fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(harmless(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a line to standard error.
pub(crate) fn complain(text: &str) {
    // Nobody is left to tell if this fails.
    let _ = writeln!(std::io::stderr().lock(), "{}", harmless(text));
}

/// A number with separators.
pub(crate) fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun.
pub(crate) fn plural(number: usize, noun: &str) -> String {
    let noun = match (number, noun) {
        (1, noun) => noun.to_owned(),
        (_, noun) if noun.ends_with('s') => format!("{noun}es"),
        (_, noun) => format!("{noun}s"),
    };
    format!("{} {noun}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_our_own_styles_reaches_a_terminal() {
        for (text, shown) in [
            ("plain ü\n", "plain ü\n"),
            ("\x1b[1mheading\x1b[0m", "\x1b[1mheading\x1b[0m"),
            ("a\x1b]0;title\x07b", "a\\u{1b}]0;title\\u{7}b"),
            ("a\rb\u{9b}31m\u{202e}", "a\\rb\\u{9b}31m\\u{202e}"),
        ] {
            assert_eq!(harmless(text), shown);
        }
    }

    #[test]
    fn numbers_and_plurals() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
        assert_eq!(plural(1, "class"), "1 class");
        assert_eq!(plural(2, "class"), "2 classes");
        assert_eq!(plural(6108, "pod"), "6,108 pods");
    }
}
