//! A provider, the cloud that it talks to, and what a host does between them.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use plimsoll_guest::http::{Answer, Outgoing, Scheme, SendError, Transport};
use plimsoll_guest::{
    CallOptions, Delete, DeleteOutcome, Increase, Instance, KeyValue, NodeGroup, NodeHint, PluginError, Provider,
    RefreshAnswer, RefreshRequest, Setup, SizeOutcome, state,
};
use plimsoll_provider_utho::Utho;
use plimsoll_tests_clouds::utho::{self, Order, Quirks, Switches, TOKEN, World};
use plimsoll_tests_clouds::{Chance, Cloud as _, Fake, Fault, Journal, Lost, Rule, UnixMs};

pub(crate) type Cloud = Fake<utho::Utho>;

pub(crate) const CLUSTER: &str = "1111";
pub(crate) const POOL: &str = "pool-a";
pub(crate) const SEEDS: u64 = 100;

/// The way between provider and cloud, with the host's part of it: it signs, and it dies on demand.
#[derive(Clone, Default)]
pub(crate) struct Wire(Option<Rc<Line>>);

pub(crate) struct Line {
    cloud: RefCell<Cloud>,
    token: RefCell<String>,
    sent: Cell<usize>,
    crash: Cell<Option<Crash>>,
    before_write: RefCell<Option<Meddling>>,
}

type Meddling = Box<dyn FnOnce(&mut Cloud)>;

/// The component dies at this request of those that come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crash {
    pub(crate) at: usize,
    /// After the cloud handled it; else before it is sent.
    pub(crate) after: bool,
}

impl Transport for Wire {
    fn send(&self, request: &Outgoing) -> Result<Answer, SendError> {
        let line = self.0.as_ref().expect("a wire with a cloud");
        assert_eq!((request.scheme, request.authority.as_str()), (Scheme::Https, utho::HOST));
        assert_eq!(request.header("x-autoscaler-credential"), Some("api"));
        assert_eq!(request.header("authorization"), None, "a guest has no secret");
        let number = line.sent.replace(line.sent.get() + 1);
        let crash = line.crash.get().filter(|crash| crash.at == number);
        if crash.is_some_and(|crash| !crash.after) {
            std::panic::resume_unwind(Box::new("crash"));
        }
        if request.method.as_str() != "GET"
            && let Some(meddle) = line.before_write.take()
        {
            meddle(&mut line.cloud.borrow_mut());
        }
        let answer = line.cloud.borrow_mut().handle(signed(request, &line.token.borrow()));
        if crash.is_some() {
            std::panic::resume_unwind(Box::new("crash"));
        }
        let response = answer.within(request.timeout).map_err(|lost| match lost {
            Lost::Refused | Lost::NoAddress | Lost::WrongName => SendError::NotSent(lost.to_string()),
            Lost::Reset | Lost::Timeout | Lost::Truncated => SendError::Lost(lost.to_string()),
        })?;
        if response.body().len() > request.max_answer_bytes {
            return Err(SendError::TooLarge);
        }
        let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
        };
        let headers = response.headers().iter().map(header).collect();
        Ok(Answer { status: response.status().as_u16(), headers, body: response.body().to_vec() })
    }
}

/// What the host makes of a guest's request.
fn signed(request: &Outgoing, token: &str) -> http::Request<Bytes> {
    let uri = format!("https://{}{}", request.authority, request.path_and_query);
    let mut signed = http::Request::builder().method(request.method.as_str()).uri(uri);
    for (name, value) in request.headers.iter().filter(|(name, _)| name != "x-autoscaler-credential") {
        signed = signed.header(name, value);
    }
    let body = request.body.clone().unwrap_or_default();
    signed.header("authorization", format!("Bearer {token}")).body(Bytes::from(body)).unwrap()
}

pub(crate) struct Bench {
    pub(crate) chance: Chance,
    line: Rc<Line>,
    provider: Utho<Wire>,
    setup: Setup,
    keys: u32,
}

/// A cluster with one pool of some machines that are up, limits 1 to 10.
pub(crate) fn world(count: u32, quirks: &Quirks) -> World {
    let mut world = World::new(CLUSTER);
    add_pool(&mut world, POOL, (1, 10), count, quirks);
    world
}

