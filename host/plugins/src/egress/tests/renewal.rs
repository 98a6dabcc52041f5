//! A key that the cloud refuses before its end is renewed, once, and the request is sent again.

use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_model::Time;

use super::*;
use crate::clock::VirtualClock;
use crate::credentials::{Broker, Environment, Generation, KeyConfig, KeyOrigin, RamRole, SignerConfig};

const START_MS: i64 = 1_717_230_600_000;
const REFUSED: &str = r#"{"Code": "InvalidSecurityToken.Expired", "Message": "Specified SecurityToken is expired."}"#;

/// A way out to a cloud that signs with keys of the instance's role, and how many of them were fetched.
struct Bench {
    egress: Egress,
    seen: Seen,
    clock: VirtualClock,
    fetched: Arc<AtomicU32>,
}

/// `answer` is told which key signed: 1 for the first.
fn bench(generation: Generation, answer: impl Fn(u32) -> Response<Bytes> + Send + Sync + 'static) -> Bench {
    let clock = VirtualClock::new(Time::from_millis(START_MS));
    let fetched = Arc::new(AtomicU32::new(0));
    let counter = fetched.clone();
    let metadata = InProcess::new(move |request: Request<Bytes>| {
        let body = if request.method() == Method::PUT {
            "session".to_owned()
        } else {
            let n = counter.fetch_add(1, Ordering::SeqCst) + 1;
            format!(
                r#"{{"Code": "Success", "AccessKeyId": "STS.key{n}.", "AccessKeySecret": "secret{n}",
                "SecurityToken": "token{n}", "Expiration": "2024-06-01T09:30:00Z"}}"#
            )
        };
        async move { Response::new(Bytes::from(body)) }
    });
    let broker = Broker::new(Arc::new(clock.clone()), Environment::empty(), Arc::new(metadata));
    let role = RamRole { name: Some("worker".into()), ..RamRole::default() };
    let keys = Some(KeyConfig::new(KeyOrigin::RamRole(role)));
    let signer = broker.signer(&SignerConfig::Alicloud { generation, keys }).unwrap();
    let slot = ("ess".to_owned(), Credential::new(["*.aliyuncs.com"], signer).unwrap());
    let grants = NetworkGrants { credentials: BTreeMap::from([slot]), ..grants() };
    let seen = Seen::default();
    let sink = seen.clone();
    let cloud = InProcess::new(move |request: Request<Bytes>| {
        let signed = request.headers().get("authorization").map(|value| value.to_str().unwrap()).unwrap_or_default();
        let shown = format!("{} {signed}", request.uri());
        let key = (1..9).find(|n| shown.contains(&format!("STS.key{n}."))).expect("it is signed");
        sink.lock().unwrap().push(request);
        let answer = answer(key);
        async move { answer }
    });
    let (egress, seen, _) = through(grants, &Limits::default(), Arc::new(cloud), seen);
    Bench { egress, seen, clock, fetched }
}

impl Bench {
    /// Status and body that the guest gets.
    async fn ask(&self) -> (u16, String) {
        let headers = [
            ("x-autoscaler-credential", "ess"),
            ("x-acs-action", "DescribeScalingGroups"),
            ("x-acs-version", "2014-08-28"),
        ];
        let request = request("POST", "https://ess.aliyuncs.com/?RegionId=cn-hangzhou", &headers).map(|()| empty());
        let (head, body) = self.egress.clone().exchange(request, waits()).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
    }

    fn counts(&self) -> (usize, u32) {
        (self.seen.lock().unwrap().len(), self.fetched.load(Ordering::SeqCst))
    }
}

fn answer(status: u16, body: &str) -> Response<Bytes> {
    Response::builder().status(status).body(body.to_owned().into()).unwrap()
}

#[rstest::rstest]
#[case(Generation::V3)]
#[case(Generation::V1)]
#[tokio::test]
async fn a_refused_key_is_renewed_and_the_guest_notices_nothing(#[case] generation: Generation) {
    let bench = bench(generation, |key| if key == 1 { answer(400, REFUSED) } else { answer(200, "{}") });
    assert_eq!(bench.ask().await, (200, "{}".to_owned()));
    assert_eq!(bench.counts(), (2, 2));
    assert_eq!(bench.ask().await.0, 200);
    assert_eq!(bench.counts(), (3, 2), "the new key stays");
    let seen = bench.seen.lock().unwrap();
    let nonce = |index: usize| match generation {
        Generation::V3 => seen[index].headers()["x-acs-signature-nonce"].to_str().unwrap().to_owned(),
        Generation::V1 => {
            let query = seen[index].uri().query().unwrap();
            query.split('&').find(|part| part.starts_with("SignatureNonce=")).unwrap().to_owned()
        }
    };
    assert_ne!(nonce(0), nonce(1), "a request that is sent again has its own number");
}

#[tokio::test]
async fn when_each_key_is_refused_the_guest_gets_the_error_after_one_renewal() {
    let bench = bench(Generation::V3, |_| answer(403, REFUSED));
    assert_eq!(bench.ask().await, (403, REFUSED.to_owned()));
    assert_eq!(bench.counts(), (2, 2));
    for asked in 3..6 {
        assert_eq!(bench.ask().await, (403, REFUSED.to_owned()));
        assert_eq!(bench.counts(), (asked, 2), "the service is not asked for a key each time");
    }
    bench.clock.set(Time::from_millis(START_MS + 60_000));
    assert_eq!(bench.ask().await.0, 403);
    assert_eq!(bench.counts(), (7, 3));
}

#[rstest::rstest]
#[case::no_permission(403, r#"{"Code": "Forbidden.RAM"}"#)]
#[case::a_server_in_trouble(500, REFUSED)]
#[case::a_good_answer_that_speaks_of_it(200, REFUSED)]
#[tokio::test]
async fn nothing_else_renews_a_key(#[case] status: u16, #[case] body: &'static str) {
    let bench = bench(Generation::V3, move |_| answer(status, body));
    assert_eq!(bench.ask().await, (status, body.to_owned()));
    assert_eq!(bench.counts(), (1, 1));
}

#[tokio::test]
async fn a_long_refusal_reaches_the_guest_whole() {
    let long = "x".repeat(100_000);
    let text = long.clone();
    let bench = bench(Generation::V3, move |_| answer(404, &text));
    assert_eq!(bench.ask().await, (404, long));
}
