mod attacks;
mod counts;
mod renewal;

use std::collections::BTreeMap;
use std::sync::Mutex;

use http_body_util::{Empty, Full};

use std::time::Duration;

use plimsoll_grants::{MOST_HEADERS, MOST_URL_BYTES};
use tokio::time::Instant;
use wasmtime_wasi_http::{RequestOptions, WasiHttpHooks as _};

use super::outgoing::PATIENCE;
use super::*;
use crate::Pending;
use crate::clock::StoppedClock;
use crate::credentials::Signer;
use crate::observer::{Event, Level, Recorder};

/// Signs with a fixed text.
struct Stamp;

impl Signer for Stamp {
    fn sign<'a>(&'a self, request: &'a mut Request<Bytes>) -> Pending<'a, Result<Exposed, CredentialError>> {
        Box::pin(async move {
            let stamp = format!("Stamp {}", request.body().len()).parse().unwrap();
            request.headers_mut().insert(header::AUTHORIZATION, stamp);
            Ok(Exposed::default())
        })
    }
}

struct Broken;

impl Signer for Broken {
    fn sign<'a>(&'a self, _request: &'a mut Request<Bytes>) -> Pending<'a, Result<Exposed, CredentialError>> {
        Box::pin(async { Err(CredentialError::Unreadable { place: "/run/token".into(), reason: "gone".into() }) })
    }
}

fn grants() -> NetworkGrants {
    let credential = |hosts: &[&str], signer: Arc<dyn Signer>| Credential::new(hosts.iter().copied(), signer).unwrap();
    NetworkGrants {
        hosts: ["https://api.utho.com", "https://*.aliyuncs.com", "http://10.1.2.3:8080", "https://[::1]"]
            .map(|text| Grant::parse(text, true).unwrap())
            .into(),
        credentials: BTreeMap::from([
            ("api".to_owned(), credential(&["api.utho.com"], Arc::new(Stamp))),
            ("ess".to_owned(), credential(&["*.aliyuncs.com"], Arc::new(Stamp))),
            ("broken".to_owned(), credential(&["api.utho.com"], Arc::new(Broken))),
        ]),
        addresses: AddressPolicy::default(),
        insecure_http: false,
        file: "plugins.yaml".to_owned(),
    }
}

type Seen = Arc<Mutex<Vec<Request<Bytes>>>>;

/// A way out to a cloud that keeps what it sees and answers with `answer`.
fn egress(grants: NetworkGrants, limits: &Limits, answer: Response<Bytes>) -> (Egress, Seen, Arc<Recorder>) {
    let seen = Seen::default();
    let sink = seen.clone();
    let network = InProcess::new(move |request| {
        sink.lock().unwrap().push(request);
        let (parts, body) = answer.clone().into_parts();
        async move { Response::from_parts(parts, body) }
    });
    through(grants, limits, Arc::new(network), seen)
}

fn through(
    grants: NetworkGrants,
    limits: &Limits,
    network: Arc<dyn Transport>,
    seen: Seen,
) -> (Egress, Seen, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let log = Log::new("utho".into(), Level::Info, Arc::new(StoppedClock), recorder.clone());
    (Egress::new("utho".into(), grants, network, limits, log), seen, recorder)
}

/// What the operator was warned of.
fn warnings(recorder: &Recorder) -> Vec<String> {
    let events = recorder.take().into_iter();
    events.filter_map(|event| if let Event::Warning { message, .. } = event { Some(message) } else { None }).collect()
}

fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

fn waits() -> Waits {
    let span = Duration::from_secs(5);
    Waits { first_byte: span, between_bytes: span, deadline: Instant::now() + span }
}

fn empty() -> WasiBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

fn full(size: usize) -> WasiBody {
    Full::new(Bytes::from(vec![b'x'; size])).map_err(|never| match never {}).boxed_unsync()
}

