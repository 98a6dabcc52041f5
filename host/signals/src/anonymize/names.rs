//! New names for old ones.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::ops::RangeInclusive;

use hmac::{Hmac, KeyInit as _, Mac as _};
use plimsoll_core::draw;
use sha2::Sha256;

use super::words::KEPT;

/// What new names are made with. With the same key, the end of a name is the same in every dump; without the key, nobody
/// can find out the old name by trying.
#[derive(Clone)]
pub struct Key(Vec<u8>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// A key that nobody knows.
    ///
    /// # Errors
    ///
    /// If the system gives no random bytes.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = vec![0; 32];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The key of a text.
    pub fn of(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }

    fn hash(&self, text: &str) -> String {
        // A key of any length is right for this.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Old names with their new ones.
#[derive(Debug)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    /// New names for all of these but those that stay. They are in the same order as the old ones, among themselves and
    /// beside those that stay; and `groups` among them are drawn in the same order by lot.
    pub(super) fn new(texts: BTreeSet<String>, groups: &BTreeSet<String>, key: &Key) -> Self {
        let lots = lots(groups);
        let texts = texts.into_iter().filter(|text| !KEPT.contains(&text.as_str()));
        let named = texts.enumerate().map(|(rank, text)| {
            let name = format!("{}{rank:06}-{}", before_next(&text), key.hash(&text));
            let name = match lots.get(text.as_str()) {
                Some(lots) => drawn_within(lots, &name),
                None => name,
            };
            (text, name)
        });
        Self(named.collect())
    }

    /// The new name; of what stays, or was never seen, the old one. Nothing that is written was never seen.
    pub(super) fn of(&self, text: &str) -> String {
        self.0.get(text).cloned().unwrap_or_else(|| text.to_owned())
    }
}

/// For each group the part of all lots in which its new name must be drawn: as many parts as groups, in the order in which
/// the groups are drawn. The seed is that of every run that is not told another.
fn lots(groups: &BTreeSet<String>) -> BTreeMap<&str, RangeInclusive<u64>> {
    let mut drawn: Vec<(u64, &str)> = groups.iter().map(|group| (draw(0, group), group.as_str())).collect();
    drawn.sort_unstable();
    let width = u64::MAX / u64::try_from(drawn.len().max(1)).unwrap_or(u64::MAX);
    let part = |(at, (_, group)): (u64, (u64, _))| (group, at * width..=at * width + (width - 1));
    (0..).zip(drawn).map(part).collect()
}

/// The name with the first ending that draws such a lot.
fn drawn_within(lots: &RangeInclusive<u64>, name: &str) -> String {
    let endings = (0_u64..).map(|ending| format!("{name}-{ending:x}"));
    endings.take(MOST_ENDINGS).find(|name| lots.contains(&draw(0, name))).unwrap_or_else(|| name.to_owned())
}

/// More endings than a group of ten thousand needs.
const MOST_ENDINGS: usize = 1_000_000;

/// How the new name of a text begins, so that it stands between the same two kept words as the text.
fn before_next(text: &str) -> String {
    let at = KEPT.partition_point(|kept| *kept < text);
    let (before, after) = (at.checked_sub(1).and_then(|at| KEPT.get(at)), KEPT.get(at));
    between(before.copied().unwrap_or_default(), after.copied())
}

/// A beginning with which every text comes after one word and before another. Letters and digits, apart from what the words
/// have in common.
fn between(before: &str, after: Option<&str>) -> String {
    let (before, after) = (before.as_bytes(), after.map(str::as_bytes));
    let common = after.map_or(0, |after| before.iter().zip(after).take_while(|(a, b)| a == b).count());
    let letter = |above: Option<&u8>, below: u8| {
        let mut letters = (b'0'..=b'9').chain(b'a'..=b'z');
        letters.find(|letter| above.is_none_or(|above| letter > above) && *letter < below)
    };
    let mut begun: Vec<u8> = before.iter().take(common).copied().collect();
    let next = after.and_then(|after| after.get(common)).copied().unwrap_or(AFTER_Z);
    let found = letter(before.get(common), next).or_else(|| {
        if common < before.len() {
            // Neighbours: along the first word, until there is room behind it.
            let mut at = common;
            loop {
                begun.extend(before.get(at));
                at += 1;
                if let Some(letter) = letter(before.get(at), AFTER_Z) {
                    return Some(letter);
                }
                if at >= before.len() {
                    return None;
                }
            }
        }
        // The first word begins the second: along that, until there is room before it.
        for (at, byte) in after?.iter().enumerate().skip(common) {
            begun.push(*byte);
            let next = after?.get(at + 1).copied()?;
            if let Some(letter) = letter(None, next) {
                return Some(letter);
            }
        }
        None
    });
    begun.extend(found);
    String::from_utf8(begun).unwrap_or_default()
}

/// The byte after `z`.
const AFTER_Z: u8 = b'{';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_between_two_words() {
        for (before, after, expected) in [
            ("", Some("amd64"), "0"),
            ("cluster", Some("default"), "cm"),
            ("default", Some("default-scheduler"), "default-0"),
            ("kube-public", Some("kube-system"), "kube-q"),
            ("true", None, "u"),
        ] {
            let found = between(before, after);
            assert_eq!(found, expected);
            assert!(before < format!("{found}0").as_str(), "{before} < {found}");
            assert!(after.is_none_or(|after| format!("{found}z").as_str() < after), "{found}");
        }
    }

    #[test]
    fn kept_words_are_in_order() {
        assert!(KEPT.windows(2).all(|pair| pair[0] < pair[1]), "{KEPT:?}");
    }

    #[test]
    fn order_stays_and_kept_words_too() {
        let old = [
            "",
            "0",
            "10.0.0.1",
            "Amd",
            "a",
            "amd64",
            "arm",
            "arm64",
            "b",
            "cluster",
            "default",
            "default-a",
            "f",
            "kube-a",
            "kube-proxy",
            "kube-system",
            "kube-z",
            "linux",
            "node-1",
            "node-10",
            "node-2",
            "true",
            "uid",
            "zone",
            "Ärger",
        ];
        let names = Names::new(old.iter().map(|text| (*text).to_owned()).collect(), &BTreeSet::new(), &Key::of("key"));
        let mut sorted: Vec<&str> = old.to_vec();
        sorted.sort_unstable();
        let new: Vec<String> = sorted.iter().map(|text| names.of(text)).collect();
        for (pair, old) in new.windows(2).zip(sorted.windows(2)) {
            assert!(pair[0] < pair[1], "{old:?} became {pair:?}");
        }
        for (old, new) in sorted.iter().zip(&new) {
            assert_eq!(KEPT.contains(old), old == new, "{old} became {new}");
        }
    }

    #[test]
    fn groups_are_drawn_in_the_same_order() {
        let groups: BTreeSet<String> = (0..60).map(|index| format!("group-{index}")).collect();
        let names = Names::new(groups.clone(), &groups, &Key::of("key"));
        let mut old: Vec<&String> = groups.iter().collect();
        let mut new: Vec<(String, &String)> = groups.iter().map(|group| (names.of(group), group)).collect();
        old.sort_by_key(|group| draw(0, group));
        new.sort_by_key(|(name, _)| draw(0, name));
        assert_eq!(new.into_iter().map(|(_, group)| group).collect::<Vec<_>>(), old);
    }

    #[test]
    fn names_hang_on_the_key() {
        let named = |key| Names::new(["a".to_owned()].into(), &BTreeSet::new(), &Key::of(key)).of("a");
        assert_eq!(named("one"), named("one"));
        assert_ne!(named("one"), named("two"));
    }
}
