//! Asks a running autoscaler.

use std::time::Duration;

use anyhow::Context as _;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_signals::account::Unknown;
use serde::de::DeserializeOwned;

use crate::exit::Exit;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What stays as it is in a path: names of Kubernetes objects hold little else.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// What the autoscaler at an address says of one thing.
pub(super) fn ask<T: DeserializeOwned>(address: &str, kind: &str, name: &str) -> Result<T, Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
        .map_err(Exit::failed)?;
    let path = format!("api/v1/{kind}/{}", utf8_percent_encode(name, IN_PATH));
    runtime.block_on(fetch(address, &path, PATIENCE))
}

/// What the autoscaler at an address answers.
pub(crate) async fn fetch<T: DeserializeOwned>(address: &str, path: &str, patience: Duration) -> Result<T, Exit> {
    let base = base(address);
    let url = format!("{base}/{path}");
    let (status, body) = get(&url, patience).await.map_err(|error| {
        Exit::bad_input(format!(
            "{base}: no autoscaler answers there: {error:#}; forward its port with `kubectl -n kube-system port-forward \
             deployment/cluster-autoscaler 8085`, name another --address, or give files"
        ))
    })?;
    if status == 200 {
        return serde_json::from_slice(&body).map_err(|error| {
            Exit::bad_input(format!("{url}: the answer is not what was expected ({error}); is it this autoscaler?"))
        });
    }
    Err(Exit::bad_input(match serde_json::from_slice::<Unknown>(&body) {
        Ok(unknown) => unknown.message,
        Err(_) => format!("{url}: it answers with status {status}; is it this autoscaler?"),
    }))
}

async fn get(url: &str, patience: Duration) -> anyhow::Result<(u16, Vec<u8>)> {
    let client = reqwest::Client::builder().timeout(patience).build()?;
    let response = client.get(url).send().await.map_err(rooted)?;
    let status = response.status().as_u16();
    Ok((status, response.bytes().await.map_err(rooted)?.to_vec()))
}

/// The innermost cause: the others repeat the address.
fn rooted(error: reqwest::Error) -> anyhow::Error {
    let error = anyhow::Error::from(error.without_url());
    anyhow::anyhow!("{}", error.root_cause())
}

/// With a scheme and without a slash at the end; a port alone is one of this machine.
fn base(address: &str) -> String {
    let address = address.trim_end_matches('/');
    match address {
        _ if address.contains("://") => address.to_owned(),
        _ if address.starts_with(':') => format!("http://127.0.0.1{address}"),
        _ => format!("http://{address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_people_write_them() {
        for (given, base) in [
            ("http://127.0.0.1:8085/", "http://127.0.0.1:8085"),
            (":9000", "http://127.0.0.1:9000"),
            ("localhost:8085", "http://localhost:8085"),
            ("https://autoscaler.example", "https://autoscaler.example"),
        ] {
            assert_eq!(self::base(given), base);
        }
    }
}
