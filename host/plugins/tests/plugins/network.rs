//! Requests of a guest, from its own `wasi:http` calls to the network and back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use plimsoll_plugins::config::PluginConfig;
use plimsoll_plugins::egress::{
    InProcess, Internet, InternetOptions, NetworkGrants, Resolver, Transport, TransportError,
};
use plimsoll_plugins::limits::Limits;
use plimsoll_plugins::observer::Event;
use plimsoll_plugins::{Pending, Provider};

use crate::guests::{DATA, Guest, lines, provider};

const HTTPS: u32 = 1;
const HTTP: u32 = 0;

const GRANTS: &str = "
plugins:
  guest:
    hosts: [https://api.utho.com, http://plain.internal:8080]
    insecure-http: true
    credentials:
      api: {kind: bearer, file: TOKEN, hosts: [api.utho.com]}
";

/// Asks in `templates` and logs one letter: `.` for a response, else the code of the error counted from `A`.
fn asking(scheme: u32, authority: &str, header: Option<(&str, &str)>) -> Guest {
    let answer = DATA + 1280;
    Guest::provider()
        .asks(scheme, authority, header)
        .import(r#"(import "autoscaler:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32 i32 i32)))"#)
        .body(
            "templates",
            format!(
                "(drop (call $ask))
                 (i32.store8 (i32.const 16)
                   (if (result i32) (i32.load8_u (i32.const {inner}))
                     (then (i32.add (i32.const 65) (i32.load8_u (i32.const {code}))))
                     (else (i32.const 46))))
                 (call $log (i32.const 2) (i32.const 16) (i32.const 1) (i32.const 0) (i32.const 0))
                 (i32.const 1024)",
                inner = answer + 16,
                code = answer + 24,
            ),
        )
}

/// The contract's name of an error.
fn name(letter: &str) -> String {
    if letter == "." {
        return "answered".to_owned();
    }
    let mut resolve = wit_parser::Resolve::default();
    resolve.push_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/v0")).unwrap();
    let is_http = |owner: wit_parser::TypeOwner| match owner {
        wit_parser::TypeOwner::Interface(id) => resolve.id_of(id).is_some_and(|id| id.starts_with("wasi:http/types")),
        _ => false,
    };
    let found = resolve.types.iter().find(|(_, def)| def.name.as_deref() == Some("error-code") && is_http(def.owner));
    let wit_parser::TypeDefKind::Variant(variant) = &found.unwrap().1.kind else { panic!("a variant") };
    variant.cases[usize::from(letter.as_bytes()[0] - b'A')].name.clone()
}

struct Asked {
    result: String,
    events: Vec<Event>,
}

async fn ask_with(guest: Guest, transport: Arc<dyn Transport>, grants: &str, limits: Limits) -> Asked {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cret\n").unwrap();
    let text = grants.replace("TOKEN", token.to_str().unwrap());
    let config = PluginConfig::parse("plugins.yaml", &text).unwrap();
    let (provider, recorder): (Provider, _) = provider(&guest, |options| {
        options.grants = NetworkGrants::of_this_machine(&config.entry("guest"), "plugins.yaml", vec![]).unwrap();
        options.transport = transport;
        options.limits = limits;
    })
    .await;
    let answer = provider.templates(vec!["a".into()]).await;
    let events = recorder.take();
    let lines = lines(&events);
    let result = match answer {
        Ok(_) => name(&lines[0]),
        Err(error) => error.to_string(),
    };
    Asked { result, events }
}

async fn ask(guest: Guest) -> (Asked, Vec<Request<Bytes>>) {
    let seen = Arc::new(Mutex::new(vec![]));
    let sink = seen.clone();
    let network = InProcess::new(move |request| {
        sink.lock().unwrap().push(request);
        async { Response::new(Bytes::from_static(b"hello")) }
    });
    let asked = ask_with(guest, Arc::new(network), GRANTS, Limits::default()).await;
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (asked, seen)
}

#[tokio::test]
async fn a_granted_request_is_answered() {
    let (asked, seen) = ask(asking(HTTPS, "api.utho.com", None)).await;
    assert_eq!((asked.result.as_str(), seen.len()), ("answered", 1));
    assert_eq!(seen[0].uri(), "https://api.utho.com/");
    assert!(seen[0].headers().is_empty(), "{:?}", seen[0].headers());
}

#[tokio::test]
async fn a_request_that_names_a_slot_is_signed() {
    let (asked, seen) = ask(asking(HTTPS, "api.utho.com", Some(("x-autoscaler-credential", "api")))).await;
    assert_eq!(asked.result, "answered");
    let headers = seen[0].headers();
    assert_eq!((headers.len(), headers["authorization"].to_str().unwrap()), (1, "Bearer s3cret"));
    assert!(!format!("{:?}", asked.events).contains("s3cret"));
}

#[rstest::rstest]
#[case::host(asking(HTTPS, "api.utho.co", None), "HTTP-request-denied", "no grant covers it")]
#[case::port(asking(HTTPS, "api.utho.com:8443", None), "HTTP-request-denied", "no grant covers it")]
#[case::plain_text(asking(HTTP, "api.utho.com", None), "HTTP-request-denied", "no grant covers it")]
#[case::slot(
    asking(HTTPS, "api.utho.com", Some(("x-autoscaler-credential", "root"))),
    "HTTP-request-denied",
    "it names the credential \"root\", which is not granted"
)]
#[case::slot_elsewhere(
    asking(HTTP, "plain.internal:8080", Some(("x-autoscaler-credential", "api"))),
    "HTTP-request-denied",
    "the credential \"api\" is not granted for plain.internal"
)]
#[case::user(
    asking(HTTPS, "me:pw@api.utho.com", None),
    "HTTP-request-URI-invalid",
    "the address holds a user name or password; credentials are granted, not carried"
)]
#[tokio::test]
async fn a_request_that_is_not_granted_is_refused(#[case] guest: Guest, #[case] code: &str, #[case] reason: &str) {
    let (asked, seen) = ask(guest).await;
    assert_eq!((asked.result.as_str(), seen.len()), (code, 0));
    let denials: Vec<_> = asked
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Denied { denial } => Some(denial.reason.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(denials, [reason]);
}

#[tokio::test]
async fn a_guest_cannot_bring_its_own_authorization() {
    // `append` answers with an error: no header, and so no authorization in the request.
    let (asked, seen) = ask(asking(HTTPS, "api.utho.com", Some(("authorization", "Bearer stolen")))).await;
    assert_eq!(asked.result, "answered");
    assert!(seen[0].headers().is_empty(), "{:?}", seen[0].headers());
}

#[tokio::test]
async fn a_silent_cloud_is_reported_by_the_guest_itself() {
    // The exchange ends before the call does, by an eighth, so that the plug-in can still say what
    // happened: here by a second, for busy machines.
    let silent = InProcess::new(|_| std::future::pending());
    let limits = Limits { read: Duration::from_secs(8), ..Limits::default() };
    let asked = ask_with(asking(HTTPS, "api.utho.com", None), Arc::new(silent), GRANTS, limits).await;
    assert_eq!(asked.result, "connection-read-timeout");
}

#[rstest::rstest]
#[case::refused(TransportError::Refused, "connection-refused")]
#[case::broken(TransportError::Broken("reset".into()), "connection-terminated")]
#[case::certificate(TransportError::Tls("expired".into()), "TLS-certificate-error")]
#[case::name(TransportError::Unresolved("no such name".into()), "DNS-error")]
#[case::slow(TransportError::ConnectTimeout, "connection-timeout")]
#[tokio::test]
async fn failures_of_the_network_reach_the_guest(#[case] failure: TransportError, #[case] code: &str) {
    let broken = InProcess::faulty(move |_| {
        let failure = failure.clone();
        async { Err(failure) }
    });
    let asked = ask_with(asking(HTTPS, "api.utho.com", None), Arc::new(broken), GRANTS, Limits::default()).await;
    assert_eq!(asked.result, code);
}

/// Knows one name.
struct OneName(&'static str, std::net::IpAddr);

impl Resolver for OneName {
    fn resolve(&self, name: String) -> Pending<'static, std::io::Result<Vec<std::net::IpAddr>>> {
        let known = (name == self.0).then_some(self.1);
        Box::pin(async move { known.map(|address| vec![address]).ok_or_else(|| std::io::Error::other("no such name")) })
    }
}

/// A server on this machine that answers every connection with the same text, and tells what it was asked.
async fn server(answer: &'static str) -> (u16, Arc<Mutex<String>>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(String::new()));
    let sink = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut text = vec![0; 4096];
            let count = connection.read(&mut text).await.unwrap_or(0);
            sink.lock().unwrap().push_str(&String::from_utf8_lossy(&text[..count]));
            let _ = connection.write_all(answer.as_bytes()).await;
            let _ = connection.shutdown().await;
        }
    });
    (port, asked)
}

