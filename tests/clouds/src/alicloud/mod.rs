//! A fake of Alibaba Cloud: Location, STS, ESS, ECS, VPC, ACK node pools and the metadata service of one region.
//!
//! ```text
//!  Request ─► wire (decode) ─► front (key, token, time, nonce, signature, permission, rate)
//!          ─► parameters (strict) ─► client token ─► actions/* ─► world (groups, machines, activities)
//!          ─► quirks (shape of the answer)
//! ```
//!
//! Behaviours that no one has confirmed on a real account are in [`Probes`]; variations of answers in [`Quirks`].

pub mod account;
pub mod action;
pub mod actions;
mod dispatch;
mod error;
mod front;
mod human;
mod parameters;
mod probes;
mod quirks;
mod scenario;
pub mod signature;
pub mod wire;
pub mod world;

use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};

pub use actions::metadata::{Metadata, Mode};
pub use actions::sts::oidc_token;
pub use error::ApiError;
pub use front::{Caller, Front};
pub use human::{Mark, Order};
pub use parameters::{Bound, Kind, Parameter, Parameters, optional, required};
pub use probes::Probes;
pub use quirks::Quirks;
pub use scenario::Scenario;
pub use world::{Group, Timing, World};

use crate::clock::UnixMs;
use crate::fake::{Context, Fake, Logic, Refusal};
use crate::faults::Target;
use crate::nodes::{Machine as NodeMachine, Node};
use crate::stale::Kept;
use account::Account;

/// One region of Alibaba Cloud.
#[derive(Clone, Debug)]
pub struct AliCloud {
    /// Everything that exists.
    pub kept: Kept<World>,
    /// Who may do what.
    pub account: Account,
    /// What a machine can ask about itself.
    pub metadata: Metadata,
    /// Variations in answers.
    pub quirks: Quirks,
    oidc_secret: String,
    plain_http: bool,
}

/// A scenario that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The start is no time.
    #[error("the scenario's start is {0:?}, expected a time like 2024-06-01T08:30:00Z")]
    Start(String),
    /// A group's machines have no place.
    #[error("the scenario's group {0} has machines, and nothing to make them from or no subnet with room")]
    NoPlace(String),
}

impl AliCloud {
    /// A cloud as the scenario describes it, with its clock at the scenario's start.
    ///
    /// # Errors
    /// The scenario contradicts itself.
    pub fn start(scenario: Scenario) -> Result<Fake<Self>, ScenarioError> {
        let now = UnixMs::parse(&scenario.start).ok_or_else(|| ScenarioError::Start(scenario.start.clone()))?;
        let seed = scenario.seed;
        let mut chance = crate::Chance::new(seed ^ 0x51);
        let mut world = World::new(&scenario.region, now);
        for configuration in scenario.configurations {
            world.configurations.insert(configuration.id.clone(), configuration);
        }
        world.vswitches = scenario.vswitches.into_iter().map(|vswitch| (vswitch.id.clone(), vswitch)).collect();
        world.types = scenario.types.into_iter().map(|kind| (kind.name.clone(), kind)).collect();
        world.launch_templates = scenario.launch_templates;
        (world.stock, world.quota, world.billing) = (scenario.stock, scenario.quota, scenario.billing);
        (world.timing, world.probes) = (scenario.timing, scenario.probes);
        let mut account = Account::default();
        (account.roles, account.budgets) = (scenario.roles, scenario.budgets);
        account.keys = scenario.keys.into_iter().map(|key| (key.id.clone(), key)).collect();
        let cloud = Self {
            kept: Kept::new(world),
            account,
            metadata: scenario.metadata,
            quirks: scenario.quirks.unwrap_or_else(|| Quirks::by_chance(&mut chance)),
            oidc_secret: scenario.oidc_secret,
            plain_http: scenario.plain_http,
        };
        let mut fake = Fake::new(cloud, now, seed);
        for group in scenario.groups {
            fake.with(|cloud, context| cloud.add_group(group, context))?;
        }
        Ok(fake)
    }

