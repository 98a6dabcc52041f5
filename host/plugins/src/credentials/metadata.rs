//! The role of an AliCloud instance, from its metadata service. With a session token first (hardened mode), without one if
//! the service knows none and the operator does not insist.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use plimsoll_grants::RamRole;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::error::CredentialError;
use super::key::Key;
use super::refresh::Fetch;
use super::sts::{Desk, Grant, words};
use crate::Pending;

/// Longest wait for one answer; the service is on the same machine.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a question is asked that gets no answer.
const ATTEMPTS: usize = 3;
const ROLES: &str = "/latest/meta-data/ram/security-credentials/";

/// Asks the metadata service.
pub(super) struct Metadata {
    pub(super) desk: Desk,
    pub(super) role: RamRole,
}

impl Metadata {
    fn endpoint(&self) -> &str {
        self.role.endpoint.trim_end_matches('/')
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        header: Option<(&str, &str)>,
    ) -> Result<(StatusCode, Zeroizing<Vec<u8>>), CredentialError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let mut request = Request::builder().method(&method).uri(format!("{}{path}", self.endpoint()));
            if let Some((name, value)) = header {
                request = request.header(name, value);
            }
            let request = request
                .body(Bytes::new())
                .map_err(|error| CredentialError::Other(format!("{} cannot be asked: {error}", self.endpoint())))?;
            match self.desk.ask(self.endpoint(), request, PATIENCE).await {
                Ok(answer) => return Ok(answer),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| CredentialError::Other("nothing was asked".to_owned())))
    }

    /// A session token; none: ask without.
    async fn token(&self) -> Result<Option<Zeroizing<String>>, CredentialError> {
        let ttl = Some(("x-aliyun-ecs-metadata-token-ttl-seconds", "21600"));
        let answer = self.ask(Method::PUT, "/latest/api/token", ttl).await;
        let reason = match answer {
            Ok((status, body)) if status.is_success() => return self.text(&body, "a session token").map(Some),
            Ok((status, _)) => self.refused(status, "NoToken", "it gives no session token"),
            Err(error) => error,
        };
        if self.role.only_v2 { Err(reason) } else { Ok(None) }
    }

    async fn get(&self, path: &str, token: Option<&str>) -> Result<(StatusCode, Zeroizing<Vec<u8>>), CredentialError> {
        self.ask(Method::GET, path, token.map(|token| ("x-aliyun-ecs-metadata-token", token))).await
    }

    /// One line of plain text.
    fn text(&self, body: &[u8], what: &str) -> Result<Zeroizing<String>, CredentialError> {
        let text = std::str::from_utf8(body).map(str::trim).unwrap_or_default();
        let fits = |c: char| c.is_ascii_graphic() && !"<>\"'".contains(c);
        if text.is_empty() || !text.chars().all(fits) {
            return Err(CredentialError::Nonsense {
                service: self.endpoint().to_owned(),
                what: format!("expected {what}, one line of text"),
            });
        }
        Ok(Zeroizing::new(text.to_owned()))
    }

    fn refused(&self, status: StatusCode, code: &str, message: &str) -> CredentialError {
        let (service, status) = (self.endpoint().to_owned(), status.as_u16());
        CredentialError::Refused { service, status, code: code.to_owned(), message: message.to_owned() }
    }

    async fn key(&self) -> Result<Key, CredentialError> {
        let token = self.token().await?;
        let token = token.as_ref().map(|token| token.as_str());
        let role = match &self.role.name {
            Some(name) => name.clone(),
            None => self.role_name(token).await?,
        };
        let (status, body) = self.get(&format!("{ROLES}{role}"), token).await?;
        if !status.is_success() {
            let message = format!("no credentials for the role {role:?}; is it attached to this instance?");
            return Err(self.refused(status, "NoCredentials", &message));
        }
        // An error of the parser may quote what it read, and so is not shown.
        let nonsense =
            |what: &str| CredentialError::Nonsense { service: self.endpoint().to_owned(), what: what.to_owned() };
        let answer: Answer = serde_json::from_slice(&body).map_err(|_| nonsense("expected JSON with a Code"))?;
        if answer.code != "Success" {
            return Err(self.refused(status, &words(&answer.code, None), "it has no credentials for this role now"));
        }
        let grant: Grant = serde_json::from_slice(&body).map_err(|_| nonsense("expected JSON with a key"))?;
        grant.key(self.endpoint())
    }

    async fn role_name(&self, token: Option<&str>) -> Result<String, CredentialError> {
        let (status, body) = self.get(ROLES, token).await?;
        match status {
            status if status.is_success() => Ok(self.text(&body, "the name of a role")?.as_str().to_owned()),
            StatusCode::NOT_FOUND => Err(self.refused(
                status,
                "NoRole",
                "this instance has no RAM role; attach one to it, or grant a key in another way",
            )),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if token.is_none() => Err(self.refused(
                status,
                "TokenNeeded",
                "it wants a session token and gives none; the answer to PUT may not reach a pod that is more than one hop away",
            )),
            status => Err(self.refused(status, "NoRole", "it does not tell the instance's RAM role")),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    code: String,
}

impl Fetch for Metadata {
    fn service(&self) -> String {
        self.endpoint().to_owned()
    }
    fn fetch(&self) -> Pending<'_, Result<Key, CredentialError>> {
        Box::pin(self.key())
    }
}
