//! A cloud provider: the caller's end. One task owns the instance and serves one call at a time.
//!
//! ```text
//!  Provider ──request──► Keeper (task) ──► Instance (store)     fails: thrown away, pause, a fresh one
//!           ◄──answer───              ◄──                      fails too often: quarantined
//! ```
//!
//! What an instance knows is a cache: every call may meet a fresh one that has only been configured.

mod answers;
mod instance;
mod keeper;
mod pace;

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::cloud::{
    Capabilities, DeleteOutcome, Diagnostic, GroupId, GroupTemplates, InstanceId, NodeHint, PriceBook, Refresh,
    SizeOutcome, WriteOptions,
};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use self::keeper::{Answer, Keeper, Request};
use crate::call::{Call, CallError, Failure};
use crate::egress::{Egress, NetworkGrants, Transport};
use crate::engine::PluginHost;
use crate::expander::RoleError;
use crate::limits::Limits;
use crate::memory::PluginMemory;
use crate::observer::Level;
use crate::plugin::{Kind, Linked, Plugin};
use crate::restart::RestartPolicy;
use crate::settings;
use crate::store::Sandbox;

/// Requests that may wait for their turn.
const QUEUE: usize = 32;

/// What a new instance is told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Setup {
    /// Content of the cloud configuration file.
    pub cloud_config: Option<String>,
    /// Node groups named by the operator, verbatim.
    pub node_groups: Vec<String>,
    /// Rules for finding node groups, verbatim.
    pub discovery: Vec<String>,
    /// Name of the cluster.
    pub cluster_name: String,
    /// User agent for requests to the cloud.
    pub user_agent: String,
    /// What else the host knows, such as the `region` that the environment names.
    pub attributes: BTreeMap<String, String>,
}

/// What to read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RefreshRequest {
    /// Revision that the caller holds; the provider may answer that nothing changed.
    pub previous_revision: Option<String>,
    /// Read only these; empty: everything.
    pub only_groups: Vec<GroupId>,
    /// Nodes of the cluster, if the provider needs to see them.
    pub nodes: Vec<NodeHint>,
}

/// What a provider gets.
#[derive(Clone)]
pub struct ProviderOptions {
    /// What it is told at first.
    pub setup: Setup,
    /// Its settings.
    pub settings: BTreeMap<String, String>,
    /// What it may take.
    pub limits: Limits,
    /// What it may reach.
    pub grants: NetworkGrants,
    /// What carries its requests. Must be made for these grants' addresses.
    pub transport: Arc<dyn Transport>,
    /// What it remembers.
    pub memory: PluginMemory,
    /// How it is started again.
    pub restarts: RestartPolicy,
    /// Least important log level that is kept.
    pub log_level: Level,
}

impl ProviderOptions {
    /// Defaults, with no grants.
    pub fn new(setup: Setup, transport: Arc<dyn Transport>) -> Self {
        Self {
            setup,
            settings: BTreeMap::new(),
            limits: Limits::default(),
            grants: NetworkGrants::default(),
            transport,
            memory: PluginMemory::default(),
            restarts: RestartPolicy::default(),
            log_level: Level::Info,
        }
    }
}

/// The caller's end of a provider. Clones talk to the same provider; when the last is dropped, it is shut down.
#[derive(Clone, Debug)]
pub struct Provider {
    plugin: Arc<str>,
    /// Each with the span of who asks: the task behind serves for all.
    requests: mpsc::Sender<(Span, Request)>,
}

impl Provider {
    /// Takes a loaded plug-in into service. It starts with the first call. Needs a tokio runtime.
    ///
    /// # Errors
    /// If the plug-in is no provider, or its settings are wrong.
    pub fn spawn(host: &PluginHost, plugin: &Plugin, options: ProviderOptions) -> Result<Self, RoleError> {
        let log = host.log(&plugin.name, options.log_level);
        let egress = Egress::new(plugin.name.clone(), options.grants, options.transport, &options.limits, log.clone());
        let sandbox = Sandbox {
            plugin: plugin.name.clone(),
            limits: options.limits,
            settings: Arc::default(),
            memory: options.memory,
            log,
            egress: Some(egress),
            clock: host.options().clock.clone(),
            randomness: host.options().randomness,
        };
        let role = Role::new(plugin, &options.settings)?;
        let (requests, inbox) = mpsc::channel(QUEUE);
        let keeper = Keeper::new(host.clone(), role, sandbox, options.setup, options.settings, options.restarts);
        tokio::spawn(keeper.serve(inbox));
        Ok(Self { plugin: plugin.name.clone(), requests })
    }

    /// Name of the plug-in.
    pub fn name(&self) -> &str {
        &self.plugin
    }