fn local_grants(port: u16, cidrs: &str) -> String {
    format!(
        "plugins: {{guest: {{insecure-http: true, cidrs: [{cidrs}], hosts: ['http://sim.internal:{port}', \
         'http://127.0.0.1:{port}']}}}}"
    )
}

/// Through real sockets, to a server on this machine that the name points to.
async fn through_sockets(authority: &str, cidrs: &str, answer: &'static str) -> (Asked, String) {
    let (port, seen) = server(answer).await;
    let grants = local_grants(port, cidrs);
    let entry = PluginConfig::parse("plugins.yaml", &grants).unwrap().entry("guest");
    let policy = NetworkGrants::of_this_machine(&entry, "plugins.yaml", vec![]).unwrap().addresses;
    let resolver = Arc::new(OneName("sim.internal", [127, 0, 0, 1].into()));
    let internet = Internet::new(policy, InternetOptions { resolver, ..InternetOptions::default() }).unwrap();
    let guest = asking(HTTP, &format!("{authority}:{port}"), None);
    let asked = ask_with(guest, Arc::new(internet), &grants, Limits::default()).await;
    let seen = seen.lock().unwrap().clone();
    (asked, seen.replace(&port.to_string(), "PORT"))
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
const REDIRECT: &str = "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn an_opened_address_is_reached_by_name() {
    let (asked, seen) = through_sockets("sim.internal", "127.0.0.1/32", OK).await;
    assert_eq!(asked.result, "answered");
    assert!(seen.starts_with("GET / HTTP/1.1\r\n") && seen.contains("host: sim.internal:PORT\r\n"), "{seen}");
}

