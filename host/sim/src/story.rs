//! A story for the demo: a small shop with a rollout, a stock-out, a training job and a quiet night.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::convert::ConvertError;
use plimsoll_model::pod::OwnerKind;
use plimsoll_model::selector::{LabelSelector, Operator, Requirement};
use plimsoll_model::taint::TolerationOperator;
use plimsoll_model::workload::{DaemonSet, PodDisruptionBudget};
use plimsoll_model::{Labels, PodSpec, Resources, SpecId, Symbol, Time, Toleration};
use plimsoll_provider_simulated::wire;

use crate::cloud::{Pool, Stock};
use crate::events::What;
use crate::workload::Workload;
use crate::world::World;

/// Something that happens at a moment of the story.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Beat {
    /// A sentence for those who watch.
    Tell(&'static str),
    /// A workload gets another number of replicas.
    Scale(&'static str, u32),
    /// A pool's stock changes.
    Stock(&'static str, Stock),
}

/// A world with things that will happen in it.
#[derive(Debug)]
pub struct Story {
    /// Beats by the second at which they come.
    beats: Vec<(u64, Beat)>,
    begun: Time,
    next: usize,
    /// Length of the story.
    pub length: Duration,
}

impl Story {
    /// When the next beat is due.
    pub fn next_at(&self) -> Option<Time> {
        self.beats.get(self.next).map(|(second, _)| self.begun + Duration::from_secs(*second))
    }

    /// Lets everything happen that is due by now.
    pub fn play(&mut self, world: &mut World) {
        while let Some((second, beat)) = self.beats.get(self.next)
            && self.begun + Duration::from_secs(*second) <= world.now()
        {
            match beat {
                Beat::Tell(text) => world.tell(What::Told((*text).to_owned())),
                Beat::Scale(workload, replicas) => world.scale(workload, *replicas),
                Beat::Stock(pool, stock) => {
                    if let Some(pool) = world.pools.iter_mut().find(|candidate| candidate.id == *pool) {
                        pool.stock = *stock;
                    }
                }
            }
            self.next += 1;
        }
    }
}

/// Half past six in the evening, for want of a better time to begin.
const BEGIN_MILLIS: i64 = 1_767_205_800_000;

/// The shop.
///
/// # Errors
///
/// If one of the story's own amounts cannot be read, which is a mistake in this file.
pub fn shop() -> Result<(World, Story), ConvertError> {
    let begun = Time::from_millis(BEGIN_MILLIS);
    let mut world = World::new(begun);
    let workers = |name: &str, zone: &str, price: u64| {
        let mut pool = Pool::new(name, 0, 12, machine("c4", zone, "4", "16Gi", None));
        pool.micros_per_hour = price;
        pool
    };
    let mut first = workers("workers-a", "a", 200_000);
    first.min = 1;
    world.pools.push(first);
    world.pools.push(workers("workers-b", "b", 210_000));
    let mut big = Pool::new("big-mem", 0, 6, machine("m8", "a", "8", "64Gi", None));
    big.micros_per_hour = 560_000;
    world.pools.push(big);
    let mut gpu = Pool::new("gpu-t4", 0, 4, machine("g8", "a", "8", "32Gi", Some("nvidia-t4")));
    gpu.micros_per_hour = 1_150_000;
    world.pools.push(gpu);

    daemon_set(&mut world, "node-agent", 100, 128);
    world.start_with(0, 2)?;

    let web = pods(&mut world, "shop", "web", 500, 1024);
    let cart = pods(&mut world, "shop", "cart", 1500, 2048);
    let orders = pods(&mut world, "shop", "orders", 400, 512);
    let metrics = pods(&mut world, "kube-system", "metrics-server", 100, 256);
    let search = pods(&mut world, "shop", "search", 600, 1024);
    // Large enough for no gap that the rollout leaves, so that it comes to a node of the evening.
    let collector = pods(&mut world, "monitoring", "collector", 500, 512);
    let train = train(&mut world);
    for (name, namespace, spec) in [
        ("web", "shop", web),
        ("cart", "shop", cart),
        ("orders", "shop", orders),
        ("search", "shop", search),
        ("metrics-server", "kube-system", metrics),
        ("collector", "monitoring", collector),
        ("train", "batch", train),
    ] {
        let namespace = world.cluster.symbols.intern(namespace);
        let mut workload = Workload::deployment(namespace, name, spec);
        match name {
            "collector" => workload.drain.local_storage = Some(world.cluster.symbols.intern("buffer")),
            "train" => workload.owner = Some(OwnerKind::Job),
            _ => {}
        }
        world.workloads.push(workload);
    }
    budget(&mut world, "orders", 3);
    for (workload, replicas) in [("web", 6), ("metrics-server", 1), ("orders", 3)] {
        world.scale(workload, replicas);
    }
    world.settle();
    world.take_happened();

    let beats = vec![
        (10, Beat::Tell("Evening. A new version of the shop is rolled out, with many more replicas.")),
        (10, Beat::Scale("web", 40)),
        (130, Beat::Tell("Zone a runs out of c4 machines, and the cart service wants twelve pods, search two.")),
        (130, Beat::Stock("workers-a", Stock::SoldOut)),
        (130, Beat::Scale("cart", 12)),
        (130, Beat::Scale("search", 2)),
        (130, Beat::Scale("collector", 1)),
        (250, Beat::Tell("A training job asks for two GPUs. The gpu group is at zero.")),
        (250, Beat::Scale("train", 2)),
        (250, Beat::Stock("workers-a", Stock::Plenty)),
        (400, Beat::Tell("Training is done. Nothing needs the GPUs any more.")),
        (400, Beat::Scale("train", 0)),
        (430, Beat::Tell("Night. Customers sleep; web and cart shrink, search stays as it is.")),
        (430, Beat::Scale("web", 5)),
        (430, Beat::Scale("cart", 0)),
        (700, Beat::Tell("One node still holds the collector, which keeps data on the node's own disk.")),
        (760, Beat::Tell("The collector is turned off. Nothing holds its node any longer.")),
        (760, Beat::Scale("collector", 0)),
    ];
    Ok((world, Story { beats, begun, next: 0, length: Duration::from_secs(1020) }))
}

fn machine(kind: &str, zone: &str, cpu: &str, memory: &str, gpu: Option<&str>) -> wire::Template {
    let pairs = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let mut template = wire::Template {
        key: format!("{kind}-{zone}-1"),
        instance_type: kind.to_owned(),
        region: "sim".to_owned(),
        zone: Some(zone.to_owned()),
        capacity: pairs(&[("cpu", cpu), ("memory", memory), ("pods", "110")]),
        ..wire::Template::default()
    };
    if let Some(model) = gpu {
        template.capacity.insert("nvidia.com/gpu".to_owned(), "1".to_owned());
        template.labels = pairs(&[("sim.plimsoll.dev/gpu", model)]);
        let taint =
            wire::Taint { key: "nvidia.com/gpu".to_owned(), value: "present".to_owned(), ..wire::Taint::default() };
        template.taints = vec![taint];
    }
    template
}

fn labelled(world: &mut World, namespace: &str, name: &str, cpu_milli: i64, memory_mib: i64) -> PodSpec {
    let symbols = &mut world.cluster.symbols;
    let namespace = symbols.intern(namespace);
    let (app, name) = (symbols.intern("app"), symbols.intern(name));
    let requests = Resources { cpu_milli, memory_bytes: memory_mib << 20, pods: 1, ..Resources::default() };
    PodSpec { labels: Labels::new([(app, name)]), requests, ..PodSpec::bare(namespace) }
}

fn pods(world: &mut World, namespace: &str, name: &str, cpu_milli: i64, memory_mib: i64) -> SpecId {
    let spec = labelled(world, namespace, name, cpu_milli, memory_mib);
    world.cluster.specs.intern(spec)
}

fn train(world: &mut World) -> SpecId {
    let mut spec = labelled(world, "batch", "train", 4000, 8192);
    let gpu = world.cluster.symbols.intern("nvidia.com/gpu");
    spec.requests = spec.requests.with_scalars([(gpu, 1)]);
    spec.tolerations = [exists(gpu)].into();
    world.cluster.specs.intern(spec)
}

fn exists(key: Symbol) -> Toleration {
    let value = plimsoll_model::symbol::known::EMPTY;
    Toleration { key, operator: TolerationOperator::Exists, value, effect: None }
}

fn daemon_set(world: &mut World, name: &str, cpu_milli: i64, memory_mib: i64) {
    let mut spec = labelled(world, "kube-system", name, cpu_milli, memory_mib);
    spec.tolerations = [exists(plimsoll_model::symbol::known::EMPTY)].into();
    let (namespace, spec) = (spec.namespace, world.cluster.specs.intern(spec));
    let name = world.cluster.symbols.intern(name);
    world.cluster.daemon_sets.push(DaemonSet { namespace, name, uid: name, spec, node_critical: false });
}

fn budget(world: &mut World, app: &str, min_available: i32) {
    let symbols = &mut world.cluster.symbols;
    let (key, value) = (symbols.intern("app"), symbols.intern(app));
    let selector = LabelSelector::All([Requirement { key, operator: Operator::In([value].into()) }].into());
    let namespace = symbols.intern("shop");
    let budget = PodDisruptionBudget { namespace, name: value, selector: Some(selector), disruptions_allowed: 0 };
    world.protect(budget, min_available);
}
