//! Traces to an OpenTelemetry collector: OTLP over HTTP with protobuf.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::Handle;

/// Variables that name a collector, by the OpenTelemetry specification.
const VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
/// How long one export may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where a collector takes traces.
const PATH: &str = "/v1/traces";

/// Why traces are not exported.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The address cannot be used.
    #[error("{address:?} is no address of a collector: {source}; expected something like http://collector:4318")]
    Endpoint {
        /// What was given.
        address: String,
        /// Why not.
        source: ExporterBuildError,
    },
    /// No HTTP client can be made.
    #[error("no HTTP client can be made: {0}")]
    Client(#[from] reqwest::Error),
}

/// Sends spans until it is shut down.
pub struct Exporter(SdkTracerProvider);

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

impl Exporter {
    pub(super) fn tracer(&self) -> SdkTracer {
        self.0.tracer("plimsoll")
    }

    /// Sends what is left, and ends.
    pub async fn shutdown(self) {
        // It blocks until the last batch is sent, which the runtime must be free to do.
        let ended = tokio::task::spawn_blocking(move || self.0.shutdown()).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(%error, "the last spans could not be sent");
        }
    }
}

/// The exporter to a collector; none if neither the flag nor a variable names one.
pub(super) fn exporter(endpoint: Option<&str>) -> Result<Option<Exporter>, OtlpError> {
    let named = VARIABLES.iter().find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()));
    let Some(address) = endpoint.map(str::to_owned).or(named) else { return Ok(None) };
    let client =
        OnRuntime { client: reqwest::Client::builder().timeout(PATIENCE).build()?, runtime: Handle::current() };
    let builder = SpanExporter::builder().with_http().with_http_client(client).with_timeout(PATIENCE);
    let builder = match endpoint {
        Some(endpoint) => builder.with_endpoint(whole(endpoint)),
        // The exporter reads the variables itself, which are unlike each other in whether they include the path.
        None => builder,
    };
    let exporter = builder.build().map_err(|source| OtlpError::Endpoint { address, source })?;
    let resource = Resource::builder()
        .with_service_name("plimsoll")
        .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    Ok(Some(Exporter(provider)))
}

/// The address that traces are sent to: a bare one gets the path.
fn whole(endpoint: &str) -> String {
    let bare = endpoint.trim_end_matches('/');
    if bare.ends_with(PATH) { bare.to_owned() } else { format!("{bare}{PATH}") }
}

/// Sends from a thread of its own, where the exporter lives, by a client that needs the runtime.
#[derive(Clone, Debug)]
struct OnRuntime {
    client: reqwest::Client,
    runtime: Handle,
}

impl HttpClient for OnRuntime {
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move { client.send_bytes(request).await });
        Box::pin(async move { sent.await? })
    }
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn a_bare_address_gets_the_path() {
        for (given, expected) in [
            ("http://c:4318", "http://c:4318/v1/traces"),
            ("http://c:4318/", "http://c:4318/v1/traces"),
            ("http://c:4318/v1/traces", "http://c:4318/v1/traces"),
            ("https://c/otlp", "https://c/otlp/v1/traces"),
        ] {
            assert_eq!(whole(given), expected);
        }
    }
}
