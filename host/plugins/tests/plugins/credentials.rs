//! A credential never reaches a guest: neither one that dumps all it can see, nor through a server that echoes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use plimsoll_bundled::{Guest, Workspace};
use plimsoll_model::Time;
use plimsoll_plugins::Provider;
use plimsoll_plugins::clock::VirtualClock;
use plimsoll_plugins::config::PluginConfig;
use plimsoll_plugins::credentials::{Broker, Environment};
use plimsoll_plugins::egress::{InProcess, NetworkGrants};
use plimsoll_plugins::limits::Limits;
use plimsoll_plugins::provider::RefreshRequest;

use crate::guests::{host, options, source};

const ID: &str = "LTAI5tFakeKeyId00000";
const SECRET: &str = "FakeSecretThatNobodyMaySee00";
const TOKEN: &str = "CAIS+fake/token==that~nobody*may:see";

/// Component of the hostile provider, built once for all tests.
fn hostile() -> Vec<u8> {
    static BUILT: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    let build = || {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let workspace = Workspace::new(&root, &std::env::current_exe().unwrap()).unwrap();
        std::fs::read(&workspace.build(&[Guest::hostile("provider")]).unwrap()[0]).unwrap()
    };
    BUILT.get_or_init(build).clone()
}

/// What the echo server saw.
#[derive(Default)]
struct Journal {
    /// Texts that went to it with a signature: address and headers.
    signed: Vec<String>,
    /// Bodies that the guest sent away.
    dumped: Vec<u8>,
}

/// Answers with everything it was asked, in the body and in a header.
fn echo(journal: &Mutex<Journal>, request: &Request<Bytes>) -> Response<Bytes> {
    let mut journal = journal.lock().unwrap();
    if request.uri().path() == "/dump" {
        assert!(!request.headers().contains_key("authorization"));
        journal.dumped.extend_from_slice(request.body());
        return Response::new(Bytes::new());
    }
    let mut text = format!("{} {}", request.method(), request.uri());
    for (name, value) in request.headers() {
        text += &format!("\n{name}: {}", value.to_str().unwrap());
    }
    for shape in ["accept-encoding", "range"] {
        assert!(!request.headers().contains_key(shape), "{shape} would hide an echo from the host");
    }
    let header = text.replace('\n', " ");
    let body = format!("{text}\n{}", serde_json::json!({"echo": text}));
    journal.signed.push(text);
    Response::builder().header("x-echo", header).body(body.into()).unwrap()
}

async fn dump(credential: &str) -> (String, Arc<Mutex<Journal>>) {
    let grants = format!(
        "plugins: {{guest: {{hosts: [https://echo.example], settings: {{misdeed: dump}}, \
         credentials: {{api: {{hosts: [echo.example], {credential}}}}}}}}}"
    );
    let entry = PluginConfig::parse("plugins.yaml", &grants).unwrap().entry("guest");
    let environment = Environment::of([("ID", ID), ("SECRET", SECRET), ("TOKEN", TOKEN)]);
    let clock = Arc::new(VirtualClock::new(Time::from_millis(1_717_230_600_000)));
    let nobody = InProcess::new(|_| async { Response::builder().status(500).body(Bytes::new()).unwrap() });
    let broker = Broker::new(clock, environment, Arc::new(nobody));
    let (host, recorder) = host();
    let plugin = host.load(source("guest", None, hostile()), None).await.unwrap();
    let journal = Arc::new(Mutex::new(Journal::default()));
    let behind = journal.clone();
    let mut options = options();
    options.grants = NetworkGrants::brokered(&entry, "plugins.yaml", vec![], &broker).unwrap();
    options.settings = entry.settings.clone();
    options.limits = Limits { read: Duration::from_secs(120), ..Limits::default() };
    options.transport = Arc::new(InProcess::new(move |request| {
        let answer = echo(&behind, &request);
        async move { answer }
    }));
    let provider = Provider::spawn(&host, &plugin, options).unwrap();
    let error = provider.refresh(RefreshRequest::default()).await.unwrap_err();
    let told = format!("{error}\n{error:?}\n{:?}", recorder.take());
    (told, journal)
}

fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

#[rstest::rstest]
#[case::bearer("kind: bearer, env: TOKEN", &[TOKEN])]
#[case::basic("kind: basic, user: me, env: SECRET", &[SECRET, "bWU6RmFrZVNlY3JldFRoYXROb2JvZHlNYXlTZWUwMA"])]
#[case::hmac("kind: hmac-header, env: SECRET", &[SECRET])]
#[case::alicloud_v3(
    "kind: alicloud-v3, access-key: {id-env: ID, secret-env: SECRET, token-env: TOKEN}",
    &[ID, SECRET, TOKEN]
)]
#[case::alicloud_v1(
    "kind: alicloud-v1, access-key: {id-env: ID, secret-env: SECRET, token-env: TOKEN}",
    &[ID, SECRET, TOKEN, "CAIS%2Bfake%2Ftoken%3D%3Dthat~nobody%2Amay%3Asee"]
)]
#[tokio::test]
async fn a_guest_that_dumps_everything_shows_no_key(#[case] credential: &str, #[case] secrets: &[&str]) {
    let (told, journal) = dump(credential).await;
    let journal = journal.lock().unwrap();
    assert_eq!(journal.signed.len(), 2, "{told}");
    assert!(told.contains("Group=asg-1") && told.contains("setting misdeed Some"), "the dump must have worked: {told}");
    assert!(journal.dumped.len() > 512 << 10 && contains(&journal.dumped, "GET https://echo.example/?"));
    let signatures = journal.signed.iter().flat_map(|text| {
        let from = |mark: &str| text.split(mark).nth(1).map(|rest| rest.split(['\n', '&']).next().unwrap().to_owned());
        [from("Signature="), from("x-signature: "), from("authorization: ")]
    });
    let signatures: Vec<_> = signatures.flatten().collect();
    assert!(!signatures.is_empty(), "{:?}", journal.signed);
    for secret in secrets.iter().copied().chain(signatures.iter().map(String::as_str)) {
        assert!(!told.contains(secret), "{secret} was told: {told}");
        assert!(!contains(&journal.dumped, secret), "{secret} was in the memory of the guest");
    }
}

#[tokio::test]
async fn a_response_that_is_packed_does_not_reach_a_guest_with_a_credential() {
    let answer = |encoding: &'static str| {
        move |_: Request<Bytes>| async move {
            Response::builder().header("content-encoding", encoding).body(Bytes::from_static(b"?")).unwrap()
        }
    };
    for (encoding, passed) in [("identity", true), ("gzip", false)] {
        let asked = crate::network::ask_signed(Arc::new(InProcess::new(answer(encoding)))).await;
        assert_eq!(asked == "answered", passed, "{encoding}: {asked}");
        assert!(passed || asked == "HTTP-response-content-coding", "{asked}");
    }
}
