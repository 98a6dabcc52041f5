//! The project that a new author starts from.

/// Where the project finds the crate `plimsoll-guest`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SdkSource {
    /// In a copy of the repository; the path of `guest-sdk`, absolute or from the project's folder.
    Path(String),
    /// In a git repository, at a tag if one is given.
    Git {
        /// Address of the repository.
        url: String,
        /// Tag of a release.
        tag: Option<String>,
    },
}

/// Files of the template: path in the project, and content.
const EXPANDER: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../../guest-sdk/templates/expander/Cargo.toml")),
    ("README.md", include_str!("../../../guest-sdk/templates/expander/README.md")),
    (".gitignore", include_str!("../../../guest-sdk/templates/expander/.gitignore")),
    ("src/lib.rs", include_str!("../../../guest-sdk/templates/expander/src/lib.rs")),
];

/// A new expander project: path of each file in its folder, and content.
///
/// # Errors
/// The name is no name for a crate: it begins with a lower-case letter and goes on with such letters, digits and single
/// hyphens.
pub fn new_expander(name: &str, sdk: &SdkSource) -> Result<Vec<(&'static str, String)>, TemplateError> {
    let letters =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.split('-').all(letters) {
        return Err(TemplateError::Name(name.to_owned()));
    }
    // A debug string is also a valid TOML string for paths and addresses.
    let dependency = match sdk {
        SdkSource::Path(path) => format!("plimsoll-guest = {{ path = {path:?} }}"),
        SdkSource::Git { url, tag: None } => format!("plimsoll-guest = {{ git = {url:?} }}"),
        SdkSource::Git { url, tag: Some(tag) } => format!("plimsoll-guest = {{ git = {url:?}, tag = {tag:?} }}"),
    };
    let fill = |content: &str| {
        let lines = content.lines().filter(|line| !line.starts_with("# This path holds"));
        let lines = lines.map(|line| if line.starts_with("plimsoll-guest =") { dependency.as_str() } else { line });
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        text.replace("my-expander", name).replace("my_expander", &name.replace('-', "_"))
    };
    Ok(EXPANDER.iter().map(|&(path, content)| (path, fill(content))).collect())
}

/// Why there is no project.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The name is no name for a crate.
    #[error(
        "{0:?} cannot be the name of a plug-in; it begins with a lower-case letter and goes on with such letters, digits \
         and single hyphens, as in \"my-expander\""
    )]
    Name(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn file(files: &[(&str, String)], path: &str) -> String {
        files.iter().find(|(name, _)| *name == path).unwrap().1.clone()
    }

    #[test]
    fn name_and_dependency_are_filled_in() {
        let files = new_expander("zone-first", &SdkSource::Path("../plimsoll/guest-sdk".into())).unwrap();
        let manifest = file(&files, "Cargo.toml");
        assert!(manifest.contains("name = \"zone-first\""), "{manifest}");
        assert!(manifest.contains("\nplimsoll-guest = { path = \"../plimsoll/guest-sdk\" }\n"), "{manifest}");
        assert!(!manifest.contains("This path"), "{manifest}");
        assert!(file(&files, "README.md").contains("release/zone_first.wasm -o zone-first.wasm"));
        assert!(files.iter().all(|(_, content)| !content.contains("my-expander") && !content.contains("my_expander")));
    }

    #[rstest]
    #[case::git(None, "plimsoll-guest = { git = \"https://example.com/p\" }")]
    #[case::tag(Some("v1"), "plimsoll-guest = { git = \"https://example.com/p\", tag = \"v1\" }")]
    fn the_crate_may_come_from_git(#[case] tag: Option<&str>, #[case] line: &str) {
        let sdk = SdkSource::Git { url: "https://example.com/p".into(), tag: tag.map(str::to_owned) };
        assert!(file(&new_expander("x", &sdk).unwrap(), "Cargo.toml").contains(line));
    }

    #[rstest]
    #[case::empty("")]
    #[case::upper("MyExpander")]
    #[case::underscore("my_expander")]
    #[case::digit_first("9lives")]
    #[case::two_hyphens("a--b")]
    #[case::last_hyphen("a-")]
    #[case::path("../a")]
    #[case::quote("a\"b")]
    fn other_names_are_refused(#[case] name: &str) {
        let sdk = SdkSource::Path(".".into());
        assert_eq!(new_expander(name, &sdk), Err(TemplateError::Name(name.to_owned())));
    }
}
