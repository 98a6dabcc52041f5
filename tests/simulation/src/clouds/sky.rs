//! The fake of a cloud behind one lock: what is asked of it is looked at, and what it holds is told in one form.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use plimsoll_driver::lock;
use plimsoll_model::Time;
use plimsoll_model::symbol::known;
use plimsoll_plugins::egress::{InProcess, TransportError};
use plimsoll_sim::World;
use plimsoll_tests_clouds::alicloud::world::{Configuration, InstanceType, TypeChoice};
use plimsoll_tests_clouds::alicloud::world::{Source, State as MachineState};
use plimsoll_tests_clouds::alicloud::{self, AliCloud, Group, Metadata};
use plimsoll_tests_clouds::utho::{self, ScenarioPool, Switches, Utho};
use plimsoll_tests_clouds::{Cause, Chance, Cloud, Fake, Happening, Lost, Node, Rule, UnixMs};
use serde_json::{Value, json};

use super::events::Event;
use super::scenario::{GroupPlan, Scenario, Vendor};
use crate::faults::{Faults, Order};
use crate::orders::{Protected, held};
use crate::scenario::Moment;
use crate::violation::Invariant;

/// Longest wait for an answer. Nothing waits: late answers are told to be late.
const PATIENCE: Duration = Duration::from_secs(30);
/// The cluster in Utho's cloud.
pub(crate) const CLUSTER: &str = "1111";

/// The fake.
#[allow(clippy::large_enum_variant, reason = "a run has one of it")]
pub(crate) enum Sky {
    AliCloud(Fake<AliCloud>),
    Utho(Fake<Utho>),
}

/// A group as the cloud has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    pub(crate) id: String,
    pub(crate) target: u32,
    /// Machines that are not on their way out.
    pub(crate) machines: Vec<String>,
}

impl Sky {
    pub(crate) fn over(scenario: &Scenario, begun: Time) -> anyhow::Result<Self> {
        let start = UnixMs(begun.millis()).seconds();
        match scenario.vendor {
            Vendor::AliCloud => {
                let cloud = AliCloud::start(alicloud(scenario, start)).context("the fake of AliCloud cannot start")?;
                Ok(Self::AliCloud(cloud))
            }
            Vendor::Utho => {
                Ok(Self::Utho(Utho::start(utho(scenario, start)).context("the fake of Utho cannot start")?))
            }
        }
    }

    pub(crate) fn cloud(&mut self) -> &mut dyn Cloud {
        match self {
            Self::AliCloud(cloud) => cloud,
            Self::Utho(cloud) => cloud,
        }
    }

    fn look(&self) -> &dyn Cloud {
        match self {
            Self::AliCloud(cloud) => cloud,
            Self::Utho(cloud) => cloud,
        }
    }

    pub(crate) fn nodes(&self) -> Vec<Node> {
        self.look().nodes()
    }

    /// What a well-written client would not have sent.
    pub(crate) fn bad_manners(&self) -> Vec<String> {
        self.look().journal().violations()
    }

    pub(crate) fn sizes(&self) -> Vec<Size> {
        match self {
            Self::AliCloud(cloud) => {
                let world = &cloud.logic().kept.world;
                let size = |(id, group): (&String, &Group)| {
                    let staying = world.members(id).into_iter().filter(|machine| !machine.state.leaves());
                    let machines: Vec<String> = staying
                        .filter(|machine| machine.state != MachineState::Stopped)
                        .map(|machine| machine.id.clone())
                        .collect();
                    Size { id: id.clone(), target: group.desired.unwrap_or_else(|| world.total(id)), machines }
                };
                world.groups.iter().map(size).collect()
            }
            Self::Utho(cloud) => {
                let size = |(id, pool): (&String, &utho::Pool)| {
                    let staying = pool.workers.values().filter(|worker| worker.stays());
                    Size { id: id.clone(), target: pool.count, machines: staying.map(|one| one.id.clone()).collect() }
                };
                cloud.logic().world().pools.iter().map(size).collect()
            }
        }
    }

