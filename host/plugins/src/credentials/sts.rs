//! AliCloud's token service (STS, API 2015-04-01): a role's keys for a service account's token, or for another key.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use plimsoll_grants::{Environment, Place, Role};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::alicloud::{Nonces, Stamp, query, sign_own};
use super::error::CredentialError;
use super::key::{Key, KeySource, Life};
use super::place::read;
use super::refresh::Fetch;
use crate::Pending;
use crate::clock::Clock;
use crate::egress::Transport;

const VERSION: &str = "2015-04-01";
/// Longest answer of a token or metadata service.
const MOST_BYTES: usize = 64 << 10;
/// Longest wait for the token service.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest part of a service's own words that is shown.
const MOST_WORDS: usize = 300;

/// What the host needs to ask services for keys.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) nonces: Arc<dyn Nonces>,
}

impl Desk {
    /// Asks a service; its answer comes whole, and in time.
    pub(super) async fn ask(
        &self,
        service: &str,
        request: Request<Bytes>,
        patience: Duration,
    ) -> Result<(StatusCode, Zeroizing<Vec<u8>>), CredentialError> {
        let unreachable = |reason: String| CredentialError::Unreachable { service: service.to_owned(), reason };
        let work = async {
            let reply = self.transport.send(request).await.map_err(|error| unreachable(error.to_string()))?;
            let status = reply.status();
            let body = Limited::new(reply.into_body(), MOST_BYTES).collect().await;
            let body = body.map_err(|error| unreachable(format!("its answer did not arrive: {error}")))?;
            Ok((status, Zeroizing::new(body.to_bytes().to_vec())))
        };
        let late = |_| unreachable(format!("no answer within {} s", patience.as_secs_f32()));
        tokio::time::timeout(patience, work).await.map_err(late)?
    }

    /// Name of a role session.
    fn session(&self, role: &Role) -> String {
        role.session_name.clone().unwrap_or_else(|| format!("cluster-autoscaler-{}", self.clock.wall().as_secs()))
    }
}

/// A key in an answer of the token or metadata service.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Grant {
    access_key_id: String,
    access_key_secret: SecretText,
    security_token: SecretText,
    expiration: String,
}

struct SecretText(SecretString);

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(SecretString::from(text)))
    }
}