#[rstest::rstest]
#[case::granted("GET", "https://api.utho.com/v2/x?y=z", &[], "granted")]
#[case::wildcard("POST", "https://ess.aliyuncs.com/", &[], "granted")]
#[case::own_port("GET", "https://api.utho.com:443/", &[], "granted")]
#[case::slot("GET", "https://api.utho.com/", &[("x-autoscaler-credential", "api")], "granted with api")]
#[case::complete_name("GET", "https://api.utho.com./", &[], "granted")]
#[case::two_dots("GET", "https://api.utho.com../", &[], "NoAddress")]
#[case::connect("CONNECT", "https://api.utho.com/", &[], "Method")]
#[case::trace("TRACE", "https://api.utho.com/", &[], "Method")]
#[case::own_method("BREW", "https://api.utho.com/", &[], "Method")]
#[case::other_host("GET", "https://api.utho.co/", &[], "NoGrant { entry: \"https://api.utho.co\", encrypted: true }")]
#[case::other_port("GET", "https://api.utho.com:8443/", &[], "NoGrant { entry: \"https://api.utho.com:8443\", encrypted: true }")]
#[case::plain_text("GET", "http://api.utho.com/", &[], "NoGrant { entry: \"http://api.utho.com\", encrypted: false }")]
#[case::user("GET", "https://me:pw@api.utho.com/", &[], "UserInfo")]
#[case::empty_user("GET", "https://@api.utho.com/", &[], "UserInfo")]
#[case::user_disguise("GET", "https://api.utho.com@evil.example/", &[], "UserInfo")]
#[case::other_scheme("GET", "ftp://api.utho.com/", &[], "Scheme")]
#[case::no_authority("GET", "/v2/x", &[], "NoAddress")]
#[case::private_address("GET", "http://10.1.2.3:8080/", &[], "Address(ClosedAddress { address: 10.1.2.3, kind: \"a private address\" })")]
#[case::decimal_address("GET", "http://167838211:8080/", &[], "Address(ClosedAddress { address: 10.1.2.3, kind: \"a private address\" })")]
#[case::loopback("GET", "https://[::1]/", &[], "Address(ClosedAddress { address: ::1, kind: \"a loopback address\" })")]
#[case::authorization("GET", "https://api.utho.com/", &[("authorization", "Bearer stolen")], "Authorization")]
#[case::unknown_slot(
    "GET", "https://api.utho.com/", &[("x-autoscaler-credential", "root")],
    "UnknownSlot { slot: \"root\", host: \"api.utho.com\" }"
)]
#[case::slot_elsewhere(
    "GET", "https://ess.aliyuncs.com/", &[("x-autoscaler-credential", "api")],
    "SlotElsewhere { slot: \"api\", host: \"ess.aliyuncs.com\" }"
)]
#[case::two_slots(
    "GET", "https://api.utho.com/", &[("x-autoscaler-credential", "api"), ("x-autoscaler-credential", "ess")],
    "TwoSlots"
)]
fn checks_requests(#[case] method: &str, #[case] uri: &str, #[case] headers: &[(&str, &str)], #[case] expected: &str) {
    let (egress, _, _) = egress(grants(), &Limits::default(), Response::default());
    let verdict = egress.permit(&request(method, uri, headers).into_parts().0);
    let verdict = match verdict {
        Ok(Permit { slot: None, .. }) => "granted".to_owned(),
        Ok(Permit { slot: Some(slot), .. }) => format!("granted with {slot}"),
        Err(refusal) => format!("{refusal:?}"),
    };
    assert_eq!(verdict, expected);
}

#[test]
fn long_addresses_and_many_headers_are_refused() {
    let (egress, _, _) = egress(grants(), &Limits::default(), Response::default());
    let long = format!("https://api.utho.com/{}", "x".repeat(MOST_URL_BYTES));
    assert_eq!(egress.permit(&request("GET", &long, &[]).into_parts().0), Err(Refusal::TooLong));
    let headers = vec![("accept", "x"); MOST_HEADERS + 1];
    let many = request("GET", "https://api.utho.com/", &headers);
    assert_eq!(egress.permit(&many.into_parts().0), Err(Refusal::TooManyHeaders));
}