    /// How the provider's configuration of this cloud has to be.
    pub(crate) fn cloud_config(&self) -> Value {
        match self {
            Self::AliCloud(_) => json!({"region": "cn-hangzhou"}),
            Self::Utho(cloud) => {
                let payload = if cloud.logic().switches.size_required { "documented" } else { "count-only" };
                json!({"cluster_id": CLUSTER, "update_payload": payload})
            }
        }
    }

    /// Does what people and the world do to a cloud.
    pub(crate) fn happen(&mut self, event: &Event, scenario: &Scenario) -> anyhow::Result<()> {
        let group = |index: usize| scenario.groups.get(index).context("there is no such group");
        match event {
            Event::Trouble { fault, percent, handled, lasts } => {
                let until = self.look().now() + *lasts;
                let mut rule = Rule::new("trouble", fault.clone());
                (rule.percent, rule.until) = (Some(*percent), Some(until));
                self.cloud().faults().add(if *handled { rule.after_handling() } else { rule });
                Ok(())
            }
            Event::Stock { group: index, left } => self.stock(group(*index)?, *left),
            Event::Quota { group: index, most, .. } => self.quota(group(*index)?, Some(*most)),
            Event::Raise { group: index, count } => self.raise(group(*index)?, *count),
            Event::TakeAway { group: index } => self.take_away(group(*index)?),
            Event::Ill { group: index, machines, .. } => self.ill(group(*index)?, *machines),
            _ => Ok(()),
        }
    }

    /// What lasts for a while is over.
    pub(crate) fn heal(&mut self, event: &Event, scenario: &Scenario) -> anyhow::Result<()> {
        let group = |index: usize| scenario.groups.get(index).context("there is no such group");
        match event {
            Event::Quota { group: index, .. } => self.quota(group(*index)?, None),
            Event::Ill { group: index, .. } => self.ill(group(*index)?, 0),
            _ => Ok(()),
        }
    }

    /// Everything is as it should be from now on.
    pub(crate) fn calm(&mut self, scenario: &Scenario) -> anyhow::Result<()> {
        self.cloud().faults().clear();
        for group in &scenario.groups {
            self.stock(group, None)?;
            self.quota(group, None)?;
            self.ill(group, 0)?;
        }
        Ok(())
    }

    fn order(&mut self, order: &Value) -> anyhow::Result<()> {
        self.cloud().console(order).map_err(|why| anyhow::anyhow!("{order}: {why}"))
    }

    fn stock(&mut self, group: &GroupPlan, left: Option<u32>) -> anyhow::Result<()> {
        let order = match self {
            Self::AliCloud(_) => {
                json!({"order": "stock", "zone": "cn-hangzhou-a", "instance_type": group.shape.name, "left": left})
            }
            Self::Utho(_) => json!({"order": "stock", "plan": group.shape.name, "left": left}),
        };
        self.order(&order)
    }

    fn quota(&mut self, group: &GroupPlan, most: Option<u32>) -> anyhow::Result<()> {
        let order = match self {
            Self::AliCloud(_) => json!({"order": "quota", "instance_type": group.shape.name, "most": most}),
            Self::Utho(_) => json!({"order": "quota", "workers": most}),
        };
        self.order(&order)
    }

    fn size(&self, group: &GroupPlan) -> Option<Size> {
        self.sizes().into_iter().find(|size| size.id == group.id)
    }

    fn raise(&mut self, group: &GroupPlan, count: u32) -> anyhow::Result<()> {
        let Some(size) = self.size(group) else { return Ok(()) };
        let wanted = (size.target + count).min(group.max);
        match self {
            // A group without a desired capacity has no size that somebody could set.
            Self::AliCloud(_) if !group.desires => Ok(()),
            Self::AliCloud(_) => self.order(&json!({"order": "resize", "group": group.id, "desired": wanted})),
            Self::Utho(_) => self.order(&json!({"order": "count", "pool": group.id, "count": wanted})),
        }
    }