    /// A new group with its first machines, which run already.
    ///
    /// # Errors
    /// There is no place for its machines.
    pub fn add_group(&mut self, mut group: Group, context: &mut Context<'_>) -> Result<(), ScenarioError> {
        let (id, running) = (group.id.clone(), group.running);
        group.created = context.now - std::time::Duration::from_secs(86_400);
        group.modified = group.created;
        let world = &mut self.kept.world;
        world.groups.insert(id.clone(), group);
        for number in 0..running {
            let since = context.now - std::time::Duration::from_secs(3600 + u64::from(running - number));
            let made = world.put_running(&id, world::Creation::AutoCreated, since, context);
            made.ok_or_else(|| ScenarioError::NoPlace(id.clone()))?;
        }
        Ok(())
    }

    /// Do what an order says.
    ///
    /// # Errors
    /// It names something that does not exist.
    pub fn obey(&mut self, order: &Order, context: &mut Context<'_>) -> Result<(), String> {
        self.kept.world.obey(order, context)
    }
}

impl Logic for AliCloud {
    fn name(&self) -> &'static str {
        "alicloud"
    }

    fn hosts(&self) -> Vec<String> {
        let region = &self.kept.world.region;
        let products = ["location", "sts", "ess", "ecs", "vpc", "cs"];
        let names = |product: &&str| {
            [
                format!("{product}.aliyuncs.com"),
                format!("{product}.{region}.aliyuncs.com"),
                format!("{product}-vpc.{region}.aliyuncs.com"),
            ]
        };
        products.iter().flat_map(names).collect()
    }

    fn target(&self, request: &Request<Bytes>) -> Target {
        let incoming = wire::Incoming::read(request);
        let values = incoming.parameters().map(|(_, value)| value.to_owned()).collect();
        let action = match incoming.action() {
            "" => incoming.path.clone(),
            action => action.to_owned(),
        };
        Target { host: incoming.host, action, values }
    }

    fn serve(&mut self, request: &Request<Bytes>, context: &mut Context<'_>) -> Response<Bytes> {
        self.dispatch(request, context)
    }

    fn refuse(&mut self, target: &Target, refusal: &Refusal, context: &mut Context<'_>) -> Response<Bytes> {
        let (error, retry_after) = match refusal {
            Refusal::Throttled { retry_after_s } => (front::throttled(&self.kept.world.probes), *retry_after_s),
            Refusal::Error { status, code, message } => (ApiError::new(*status, code, message.as_str()), None),
        };
        context.call.code = Some(error.code.clone());
        let mut response = error.response(&target.host, &context.chance.uuid());
        if let Some(seconds) = retry_after.or(self
            .kept
            .world
            .probes
            .throttled_retry_after_s
            .filter(|_| error.code.starts_with("Throttling")))
        {
            response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
        }
        response
    }

    fn run(&mut self, context: &mut Context<'_>) {
        self.kept.world.run(context);
    }

    fn nodes(&self, now: UnixMs) -> Vec<Node> {
        let world = &self.kept.world;
        let nodes = |machine: &world::Machine| {
            let usual = format!("{}.{}", world.region, machine.id);
            let machine_of = NodeMachine {
                id: &machine.id,
                group: &machine.group,
                name: format!("{}-{}", world.region, machine.ip),
                alias: format!("alicloud://{usual}"),
                usual,
                started: machine.started,
                gone: machine.gone,
            };
            machine.script.nodes(&machine_of, now)
        };
        world.machines.values().chain(&world.past).flat_map(nodes).collect()
    }

    fn dump(&self) -> Value {
        let keys: Vec<&String> = self.account.keys.keys().collect();
        json!({ "world": self.kept.world, "keys": keys, "quirks": self.quirks })
    }

    fn console(&mut self, order: &Value, context: &mut Context<'_>) -> Result<(), String> {
        let order: Order =
            serde_json::from_value(order.clone()).map_err(|error| format!("the order cannot be read: {error}"))?;
        self.obey(&order, context)
    }
}
