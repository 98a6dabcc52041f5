//! Requests to AliCloud's OpenAPI. The guest names the operation in the headers `x-acs-action` and `x-acs-version` and its
//! parameters in the query or a form body; everything that has to do with who asks is added here.

mod call;
mod encode;
mod v1;
mod v3;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use plimsoll_grants::Generation;
use secrecy::ExposeSecret as _;

use self::call::Call;
pub(crate) use self::encode::encode;
pub(super) use self::encode::{hex, query};
use super::key::{Key, KeySource};
use super::{CredentialError, Exposed, Signer};
use crate::Pending;
use crate::clock::Clock;

/// How the codes begin that are about the token of a temporary key: expired, malformed, another key's.
const REFUSED_TOKEN: &[u8] = b"InvalidSecurityToken";

/// Numbers that are used once. A seam: tests give known ones.
pub(super) trait Nonces: Send + Sync {
    /// 32 hex digits that were never given before.
    fn next(&self) -> Result<String, CredentialError>;
}

/// From the random numbers of the operating system.
#[derive(Clone, Copy, Debug)]
pub(super) struct RandomNonces;

impl Nonces for RandomNonces {
    fn next(&self) -> Result<String, CredentialError> {
        let mut bytes = [0; 16];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut bytes).map_err(|_| CredentialError::Other("there are no random numbers".to_owned()))?;
        Ok(hex(&bytes))
    }
}

/// When a request is signed, and its number.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    pub(super) date: String,
    pub(super) nonce: String,
}

impl Stamp {
    pub(super) fn new(clock: &dyn Clock, nonces: &dyn Nonces) -> Result<Self, CredentialError> {
        Ok(Self { date: date(clock.wall())?, nonce: nonces.next()? })
    }
}

/// `2024-06-01T08:30:00Z`.
pub(super) fn date(since_epoch: Duration) -> Result<String, CredentialError> {
    let seconds = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_second(seconds).map_err(|error| CredentialError::Other(error.to_string()))?;
    Ok(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Signs requests to AliCloud.
#[derive(Clone)]
pub struct Alicloud {
    generation: Generation,
    keys: Arc<dyn KeySource>,
    clock: Arc<dyn Clock>,
    nonces: Arc<dyn Nonces>,
}

impl Alicloud {
    pub(super) fn with(
        generation: Generation,
        keys: Arc<dyn KeySource>,
        clock: Arc<dyn Clock>,
        nonces: Arc<dyn Nonces>,
    ) -> Self {
        Self { generation, keys, clock, nonces }
    }

    /// Signs with these keys, by this clock.
    pub fn new(generation: Generation, keys: Arc<dyn KeySource>, clock: Arc<dyn Clock>) -> Self {
        Self::with(generation, keys, clock, Arc::new(RandomNonces))
    }
}

impl fmt::Debug for Alicloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alicloud").field("generation", &self.generation).finish_non_exhaustive()
    }
}

impl Signer for Alicloud {
    fn sign<'a>(&'a self, request: &'a mut Request<Bytes>) -> Pending<'a, Result<Exposed, CredentialError>> {
        Box::pin(async move {
            let call = Call::take(request)?;
            let key = self.keys.key().await?;
            let stamp = Stamp::new(self.clock.as_ref(), self.nonces.as_ref())?;
            sign(self.generation, request, call, &key, &stamp)
        })
    }

    fn refused(&self, shown: &Exposed, body: &[u8]) -> bool {
        let of_the_key = body.windows(REFUSED_TOKEN.len()).any(|window| window == REFUSED_TOKEN);
        of_the_key && self.keys.refused(shown)
    }
}

/// Signs an operation.
pub(super) fn sign(
    generation: Generation,
    request: &mut Request<Bytes>,
    call: Call,
    key: &Key,
    stamp: &Stamp,
) -> Result<Exposed, CredentialError> {
    let mut shown = match generation {
        Generation::V3 => v3::sign(request, call, key, stamp)?,
        Generation::V1 => v1::sign(request, call, key, stamp)?,
    };
    shown.push(key.id.clone());
    shown.push(key.secret.expose_secret().to_owned());
    shown.extend(key.token.as_ref().map(|token| token.expose_secret().to_owned()));
    Ok(Exposed::new(shown))
}

/// Signs an operation of the host itself.
pub(super) fn sign_own(request: &mut Request<Bytes>, key: &Key, stamp: &Stamp) -> Result<Exposed, CredentialError> {
    let call = Call::take(request)?;
    sign(Generation::V3, request, call, key, stamp)
}

#[cfg(test)]
mod tests;
