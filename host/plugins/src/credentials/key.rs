//! Keys of a cloud account: what they are, and where they come from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::Exposed;
use super::error::CredentialError;
use crate::Pending;

/// A key id with its secret and token. One record that never changes: parts of two keys are never mixed.
#[derive(Clone)]
pub struct Key {
    /// Id of the key.
    pub id: String,
    /// What signs.
    pub secret: SecretString,
    /// Security token that belongs to a temporary key.
    pub token: Option<SecretString>,
    /// When it was had and when it ends, since the Unix epoch; none: it does not end.
    pub life: Option<Life>,
}

/// When a temporary key was had, and when it ends; since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life {
    /// When the host got it.
    pub since: Duration,
    /// When the cloud stops taking it.
    pub until: Duration,
}

/// A key is renewed when so much of its life has passed …
const SHARE: f64 = 0.8;
/// … or when only so much is left, whichever comes first.
const REST: Duration = Duration::from_secs(300);

impl Life {
    /// When to have a new key; never in the first half, so that a short life does not turn every request into a fetch.
    pub(super) fn renew_at(&self) -> Duration {
        let life = self.until.saturating_sub(self.since);
        let after = life.mul_f64(SHARE).min(life.saturating_sub(REST)).max(life / 2);
        self.since + after
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.id.chars().take(4).collect();
        f.debug_struct("Key").field("id", &format!("{shown}…")).field("life", &self.life).finish_non_exhaustive()
    }
}

/// Has a key at hand.
pub trait KeySource: Send + Sync {
    /// The key to sign with now.
    fn key(&self) -> Pending<'_, Result<Arc<Key>, CredentialError>>;
    /// The cloud does not take the key of a request that showed this, whatever its life says. `true`: the next one is
    /// another.
    fn refused(&self, _shown: &Exposed) -> bool {
        false
    }
}