#[rstest::rstest]
#[case::by_name("sim.internal")]
#[case::by_address("127.0.0.1")]
#[tokio::test]
async fn an_address_that_is_not_public_is_not_reached(#[case] authority: &str) {
    let (asked, seen) = through_sockets(authority, "", OK).await;
    assert_eq!((asked.result.as_str(), seen.as_str()), ("destination-IP-prohibited", ""));
    let denial = asked.events.iter().find_map(|event| match event {
        Event::Denied { denial } => Some(denial),
        _ => None,
    });
    let denial = denial.expect("the operator must know");
    assert_eq!(denial.reason, "127.0.0.1 is a loopback address");
    assert_eq!(denial.fix_entry.as_deref(), Some("- 127.0.0.1/32"));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (asked, seen) = through_sockets("sim.internal", "127.0.0.1/32", REDIRECT).await;
    assert_eq!((asked.result.as_str(), seen.matches("GET ").count()), ("answered", 1));
}

#[tokio::test]
async fn real_failures_have_the_right_names() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let (speaks_no_tls, _) = server("what?\r\n").await;
    let (speaks_no_http, _) = server("what?\r\n").await;
    let (breaks, _) = server("HTTP/1.1 200 OK\r\n").await;
    let resolver = Arc::new(OneName("sim.internal", [127, 0, 0, 1].into()));
    let policy =
        plimsoll_plugins::egress::AddressPolicy { opened: vec!["127.0.0.1/32".parse().unwrap()], closed: vec![] };
    let internet = Internet::new(policy, InternetOptions { resolver, ..InternetOptions::default() }).unwrap();
    let send = async |uri: String| {
        let request = Request::get(uri).body(Bytes::new()).unwrap();
        internet.send(request).await.map(|_| ()).unwrap_err()
    };
    assert_eq!(send(format!("http://sim.internal:{closed}/")).await, TransportError::Refused);
    let unresolved = send("http://other.internal/".into()).await;
    assert_eq!(unresolved, TransportError::Unresolved("no such name".into()));
    let tls = send(format!("https://sim.internal:{speaks_no_tls}/")).await;
    assert!(matches!(tls, TransportError::Tls(_)), "{tls:?}");
    for port in [speaks_no_http, breaks] {
        let broken = send(format!("http://sim.internal:{port}/")).await;
        assert!(matches!(broken, TransportError::Broken(_)), "{broken:?}");
    }
}

#[test]
fn extra_roots_that_are_none_are_refused() {
    for (pem, words) in
        [("", "there is none in it"), ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "")]
    {
        let options = InternetOptions { extra_roots_pem: Some(pem.into()), ..InternetOptions::default() };
        let error = Internet::new(Default::default(), options).unwrap_err().to_string();
        assert!(error.starts_with("the extra certificates cannot be used: ") && error.contains(words), "{error}");
    }
}

/// What a guest gets that names a slot.
pub(crate) async fn ask_signed(transport: Arc<dyn Transport>) -> String {
    let guest = asking(HTTPS, "api.utho.com", Some(("x-autoscaler-credential", "api")));
    ask_with(guest, transport, GRANTS, Limits::default()).await.result
}
