//! What the JSON reader says, in words of the file rather than of the reader.

/// The text of an error without the place, which readers tell in terms of the whole file.
pub(crate) fn json_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    plain(text.strip_suffix(&place).unwrap_or(&text))
}

/// A message of the deserializer in plain words. What is not known stays as it is.
pub(crate) fn plain(message: &str) -> String {
    mismatch(message).or_else(|| field(message)).unwrap_or_else(|| {
        let known = match message {
            "recursion limit exceeded" => "it is nested too deep",
            "expected ident" => "expected true, false or null",
            "expected value" => "expected a value",
            "key must be a string" => "expected a key in quotes",
            other => other,
        };
        known.to_owned()
    })
}

/// `invalid type: map, expected a string`, and the like.
fn mismatch(message: &str) -> Option<String> {
    let rest = ["invalid type: ", "invalid value: ", "invalid length "];
    let rest = rest.iter().find_map(|prefix| message.strip_prefix(prefix))?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    Some(format!("expected {}, found {}", expected_in_words(expected), found_in_words(found)))
}

fn found_in_words(found: &str) -> String {
    let (kind, value) = match found.split_once([' ', '(']) {
        Some((kind, value)) => (kind, value),
        None => (found, ""),
    };
    let number = || value.trim_start_matches("point ").trim_matches('`').to_owned();
    match kind {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "string" => format!("the text {value}"),
        "integer" | "floating" => format!("the number {}", number()),
        "boolean" => number(),
        "null" | "unit" | "Option" => "nothing".to_owned(),
        _ => found.to_owned(),
    }
}

fn expected_in_words(expected: &str) -> String {
    match expected {
        "a string" => "a text",
        "a map" => "an object",
        "a sequence" => "a list",
        "a boolean" => "true or false",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of 0 or more",
        "f32" | "f64" => "a number",
        // A type by its name: what the API calls the object, or what the struct is called here.
        other if other.starts_with("struct ") => "an object",
        other => other,
    }
    .to_owned()
}

/// ``missing field `name` ``, and the like.
fn field(message: &str) -> Option<String> {
    let quoted = |rest: &str| rest.split('`').nth(1).map(str::to_owned);
    if let Some(rest) = message.strip_prefix("missing field ") {
        return Some(format!("{} is missing", quoted(rest)?));
    }
    if let Some(rest) = message.strip_prefix("duplicate field ") {
        return Some(format!("{:?} is there twice; keep one of them", quoted(rest)?));
    }
    let rest = message.strip_prefix("unknown field ")?;
    let known: Vec<&str> = rest.split('`').skip(3).step_by(2).collect();
    Some(format!("{:?} is not a field here; expected one of {}", quoted(rest)?, known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_speak_of_the_file() {
        for (message, expected) in [
            ("invalid type: map, expected a string", "expected a text, found an object"),
            ("invalid type: sequence, expected PodSpec", "expected PodSpec, found a list"),
            ("invalid type: string \"many\", expected i64", "expected a whole number, found the text \"many\""),
            (
                "invalid type: string \"a, expected b\", expected i64",
                "expected a whole number, found the text \"a, expected b\"",
            ),
            ("invalid type: floating point `1.5`, expected i32", "expected a whole number, found the number 1.5"),
            ("invalid value: integer `-1`, expected u32", "expected a whole number of 0 or more, found the number -1"),
            ("invalid type: boolean `true`, expected a string", "expected a text, found true"),
            ("invalid type: null, expected a sequence", "expected a list, found nothing"),
            ("invalid type: unit value, expected struct Spec", "expected an object, found nothing"),
            ("missing field `maxSize`", "maxSize is missing"),
            ("duplicate field `kind`", "\"kind\" is there twice; keep one of them"),
            (
                "unknown field `maxsize`, expected one of `minSize`, `maxSize`",
                "\"maxsize\" is not a field here; expected one of minSize, maxSize",
            ),
            ("unknown field `x`, expected `a` or `b`", "\"x\" is not a field here; expected one of a, b"),
            ("recursion limit exceeded", "it is nested too deep"),
            ("expected `,` or `}`", "expected `,` or `}`"),
        ] {
            assert_eq!(plain(message), expected, "{message}");
        }
    }
}
