//! The binary serves a cloud through sockets: TLS with its own authority, plain HTTP, control.

#![cfg(feature = "serve")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

struct Server {
    process: Child,
    https: String,
    http: String,
    roots: RootCertStore,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Server {
    fn start(name: &str, scenario: &Value) -> Self {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let (scenario_path, ca) = (folder.join("scenario.json"), folder.join("ca.pem"));
        std::fs::write(&scenario_path, scenario.to_string()).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_clouds"))
            .args(["alicloud", "--ca-out"])
            .arg(&ca)
            .arg("--scenario")
            .arg(&scenario_path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let addresses: Value = serde_json::from_str(&line).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&ca).unwrap()).unwrap();
        let text = |name: &str| addresses[name].as_str().unwrap().to_owned();
        Self { process, https: text("https"), http: text("http"), roots }
    }

    /// Status and body of a plain request.
    fn plain(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        exchange(TcpStream::connect(&self.http).unwrap(), method, path, &self.http, body).unwrap()
    }

    fn control(&self, method: &str, what: &str, body: &Value) -> Value {
        let (status, text) = self.plain(method, &format!("/_ctl/{what}"), &body.to_string());
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Status and body of an encrypted request to one of the cloud's names.
    fn encrypted(&self, host: &str, path: &str) -> std::io::Result<(u16, String)> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(self.roots.clone()).with_no_client_auth();
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        exchange(StreamOwned::new(connection, TcpStream::connect(&self.https)?), "GET", path, host, "")
    }
}

fn exchange(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    host: &str,
    body: &str,
) -> std::io::Result<(u16, String)> {
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    stream.flush()?;
    let mut answer = Vec::new();
    let ended = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return Err(ended.err().unwrap_or_else(|| std::io::ErrorKind::UnexpectedEof.into()));
    };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    Ok((status, body.to_owned()))
}

#[test]
fn a_cloud_is_served_and_controlled() {
    let server =
        Server::start("served", &json!({"groups": [{"id": "asg-1", "running": 2}], "metadata": {"role": "worker"}}));
    let (status, body) =
        server.encrypted("ess.aliyuncs.com", "/?Action=DescribeScalingGroups&Version=2014-08-28").unwrap();
    assert_eq!(status, 400);
    assert!(body.contains("MissingParameter"), "{body}");
    assert_eq!(server.plain("GET", "/latest/meta-data/region-id", ""), (200, "cn-hangzhou".to_owned()));
    assert_eq!(server.control("GET", "now", &json!({}))["text"], "2024-06-01T08:30:00Z");
    assert_eq!(server.control("POST", "advance", &json!({"ms": 90_000}))["text"], "2024-06-01T08:31:30Z");
    assert_eq!(server.control("GET", "nodes", &json!({})).as_array().unwrap().len(), 2);
    server.control("POST", "console", &json!({"order": "resize", "group": "asg-1", "max": 7}));
    assert_eq!(server.control("GET", "state", &json!({}))["world"]["groups"]["asg-1"]["max"], 7);
    let journal = server.control("GET", "journal", &json!({}));
    assert_eq!(journal["calls"][0]["code"], "MissingParameter");
    let (status, body) = server.plain("POST", "/_ctl/console", r#"{"order":"resize","group":"asg-9"}"#);
    assert_eq!(status, 400);
    assert!(body.contains("there is no scaling group asg-9"), "{body}");
}

#[test]
fn network_faults_are_real_ones() {
    let server = Server::start("faults", &json!({}));
    let ask = || server.encrypted("ess.aliyuncs.com", "/?Action=DescribeScalingGroups&Version=2014-08-28");
    let fault = |fault: Value| {
        server.control("DELETE", "faults", &json!({}));
        server.control("POST", "faults", &json!({"name": "f", "fault": fault}));
    };
    assert_eq!(ask().unwrap().0, 400);
    fault(json!({"kind": "reset"}));
    assert!(ask().is_err());
    fault(json!({"kind": "wrong-name"}));
    assert!(ask().unwrap_err().to_string().contains("certificate"));
    fault(json!({"kind": "html", "status": 503}));
    let (status, body) = ask().unwrap();
    assert_eq!((status, body.starts_with("<html>")), (503, true));
    fault(json!({"kind": "half-body"}));
    let (_, body) = ask().unwrap();
    assert!(!body.contains('}'), "the end is missing: {body}");
    server.control("DELETE", "faults", &json!({}));
    assert!(ask().unwrap().1.contains("MissingParameter"));
}
