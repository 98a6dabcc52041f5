//! A cloud, and a provider in front of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use plimsoll_guest::http::{Answer, Outgoing, SendError, Transport};
use plimsoll_guest::{
    CallOptions, Decrease, Delete, DeleteOutcome, Increase, NodeGroup, PluginError, Provider, RefreshAnswer,
    RefreshRequest, Setup, SizeOutcome, state,
};
use plimsoll_provider_alicloud::AliCloud;
use plimsoll_tests_clouds::alicloud::wire::Incoming;
use plimsoll_tests_clouds::alicloud::{self as fake, Group, Order, Probes, Scenario, signature};
use plimsoll_tests_clouds::{Cloud, Fake};

pub(crate) type World = Fake<fake::AliCloud>;
pub(crate) const REGION: &str = "cn-hangzhou";

/// How the host signs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signing {
    V3,
    V1,
}

type Hook = Box<dyn FnMut(&mut World, &str)>;

/// The host's part of a request: it takes the slot off and signs.
pub(crate) struct Wire {
    world: Rc<RefCell<World>>,
    signing: Signing,
    nonce: Cell<u64>,
    /// Called before each request with its action.
    pub(crate) hook: RefCell<Option<Hook>>,
    /// Requests until the plug-in dies, and whether the last one arrives.
    pub(crate) dies: Cell<Option<(u32, bool)>>,
}

impl Default for Wire {
    fn default() -> Self {
        Self::to(Rc::new(RefCell::new(fake::AliCloud::start(Scenario::default()).unwrap())), Signing::V3)
    }
}

impl Wire {
    fn to(world: Rc<RefCell<World>>, signing: Signing) -> Self {
        Self { world, signing, nonce: Cell::new(0), hook: RefCell::new(None), dies: Cell::new(None) }
    }

    fn request(&self, outgoing: &Outgoing) -> Request<Bytes> {
        assert_eq!(outgoing.header("x-autoscaler-credential"), Some("api"), "every request names the slot");
        for forbidden in ["authorization", "x-acs-date", "x-acs-signature-nonce", "host"] {
            assert_eq!(outgoing.header(forbidden), None, "the guest must leave {forbidden} to the host");
        }
        let nonce = self.nonce.get();
        self.nonce.set(nonce + 1);
        let nonce = format!("{nonce:016x}{:p}", self);
        let now = self.world.borrow().now().seconds();
        let uri = format!("https://{}{}", outgoing.authority, outgoing.path_and_query);
        let mut request = Request::builder().method(outgoing.method.as_str()).uri(&uri);
        for (name, value) in outgoing.headers.iter().filter(|(name, _)| name != "x-autoscaler-credential") {
            request = request.header(name, value);
        }
        let request = request.body(Bytes::from(outgoing.body.clone().unwrap_or_default())).unwrap();
        match self.signing {
            Signing::V3 => v3(request, &outgoing.authority, &now, &nonce),
            Signing::V1 => v1(request, &now, &nonce),
        }
    }
}

fn set(request: &mut Request<Bytes>, name: &str, value: &str) {
    let name = HeaderName::try_from(name).unwrap();
    request.headers_mut().insert(name, HeaderValue::try_from(value).unwrap());
}

fn v3(mut request: Request<Bytes>, host: &str, now: &str, nonce: &str) -> Request<Bytes> {
    set(&mut request, "host", host);
    set(&mut request, "x-acs-date", now);
    set(&mut request, "x-acs-signature-nonce", nonce);
    let hash = signature::sha256_hex(request.body());
    set(&mut request, "x-acs-content-sha256", &hash);
    let mut names: Vec<_> = request.headers().keys().map(HeaderName::as_str).map(str::to_owned).collect();
    names.retain(|name| name == "host" || name == "content-type" || name.starts_with("x-acs-"));
    names.sort();
    let names = names.join(";");
    let canonical = signature::canonical_request(&Incoming::read(&request), &names);
    let signed = signature::v3(&canonical, "testsecret").signature;
    set(
        &mut request,
        "authorization",
        &format!("ACS3-HMAC-SHA256 Credential=testid,SignedHeaders={names},Signature={signed}"),
    );
    request
}

