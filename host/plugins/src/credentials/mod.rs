//! The broker of credentials: a guest names a slot, the host proves who it is. No key ever enters a guest.
//!
//! ```text
//!  request ──► Signer ─────────► request with a signature ──► egress sends, and takes echoes of it out of the response
//!                │  alicloud-v3 · alicloud-v1 · bearer · basic · hmac-header
//!                ▼
//!            KeySource ──► Key (id, secret, token: one record, never mixed)
//!                │  access key · RRSA · RAM role of the instance · assumed role
//!                ▼
//!            Refreshing ── ahead of expiry, one fetch at a time, the old key while it is valid
//! ```
//!
//! The host itself talks to the token and metadata services; guests may not.

mod alicloud;
mod binding;
mod broker;
mod error;
mod hmac_header;
mod key;
mod metadata;
mod place;
mod refresh;
mod sts;
mod token;

use bytes::Bytes;
use http::Request;
pub use plimsoll_grants::{
    AccessKey, Chosen, Environment, EnvironmentError, Generation, KeyConfig, KeyOrigin, Place, RamRole, Role, Rrsa,
    SignerConfig, alicloud_from_environment,
};
use secrecy::{ExposeSecret as _, SecretString};

pub use self::alicloud::Alicloud;
pub(crate) use self::alicloud::encode;
pub use self::binding::Credential;
pub use self::broker::{Broker, BrokerError};
pub use self::error::CredentialError;
pub use self::hmac_header::HmacHeader;
pub use self::key::{Key, KeySource, Life};
pub use self::token::{Basic, Bearer};
use crate::Pending;

/// What a signature put into a request that must not come back to the guest: tokens, keys, the signature itself.
#[derive(Clone, Debug, Default)]
pub struct Exposed(Vec<SecretString>);

impl Exposed {
    /// These texts.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        Self(texts.into_iter().map(SecretString::from).collect())
    }
    pub(crate) fn texts(&self) -> &[SecretString] {
        &self.0
    }
    /// Whether it is one of these texts.
    pub(crate) fn shows(&self, text: &str) -> bool {
        self.0.iter().any(|shown| shown.expose_secret() == text)
    }
}

/// Adds to a request what proves to the server who sends it. The request is complete: method, address, headers, body.
pub trait Signer: Send + Sync {
    /// Signs, and tells what of the secret the request now shows.
    fn sign<'a>(&'a self, request: &'a mut Request<Bytes>) -> Pending<'a, Result<Exposed, CredentialError>>;

    /// A request that it signed, showing this, was refused with a body that begins so. `true`: that was for the key alone,
    /// nothing was done, and the next signature is by another key.
    fn refused(&self, _shown: &Exposed, _body: &[u8]) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