pub(crate) fn add_pool(world: &mut World, id: &str, limits: (u32, u32), count: u32, quirks: &Quirks) {
    let naming = utho::Utho::new(World::new(CLUSTER), Switches::default(), *quirks).named();
    world.add_pool(id, "10045", limits, count, naming);
}

/// Runs a test under every seed, with any switches and quirks.
pub(crate) fn under_all_seeds(count: u32, test: impl Fn(&mut Bench)) {
    under_seeds(count, |_| {}, test);
}

/// The same with switches that the test decides.
pub(crate) fn under_seeds(count: u32, set: impl Fn(&mut Switches), test: impl Fn(&mut Bench)) {
    under_these_seeds(0..SEEDS, count, set, test);
}

/// The same with some of the seeds.
pub(crate) fn under_these_seeds(seeds: Range<u64>, count: u32, set: impl Fn(&mut Switches), test: impl Fn(&mut Bench)) {
    for seed in seeds {
        let mut chance = Chance::new(seed);
        let (mut switches, quirks) = (Switches::random(&mut chance), Quirks::random(&mut chance));
        set(&mut switches);
        let run = || test(&mut Bench::new(seed, world(count, &quirks), switches, quirks));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        if let Err(panic) = outcome {
            let text =
                panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(|&text| text.into()));
            panic!("seed {seed}: {}\n{switches:?}\n{quirks:?}", text.unwrap_or_default());
        }
    }
}

impl Bench {
    pub(crate) fn new(seed: u64, world: World, switches: Switches, quirks: Quirks) -> Self {
        let payload = if switches.size_required { "documented" } else { "count-only" };
        let setup = Setup::with_config(format!(r#"{{"cluster_id": "{CLUSTER}", "update_payload": "{payload}"}}"#));
        state::remove(&format!("cluster/{CLUSTER}"));
        let now = UnixMs::parse("2026-01-01T00:00:00Z").unwrap();
        let cloud = Fake::new(utho::Utho::new(world, switches, quirks), now, seed);
        let line = Rc::new(Line {
            cloud: RefCell::new(cloud),
            token: RefCell::new(TOKEN.to_owned()),
            sent: Cell::new(0),
            crash: Cell::new(None),
            before_write: RefCell::new(None),
        });
        let provider = start(&line, &setup);
        Self { chance: Chance::new(seed ^ 0xace), line, provider, setup, keys: 0 }
    }

    /// A new component, as after a trap. What the host keeps for the plug-in stays.
    pub(crate) fn restart(&mut self) {
        self.line.crash.set(None);
        self.provider = start(&self.line, &self.setup);
    }

    /// A new component in a new host, which knows nothing of earlier calls.
    pub(crate) fn restart_host(&mut self) {
        state::remove(&format!("cluster/{CLUSTER}"));
        self.restart();
    }

    /// The same with other arguments.
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut Setup)) {
        change(&mut self.setup);
        self.restart();
    }

    pub(crate) fn cloud<R>(&self, look: impl FnOnce(&mut Cloud) -> R) -> R {
        look(&mut self.line.cloud.borrow_mut())
    }

    pub(crate) fn journal<R>(&self, look: impl FnOnce(&Journal) -> R) -> R {
        self.cloud(|cloud| look(cloud.journal()))
    }

    pub(crate) fn set_token(&self, token: &str) {
        token.clone_into(&mut self.line.token.borrow_mut());
    }

    pub(crate) fn obey(&self, order: &Order) {
        self.cloud(|cloud| cloud.with(|logic, context| logic.obey(order, context))).unwrap();
    }

    /// Somebody does this between the provider's read and its write.
    pub(crate) fn before_write(&self, meddle: impl FnOnce(&mut Cloud) + 'static) {
        *self.line.before_write.borrow_mut() = Some(Box::new(meddle));
    }

    pub(crate) fn crash(&self, at: usize, after: bool) {
        self.line.crash.set(Some(Crash { at: self.line.sent.get() + at, after }));
    }

    pub(crate) fn sent(&self) -> usize {
        self.line.sent.get()
    }

    pub(crate) fn fault(&self, rule: Rule) {
        self.cloud(|cloud| cloud.faults().add(rule));
    }

    pub(crate) fn once(&self, action: &str, fault: Fault) {
        self.fault(Rule::new("once", fault).on(action).times(1));
    }

