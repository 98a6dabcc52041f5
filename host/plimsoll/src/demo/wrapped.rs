//! Lines broken to a width, their second and later rows indented, and no more of them than fit.

use ratatui::text::Span;

fn width_of(text: &str) -> usize {
    Span::raw(text).width()
}

/// A text as rows of at most `width` columns, broken between words; all rows but the first begin with `indent` spaces. A
/// word that is longer than a row is broken too.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let indent = indent.min(width / 2);
    let mut rows = Vec::new();
    let mut row = String::new();
    for word in text.split_inclusive(' ') {
        if width_of(&row) + width_of(word.trim_end()) > width && !row.trim().is_empty() {
            rows.push(std::mem::replace(&mut row, " ".repeat(indent)));
        }
        for letter in word.chars() {
            if width_of(&row) + width_of(letter.encode_utf8(&mut [0; 4])) > width && letter != ' ' {
                rows.push(std::mem::replace(&mut row, " ".repeat(indent)));
            }
            row.push(letter);
        }
    }
    rows.push(row);
    rows.into_iter().map(|row| row.trim_end().to_owned()).collect()
}

/// As many rows of wrapped entries as `height` takes; if that is not all, the last one says how many entries are cut.
pub(crate) fn fit(entries: &[Vec<String>], height: usize) -> Vec<String> {
    let all: usize = entries.iter().map(Vec::len).sum();
    if all <= height {
        return entries.concat();
    }
    let room = height.saturating_sub(1);
    let mut rows: Vec<String> = Vec::with_capacity(height);
    let mut whole = 0;
    for entry in entries {
        if rows.len() + entry.len() > room {
            break;
        }
        rows.extend(entry.iter().cloned());
        whole += 1;
    }
    // Rather a part of the first than nothing.
    if whole == 0 {
        rows.extend(entries.first().into_iter().flatten().take(room).cloned());
    }
    rows.push(format!("+{} more", entries.len() - whole));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_indent() {
        for (text, width, indent, expected) in [
            ("short", 10, 2, &["short"][..]),
            ("one two three", 8, 2, &["one two", "  three"]),
            ("a verylongword", 6, 2, &["a", "  very", "  long", "  word"]),
            ("exactly8", 8, 2, &["exactly8"]),
            ("ends with ", 9, 0, &["ends with"]),
            ("", 8, 2, &[""]),
        ] {
            assert_eq!(wrap(text, width, indent), expected, "{text:?}");
        }
    }

    #[test]
    fn rows_are_never_too_wide() {
        let text =
            "kept workers-a-002 is idle but stays: shop/orders-2: PodDisruptionBudget orders · averyveryverylongname";
        for width in 1..60 {
            for row in wrap(text, width, 15) {
                assert!(width_of(&row) <= width, "{width}: {row:?}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let entry = |rows: &[&str]| rows.iter().map(|&row| row.to_owned()).collect::<Vec<String>>();
        let entries = [entry(&["a1", "a2"]), entry(&["b1"]), entry(&["c1", "c2"])];
        for (height, expected) in [
            (5, &["a1", "a2", "b1", "c1", "c2"][..]),
            (4, &["a1", "a2", "b1", "+1 more"]),
            (3, &["a1", "a2", "+2 more"]),
            (2, &["a1", "+3 more"]),
        ] {
            assert_eq!(fit(&entries, height), expected, "{height} rows");
        }
    }
}
