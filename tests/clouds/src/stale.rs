//! The world as it was before the last write, for reads that come too early.

use std::time::Duration;

use crate::clock::UnixMs;

/// A world and, for a while, its state before the last write.
#[derive(Clone, Debug)]
pub struct Kept<W> {
    /// The world as it is.
    pub world: W,
    before: Option<(UnixMs, W)>,
}

impl<W: Clone> Kept<W> {
    /// A world that nobody has written to.
    pub fn new(world: W) -> Self {
        Self { world, before: None }
    }

    /// Keep the present state: a write comes.
    pub fn writing(&mut self, now: UnixMs) {
        self.before = Some((now, self.world.clone()));
    }

    /// What a read sees when reads are stale for so long after a write.
    pub fn seen(&self, now: UnixMs, stale_for: Option<Duration>) -> &W {
        match (&self.before, stale_for) {
            (Some((at, before)), Some(window)) if now < *at + window => before,
            _ => &self.world,
        }
    }
}
