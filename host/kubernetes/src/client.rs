//! How the API server is reached, and how often it may be asked.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// Where the API server is, as the operator's flags say it.
#[derive(Clone, Debug, Default)]
pub struct Endpoint {
    /// `--kubeconfig`; it wins.
    pub kubeconfig: Option<PathBuf>,
    /// `--kubernetes`: the URL of an API server that asks for no credentials.
    pub server: Option<String>,
    /// `--user-agent`.
    pub user_agent: String,
}

/// Why there is no way to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be used.
    #[error("--kubeconfig: {}: {error}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        error: Box<kube::config::KubeconfigError>,
    },
    /// The URL cannot be used.
    #[error("--kubernetes: {0:?} is no URL such as https://10.0.0.1:6443")]
    Server(String),
    /// There is no cluster around this process.
    #[error("neither --kubeconfig nor --kubernetes is given, and this process does not run in a cluster: {0}")]
    InCluster(#[source] kube::config::InClusterError),
    /// The user agent cannot be sent.
    #[error("--user-agent: {0:?} cannot be sent in a header")]
    UserAgent(String),
    /// No client can be made of it.
    #[error("the API server cannot be reached: {0}")]
    Client(#[source] Box<Error>),
}

/// Where requests go and as whom.
///
/// # Errors
///
/// If the flags, the files that they name, or what the cluster puts into each container cannot be used.
pub async fn configure(endpoint: &Endpoint) -> Result<Config, ConnectError> {
    let mut config = match (&endpoint.kubeconfig, &endpoint.server) {
        (Some(path), _) => {
            let failed = |error| ConnectError::Kubeconfig { path: path.clone(), error: Box::new(error) };
            let file = Kubeconfig::read_from(path).map_err(failed)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(failed)?
        }
        (None, Some(server)) => {
            let uri: http::Uri = server.parse().map_err(|_| ConnectError::Server(server.clone()))?;
            if uri.scheme().is_none() || uri.host().is_none() {
                return Err(ConnectError::Server(server.clone()));
            }
            Config::new(uri)
        }
        (None, None) => Config::incluster().map_err(ConnectError::InCluster)?,
    };
    let agent = http::HeaderValue::from_str(&endpoint.user_agent);
    let agent = agent.map_err(|_| ConnectError::UserAgent(endpoint.user_agent.clone()))?;
    config.headers.push((http::header::USER_AGENT, agent));
    // Every caller here has a pause of its own, and a refused eviction must come back as it is.
    config.default_retry = false;
    // Lists are read once; packing them costs the API server more than sending them.
    config.disable_compression = true;
    Ok(config)
}

/// A client with connections of its own.
///
/// # Errors
///
/// If the credentials cannot be used.
pub fn connect(config: &Config) -> Result<Client, ConnectError> {
    Client::try_from(config.clone()).map_err(|error| ConnectError::Client(Box::new(error)))
}

/// An error of a request in words, with its causes: the outermost one alone says next to nothing.
pub(crate) fn in_words(error: &Error) -> String {
    if let Error::Api(status) = error {
        return if status.message.is_empty() {
            format!("{} ({})", status.reason, status.code)
        } else {
            status.message.clone()
        };
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Lets so many requests through in a second, and after a pause some more at once (client-go's QPS and burst).
#[derive(Debug)]
pub struct Pace {
    interval: Duration,
    burst: u32,
    /// When the bucket was, or will be, full.
    full_at: Mutex<Option<Instant>>,
}

impl Pace {
    /// `qps` requests a second, `burst` at once. A rate of 0 or less is no limit.
    pub fn new(qps: f64, burst: u32) -> Self {
        let interval =
            if qps > 0.0 { Duration::try_from_secs_f64(1.0 / qps).unwrap_or(Duration::ZERO) } else { Duration::ZERO };
        Self { interval, burst: burst.max(1), full_at: Mutex::new(None) }
    }

    /// Waits for the turn of one request.
    pub async fn turn(&self) {
        if self.interval.is_zero() {
            return;
        }
        let due = {
            let mut full_at = self.full_at.lock().await;
            let now = Instant::now();
            let from = full_at.map_or(now, |full_at| full_at.max(now));
            *full_at = Some(from + self.interval);
            // The bucket is empty when filling it takes as long as the burst.
            (from + self.interval).checked_sub(self.interval * self.burst)
        };
        if let Some(due) = due {
            sleep_until(due).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_the_rest_keeps_its_distance() {
        let pace = Pace::new(5.0, 10);
        let begun = Instant::now();
        let mut at = vec![];
        for _ in 0..15 {
            pace.turn().await;
            at.push(begun.elapsed().as_millis());
        }
        assert!(at[..10].iter().all(|at| *at <= 1), "{at:?}");
        assert!((999..=1002).contains(&at[14]), "{at:?}");
        tokio::time::sleep(Duration::from_secs(60)).await;
        let again = Instant::now();
        for _ in 0..10 {
            pace.turn().await;
        }
        assert!(again.elapsed() < Duration::from_millis(2), "the bucket is full again, and no fuller");
        pace.turn().await;
        assert!(again.elapsed() >= Duration::from_millis(199));
    }

    #[tokio::test]
    async fn endpoints_that_cannot_be_used() {
        for (name, endpoint, expected) in [
            (
                "no file",
                Endpoint { kubeconfig: Some("/nowhere".into()), ..Endpoint::default() },
                "--kubeconfig: /nowhere",
            ),
            (
                "no URL",
                Endpoint { server: Some("here".into()), ..Endpoint::default() },
                "--kubernetes: \"here\" is no URL",
            ),
            ("nothing", Endpoint::default(), "neither --kubeconfig nor --kubernetes"),
        ] {
            let error = configure(&endpoint).await.err().unwrap().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
        let endpoint =
            Endpoint { server: Some("http://127.0.0.1:1".into()), user_agent: "a".into(), ..Endpoint::default() };
        assert!(configure(&endpoint).await.is_ok());
    }
}