#[test]
fn without_grants_nothing_leaves() {
    let (egress, _, _) = egress(NetworkGrants::default(), &Limits::default(), Response::default());
    let parts = request("GET", "https://api.utho.com/", &[]).into_parts().0;
    assert!(matches!(egress.permit(&parts), Err(Refusal::NoGrant { .. })));
}

#[rstest::rstest]
#[case::no_grant(
    "https://api.utho.co/v2/servers?key=private",
    &[],
    "plugin \"utho\" asked for https://api.utho.co/v2/servers… and was refused: no grant covers it
  plugins.yaml grants it: https://api.utho.com, https://*.aliyuncs.com, http://10.1.2.3:8080, https://[::1]
  to allow it, add under plugins.utho.hosts:  - https://api.utho.co"
)]
#[case::plain_text(
    "http://api.utho.com/",
    &[],
    "plugin \"utho\" asked for http://api.utho.com/ and was refused: no grant covers it
  plugins.yaml grants it: https://api.utho.com, https://*.aliyuncs.com, http://10.1.2.3:8080, https://[::1]
  to allow it, add under plugins.utho.hosts:  - http://api.utho.com   (and beside hosts:  insecure-http: true, as it is not encrypted)"
)]
#[case::address(
    "http://10.1.2.3:8080/",
    &[],
    "plugin \"utho\" asked for http://10.1.2.3:8080/ and was refused: 10.1.2.3 is a private address
  plugins.yaml grants it: https://api.utho.com, https://*.aliyuncs.com, http://10.1.2.3:8080, https://[::1]
  to allow it, add under plugins.utho.cidrs:  - 10.1.2.3/32"
)]
#[case::slot(
    "https://api.utho.com/",
    &[("x-autoscaler-credential", "ess")],
    "plugin \"utho\" asked for https://api.utho.com/ and was refused: the credential \"ess\" is not granted for api.utho.com
  plugins.yaml grants it: https://api.utho.com, https://*.aliyuncs.com, http://10.1.2.3:8080, https://[::1]
  to allow it, add under plugins.utho.credentials.ess.hosts:  - api.utho.com"
)]
#[case::user(
    "https://me:pw@api.utho.com/",
    &[],
    "plugin \"utho\" asked for https://api.utho.com/ and was refused: the address holds a user name or password; \
     credentials are granted, not carried
  plugins.yaml grants it: https://api.utho.com, https://*.aliyuncs.com, http://10.1.2.3:8080, https://[::1]"
)]
#[tokio::test]
async fn a_refusal_tells_the_operator_how_to_allow_it(
    #[case] uri: &str,
    #[case] headers: &[(&str, &str)],
    #[case] expected: &str,
) {
    let (egress, seen, recorder) = egress(grants(), &Limits::default(), Response::default());
    let refused = egress.exchange(request("GET", uri, headers).map(|()| empty()), waits()).await;
    assert!(refused.is_err());
    assert!(seen.lock().unwrap().is_empty(), "a refused request must not be sent");
    let [Event::Denied { denial }] = &recorder.take()[..] else { panic!("one refusal") };
    assert_eq!(denial.to_string(), expected);
}

#[tokio::test]
async fn a_signed_request_carries_the_signature_and_not_the_slot() {
    let (egress, seen, _) = egress(grants(), &Limits::default(), Response::default());
    let headers = [
        ("x-autoscaler-credential", "api"),
        ("host", "API.utho.com"),
        ("connection", "close"),
        ("te", "trailers"),
        ("accept-encoding", "gzip"),
        ("range", "bytes=0-3"),
        ("content-length", "999"),
        ("accept", "application/json"),
    ];
    let request = request("POST", "https://API.utho.com/a/../b?q=1", &headers).map(|()| full(3));
    egress.exchange(request, waits()).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0].uri(), "https://api.utho.com/b?q=1");
    let mut headers: Vec<_> = seen[0].headers().iter().map(|(n, v)| format!("{n}: {}", v.to_str().unwrap())).collect();
    headers.sort();
    assert_eq!(headers, ["accept: application/json", "authorization: Stamp 3"]);
}

