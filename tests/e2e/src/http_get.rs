//! Small requests over plain HTTP to servers of a test.

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Status and body of an answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status.
    pub status: u16,
    /// Body.
    pub body: String,
}

/// Send one request. HTTP/1.0, so the body ends with the connection.
///
/// # Errors
/// Nobody listens there, or what comes is no HTTP.
pub async fn send(to: SocketAddr, method: &str, path: &str, body: &str) -> anyhow::Result<Answer> {
    let what = || format!("{method} http://{to}{path}");
    let mut stream = TcpStream::connect(to).await.with_context(what)?;
    let request = format!("{method} {path} HTTP/1.0\r\nHost: {to}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.with_context(what)?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await.with_context(what)?;
    let text = String::from_utf8(text).with_context(what)?;
    let (head, body) = text.split_once("\r\n\r\n").with_context(|| format!("{}: no HTTP: {text:?}", what()))?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("{}: no status in {head:?}", what()))?;
    Ok(Answer { status, body: body.to_owned() })
}

/// GET.
///
/// # Errors
/// As [`send`].
pub async fn get(from: SocketAddr, path: &str) -> anyhow::Result<Answer> {
    send(from, "GET", path, "").await
}
