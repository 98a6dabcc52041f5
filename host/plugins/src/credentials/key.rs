//! Keys of a cloud account: what they are, and where they come from.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::Exposed;
use super::error::CredentialError;
use super::place::Place;
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

/// Where the keys of a cloud account come from, as configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyConfig {
    /// The first key.
    pub origin: KeyOrigin,
    /// A role that is assumed with it, if any.
    pub assume: Option<Role>,
    /// Base address of the token service.
    pub sts: String,
}

/// Where a first key comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyOrigin {
    /// Files or environment variables.
    AccessKey(AccessKey),
    /// The service account's token, exchanged for a role (RRSA).
    Rrsa(Rrsa),
    /// The role of the instance, from its metadata service.
    RamRole(RamRole),
}

/// A key that an operator made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessKey {
    /// Where its id is.
    pub id: Place,
    /// Where its secret is.
    pub secret: Place,
    /// Where its token is, for a temporary key; an unset or missing one is no error.
    pub token: Option<Place>,
}

/// RAM Roles for Service Accounts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rrsa {
    /// `acs:ram::ACCOUNT:oidc-provider/NAME`.
    pub provider_arn: String,
    /// File with the service account's token.
    pub token_file: PathBuf,
    /// The role.
    pub role: Role,
}

/// A role to assume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Role {
    /// `acs:ram::ACCOUNT:role/NAME`.
    pub arn: String,
    /// Name of the session, in the cloud's audit log; none: `cluster-autoscaler-UNIX_SECONDS`.
    pub session_name: Option<String>,
    /// Life of its keys in seconds; none: the cloud's default, an hour.
    pub duration_seconds: Option<u32>,
    /// External id that the role's trust policy asks for.
    pub external_id: Option<String>,
}

/// The role that is attached to the instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RamRole {
    /// Its name; none: the metadata service tells.
    pub name: Option<String>,
    /// Base address of the metadata service.
    pub endpoint: String,
    /// Refuse to ask without a token (hardened mode only).
    pub only_v2: bool,
}

/// Base address of AliCloud's metadata service.
pub(super) const METADATA: &str = "http://100.100.100.200";
/// Base address of AliCloud's token service.
pub(super) const STS: &str = "https://sts.aliyuncs.com";

impl Default for RamRole {
    fn default() -> Self {
        Self { name: None, endpoint: METADATA.to_owned(), only_v2: false }
    }
}

impl KeyConfig {
    /// Keys from here, with the public token service.
    pub fn new(origin: KeyOrigin) -> Self {
        Self { origin, assume: None, sts: STS.to_owned() }
    }
}