    fn take_away(&mut self, group: &GroupPlan) -> anyhow::Result<()> {
        let Some(machine) = self.size(group).and_then(|size| size.machines.last().cloned()) else { return Ok(()) };
        let order = match self {
            Self::AliCloud(_) => json!({"order": "release", "machine": machine}),
            Self::Utho(_) => json!({"order": "delete-worker", "pool": group.id, "worker": machine}),
        };
        self.order(&order)
    }

    fn ill(&mut self, group: &GroupPlan, machines: u32) -> anyhow::Result<()> {
        let order = match self {
            Self::AliCloud(_) => json!({"order": "suspend", "group": group.id, "suspended": machines > 0}),
            Self::Utho(_) => json!({"order": "failing", "workers": machines}),
        };
        self.order(&order)
    }
}

fn alicloud(scenario: &Scenario, start: String) -> alicloud::Scenario {
    let group = |plan: &GroupPlan| Group {
        source: Some(Source::Configuration(format!("asc-{}", plan.id))),
        desired: plan.desires.then_some(plan.size),
        suspends_after: plan.suspends_after,
        ..Group::new(&plan.id, plan.min, plan.max).running(plan.size)
    };
    let configuration = |plan: &GroupPlan| Configuration {
        id: format!("asc-{}", plan.id),
        group: plan.id.clone(),
        types: vec![TypeChoice { instance_type: plan.shape.name.to_owned(), weight: 1 }],
        ..Configuration::default()
    };
    let mut made = alicloud::Scenario::with_groups(scenario.groups.iter().map(group).collect());
    made.configurations = scenario.groups.iter().map(configuration).collect();
    made.types.push(InstanceType {
        name: "ecs.g7.2xlarge".to_owned(),
        cpu: 8,
        memory_gib: 32.0,
        ..InstanceType::default()
    });
    (made.start, made.seed, made.quirks) = (start, scenario.seed, None);
    // Keys that last a quarter of an hour.
    made.metadata = Metadata { role: Some("worker".to_owned()), lifetime_s: 900, ..Metadata::default() };
    made
}

fn utho(scenario: &Scenario, start: String) -> utho::Scenario {
    let pool = |plan: &GroupPlan| ScenarioPool {
        id: plan.id.clone(),
        plan: plan.shape.name.to_owned(),
        min: plan.min,
        max: plan.max,
        count: plan.size,
    };
    // Where the cloud makes another machine for each that is deleted, no autoscaler can shrink a pool.
    let switches = Switches { delete_recreates: false, ..Switches::random(&mut Chance::new(scenario.seed)) };
    utho::Scenario {
        start,
        seed: scenario.seed,
        cluster: CLUSTER.to_owned(),
        switches: Some(switches),
        pools: scenario.groups.iter().map(pool).collect(),
        ..utho::Scenario::default()
    }
}

/// Everybody who sees what is asked of the cloud.
#[derive(Clone)]
pub(crate) struct Watch {
    pub(crate) sky: Arc<Mutex<Sky>>,
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) faults: Faults,
    pub(crate) protected: Protected,
    /// Most machines by group.
    pub(crate) most: Arc<BTreeMap<String, u32>>,
}

impl Watch {
    /// The cloud as the provider and the broker reach it.
    pub(crate) fn transport(&self) -> InProcess {
        let watch = self.clone();
        InProcess::faulty(move |request| {
            let watch = watch.clone();
            async move {
                let (before, after) = match asks_for_a_change(&request) {
                    true => (Moment::BeforeOrder, Moment::AfterOrder),
                    false => (Moment::BeforeRead, Moment::AfterRead),
                };
                watch.faults.step(before).await;
                let answer = watch.answer(request);
                watch.faults.step(after).await;
                answer
            }
        })
    }

