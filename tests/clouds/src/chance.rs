//! Chance that comes out the same again for the same seed.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// A source of chance.
#[derive(Clone, Debug)]
pub struct Chance(ChaCha8Rng);

impl Chance {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below `limit`; zero if the limit is zero.
    pub fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        usize::try_from(self.0.next_u64().checked_rem(limit).unwrap_or(0)).unwrap_or(0)
    }

    /// True in so many cases of a hundred.
    pub fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < usize::from(percent)
    }

    /// One of these; none if there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let index = self.below(from.len());
        from.get(index)
    }

    /// A time from the one to the other, both possible, in milliseconds.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = usize::try_from(most.saturating_sub(least).as_millis()).unwrap_or(0);
        least + Duration::from_millis(u64::try_from(self.below(span + 1)).unwrap_or(0))
    }

    /// A text of lower-case letters and digits.
    pub fn token(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
        (0..length).filter_map(|_| self.pick(LETTERS).copied()).map(char::from).collect()
    }

    /// An identifier like `3D57EAD2-8723-1F26-B69C-F8707D8B565D`.
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.0.next_u64(), self.0.next_u64());
        let digits = format!("{high:016X}{low:016X}");
        let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
        format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Chance;

    #[test]
    fn the_same_seed_gives_the_same() {
        let draw = |seed| {
            let mut chance = Chance::new(seed);
            (chance.uuid(), chance.token(8), chance.below(1000))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn bounds_are_kept() {
        let mut chance = Chance::new(1);
        let (least, most) = (Duration::from_secs(20), Duration::from_secs(90));
        for _ in 0..1000 {
            assert!((least..=most).contains(&chance.between(least, most)));
            assert!(chance.below(3) < 3);
        }
        assert_eq!(chance.below(0), 0);
        assert_eq!(chance.pick::<u8>(&[]), None);
    }
}