#[tokio::test]
async fn a_request_without_a_slot_is_not_signed() {
    let (egress, seen, _) = egress(grants(), &Limits::default(), Response::default());
    egress.exchange(request("GET", "https://api.utho.com/", &[]).map(|()| empty()), waits()).await.unwrap();
    assert!(seen.lock().unwrap()[0].headers().is_empty());
}

#[tokio::test]
async fn a_credential_that_cannot_be_had_stops_the_request() {
    let (egress, seen, recorder) = egress(grants(), &Limits::default(), Response::default());
    let request = request("GET", "https://api.utho.com/", &[("x-autoscaler-credential", "broken")]);
    let error = egress.exchange(request.map(|()| empty()), waits()).await.unwrap_err();
    assert!(matches!(error, HttpError::ConfigurationError), "{error}");
    assert!(seen.lock().unwrap().is_empty());
    let [Event::Warning { message, .. }] = &recorder.take()[..] else { panic!("one warning") };
    assert_eq!(
        message,
        "credential \"broken\" of plugin \"utho\" cannot be used: the secret cannot be read from /run/token: gone"
    );
}

#[tokio::test]
async fn a_request_body_has_an_end() {
    let limits = Limits { request_body_bytes: 10, ..Limits::default() };
    let (egress, seen, recorder) = egress(grants(), &limits, Response::default());
    let send = |size| {
        let request = request("POST", "https://api.utho.com/", &[]).map(|()| full(size));
        egress.clone().exchange(request, waits())
    };
    send(10).await.unwrap();
    assert!(matches!(send(11).await.unwrap_err(), HttpError::HttpRequestBodySize(Some(10))));
    assert_eq!(seen.lock().unwrap().len(), 1);
    let what = "its body has more than 10 bytes and was not sent; if it really needs that, raise \
                plugins.utho.limits.request-kib";
    assert_eq!(warnings(&recorder), [format!("plugin \"utho\", a request to https://api.utho.com: {what}")]);
}

#[tokio::test]
async fn a_response_body_has_an_end() {
    let limits = Limits { response_body_bytes: 10, ..Limits::default() };
    for (size, fits) in [(10, true), (11, false)] {
        let (egress, _, recorder) = egress(grants(), &limits, Response::new(Bytes::from(vec![0; size])));
        let request = request("GET", "https://api.utho.com/", &[]).map(|()| empty());
        let body = egress.exchange(request, waits()).await.unwrap().into_body().collect().await;
        match body {
            Ok(body) => assert!(fits && body.to_bytes().len() == size),
            Err(error) => assert!(!fits && matches!(error, HttpError::HttpResponseBodySize(Some(10))), "{error}"),
        }
        let what = "the response has more than 10 bytes and was cut; if it really needs that, raise \
                    plugins.utho.limits.response-mib";
        let told =
            if fits { vec![] } else { vec![format!("plugin \"utho\", a request to https://api.utho.com: {what}")] };
        assert_eq!(warnings(&recorder), told);
    }
}

#[tokio::test]
async fn secrets_and_connection_headers_of_a_response_are_kept_from_the_guest() {
    let answer = Response::builder()
        .status(302)
        .header("location", "https://elsewhere.example/")
        .header("authorization", "Bearer echo")
        .header("transfer-encoding", "chunked")
        .header("x-request-id", "r1")
        .body(Bytes::new())
        .unwrap();
    let (egress, ..) = egress(grants(), &Limits::default(), answer);
    let request = request("GET", "https://api.utho.com/", &[]).map(|()| empty());
    let response = egress.exchange(request, waits()).await.unwrap();
    let mut names: Vec<_> = response.headers().keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!((response.status().as_u16(), names), (302, vec!["location", "x-request-id"]));
}