    fn answer(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        // As a client of HTTP writes it.
        if let Some(host) = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
            request.headers_mut().entry(header::HOST).or_insert(host);
        }
        let mut sky = lock(&self.sky);
        let (before, events) = (sky.sizes(), sky.look().journal().events.len());
        let answer = sky.cloud().handle(request);
        let wrote = sky.look().journal().calls.last().is_some_and(|call| !call.changes.is_empty());
        self.count(wrote);
        if wrote {
            self.look_at_targets(&before, &sky);
        }
        self.look_at_leaving(&sky, events);
        answer.within(PATIENCE).map_err(|lost| match lost {
            Lost::Refused | Lost::NoAddress | Lost::WrongName => TransportError::Refused,
            lost => TransportError::Broken(lost.to_string()),
        })
    }

    fn count(&self, wrote: bool) {
        let mut state = self.faults.lock();
        if wrote {
            state.calls.orders += 1;
            if state.lease_lost() {
                state.found(Invariant::NoWriteWithoutLease, "a write to the cloud".to_owned());
            }
        } else {
            state.calls.reads += 1;
        }
    }

    fn look_at_targets(&self, before: &[Size], sky: &Sky) {
        for (old, new) in before.iter().zip(sky.sizes()) {
            let most = self.most.get(&new.id).copied().unwrap_or(u32::MAX);
            if new.target > old.target && new.target > most {
                let seen = format!("{}: asked for {}, above its maximum {most}", new.id, new.target);
                self.faults.found(Invariant::TargetsInBounds, seen);
            }
            let order = match new.target.cmp(&old.target) {
                std::cmp::Ordering::Greater => Order::Increase,
                std::cmp::Ordering::Less if new.machines.len() < old.machines.len() => Order::Delete,
                std::cmp::Ordering::Less => Order::Decrease,
                std::cmp::Ordering::Equal => continue,
            };
            self.faults.lock().orders.push(order);
        }
    }

    /// Time passes in the cloud.
    pub(crate) fn advance(&self, now: Time) {
        let mut sky = lock(&self.sky);
        let events = sky.look().journal().events.len();
        let by = UnixMs(now.millis()).since(sky.look().now());
        sky.cloud().advance(by);
        self.look_at_leaving(&sky, events);
    }

    /// Machines that began to leave since an event: only those that were asked for by name, after their node was marked, and
    /// with no pod on it that must stay.
    fn look_at_leaving(&self, sky: &Sky, since: usize) {
        let nodes = sky.nodes();
        for event in sky.look().journal().events.iter().skip(since) {
            match (event.what, event.cause) {
                (Happening::Leaving, Cause::Chosen) => {
                    let seen = format!("{}: the cloud chose {} to go ({})", event.group, event.subject, event.detail);
                    self.faults.found(Invariant::OnlyAskedMachinesGo, seen);
                }
                (Happening::Leaving, Cause::Asked) => {
                    let node = nodes.iter().find(|node| node.machine == event.subject);
                    node.into_iter().for_each(|node| self.look_at_node(&node.name, &event.group));
                }
                _ => {}
            }
        }
    }

    fn look_at_node(&self, name: &str, group: &str) {
        let world = lock(&self.world);
        let cluster = &world.cluster;
        let symbol = cluster.symbols.find(name);
        let Some(node) = cluster.nodes.iter().find(|node| Some(node.name) == symbol) else { return };
        if node.taint(known::TO_BE_DELETED).is_none() {
            self.faults.found(Invariant::DeletesOnlyMarked, format!("{group}: {name} is deleted without a mark"));
        }
        for pod in cluster.pods.iter().filter(|pod| pod.node == symbol && pod.deletion.is_none()) {
            if let Some((pod, hold)) = held(pod, &self.protected) {
                let seen = format!("{name} is deleted with {pod} on it ({hold:?})");
                self.faults.found(Invariant::ProtectedPodsStay, seen);
            }
        }
    }
}

/// Whether a request is for more than to be told something. AliCloud names the action in a header.
fn asks_for_a_change(request: &Request<Bytes>) -> bool {
    let action = request.headers().get("x-acs-action").and_then(|action| action.to_str().ok());
    action.map_or(request.method() != Method::GET, |action| !action.starts_with("Describe"))
}
