//! The embedded provider of AliCloud in front of the fake of its cloud, in one process and on virtual time.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use plimsoll_model::Time;
use plimsoll_plugins::clock::VirtualClock;
use plimsoll_plugins::config::PluginConfig;
use plimsoll_plugins::credentials::{Broker, Environment};
use plimsoll_plugins::egress::{InProcess, NetworkGrants, TransportError};
use plimsoll_plugins::limits::Limits;
use plimsoll_plugins::provider::{ProviderOptions, Setup};
use plimsoll_plugins::{HostOptions, Kind, Origin, PluginHost, Provider, Source};
use plimsoll_tests_clouds::alicloud::{AliCloud, Scenario};
use plimsoll_tests_clouds::{Cloud as _, Fake};

/// The key of the scenario.
pub(crate) const FIXED_KEY: &str = "access-key: {id-env: ID, secret-env: SECRET}";
/// Longest wait for an answer. Nothing waits: late answers are told to be late.
const PATIENCE: Duration = Duration::from_secs(30);

/// A cloud in memory.
#[derive(Clone)]
pub(crate) struct Cloud {
    world: Arc<Mutex<Fake<AliCloud>>>,
    clock: VirtualClock,
    /// What the cloud itself needed, in nanoseconds.
    spent: Arc<AtomicU64>,
}

impl Cloud {
    pub(crate) fn start(scenario: Scenario) -> Self {
        let world = AliCloud::start(scenario).expect("the scenario is good");
        let clock = VirtualClock::new(Time::from_millis(world.now().0));
        Self { world: Arc::new(Mutex::new(world)), clock, spent: Arc::default() }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, Fake<AliCloud>> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.world().advance(Duration::from_secs(seconds));
        self.clock.set(Time::from_millis(self.world().now().0));
    }

    /// Real time that the cloud needed since the last call.
    #[allow(dead_code, reason = "only the example times")]
    pub(crate) fn take_spent(&self) -> Duration {
        Duration::from_nanos(self.spent.swap(0, Ordering::SeqCst))
    }

    fn answer(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let begun = Instant::now();
        // As a client of HTTP writes it.
        if let Some(host) = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
            request.headers_mut().entry(header::HOST).or_insert(host);
        }
        let answer = self.world().handle(request).within(PATIENCE);
        let spent = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.spent.fetch_add(spent, Ordering::SeqCst);
        answer.map_err(|lost| TransportError::Broken(lost.to_string()))
    }

    fn network(&self) -> Arc<InProcess> {
        let cloud = self.clone();
        Arc::new(InProcess::faulty(move |request| {
            let answer = cloud.answer(request);
            async move { answer }
        }))
    }

    /// The provider with these groups, whose keys come from there.
    #[allow(dead_code, reason = "the example observes")]
    pub(crate) async fn provider(&self, keys: &str, groups: &[&str]) -> Provider {
        self.provider_with(keys, groups, self.host_options()).await
    }

    /// A host with the cloud's clock.
    pub(crate) fn host_options(&self) -> HostOptions {
        HostOptions { clock: Arc::new(self.clock.clone()), ..HostOptions::default() }
    }

    /// The same in a host with these options.
    pub(crate) async fn provider_with(&self, keys: &str, groups: &[&str], options: HostOptions) -> Provider {
        let clock: Arc<VirtualClock> = Arc::new(self.clock.clone());
        let host = PluginHost::new(options).expect("it starts");
        let grants = format!(
            "plugins: {{alicloud: {{hosts: ['https://*.aliyuncs.com'], credentials: {{api: {{kind: alicloud-v3, hosts: \
             ['*.aliyuncs.com'], {keys}}}}}}}}}"
        );
        let entry = PluginConfig::parse("plugins.yaml", &grants).expect("the grants are good").entry("alicloud");
        let environment = Environment::of([("ID", "testid"), ("SECRET", "testsecret")]);
        let broker = Broker::new(clock, environment, self.network());
        let setup = Setup {
            cloud_config: Some(r#"{"region": "cn-hangzhou"}"#.to_owned()),
            node_groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..Setup::default()
        };
        let mut options = ProviderOptions::new(setup, self.network());
        // The fake of a debug build is slow, and so are machines that do more than one thing.
        options.limits = Limits { read: Duration::from_secs(120), ..Limits::of(&entry) };
        options.grants = NetworkGrants::brokered(&entry, "plugins.yaml", vec![], &broker).expect("the grants are good");
        let (_, bytes) =
            plimsoll_bundled::PROVIDERS.iter().find(|(name, _)| *name == "alicloud").expect("it is embedded");
        let source = Source {
            name: "alicloud".into(),
            origin: Origin::BuiltIn,
            kind: Some(Kind::CloudProvider),
            bytes: (*bytes).into(),
        };
        let plugin = host.load(source, None).await.expect("it can be loaded");
        Provider::spawn(&host, &plugin, options).expect("it can be started")
    }
}

/// Keys of a role that last a quarter of an hour, for the service account's token in this file.
pub(crate) fn short_keys(token_file: &Path) -> String {
    format!(
        "rrsa: {{role-arn: '{ROLE}', oidc-provider-arn: '{ISSUER}', oidc-token-file: '{}', duration-seconds: 900}}",
        token_file.display()
    )
}

pub(crate) const ROLE: &str = "acs:ram::1234567890123456:role/autoscaler";
pub(crate) const ISSUER: &str = "acs:ram::1234567890123456:oidc-provider/ack-rrsa-c1";
