//! What a hostile guest, name server or cloud may try: through real sockets to servers on this machine.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::credentials::{Bearer, Environment, Place};

/// A name server that says something else each time; at the end it repeats itself.
struct Fickle {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Resolver for Fickle {
    fn resolve(&self, _name: String) -> Pending<'static, std::io::Result<Vec<IpAddr>>> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.get(turn).or(self.answers.last()).cloned().unwrap();
        Box::pin(async move { Ok(answer) })
    }
}

/// A server whose connections are handled by a function; tells how many there were.
async fn server<F>(handle: impl Fn(TcpStream, String) -> F + Send + Sync + 'static) -> (u16, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut head = vec![];
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && matches!(connection.read(&mut byte).await, Ok(1)) {
                head.push(byte[0]);
            }
            tokio::spawn(handle(connection, String::from_utf8(head).unwrap()));
        }
    });
    (port, count)
}

async fn says(text: &'static str) -> (u16, Arc<AtomicUsize>) {
    server(move |mut connection, _| async move {
        let _ = connection.write_all(text.as_bytes()).await;
        let _ = connection.shutdown().await;
    })
    .await
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// A way out to one port of this machine by name and by address, with the ranges that are opened.
fn way_out(port: u16, opened: &[&str], answers: Vec<Vec<IpAddr>>, proxy: Option<Proxy>) -> (Egress, Arc<Recorder>) {
    let hosts = ["sim.internal", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"];
    let bearer = Bearer::new(Place::Variable("T".into()), Environment::of([("T", "s3cret-token")]));
    let mut grants = NetworkGrants {
        hosts: hosts.map(|host| Grant::parse(&format!("http://{host}:{port}"), true).unwrap()).into(),
        file: "plugins.yaml".into(),
        ..NetworkGrants::default()
    };
    grants.credentials.insert("api".into(), Credential::new(["sim.internal"], Arc::new(bearer)).unwrap());
    grants.addresses.opened = opened.iter().map(|range| range.parse().unwrap()).collect();
    let resolver = Arc::new(Fickle { answers, asked: AtomicUsize::new(0) });
    let options = InternetOptions { resolver, proxy, ..InternetOptions::default() };
    let internet = Internet::new(grants.addresses.clone(), options).unwrap();
    let limits = Limits { response_body_bytes: 1000, request_body_bytes: 1000, ..Limits::default() };
    let (egress, _, recorder) = through(grants, &limits, Arc::new(internet), Seen::default());
    (egress, recorder)
}

async fn ask(egress: &Egress, uri: &str, headers: &[(&str, &str)]) -> Result<(u16, String), HttpError> {
    let response = egress.clone().exchange(request("GET", uri, headers).map(|()| empty()), waits()).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8(body.to_vec()).unwrap()))
}

fn reasons(recorder: &Recorder) -> Vec<String> {
    let reason = |event| match event {
        Event::Denied { denial } => Some(denial.reason),
        _ => None,
    };
    recorder.take().into_iter().filter_map(reason).collect()
}

