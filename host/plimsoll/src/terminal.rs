//! How text is shown: colour or not, numbers, plurals.

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

/// Writes to standard output. A reader that went away is no error.
pub(crate) fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a line to standard error.
pub(crate) fn complain(text: &str) {
    // Nobody is left to tell if this fails.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
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
    fn numbers_and_plurals() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
        assert_eq!(plural(1, "class"), "1 class");
        assert_eq!(plural(2, "class"), "2 classes");
        assert_eq!(plural(6108, "pod"), "6,108 pods");
    }
}
