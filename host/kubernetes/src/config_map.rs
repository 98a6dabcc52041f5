//! A ConfigMap with one writer: it is replaced as it was last seen, or made if it is not there.

use std::time::Duration;

use kube::core::Request;
use kube::core::params::{DeleteParams, GetParams, PostParams};
use kube::{Client, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::client::in_words;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// Who wrote it last, so that a write of our own whose answer was lost is told from somebody else's.
const WRITER: &str = "plimsoll.dev/writer";

/// What is in one.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Content {
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) data: Map<String, Value>,
    /// Base64.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) binary_data: Map<String, Value>,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
    #[serde(flatten)]
    content: Content,
}

#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    uid: String,
    resource_version: String,
    annotations: Option<Map<String, Value>>,
}

/// Why one was not read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigMapError {
    /// Somebody else writes it.
    #[error("another process has written the ConfigMap {0}")]
    Foreign(String),
    /// This process may not do that.
    #[error("the ConfigMap {0}: {1}")]
    Forbidden(String, String),
    /// The API server refused it, or could not be reached.
    #[error("the ConfigMap {0}: {1}")]
    Refused(String, String),
}

/// A ConfigMap of our own.
pub(crate) struct ConfigMap {
    client: Client,
    namespace: String,
    name: String,
    /// This process; empty if it does not matter who writes.
    writer: String,
    /// As it was last seen; none: not there, or never looked at.
    seen: Option<Metadata>,
}

impl ConfigMap {
    pub(crate) fn new(client: Client, namespace: &str, name: &str, writer: &str) -> Self {
        let [namespace, name, writer] = [namespace, name, writer].map(str::to_owned);
        Self { client, namespace, name, writer, seen: None }
    }

    /// UID, once it is known.
    pub(crate) fn uid(&self) -> &str {
        self.seen.as_ref().map_or("", |seen| &seen.uid)
    }

    fn request(&self) -> Request {
        Request::new(format!("/api/v1/namespaces/{}/configmaps", self.namespace))
    }

    fn refused(&self, why: impl ToString) -> ConfigMapError {
        ConfigMapError::Refused(format!("{}/{}", self.namespace, self.name), why.to_string())
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Object, Failure> {
        let request = request.map_err(|error| Failure::Other(self.refused(error)))?;
        match timeout(PATIENCE, self.client.request(request)).await {
            Ok(Ok(object)) => Ok(object),
            Ok(Err(Error::Api(status))) if status.code == 404 => Err(Failure::NotThere),
            Ok(Err(Error::Api(status))) if status.code == 409 => Err(Failure::Conflict),
            Ok(Err(Error::Api(status))) if status.code == 403 => {
                let name = format!("{}/{}", self.namespace, self.name);
                Err(Failure::Other(ConfigMapError::Forbidden(name, status.message)))
            }
            Ok(Err(error)) => Err(Failure::Other(self.refused(in_words(&error)))),
            Err(_) => Err(Failure::Other(self.refused("the API server did not answer in time"))),
        }
    }

    /// What is in it; none if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(crate) async fn read(&mut self) -> Result<Option<Content>, ConfigMapError> {
        match self.send(self.request().get(&self.name, &GetParams::default())).await {
            Ok(object) => {
                self.seen = Some(object.metadata);
                Ok(Some(object.content))
            }
            Err(Failure::NotThere) => {
                self.seen = None;
                Ok(None)
            }
            Err(Failure::Conflict) => Err(self.refused("the API server sees a conflict in a read")),
            Err(Failure::Other(error)) => Err(error),
        }
    }

    /// Puts this into it.
    ///
    /// # Errors
    ///
    /// [`ConfigMapError::Foreign`] if somebody else has written it since it was last seen, unless it has no writer.
    pub(crate) async fn write(
        &mut self,
        content: &Content,
        annotations: &[(&str, String)],
    ) -> Result<(), ConfigMapError> {
        for _ in 0..3 {
            let result = match self.seen.clone() {
                Some(seen) => self.send(self.replacing(&seen, content, annotations)).await,
                None => self.send(self.creating(content, annotations)).await,
            };
            match result {
                Ok(object) => {
                    self.seen = Some(object.metadata);
                    return Ok(());
                }
                Err(Failure::NotThere) => self.seen = None,
                // Somebody was faster, or the answer to our own last write was lost.
                Err(Failure::Conflict) => {
                    self.read().await?;
                    let writer = self.seen.as_ref().and_then(|seen| seen.annotations.as_ref()?.get(WRITER)?.as_str());
                    if !self.writer.is_empty() && self.seen.is_some() && writer != Some(self.writer.as_str()) {
                        return Err(ConfigMapError::Foreign(format!("{}/{}", self.namespace, self.name)));
                    }
                }
                Err(Failure::Other(error)) => return Err(error),
            }
        }
        Err(self.refused("it changes all the time"))
    }

    /// Deletes it, if it is there.
    ///
    /// # Errors
    ///
    /// If it cannot be deleted.
    pub(crate) async fn delete(&mut self) -> Result<(), ConfigMapError> {
        let request =
            self.request().delete(&self.name, &DeleteParams::default()).map_err(|error| self.refused(error))?;
        match timeout(PATIENCE, self.client.request_text(request)).await {
            Ok(Err(Error::Api(status))) if status.code == 404 => Ok(()),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.refused(in_words(&error))),
            Err(_) => Err(self.refused("the API server did not answer in time")),
        }
    }

    fn object(&self, version: Option<&str>, content: &Content, annotations: &[(&str, String)]) -> Vec<u8> {
        let mut all: Map<String, Value> =
            annotations.iter().map(|(key, value)| ((*key).to_owned(), value.clone().into())).collect();
        if !self.writer.is_empty() {
            all.insert(WRITER.to_owned(), self.writer.clone().into());
        }
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self.name, "namespace": self.namespace, "annotations": all},
            "data": content.data,
            "binaryData": content.binary_data,
        });
        if let (Some(version), Some(Value::Object(metadata))) = (version, object.get_mut("metadata")) {
            metadata.insert("resourceVersion".to_owned(), version.into());
        }
        object.to_string().into_bytes()
    }

    fn replacing(
        &self,
        seen: &Metadata,
        content: &Content,
        annotations: &[(&str, String)],
    ) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
        let body = self.object(Some(&seen.resource_version), content, annotations);
        self.request().replace(&self.name, &PostParams::default(), body)
    }

    fn creating(
        &self,
        content: &Content,
        annotations: &[(&str, String)],
    ) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
        self.request().create(&PostParams::default(), self.object(None, content, annotations))
    }
}

enum Failure {
    NotThere,
    Conflict,
    Other(ConfigMapError),
}