    async fn ask<T>(&self, call: Call, request: impl FnOnce(oneshot::Sender<Answer<T>>) -> Request) -> Answer<T> {
        let gone = || CallError { plugin: self.plugin.clone(), call, failure: Failure::Gone };
        let (reply, answer) = oneshot::channel();
        self.requests.send((Span::current(), request(reply))).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// What it can do; starts it if needed.
    ///
    /// # Errors
    /// If it cannot be started or configured.
    pub async fn capabilities(&self) -> Result<Capabilities, CallError> {
        self.ask(Call::Configure, Request::Capabilities).await
    }

    /// How it is doing; does not start it.
    ///
    /// # Errors
    /// If it was shut down.
    pub async fn status(&self) -> Result<Status, CallError> {
        self.ask(Call::Start, Request::Status).await
    }

    /// Checks settings, permissions and reachability without changing anything.
    ///
    /// # Errors
    /// If it breaks; what it finds is no error.
    pub async fn self_test(&self) -> Result<Vec<Diagnostic>, CallError> {
        self.ask(Call::SelfTest, Request::SelfTest).await
    }

    /// Reads everything that one loop needs. Within the provider's least interval between two reads, the last answer comes
    /// again, with the time at which it was read.
    ///
    /// # Errors
    /// If it reports a failure, breaks, or contradicts itself. The caller's last snapshot stays the last good one.
    pub async fn refresh(&self, request: RefreshRequest) -> Result<Refresh, CallError> {
        self.ask(Call::Refresh, |reply| Request::Refresh(request, reply)).await
    }

    /// Templates of groups: exactly one entry for each, in the order of the question.
    ///
    /// # Errors
    /// If it reports a failure or breaks.
    pub async fn templates(&self, groups: Vec<GroupId>) -> Result<Vec<GroupTemplates>, CallError> {
        self.ask(Call::Templates, |reply| Request::Templates(groups, reply)).await
    }

    /// Prices; none if it knows none.
    ///
    /// # Errors
    /// If it reports a failure or breaks.
    pub async fn prices(&self) -> Result<Option<PriceBook>, CallError> {
        self.ask(Call::Prices, Request::Prices).await
    }

    /// Asks for more machines. `atomic`: all or nothing.
    ///
    /// # Errors
    /// If it reports a failure or breaks. [`CallError::into_cloud_error`] tells whether it may have happened.
    pub async fn increase_size(
        &self,
        group: GroupId,
        delta: u32,
        expected_target: u32,
        atomic: bool,
        options: WriteOptions,
    ) -> Result<SizeOutcome, CallError> {
        let wish = keeper::Resize { group, delta, expected_target, atomic, options };
        self.ask(Call::IncreaseSize, |reply| Request::IncreaseSize(wish, reply)).await
    }

    /// Wishes for fewer machines that do not exist yet.
    ///
    /// # Errors
    /// As [`Self::increase_size`].
    pub async fn decrease_target(
        &self,
        group: GroupId,
        delta: u32,
        expected_target: u32,
        options: WriteOptions,
    ) -> Result<SizeOutcome, CallError> {
        let wish = keeper::Resize { group, delta, expected_target, atomic: false, options };
        self.ask(Call::DecreaseTarget, |reply| Request::DecreaseTarget(wish, reply)).await
    }

    /// Deletes machines, in as many calls as the provider's largest batch makes needed: the first with the given idempotency
    /// key, later ones with `KEY-2`, `KEY-3` …. `force`: without waiting. The outcome has exactly one result for each id, in the order of the
    /// question.
    ///
    /// # Errors
    /// As [`Self::increase_size`].
    pub async fn delete_instances(
        &self,
        group: GroupId,
        ids: Vec<InstanceId>,
        expected_target: u32,
        min_size: u32,
        force: bool,
        options: WriteOptions,
    ) -> Result<DeleteOutcome, CallError> {
        let wish = keeper::Delete { group, ids, expected_target, min_size, force, options };
        self.ask(Call::DeleteInstances, |reply| Request::DeleteInstances(wish, reply)).await
    }

    /// Puts another plug-in in the place of this one, without losing a call: the new one is started and configured
    /// first, and takes over only if that works. Ends a quarantine.
    ///
    /// # Errors
    /// If the new one cannot serve; then the old one goes on.
    pub async fn replace(&self, plugin: Plugin) -> Result<Capabilities, ReplaceError> {
        let (reply, answer) = oneshot::channel();
        let gone = || {
            let failure = Failure::Gone;
            ReplaceError::Start(CallError { plugin: self.plugin.clone(), call: Call::Start, failure })
        };
        self.requests.send((Span::current(), Request::Replace(Box::new(plugin), reply))).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Lets calls in the queue end, tells the plug-in, and ends its task. Later calls get [`Failure::Gone`].
    pub async fn shutdown(&self) {
        let (reply, done) = oneshot::channel();
        if self.requests.send((Span::current(), Request::Shutdown(reply))).await.is_ok() {
            // No answer means that it is gone already.
            let _ = done.await;
        }
    }
}

/// Where a provider is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It starts with the next call.
    Idle,
    /// It has an instance.
    Serving,
    /// It failed, and is not called before a pause is over.
    BackingOff,
    /// It failed too often.
    Quarantined,
}

/// How a provider is doing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// Where its plug-in came from.
    pub origin: String,
    /// Version of the plug-in, as it says.
    pub version: Option<String>,
    /// Digest of the plug-in, in hex.
    pub sha256: String,
    /// Where it is in its life.
    pub state: State,
    /// How often it was started.
    pub starts: u32,
    /// Failures in a row.
    pub failures: u32,
    /// Memory of its instance; 0 if it has none.
    pub memory_bytes: usize,
    /// It knows prices.
    pub pricing: bool,
    /// It can make node groups.
    pub provisioning: bool,
}

/// Why a plug-in did not take over.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplaceError {
    /// It cannot have this role.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// It cannot be started.
    #[error(transparent)]
    Start(#[from] CallError),
}

/// A plug-in in the role of a provider.
pub(crate) struct Role {
    plugin: Plugin,
    linked: crate::abi::v0::LinkedProvider,
    settings: Arc<BTreeMap<String, String>>,
}

impl Role {
    fn new(plugin: &Plugin, settings: &BTreeMap<String, String>) -> Result<Self, RoleError> {
        let name = || plugin.name().to_owned();
        let Linked::Provider(linked) = &plugin.linked else {
            return Err(RoleError::WrongKind { plugin: name(), found: plugin.kind(), wanted: Kind::CloudProvider });
        };
        let settings = settings::resolve(plugin.manifest.settings_schema.as_ref(), settings)
            .map_err(|problems| RoleError::Settings { plugin: name(), problems })?;
        Ok(Self { plugin: plugin.clone(), linked: linked.clone(), settings: Arc::new(settings) })
    }
}
