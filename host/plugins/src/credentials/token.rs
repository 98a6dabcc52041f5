//! The plain ways to prove who one is: a token, or a user with a password.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Request, header};
use plimsoll_grants::{Environment, Place};
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::place::{Together, read, read_together};
use super::{CredentialError, Exposed, Signer};
use crate::Pending;

/// `authorization: Bearer …` with a token that is read anew for every request.
#[derive(Clone, Debug)]
pub struct Bearer {
    place: Place,
    environment: Environment,
}

impl Bearer {
    /// Uses the token in this file; white space around it does not count.
    pub fn from_file(file: impl Into<PathBuf>) -> Self {
        Self::new(Place::File(file.into()), Environment::empty())
    }
    /// Uses the token at this place.
    pub fn new(place: Place, environment: Environment) -> Self {
        Self { place, environment }
    }
}

impl Signer for Bearer {
    fn sign<'a>(&'a self, request: &'a mut Request<Bytes>) -> Pending<'a, Result<Exposed, CredentialError>> {
        Box::pin(async move {
            let token = read(&self.place, &self.environment).await?;
            let value = Zeroizing::new(format!("Bearer {}", token.expose_secret()));
            authorize(request, &value, &self.place)?;
            Ok(Exposed(vec![token, SecretString::from(value.as_str())]))
        })
    }
}

/// `authorization: Basic …` (RFC 7617).
#[derive(Clone, Debug)]
pub struct Basic {
    user: String,
    password: Place,
    environment: Environment,
}

impl Basic {
    /// This user, with the password at this place.
    pub fn new(user: String, password: Place, environment: Environment) -> Self {
        Self { user, password, environment }
    }
}

impl Signer for Basic {
    fn sign<'a>(&'a self, request: &'a mut Request<Bytes>) -> Pending<'a, Result<Exposed, CredentialError>> {
        Box::pin(async move {
            let places = Together { required: [self.password.clone()], optional: None };
            let ([password], _) = read_together(&places, &self.environment).await?;
            let pair = Zeroizing::new(format!("{}:{}", self.user, password.expose_secret()));
            let encoded = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
            authorize(request, &Zeroizing::new(format!("Basic {}", encoded.as_str())), &self.password)?;
            Ok(Exposed(vec![password, SecretString::from(pair.as_str()), SecretString::from(encoded.as_str())]))
        })
    }
}

fn authorize(request: &mut Request<Bytes>, value: &str, place: &Place) -> Result<(), CredentialError> {
    let unusable = |_| CredentialError::Unusable { place: place.to_string() };
    let mut value = HeaderValue::try_from(value).map_err(unusable)?;
    value.set_sensitive(true);
    request.headers_mut().insert(header::AUTHORIZATION, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(secret: Option<&str>) -> (tempfile::TempDir, Place) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        if let Some(secret) = secret {
            std::fs::write(&file, secret).unwrap();
        }
        (folder, Place::File(file))
    }

    async fn signed(secret: Option<&str>) -> Result<Request<Bytes>, CredentialError> {
        let (_folder, place) = folder(secret);
        let mut request = Request::new(Bytes::new());
        Bearer::new(place, Environment::empty()).sign(&mut request).await.map(|_| request)
    }

    #[tokio::test]
    async fn a_token_is_trimmed_and_marked_as_secret() {
        let request = signed(Some("  s3cret\n")).await.unwrap();
        let value = &request.headers()[header::AUTHORIZATION];
        assert_eq!((value.as_bytes(), value.is_sensitive()), (&b"Bearer s3cret"[..], true));
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_used_is_an_error_without_the_token() {
        assert!(matches!(signed(None).await, Err(CredentialError::Unreadable { .. })));
        for secret in ["", " \n", "two\nlines"] {
            let error = signed(Some(secret)).await.unwrap_err();
            assert!(matches!(error, CredentialError::Unusable { .. }), "{secret:?}");
            assert!(!error.to_string().contains("two"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_token_from_the_environment_follows_it() {
        let environment = Environment::of([("TOKEN", "first\n")]);
        let bearer = Bearer::new(Place::Variable("TOKEN".into()), environment.clone());
        let mut request = Request::new(Bytes::new());
        bearer.sign(&mut request).await.unwrap();
        assert_eq!(request.headers()[header::AUTHORIZATION], "Bearer first");
        environment.set("TOKEN", "second");
        bearer.sign(&mut request).await.unwrap();
        assert_eq!(request.headers()[header::AUTHORIZATION], "Bearer second");
    }

    #[tokio::test]
    async fn a_user_and_password_are_encoded() {
        // RFC 7617, section 2.
        let (_folder, place) = folder(Some("open sesame\n"));
        let mut request = Request::new(Bytes::new());
        let basic = Basic::new("Aladdin".into(), place, Environment::empty());
        let exposed = basic.sign(&mut request).await.unwrap();
        assert_eq!(request.headers()[header::AUTHORIZATION], "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(!format!("{exposed:?} {request:?} {basic:?}").contains("sesame"));
    }
}