#[tokio::test]
async fn a_name_that_turns_to_another_address_is_checked_each_time() {
    let (port, connections) = says(OK).await;
    let answers = vec![addresses(&["127.0.0.1"]), addresses(&["127.0.0.2"])];
    let (egress, recorder) = way_out(port, &["127.0.0.1/32"], answers, None);
    let uri = format!("http://sim.internal:{port}/");
    assert_eq!(ask(&egress, &uri, &[]).await.unwrap(), (200, "ok".into()));
    assert!(matches!(ask(&egress, &uri, &[]).await, Err(HttpError::DestinationIpProhibited)));
    assert_eq!(reasons(&recorder), ["127.0.0.2 is a loopback address"]);
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[rstest::rstest]
#[case::mixed(&["10.0.0.1", "::ffff:10.0.0.1", "127.0.0.1"], Ok(()))]
#[case::mapped(&["::ffff:10.0.0.1"], Err("::ffff:10.0.0.1 is a private address"))]
#[case::metadata(&["100.100.100.200"], Err("100.100.100.200 is the metadata service of AliCloud"))]
#[case::compatible(&["::169.254.169.254"], Err("::a9fe:a9fe is the metadata service of clouds"))]
#[tokio::test]
async fn only_open_addresses_of_a_name_are_connected_to(#[case] found: &[&str], #[case] expected: Result<(), &str>) {
    let (port, connections) = says(OK).await;
    let (egress, recorder) = way_out(port, &["127.0.0.1/32"], vec![addresses(found)], None);
    let asked = ask(&egress, &format!("http://sim.internal:{port}/"), &[]).await;
    assert_eq!(asked.is_ok(), expected.is_ok(), "{asked:?}");
    assert_eq!(reasons(&recorder), expected.err().into_iter().collect::<Vec<_>>());
    assert_eq!(connections.load(Ordering::SeqCst), usize::from(expected.is_ok()));
}

#[rstest::rstest]
#[case::plain("127.0.0.1")]
#[case::decimal("2130706433")]
#[case::octal("0177.0.0.01")]
#[case::hex("0x7f.0.0.1")]
#[case::hex_whole("0x7f000001")]
#[case::short("127.1")]
#[case::percent("%31%32%37.0.0.1")]
#[case::wide_digits("１２７.0.0.1")]
#[case::mapped("[::ffff:127.0.0.1]")]
#[case::mapped_hex("[::ffff:7f00:1]")]
#[case::v6("[::1]")]
#[tokio::test]
async fn an_address_in_any_spelling_is_checked(#[case] host: &str) {
    let (port, connections) = says(OK).await;
    let (egress, recorder) = way_out(port, &[], vec![addresses(&["8.8.8.8"])], None);
    let text = format!("http://{host}:{port}/");
    let refused = egress.0.grants.check_address(&text).unwrap_err();
    assert!(matches!(refused, Refusal::Address(_)), "{refused:?}");
    if let Ok(uri) = text.parse::<Uri>() {
        let asked = ask(&egress, &uri.to_string(), &[]).await;
        assert!(matches!(asked, Err(HttpError::DestinationIpProhibited)), "{asked:?}");
        assert!(reasons(&recorder)[0].ends_with("is a loopback address"));
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[rstest::rstest]
#[case::host("host", "evil.example", "it brought the header host, which only the host sets")]
#[case::chunks("transfer-encoding", "chunked", "it brought the header transfer-encoding, which only the host sets")]
#[case::upgrade("upgrade", "h2c", "it brought the header upgrade, which only the host sets")]
#[case::proxy("proxy-authorization", "Basic x", "it brought the header proxy-authorization, which only the host sets")]
#[case::any_proxy("proxy-evil", "x", "it brought the header proxy-evil, which only the host sets")]
#[case::authorization(
    "authorization",
    "Bearer stolen",
    "it brought its own authorization; a plug-in names a credential slot, and the host signs"
)]
#[case::two_slots("x-autoscaler-credential", "root", "it names the credential \"root\", which is not granted")]
#[tokio::test]
async fn smuggled_headers_are_refused(#[case] name: &str, #[case] value: &str, #[case] expected: &str) {
    let (port, connections) = says(OK).await;
    let (egress, recorder) = way_out(port, &["127.0.0.1/32"], vec![addresses(&["127.0.0.1"])], None);
    let asked = ask(&egress, &format!("http://sim.internal:{port}/"), &[(name, value)]).await;
    assert!(matches!(asked, Err(HttpError::HttpRequestDenied)), "{asked:?}");
    assert_eq!(reasons(&recorder), [expected]);
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[rstest::rstest]
#[case("a\r\nhost: evil.example")]
#[case("a\nb")]
#[case("a\0b")]
fn no_header_can_hold_the_end_of_a_line(#[case] value: &str) {
    assert!(http::HeaderValue::from_str(value).is_err());
    assert!(HeaderName::from_bytes(value.as_bytes()).is_err());
}

#[tokio::test]
async fn long_headers_are_refused() {
    let (egress, recorder) = way_out(80, &[], vec![], None);
    let long = "x".repeat(40_000);
    let asked = ask(&egress, "http://sim.internal/", &[("x-long", &long)]).await;
    assert!(matches!(asked, Err(HttpError::HttpRequestHeaderSectionSize(None))), "{asked:?}");
    assert_eq!(reasons(&recorder), ["it has too many headers, or too long ones"]);
}

#[tokio::test]
async fn a_redirect_is_handed_over_and_not_followed() {
    let answer =
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://169.254.169.254/latest\r\ncontent-length: 0\r\n\r\n";
    let (port, connections) = says(answer).await;
    let (egress, _) = way_out(port, &["127.0.0.1/32"], vec![addresses(&["127.0.0.1"])], None);
    let slot = [("x-autoscaler-credential", "api")];
    assert_eq!(ask(&egress, &format!("http://sim.internal:{port}/"), &slot).await.unwrap(), (307, String::new()));
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn bodies_without_end_are_cut() {
    let (endless, _) = server(|mut connection, _| async move {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        while connection.write_all(b"10\r\n0123456789abcdef\r\n").await.is_ok() {}
    })
    .await;
    let (large, _) = says("HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\nx").await;
    let (head, _) = server(|mut connection, _| async move {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while connection.write_all(b"x: 0123456789abcdef0123456789abcdef\r\n").await.is_ok() {}
    })
    .await;
    for (port, expected) in
        [(endless, "HTTP response body size"), (large, "connection terminated"), (head, "connection terminated")]
    {
        let (egress, _) = way_out(port, &["127.0.0.1/32"], vec![addresses(&["127.0.0.1"])], None);
        let error = ask(&egress, &format!("http://sim.internal:{port}/"), &[]).await.unwrap_err().to_string();
        assert!(error.to_lowercase().contains(&expected.to_lowercase()), "{error}, expected {expected}");
    }
}

#[tokio::test]
async fn an_echo_of_the_signature_does_not_come_back() {
    let (port, _) = server(|mut connection, head| async move {
        assert!(head.contains("authorization: Bearer s3cret-token\r\n") && !head.contains("x-autoscaler"), "{head}");
        let echo = head.replace("\r\n", " ");
        let answer = format!("HTTP/1.1 200 OK\r\nx-echo: {echo}\r\ncontent-length: {}\r\n\r\n{head}", head.len());
        let _ = connection.write_all(answer.as_bytes()).await;
    })
    .await;
    let (egress, _) = way_out(port, &["127.0.0.1/32"], vec![addresses(&["127.0.0.1"])], None);
    let named = request("GET", &format!("http://sim.internal:{port}/"), &[("x-autoscaler-credential", "api")]);
    let response = egress.exchange(named.map(|()| empty()), waits()).await.unwrap();
    let header = response.headers()["x-echo"].to_str().unwrap().to_owned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    for text in [&header, &body] {
        assert!(text.contains("authorization: *******************"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn a_proxy_is_asked_for_names_and_closed_addresses_stay_closed() {
    let (proxy_port, connections) = server(|mut connection, head| async move {
        assert!(head.starts_with("GET http://sim.internal:1/ HTTP/1.1\r\n"), "{head}");
        let _ = connection.write_all(OK.as_bytes()).await;
    })
    .await;
    let proxy = Proxy::new(&format!("http://proxy.corp:{proxy_port}"), NoProxy::default()).unwrap();
    // The only name that the host resolves is that of the proxy.
    let (egress, recorder) = way_out(1, &[], vec![addresses(&["127.0.0.1"])], Some(proxy));
    assert_eq!(ask(&egress, "http://sim.internal:1/", &[]).await.unwrap(), (200, "ok".into()));
    let asked = ask(&egress, "http://127.0.0.1:1/", &[]).await;
    assert!(matches!(asked, Err(HttpError::DestinationIpProhibited)), "{asked:?}");
    assert_eq!(reasons(&recorder), ["127.0.0.1 is a loopback address"]);
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}