    pub(crate) fn no_faults(&self) {
        self.cloud(|cloud| cloud.faults().clear());
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.cloud(|cloud| cloud.advance(Duration::from_secs(seconds)));
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.cloud(|cloud| u64::try_from(cloud.now().0).unwrap())
    }

    /// True count of a pool; zero if there is none.
    pub(crate) fn count(&self, pool: &str) -> u32 {
        self.cloud(|cloud| cloud.logic().world().pools.get(pool).map_or(0, |pool| pool.count))
    }

    pub(crate) fn staying(&self, pool: &str) -> u32 {
        self.cloud(|cloud| cloud.logic().world().pools.get(pool).map_or(0, utho::Pool::staying))
    }

    pub(crate) fn switches(&self) -> Switches {
        self.cloud(|cloud| cloud.logic().switches)
    }

    /// What the host knows of the nodes.
    pub(crate) fn hints(&self) -> Vec<NodeHint> {
        let hint = |node: plimsoll_tests_clouds::Node| NodeHint {
            name: node.name,
            provider_id: node.provider_id.unwrap_or_default(),
            internal_ip: None,
            labels: vec![KeyValue::new("node_id", node.machine), KeyValue::new("cluster_id", CLUSTER)],
        };
        self.cloud(|cloud| cloud.nodes().into_iter().map(hint).collect())
    }

    pub(crate) fn read(&mut self) -> Result<RefreshAnswer, PluginError> {
        let nodes = self.hints();
        self.provider.refresh(RefreshRequest { nodes, ..RefreshRequest::everything() })
    }

    pub(crate) fn groups(&mut self) -> Vec<NodeGroup> {
        self.read().unwrap().snapshot.unwrap().groups
    }

    pub(crate) fn group(&mut self) -> NodeGroup {
        self.groups().into_iter().find(|group| group.id == POOL).unwrap()
    }

    pub(crate) fn instances(&mut self) -> Vec<Instance> {
        self.group().instances
    }

    pub(crate) fn provider(&mut self) -> &mut Utho<Wire> {
        &mut self.provider
    }

    pub(crate) fn key(&mut self) -> String {
        self.keys += 1;
        format!("intent-{}", self.keys)
    }

    pub(crate) fn growing(&mut self, delta: u32, expected_target: u32) -> Increase {
        let options = CallOptions::with_key(self.key());
        Increase { group: POOL.to_owned(), delta, expected_target, atomic: false, options }
    }

    pub(crate) fn grow(&mut self, delta: u32, expected_target: u32) -> Result<SizeOutcome, PluginError> {
        let call = self.growing(delta, expected_target);
        self.provider.increase_size(call)
    }

    pub(crate) fn deleting(&mut self, ids: &[String], expected_target: u32) -> Delete {
        let options = CallOptions::with_key(self.key());
        let (group, ids) = (POOL.to_owned(), ids.to_vec());
        Delete { group, ids, expected_target, min_size: 1, force: false, options }
    }

    pub(crate) fn delete(&mut self, ids: &[String], expected_target: u32) -> Result<DeleteOutcome, PluginError> {
        let call = self.deleting(ids, expected_target);
        self.provider.delete_instances(call)
    }

    /// Nothing was sent that a good client would not send, no machine was removed by the cloud's choice, and none of our
    /// requests removed a pool.
    pub(crate) fn assert_good_manners(&self) {
        self.journal(|journal| {
            assert_eq!(journal.violations(), Vec::<String>::new());
            assert!(journal.random_kills().is_empty(), "{:?}", journal.random_kills());
        });
    }

    /// Ids of machines that went because a request named them.
    pub(crate) fn asked_to_leave(&self) -> Vec<String> {
        use plimsoll_tests_clouds::{Cause, Event, Happening};
        let asked = |event: &&Event| event.what == Happening::Leaving && event.cause == Cause::Asked;
        self.journal(|journal| journal.events.iter().filter(asked).map(|event| event.subject.clone()).collect())
    }
}

fn start(line: &Rc<Line>, setup: &Setup) -> Utho<Wire> {
    let clock = {
        let line = Rc::clone(line);
        move || u64::try_from(line.cloud.borrow().now().0).unwrap()
    };
    Utho::over(Wire(Some(Rc::clone(line))), setup).unwrap().with_clock(Rc::new(clock))
}

/// Ids of these machines.
pub(crate) fn ids(instances: &[Instance]) -> Vec<String> {
    instances.iter().map(|instance| instance.id.clone()).collect()
}
