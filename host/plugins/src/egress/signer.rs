//! Credentials: the guest names a slot, the host proves who it is. The guest never sees a key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, header};

use super::grant::HostPattern;
use crate::Pending;

/// Why a request could not be signed. The text is for the operator; the guest learns only that it was so.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SignError {
    /// The secret cannot be had.
    #[error("the secret cannot be read from {place}: {reason}")]
    Unreadable {
        /// Where it should be.
        place: String,
        /// What the system said.
        reason: String,
    },
    /// The secret cannot be put into a request.
    #[error("the secret in {place} is empty or has characters that no header may have")]
    Unusable {
        /// Where it is.
        place: String,
    },
    /// Something else, such as a token service that does not answer.
    #[error("{0}")]
    Other(String),
}

/// Adds to a request what proves to the server who sends it. The request is complete: method, address, headers, body.
pub trait Signer: Send + Sync {
    /// Changes headers, and nothing else.
    fn sign<'a>(&'a self, request: &'a mut Request<Bytes>) -> Pending<'a, Result<(), SignError>>;
}

/// `authorization: Bearer …` with a token from a file, which is read anew for every request, so that a token that is
/// replaced works at once.
#[derive(Clone, Debug)]
pub struct Bearer {
    file: PathBuf,
}

impl Bearer {
    /// Uses the token in this file; white space around it does not count.
    pub fn from_file(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into() }
    }

    fn place(path: &Path) -> String {
        path.display().to_string()
    }
}

impl Signer for Bearer {
    fn sign<'a>(&'a self, request: &'a mut Request<Bytes>) -> Pending<'a, Result<(), SignError>> {
        Box::pin(async move {
            let path = self.file.clone();
            let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
            let text = read
                .map_err(|error| SignError::Other(error.to_string()))?
                .map_err(|error| SignError::Unreadable { place: Self::place(&self.file), reason: error.to_string() })?;
            let unusable = || SignError::Unusable { place: Self::place(&self.file) };
            let token = text.trim();
            if token.is_empty() {
                return Err(unusable());
            }
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| unusable())?;
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
            Ok(())
        })
    }
}

/// A signer, and the hosts that its signatures may go to.
#[derive(Clone)]
pub struct Credential {
    pub(super) hosts: Vec<HostPattern>,
    pub(super) signer: Arc<dyn Signer>,
}

impl Credential {
    /// A credential for these hosts: names as in `api.example.com` or `*.example.com`.
    ///
    /// # Errors
    /// The first host that is not a host name.
    pub fn new<'a>(hosts: impl IntoIterator<Item = &'a str>, signer: Arc<dyn Signer>) -> Result<Self, String> {
        let parse = |host: &'a str| HostPattern::parse(host).map_err(|error| format!("{host:?}: {error}"));
        Ok(Self { hosts: hosts.into_iter().map(parse).collect::<Result<_, _>>()?, signer })
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.hosts.iter().map(ToString::to_string).collect();
        f.debug_struct("Credential").field("hosts", &hosts).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn signed(secret: Option<&str>) -> Result<Request<Bytes>, SignError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        if let Some(secret) = secret {
            std::fs::write(&file, secret).unwrap();
        }
        let mut request = Request::new(Bytes::new());
        Bearer::from_file(&file).sign(&mut request).await.map(|()| request)
    }

    #[tokio::test]
    async fn a_token_is_trimmed_and_marked_as_secret() {
        let request = signed(Some("  s3cret\n")).await.unwrap();
        let value = &request.headers()[header::AUTHORIZATION];
        assert_eq!((value.as_bytes(), value.is_sensitive()), (&b"Bearer s3cret"[..], true));
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_used_is_an_error_without_the_token() {
        assert!(matches!(signed(None).await, Err(SignError::Unreadable { .. })));
        for secret in ["", " \n", "two\nlines"] {
            let error = signed(Some(secret)).await.unwrap_err();
            assert!(matches!(error, SignError::Unusable { .. }), "{secret:?}");
            assert!(!error.to_string().contains("two"), "{error}");
        }
    }
}