fn v1(mut request: Request<Bytes>, now: &str, nonce: &str) -> Request<Bytes> {
    let header =
        |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    let (action, version) = (header("x-acs-action"), header("x-acs-version"));
    let added = [
        ("Action", action.as_str()),
        ("Version", &version),
        ("Format", "JSON"),
        ("AccessKeyId", "testid"),
        ("SignatureMethod", "HMAC-SHA1"),
        ("SignatureVersion", "1.0"),
        ("SignatureNonce", nonce),
        ("Timestamp", now),
    ];
    let encode = |text: &str| fake::wire::encode(text);
    let query: Vec<_> = added.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    let uri = format!("{}&{}", request.uri(), query.join("&"));
    *request.uri_mut() = uri.parse().unwrap();
    for name in ["x-acs-action", "x-acs-version"] {
        request.headers_mut().remove(name);
    }
    let incoming = Incoming::read(&request);
    let signed = signature::v1(request.method().as_str(), incoming.parameters(), "testsecret").signature;
    *request.uri_mut() = format!("{uri}&Signature={}", encode(&signed)).parse().unwrap();
    request
}

impl Transport for Wire {
    fn send(&self, outgoing: &Outgoing) -> Result<Answer, SendError> {
        let dies = match self.dies.get() {
            Some((0, arrives)) => Some(arrives),
            Some((left, arrives)) => {
                self.dies.set(Some((left - 1, arrives)));
                None
            }
            None => None,
        };
        if dies == Some(false) {
            return Err(SendError::NotSent("the plug-in is dead".into()));
        }
        let action = outgoing.header("x-acs-action").unwrap_or_default().to_owned();
        if let Some(hook) = self.hook.borrow_mut().as_mut() {
            hook(&mut self.world.borrow_mut(), &action);
        }
        let request = self.request(outgoing);
        let answer = self.world.borrow_mut().handle(request).within(outgoing.timeout);
        if dies == Some(true) {
            self.dies.set(Some((0, false)));
            return Err(SendError::Lost("the plug-in is dead".into()));
        }
        match answer {
            Ok(response) if response.body().len() > outgoing.max_answer_bytes => Err(SendError::TooLarge),
            Ok(response) => {
                Ok(Answer { status: response.status().as_u16(), headers: vec![], body: response.body().to_vec() })
            }
            Err(lost) if lost.sent() => Err(SendError::Lost(lost.to_string())),
            Err(lost) => Err(SendError::NotSent(lost.to_string())),
        }
    }
}

/// A cloud, and a provider in front of it.
pub(crate) struct Bench {
    pub(crate) world: Rc<RefCell<World>>,
    pub(crate) wire: Rc<Wire>,
    pub(crate) provider: AliCloud<Shared>,
    setup: Setup,
}

/// A transport that the test can look at too.
#[derive(Clone, Default)]
pub(crate) struct Shared(Rc<Wire>);

impl Transport for Shared {
    fn send(&self, request: &Outgoing) -> Result<Answer, SendError> {
        self.0.send(request)
    }
}