#[tokio::test]
async fn headers_of_a_response_have_an_end() {
    let answer = Response::builder().header("x", "y".repeat(40_000)).body(Bytes::new()).unwrap();
    let (egress, ..) = egress(grants(), &Limits::default(), answer);
    let request = request("GET", "https://api.utho.com/", &[]).map(|()| empty());
    let error = egress.exchange(request, waits()).await.unwrap_err();
    assert!(matches!(error, HttpError::HttpResponseHeaderSectionSize(Some(40_001))), "{error}");
}

/// A cloud that never answers, or answers with a body that never ends.
struct Slow {
    head: bool,
}

impl Transport for Slow {
    fn send(&self, _request: Request<Bytes>) -> Pending<'_, Result<Response<ReplyBody>, TransportError>> {
        let body = Empty::new().map_err(|never| match never {}).with_trailers(std::future::pending()).boxed_unsync();
        let head = self.head;
        Box::pin(async move { if head { Ok(Response::new(body)) } else { std::future::pending().await } })
    }
}

#[rstest::rstest]
#[case::head(5, 9, 9, "connection read timeout", 5)]
#[case::gap(9, 5, 9, "connection read timeout", 5)]
#[case::everything(9, 9, 5, "HTTP response timeout", 5)]
#[tokio::test(start_paused = true)]
async fn silence_has_an_end(
    #[case] first_byte: u64,
    #[case] between_bytes: u64,
    #[case] deadline: u64,
    #[case] expected: &str,
    #[case] seconds: u64,
) {
    let head = first_byte == 9;
    let (egress, ..) = through(grants(), &Limits::default(), Arc::new(Slow { head }), Seen::default());
    let begun = Instant::now();
    let waits = Waits {
        first_byte: Duration::from_secs(first_byte),
        between_bytes: Duration::from_secs(between_bytes),
        deadline: begun + Duration::from_secs(deadline),
    };
    let reply = egress.exchange(request("GET", "https://api.utho.com/", &[]).map(|()| empty()), waits).await;
    let error = match reply {
        Ok(reply) => reply.into_body().collect().await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!((error.to_string().as_str(), begun.elapsed()), (expected, Duration::from_secs(seconds)));
}

#[tokio::test(start_paused = true)]
async fn only_so_many_exchanges_run_at_once() {
    let limits = Limits { exchanges: 2, ..Limits::default() };
    let (egress, ..) = through(grants(), &limits, Arc::new(Slow { head: true }), Seen::default());
    let send = || egress.clone().exchange(request("GET", "https://api.utho.com/", &[]).map(|()| empty()), waits());
    let (first, _second) = (send().await.unwrap(), send().await.unwrap());
    assert!(matches!(send().await.unwrap_err(), HttpError::ConnectionLimitReached));
    drop(first);
    send().await.unwrap();
}

#[test]
fn a_guest_cannot_set_headers_that_are_the_hosts() {
    let filter = Outgoing::new(None, false).forbidden_header_filter();
    for name in ["authorization", "host", "connection", "transfer-encoding", "proxy-authorization"] {
        assert!(filter(&HeaderName::from_static(name)), "{name}");
    }
    assert!(!filter(&SLOT_HEADER), "a guest names its slot in this header");
}

#[tokio::test(start_paused = true)]
async fn a_guest_may_wait_shorter_but_not_longer() {
    let mut outgoing = Outgoing::new(None, false);
    let deadline = Instant::now() + Duration::from_secs(100);
    outgoing.set_deadline(deadline);
    let wish = |seconds| {
        let span = Some(Duration::from_secs(seconds));
        outgoing.waits(Some(RequestOptions {
            connect_timeout: span,
            first_byte_timeout: span,
            between_bytes_timeout: span,
        }))
    };
    assert_eq!(wish(1).first_byte, Duration::from_secs(1));
    assert_eq!(wish(0).between_bytes, Duration::ZERO);
    assert_eq!((wish(1000).first_byte, wish(1000).deadline), (PATIENCE, deadline));
}