impl Grant {
    pub(super) fn key(self, service: &str) -> Result<Key, CredentialError> {
        let nonsense = |what: String| CredentialError::Nonsense { service: service.to_owned(), what };
        let secrets = [&self.access_key_secret, &self.security_token];
        if self.access_key_id.is_empty() || secrets.iter().any(|secret| secret.0.expose_secret().is_empty()) {
            return Err(nonsense("its key, secret or token is empty".to_owned()));
        }
        let until: jiff::Timestamp = self.expiration.parse().map_err(|_| {
            let shown: String = self.expiration.chars().take(40).collect();
            nonsense(format!("its expiration is {shown:?}; expected a time such as 2024-06-01T09:30:00Z"))
        })?;
        let until = Duration::from_secs(u64::try_from(until.as_second()).unwrap_or(0));
        Ok(Key {
            id: self.access_key_id,
            secret: self.access_key_secret.0,
            token: Some(self.security_token.0),
            life: Some(Life { since: Duration::ZERO, until }),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    credentials: Grant,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Refusal {
    code: String,
    message: String,
}

/// Text of a service that may be shown: one line, not long, without what the host sent in confidence.
pub(super) fn words(text: &str, secret: Option<&SecretString>) -> String {
    let text = match secret {
        Some(secret) if !secret.expose_secret().is_empty() => text.replace(secret.expose_secret(), "…"),
        _ => text.to_owned(),
    };
    text.chars().take(MOST_WORDS).flat_map(char::escape_debug).collect::<String>().replace("\\\"", "\"")
}

fn read_answer(
    service: &str,
    status: StatusCode,
    body: &[u8],
    secret: Option<&SecretString>,
) -> Result<Key, CredentialError> {
    if !status.is_success() {
        let refusal: Refusal = serde_json::from_slice(body).unwrap_or_default();
        let code = if refusal.code.is_empty() { "no code".to_owned() } else { words(&refusal.code, secret) };
        let message = if refusal.message.is_empty() { String::from_utf8_lossy(body).into() } else { refusal.message };
        let (status, message) = (status.as_u16(), words(&message, secret));
        return Err(CredentialError::Refused { service: service.to_owned(), status, code, message });
    }
    // An error of the parser may quote what it read, and so is not shown.
    let answer: Answer = serde_json::from_slice(body).map_err(|error| CredentialError::Nonsense {
        service: service.to_owned(),
        what: format!("expected JSON with Credentials; line {}, column {}", error.line(), error.column()),
    })?;
    answer.credentials.key(service)
}

fn post(service: &str, query: &str, form: &str) -> Result<Request<Bytes>, CredentialError> {
    let address = format!("{}/?{query}", service.trim_end_matches('/'));
    let request = Request::builder().method(Method::POST).uri(address);
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let request = request.header(header::ACCEPT, "application/json").header(header::ACCEPT_ENCODING, "identity");
    request
        .body(Bytes::copy_from_slice(form.as_bytes()))
        .map_err(|error| CredentialError::Other(format!("{service} cannot be asked: {error}")))
}

/// Exchanges a service account's token for a role (AssumeRoleWithOIDC). The call is not signed.
pub(super) struct WithOidc {
    pub(super) desk: Desk,
    pub(super) endpoint: String,
    pub(super) provider_arn: String,
    pub(super) token_file: PathBuf,
    pub(super) role: Role,
}

impl WithOidc {
    async fn ask(&self) -> Result<Key, CredentialError> {
        // Read for each call: the kubelet replaces it.
        let token = read(&Place::File(self.token_file.clone()), &Environment::empty()).await?;
        let stamp = Stamp::new(self.desk.clock.as_ref(), self.desk.nonces.as_ref())?;
        let session = self.desk.session(&self.role);
        let query_text = query([
            ("Action", "AssumeRoleWithOIDC"),
            ("Format", "JSON"),
            ("RoleSessionName", session.as_str()),
            ("SignatureNonce", stamp.nonce.as_str()),
            ("Timestamp", stamp.date.as_str()),
            ("Version", VERSION),
        ]);
        let duration = self.role.duration_seconds.map(|seconds| seconds.to_string());
        let mut form = vec![
            ("RoleArn", self.role.arn.as_str()),
            ("OIDCProviderArn", self.provider_arn.as_str()),
            ("OIDCToken", token.expose_secret()),
        ];
        form.extend(duration.as_deref().map(|seconds| ("DurationSeconds", seconds)));
        let form = Zeroizing::new(query(form));
        let request = post(&self.endpoint, &query_text, &form)?;
        let (status, body) = self.desk.ask(&self.endpoint, request, PATIENCE).await?;
        read_answer(&self.endpoint, status, &body, Some(&token))
    }
}

impl Fetch for WithOidc {
    fn service(&self) -> String {
        self.endpoint.clone()
    }
    fn fetch(&self) -> Pending<'_, Result<Key, CredentialError>> {
        Box::pin(self.ask())
    }
}

/// Assumes a role with another key (AssumeRole).
pub(super) struct WithKey {
    pub(super) desk: Desk,
    pub(super) endpoint: String,
    pub(super) keys: Arc<dyn KeySource>,
    pub(super) role: Role,
}

impl WithKey {
    async fn ask(&self) -> Result<Key, CredentialError> {
        let key = self.keys.key().await?;
        let session = self.desk.session(&self.role);
        let duration = self.role.duration_seconds.map(|seconds| seconds.to_string());
        let mut parameters = vec![("RoleArn", self.role.arn.as_str()), ("RoleSessionName", session.as_str())];
        parameters.extend(duration.as_deref().map(|seconds| ("DurationSeconds", seconds)));
        parameters.extend(self.role.external_id.as_deref().map(|id| ("ExternalId", id)));
        let mut request = post(&self.endpoint, &query(parameters), "")?;
        request.headers_mut().remove(header::CONTENT_TYPE);
        let text = HeaderValue::from_static;
        request.headers_mut().insert(HeaderName::from_static("x-acs-action"), text("AssumeRole"));
        request.headers_mut().insert(HeaderName::from_static("x-acs-version"), text(VERSION));
        let stamp = Stamp::new(self.desk.clock.as_ref(), self.desk.nonces.as_ref())?;
        sign_own(&mut request, &key, &stamp)?;
        let (status, body) = self.desk.ask(&self.endpoint, request, PATIENCE).await?;
        read_answer(&self.endpoint, status, &body, key.token.as_ref())
    }
}

impl Fetch for WithKey {
    fn service(&self) -> String {
        self.endpoint.clone()
    }
    fn fetch(&self) -> Pending<'_, Result<Key, CredentialError>> {
        Box::pin(self.ask())
    }
}
