//! Takes echoes of a signature out of a response. A server that answers with the request's own headers, as debugging
//! servers and some error messages do, must not hand the guest what the host kept from it.
//!
//! What is found: the secret as it was sent, percent-encoded once and twice, with escaped slashes as in JSON, and in
//! Base64. A server that packs it in another way on purpose can hand it over: that is why a credential is bound to hosts.

use std::ops::Range;

use aho_corasick::packed::{self, Searcher};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use secrecy::ExposeSecret as _;

use crate::credentials::{Exposed, encode};

/// Shorter texts are no secrets, and taking them out would garble everything.
const LEAST_BYTES: usize = 4;

/// Replaces secrets by stars, so that lengths stay as they are.
pub(super) struct Redactor {
    search: Option<Search>,
    longest: usize,
    /// Bytes that may be the begin of a secret.
    held: BytesMut,
}

impl Redactor {
    /// Takes nothing out.
    pub(super) fn idle() -> Self {
        Self { search: None, longest: 0, held: BytesMut::new() }
    }

    /// Takes these out.
    pub(super) fn new(exposed: &Exposed) -> Self {
        let mut texts = vec![];
        for text in exposed.texts().iter().map(|text| text.expose_secret()) {
            if text.len() >= LEAST_BYTES {
                texts.extend(disguises(text));
            }
        }
        texts.sort_unstable();
        texts.dedup();
        let longest = texts.iter().map(String::len).max().unwrap_or(0);
        let search = if texts.is_empty() { None } else { Search::new(&texts) };
        Self { search, longest, held: BytesMut::new() }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.search.is_none()
    }

    /// The text without secrets; none: there are none in it.
    pub(super) fn redacted(&self, text: &[u8]) -> Option<Vec<u8>> {
        let search = self.search.as_ref()?;
        let mut clean = text.to_vec();
        let mut found = false;
        for range in search.hits(text) {
            found = true;
            clean.get_mut(range).unwrap_or_default().fill(b'*');
        }
        found.then_some(clean)
    }

    /// The next bytes that can be passed on.
    pub(super) fn pass(&mut self, data: Bytes) -> Bytes {
        if self.search.is_none() {
            return data;
        }
        self.held.extend_from_slice(&data);
        // A secret that begins before this is here as a whole.
        let sure = (self.held.len() + 1).saturating_sub(self.longest);
        self.release(sure)
    }

    /// What was held back at the end.
    pub(super) fn finish(mut self) -> Bytes {
        let all = self.held.len();
        self.release(all)
    }

    fn release(&mut self, sure: usize) -> Bytes {
        let Some(search) = &self.search else { return Bytes::new() };
        let hits: Vec<_> = search.hits(&self.held).take_while(|range| range.start < sure).collect();
        let mut end = sure;
        for range in hits {
            end = end.max(range.end);
            self.held.get_mut(range).unwrap_or_default().fill(b'*');
        }
        self.held.split_to(end.min(self.held.len())).freeze()
    }
}

/// Finds texts, of those that begin at one place the longest. Each signature is new, so each request has its own: what
/// counts is that it is made quickly. The first kind is, and it searches with the wide registers of the processor; where
/// there are none, or too many texts, the second does.
enum Search {
    Wide(Searcher),
    Automaton(AhoCorasick),
}

impl Search {
    /// None: there is more text than a request may have.
    fn new(texts: &[String]) -> Option<Self> {
        let mut wide = packed::Config::new().match_kind(packed::MatchKind::LeftmostLongest).builder();
        let automaton = || {
            let kind = Some(AhoCorasickKind::NoncontiguousNFA);
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).kind(kind).build(texts).ok()
        };
        wide.extend(texts).build().map(Self::Wide).or_else(|| automaton().map(Self::Automaton))
    }

    fn hits<'a>(&'a self, text: &'a [u8]) -> Box<dyn Iterator<Item = Range<usize>> + 'a> {
        match self {
            Self::Wide(search) => Box::new(search.find_iter(text).map(|hit| hit.range())),
            Self::Automaton(search) => Box::new(search.find_iter(text).map(|hit| hit.range())),
        }
    }
}

fn disguises(text: &str) -> Vec<String> {
    let once = encode(text);
    let twice = encode(&once);
    let base64 = STANDARD.encode(text);
    vec![text.to_owned(), once, twice, text.replace('/', "\\/"), base64.trim_end_matches('=').to_owned()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn streamed(secrets: &[&str], text: &str, size: usize) -> String {
        let mut redactor = Redactor::new(&Exposed::new(secrets.iter().map(|text| (*text).to_owned())));
        let mut out = vec![];
        for piece in text.as_bytes().chunks(size) {
            out.extend_from_slice(&redactor.pass(Bytes::copy_from_slice(piece)));
        }
        out.extend_from_slice(&redactor.finish());
        String::from_utf8(out).unwrap()
    }

    #[rstest::rstest]
    #[case::plain("CAIS+/x=", "a CAIS+/x= b", "a ******** b")]
    #[case::encoded("CAIS+/x=", "t=CAIS%2B%2Fx%3D&", "t=**************&")]
    #[case::encoded_twice("CAIS+/x=", "CAIS%252B%252Fx%253D", "********************")]
    #[case::json("CAIS+/x=", "\"CAIS+\\/x=\"", "\"*********\"")]
    #[case::base64("s3cret", "czNjcmV0", "********")]
    #[case::twice("s3cret", "s3crets3cret", "************")]
    #[case::begin_of_one("s3cret", "s3cre s3cret", "s3cre ******")]
    #[case::short("abc", "abc", "abc")]
    #[case::none("s3cret", "", "")]
    fn takes_out(#[case] secret: &str, #[case] text: &str, #[case] expected: &str) {
        for size in 1..=text.len().max(1) {
            assert_eq!(streamed(&[secret], text, size), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_secret_within_another_does_not_leave_the_rest() {
        for size in 1..20 {
            assert_eq!(streamed(&["s3cret", "s3cret-and-more"], "x s3cret-and-more y", size), "x *************** y");
        }
    }

    #[test]
    fn more_texts_than_fit_the_wide_search_are_found_too() {
        let secrets: Vec<String> = (0..200).map(|n| format!("secret-{n}")).collect();
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        for size in [1, 7, 100] {
            assert_eq!(streamed(&secrets, "a secret-199 secret-1 b", size), "a ********** ******** b");
        }
    }

    proptest! {
        /// What is found does not depend on how it is searched for.
        #[test]
        fn both_searches_agree(text in "[ab]{0,80}", secrets in proptest::collection::vec("[ab]{4,9}", 1..6)) {
            let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&secrets).unwrap();
            let expected: Vec<_> = automaton.find_iter(&text).map(|hit| hit.range()).collect();
            let search = Search::new(&secrets).unwrap();
            prop_assert_eq!(search.hits(text.as_bytes()).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn pieces_make_no_difference(text in "[ab1]{0,60}", secret in "[ab1]{4,9}", size in 1_usize..20) {
            let whole = streamed(&[&secret], &text, text.len().max(1));
            prop_assert_eq!(&streamed(&[&secret], &text, size), &whole);
            prop_assert_eq!(whole.len(), text.len());
            prop_assert!(!whole.contains(&secret));
        }
    }
}