/// The set-up for these groups.
pub(crate) fn setup(groups: &[&str]) -> Setup {
    Setup {
        node_groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..Setup::with_config(r#"{"region": "cn-hangzhou"}"#)
    }
}

impl Bench {
    pub(crate) fn with(scenario: Scenario, setup: Setup, signing: Signing) -> Self {
        for key in ["throttled", "changes", "endpoint-ess", "endpoint-ecs", "endpoint-vpc"] {
            state::remove(key);
        }
        let world = Rc::new(RefCell::new(fake::AliCloud::start(scenario).unwrap()));
        let wire = Rc::new(Wire::to(world.clone(), signing));
        let provider = provider(&world, &wire, &setup);
        Self { world, wire, provider, setup }
    }

    /// Groups under a seed: answers and open choices of the cloud are drawn from it.
    pub(crate) fn new(groups: Vec<Group>, specs: &[&str], seed: u64) -> Self {
        let signing = if seed.is_multiple_of(2) { Signing::V3 } else { Signing::V1 };
        Self::with(scenario(groups, seed), setup(specs), signing)
    }

    /// The plug-in dies and starts anew.
    pub(crate) fn restart(&mut self) {
        self.wire.dies.set(None);
        self.provider = provider(&self.world, &self.wire, &self.setup);
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.world.borrow_mut().advance(Duration::from_secs(seconds));
    }

    pub(crate) fn human(&self, order: &Order) {
        self.world.borrow_mut().with(|cloud, context| cloud.obey(order, context)).unwrap();
    }

    pub(crate) fn answer(&mut self) -> Result<RefreshAnswer, PluginError> {
        // Time is virtual, so the real one must not run out.
        self.provider.refresh(RefreshRequest { deadline_ms: u32::MAX, ..RefreshRequest::everything() })
    }

    /// Everything, and it must be all.
    pub(crate) fn refresh(&mut self) -> Vec<NodeGroup> {
        let answer = self.answer().unwrap();
        let snapshot = answer.snapshot.unwrap();
        assert!(snapshot.complete, "{:?}", answer.diagnostics);
        snapshot.groups
    }

    /// One group, and it must be good.
    pub(crate) fn group(&mut self, id: &str) -> NodeGroup {
        let group =
            self.refresh().into_iter().find(|group| group.id == id).unwrap_or_else(|| panic!("{id} is not listed"));
        assert_eq!(group.error, None);
        group
    }

    pub(crate) fn increase(
        &mut self,
        group: &str,
        delta: u32,
        expected: u32,
        key: &str,
    ) -> Result<SizeOutcome, PluginError> {
        let options = CallOptions { deadline_ms: u32::MAX, ..CallOptions::with_key(key) };
        self.provider.increase_size(Increase {
            group: group.into(),
            delta,
            expected_target: expected,
            atomic: false,
            options,
        })
    }

    pub(crate) fn decrease(&mut self, group: &str, delta: u32, expected: u32) -> Result<SizeOutcome, PluginError> {
        let options = CallOptions { deadline_ms: u32::MAX, ..CallOptions::with_key("decrease") };
        self.provider.decrease_target(Decrease { group: group.into(), delta, expected_target: expected, options })
    }

    pub(crate) fn delete(
        &mut self,
        group: &str,
        ids: &[String],
        min_size: u32,
        key: &str,
    ) -> Result<DeleteOutcome, PluginError> {
        let options = CallOptions { deadline_ms: u32::MAX, ..CallOptions::with_key(key) };
        let call =
            Delete { group: group.into(), ids: ids.to_vec(), expected_target: 0, min_size, force: false, options };
        self.provider.delete_instances(call)
    }

    /// Requests so far for one action.
    pub(crate) fn calls(&self, action: &str) -> usize {
        self.world.borrow().journal().count(action)
    }

    pub(crate) fn all_calls(&self) -> usize {
        self.world.borrow().journal().calls.len()
    }

    /// Nothing that a good client would not send, and no machine that nobody named.
    pub(crate) fn clean(&self, what: &str) {
        let world = self.world.borrow();
        assert_eq!(world.journal().violations(), Vec::<String>::new(), "{what}");
        let kills: Vec<_> = world.journal().random_kills().iter().map(|event| format!("{event:?}")).collect();
        assert_eq!(kills, Vec::<String>::new(), "{what}");
    }
}

fn provider(world: &Rc<RefCell<World>>, wire: &Rc<Wire>, setup: &Setup) -> AliCloud<Shared> {
    let world = world.clone();
    let clock = Rc::new(move || u64::try_from(world.borrow().now().0).unwrap());
    AliCloud::over(Shared(wire.clone()), clock, setup).unwrap()
}

/// A scenario whose answers and open choices come from the seed.
pub(crate) fn scenario(groups: Vec<Group>, seed: u64) -> Scenario {
    let bit = |bit: u32| seed >> bit & 1 == 1;
    let probes = Probes {
        quantity_moves_desired: !bit(1),
        protected_and_standby_count: !bit(2),
        remove_during_activity: bit(3),
        capacity_change_during_activity: bit(4),
        beyond_bounds_is_refused: bit(2) != bit(3),
        tag_key_names: bit(4),
        newest_activity_first: !bit(3),
        throttled_status: [400, 429, 503][(seed % 3) as usize],
        ..Probes::default()
    };
    Scenario { seed, quirks: None, probes, ..Scenario::with_groups(groups) }
}

/// Seconds from one look to the next: every second for some seeds, now and then for the others.
pub(crate) fn step(seed: u64) -> u64 {
    if seed < 8 { 1 } else { 7 + seed % 5 }
}

/// Seeds of every test.
pub(crate) const SEEDS: std::ops::Range<u64> = if cfg!(debug_assertions) { 6..12 } else { 0..100 };
