//! One entry of `actions`: an API operation that a credential may be used for.
//!
//! ```text
//! DescribeScalingGroups                              by name, at the path /
//! DescribeClusterNodePools GET /clusters/*/nodepools by name, with this method and path; a star is one segment
//! ```
//!
//! Operations of AliCloud's RPC style are what the request names. Those of its ROA style are what method and path say,
//! whatever the request calls them: so the path must be granted too.

use std::fmt;

use http::Method;

/// An operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActionGrant {
    name: String,
    /// None: the path `/`, with any method.
    route: Option<(Method, String)>,
}

/// Why an entry of `actions` makes no sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "write a name such as DescribeScalingGroups, or name, method and path as in DescribeClusterNodePools GET /clusters/*/nodepools"
)]
pub struct ActionError;

impl ActionGrant {
    /// Reads an entry.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<Self, ActionError> {
        let mut words = text.split_ascii_whitespace();
        let name = words.next().filter(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)));
        let name = name.ok_or(ActionError)?.to_owned();
        let route = match (words.next(), words.next(), words.next()) {
            (None, ..) => None,
            (Some(method), Some(path), None) => {
                let method: Method = method.parse().map_err(|_| ActionError)?;
                let segments = path.strip_prefix('/').ok_or(ActionError)?.split('/');
                let written = method.as_str().bytes().all(|b| b.is_ascii_uppercase());
                let fits = |mut segments: std::str::Split<'_, char>| segments.all(|one| one == "*" || plain(one));
                if !written || !fits(segments) {
                    return Err(ActionError);
                }
                Some((method, path.to_owned()))
            }
            _ => return Err(ActionError),
        };
        Ok(Self { name, route })
    }

    /// Whether it is about the operation of this name.
    pub fn is_about(&self, name: &str) -> bool {
        self.name == name
    }

    /// Whether it grants this method and path to the operation that it is about.
    pub fn covers(&self, method: &Method, path: &str) -> bool {
        let Some((granted, pattern)) = &self.route else { return path == "/" };
        let same = |(pattern, asked): (&str, &str)| pattern == asked || pattern == "*" && plain(asked);
        let (patterns, asked) = (pattern.split('/'), path.split('/'));
        granted == method && patterns.clone().count() == asked.clone().count() && patterns.zip(asked).all(same)
    }
}

/// A segment that is what it seems: nothing in it is encoded, so nobody can read another path out of it.
fn plain(segment: &str) -> bool {
    let letters = segment.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b));
    letters && !segment.is_empty() && segment != "." && segment != ".."
}

/// As one writes it in the file.
impl fmt::Display for ActionGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.route {
            Some((method, path)) => write!(f, " {method} {path}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case::by_name("DescribeScalingGroups", "POST", "/", true)]
    #[case::by_name_with_get("DescribeScalingGroups", "GET", "/", true)]
    #[case::by_name_at_a_path("DescribeScalingGroups", "DELETE", "/clusters/c1", false)]
    #[case::path("Pools GET /clusters/*/nodepools", "GET", "/clusters/c1/nodepools", true)]
    #[case::other_method("Pools GET /clusters/*/nodepools", "DELETE", "/clusters/c1/nodepools", false)]
    #[case::longer("Pools GET /clusters/*/nodepools", "GET", "/clusters/c1/nodepools/np1", false)]
    #[case::shorter("Pools GET /clusters/*", "GET", "/clusters", false)]
    #[case::empty_segment("Pools GET /clusters/*/nodepools", "GET", "/clusters//nodepools", false)]
    #[case::slash_at_the_end("Pools GET /clusters/*", "GET", "/clusters/c1/", false)]
    #[case::encoded_slash("Pools DELETE /clusters/*", "DELETE", "/clusters/c1%2Fnodes", false)]
    #[case::encoded_dots("Pools GET /clusters/*/nodepools", "GET", "/clusters/%2e%2e/nodepools", false)]
    #[case::not_the_root("Pools GET /clusters/*/nodepools", "GET", "/", false)]
    fn grants(#[case] entry: &str, #[case] method: Method, #[case] path: &str, #[case] granted: bool) {
        let entry = ActionGrant::parse(entry).unwrap();
        assert_eq!(entry.covers(&method, path), granted);
        assert_eq!(ActionGrant::parse(&entry.to_string()), Ok(entry));
    }

    #[rstest::rstest]
    #[case("")]
    #[case("Describe*")]
    #[case("Pools GET")]
    #[case("Pools get /clusters")]
    #[case("Pools GET clusters")]
    #[case("Pools GET /clusters/c*")]
    #[case("Pools GET /clusters/../x")]
    #[case("Pools GET /clusters /x")]
    fn refuses(#[case] entry: &str) {
        assert_eq!(ActionGrant::parse(entry), Err(ActionError));
    }
}
