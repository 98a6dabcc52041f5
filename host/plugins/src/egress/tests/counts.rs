//! Every request is counted once, by the entry that grants it.

use plimsoll_grants::ActionGrant;

use super::*;
use crate::observer::{Observer, RequestOutcome, Requested};

#[derive(Default)]
struct Counter(Mutex<Vec<Requested>>);

impl Observer for Counter {
    fn notice(&self, _event: Event) {}
    fn requested(&self, request: Requested) {
        self.0.lock().unwrap().push(request);
    }
}

async fn counted(uri: &str, headers: &[(&str, &str)], answer: Response<Bytes>, read: bool) -> Requested {
    let counter = Arc::new(Counter::default());
    let log = Log::new("utho".into(), Level::Info, Arc::new(StoppedClock), counter.clone());
    let network = InProcess::new(move |_| {
        let (parts, body) = answer.clone().into_parts();
        async move { Response::from_parts(parts, body) }
    });
    let limits = Limits { response_body_bytes: 10, ..Limits::default() };
    let egress = Egress::new("utho".into(), grants(), Arc::new(network), &limits, log);
    if let Ok(response) = egress.exchange(request("GET", uri, headers).map(|()| empty()), waits()).await
        && read
    {
        let _ = response.into_body().collect().await;
    }
    let mut counted = std::mem::take(&mut *counter.0.lock().unwrap());
    assert_eq!(counted.len(), 1, "{counted:?}");
    counted.remove(0)
}

fn answer(status: u16, body: &'static str) -> Response<Bytes> {
    Response::builder().status(status).body(body.into()).unwrap()
}

#[rstest::rstest]
#[case::answered("https://api.utho.com/", &[], answer(404, "no"), true, "https://api.utho.com", Some(404), "answered")]
#[case::by_wildcard("https://ess.aliyuncs.com/", &[], answer(200, ""), true, "https://*.aliyuncs.com", Some(200), "answered")]
#[case::denied("https://evil.example/", &[], answer(200, ""), true, "not granted", None, "denied")]
#[case::no_key(
    "https://api.utho.com/", &[("x-autoscaler-credential", "broken")], answer(200, ""), true,
    "https://api.utho.com", None, "no-credential"
)]
#[case::cut("https://api.utho.com/", &[], answer(200, "01234567890"), true, "https://api.utho.com", Some(200), "cut")]
#[case::abandoned("https://api.utho.com/", &[], answer(200, "x"), false, "https://api.utho.com", Some(200), "abandoned")]
#[tokio::test]
async fn each_is_told_once(
    #[case] uri: &str,
    #[case] headers: &[(&str, &str)],
    #[case] answer: Response<Bytes>,
    #[case] read: bool,
    #[case] host: &str,
    #[case] status: Option<u16>,
    #[case] outcome: &str,
) {
    let told = counted(uri, headers, answer, read).await;
    assert_eq!((told.plugin.as_str(), told.host.as_str(), told.status), ("utho", host, status));
    assert_eq!(told.outcome.name(), outcome);
    assert_eq!(told.credential.is_some(), !headers.is_empty());
    assert_eq!(serde_json::to_value(told.outcome).unwrap(), outcome);
    assert_ne!(told.outcome, RequestOutcome::NetworkError);
}

#[tokio::test]
async fn a_credential_is_for_its_actions_only() {
    let mut grants = grants();
    let ess = grants.credentials["ess"].clone().only_for(
        ["DescribeScalingGroups", "Pools GET /clusters/*/nodepools"].map(|text| ActionGrant::parse(text).unwrap()),
    );
    grants.credentials.insert("ess".into(), ess);
    let (egress, seen, recorder) = through(
        grants,
        &Limits::default(),
        Arc::new(InProcess::new(|_| async { Response::default() })),
        Seen::default(),
    );
    let asked_at = async |method: &str, path: &str, actions: &[&str]| {
        let mut headers = vec![("x-autoscaler-credential", "ess")];
        headers.extend(actions.iter().map(|action| ("x-acs-action", *action)));
        let uri = format!("https://ess.aliyuncs.com{path}");
        let request = request(method, &uri, &headers).map(|()| empty());
        egress.clone().exchange(request, waits()).await.is_ok()
    };
    let asked = async |actions: &[&str]| asked_at("POST", "/", actions).await;
    assert!(asked(&["DescribeScalingGroups"]).await);
    assert!(!asked(&["RemoveInstances"]).await);
    assert!(!asked(&[]).await);
    assert!(!asked(&["DescribeScalingGroups", "RemoveInstances"]).await);
    assert!(asked_at("GET", "/clusters/c1/nodepools", &["Pools"]).await);
    // What is done is what the path says, whatever the request calls it.
    assert!(!asked_at("DELETE", "/clusters/c1", &["DescribeScalingGroups"]).await);
    drop(seen);
    let denials: Vec<_> = recorder
        .take()
        .into_iter()
        .filter_map(|event| match event {
            Event::Denied { denial } => Some((denial.reason, denial.fix_key, denial.fix_entry)),
            _ => None,
        })
        .collect();
    assert_eq!(denials.len(), 4);
    assert_eq!(
        denials[3],
        (
            "the credential \"ess\" is granted for the action DescribeScalingGroups, but not as DELETE /clusters/c1"
                .to_owned(),
            Some("plugins.utho.credentials.ess.actions".to_owned()),
            Some("- DescribeScalingGroups DELETE /clusters/c1".to_owned()),
        )
    );
    assert_eq!(
        denials[0],
        (
            "the credential \"ess\" is not granted for the action RemoveInstances".to_owned(),
            Some("plugins.utho.credentials.ess.actions".to_owned()),
            Some("- RemoveInstances".to_owned()),
        )
    );
    assert_eq!(
        denials[1].0,
        "the credential \"ess\" is granted for some API actions only, and it names none in x-acs-action"
    );
}

/// Writes down what spans tell.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<String>>);

impl tracing::field::Visit for Told {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push_str(&format!("{field}={value:?} "));
    }
}

impl tracing::Subscriber for Told {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        span.record(&mut self.clone());
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut self.clone());
    }
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_span_tells_of_each_request_but_neither_its_query_nor_its_signature() {
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(told.clone());
    let slot = [("x-autoscaler-credential", "api")];
    counted("https://api.utho.com/v2/servers?key=private", &slot, answer(200, "private"), true).await;
    assert_eq!(
        *told.0.lock().unwrap(),
        "plugin=utho method=GET host=\"api.utho.com\" path=\"/v2/servers\" status=200 outcome=\"answered\" "
    );
}
