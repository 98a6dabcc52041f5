//! Small clusters in which everything collides: few names, few labels, every operator, every odd case.

mod devices;

use plimsoll_model::pod::{HostPort, InlineDisk, NodeInclusion, PodAffinityTerm, SpreadConstraint, Volume};
use plimsoll_model::selector::{LabelSelector, NodeSelector, NodeSelectorTerm, Operator, Requirement};
use plimsoll_model::storage::{
    BindingMode, Claim, CsiDriver, CsiNode, CsiStorageCapacity, PersistentVolume, StorageClass, VolumeAttachment,
    VolumeMode, VolumePhase,
};
use plimsoll_model::symbol::known;
use plimsoll_model::taint::TolerationOperator;
use plimsoll_model::template::TemplatePod;
use plimsoll_model::{
    Cluster, Labels, Node, PodSpec, Resources, SpecId, Symbol, Symbols, Taint, TaintEffect, Template, Toleration,
};

/// Numbers drawn one after another from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to `bound - 1`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    /// True once in `times`.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// What a random cluster is about; a narrow one meets deeper states.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Themes {
    pub(crate) statics: bool,
    pub(crate) resources: bool,
    pub(crate) ports: bool,
    pub(crate) spread: bool,
    pub(crate) affinity: bool,
    pub(crate) volumes: bool,
    pub(crate) devices: bool,
}

impl Themes {
    pub(crate) const ALL: Self = Self {
        statics: true,
        resources: true,
        ports: true,
        spread: true,
        affinity: true,
        volumes: true,
        devices: true,
    };
    pub(crate) const NONE: Self = Self {
        statics: false,
        resources: false,
        ports: false,
        spread: false,
        affinity: false,
        volumes: false,
        devices: false,
    };
}

/// A random cluster with specs to place and templates to copy.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) cluster: Cluster,
    pub(crate) specs: Vec<SpecId>,
    pub(crate) templates: Vec<Template>,
}

struct Words {
    rack: Symbol,
    disk: Symbol,
    app: Symbol,
    tier: Symbol,
    values: [Symbol; 3],
    namespaces: [Symbol; 3],
    gpu: Symbol,
    feature: Symbol,
    dedicated: Symbol,
}

pub(crate) fn sample(dice: &mut Dice, themes: Themes) -> Sample {
    let mut cluster = Cluster::default();
    let symbols = &mut cluster.symbols;
    let words = Words {
        rack: symbols.intern("rack"),
        disk: symbols.intern("disk"),
        app: symbols.intern("app"),
        tier: symbols.intern("tier"),
        values: ["a", "b", "7"].map(|text| symbols.intern(text)),
        namespaces: ["default", "team-a", "team-b"].map(|text| symbols.intern(text)),
        gpu: symbols.intern("example.com/gpu"),
        feature: symbols.intern("Feature"),
        dedicated: symbols.intern("dedicated"),
    };
    let names: Vec<Symbol> = (0..8).map(|index| symbols.intern(&format!("n{index}"))).collect();
    if themes.affinity {
        for namespace in &words.namespaces[..2] {
            let labels = match dice.below(3) {
                0 => Labels::default(),
                _ => Labels::new([(words.tier, dice.pick(&words.values))]),
            };
            cluster.namespaces.insert(*namespace, labels);
        }
    }
    if themes.volumes {
        storage(dice, &mut cluster, &words, &names);
    }
    let nodes = 2 + dice.below(6);
    cluster.nodes = names[..nodes].iter().map(|&name| node(dice, themes, &words, name)).collect();
    let specs = (0..3 + dice.below(6)).map(|_| spec(dice, themes, &words, &names, &mut cluster.symbols));
    let mut specs: Vec<PodSpec> = specs.collect();
    if themes.devices {
        devices::add(dice, &mut cluster, &names[..nodes]);
        specs.iter_mut().for_each(|spec| devices::claim(dice, &mut cluster, spec));
    }
    let specs: Vec<SpecId> = specs.into_iter().map(|spec| cluster.specs.intern(spec)).collect();
    let templates = (0..2).map(|_| {
        let pods = (0..dice.below(3)).map(|_| TemplatePod {
            name: "agent".into(),
            spec: dice.pick(&specs),
            daemon_set: true,
            owner: None,
        });
        let pods = pods.collect();
        Template { pods, ..Template::of(node(dice, themes, &words, known::EMPTY)) }
    });
    let mut templates: Vec<Template> = templates.collect();
    if themes.devices {
        templates.iter_mut().for_each(|template| template.slices = devices::of_template(dice, &mut cluster));
    }
    Sample { cluster, specs, templates }
}

fn node(dice: &mut Dice, themes: Themes, words: &Words, name: Symbol) -> Node {
    let mut labels = Vec::new();
    if !dice.one_in(8) {
        labels.push((known::HOSTNAME, name));
    }
    for key in [known::ZONE, words.rack, words.disk] {
        if !dice.one_in(5) {
            labels.push((key, dice.pick(&words.values)));
        }
    }
    if dice.one_in(6) {
        labels.push((known::BETA_ZONE, dice.pick(&words.values)));
    }
    let mut taints = Vec::new();
    if themes.statics && dice.one_in(3) {
        let effects = [TaintEffect::NoSchedule, TaintEffect::NoExecute, TaintEffect::PreferNoSchedule];
        taints.push(Taint { key: words.dedicated, value: dice.pick(&words.values), effect: dice.pick(&effects) });
    }
    let amount = |dice: &mut Dice, themes: Themes, most: usize| match themes.resources {
        true => i64::try_from(dice.below(most)).unwrap(),
        false => 1000,
    };
    let allocatable = Resources {
        cpu_milli: amount(dice, themes, 12),
        memory_bytes: amount(dice, themes, 12),
        ephemeral_storage_bytes: amount(dice, themes, 8),
        pods: if themes.resources { 1 + amount(dice, themes, 9) } else { 20 },
        scalars: Box::default(),
    };
    let allocatable = match dice.below(2) {
        0 => allocatable,
        _ => allocatable.with_scalars([(words.gpu, amount(dice, themes, 4))]),
    };
    Node {
        labels: Labels::new(labels),
        taints: taints.into(),
        unschedulable: themes.statics && dice.one_in(8),
        capacity: allocatable.clone(),
        allocatable,
        features: if dice.one_in(2) { [words.feature].into() } else { Box::default() },
        ..Node::bare(name)
    }
}

fn operator(dice: &mut Dice, values: &[Symbol], numeric: bool) -> Operator {
    match dice.below(if numeric { 6 } else { 4 }) {
        0 => Operator::In([dice.pick(values)].into()),
        1 => Operator::NotIn([dice.pick(values)].into()),
        2 => Operator::Exists,
        3 => Operator::DoesNotExist,
        4 => Operator::Gt(6),
        _ => Operator::Lt(8),
    }
}

fn node_selector(dice: &mut Dice, words: &Words, names: &[Symbol]) -> NodeSelector {
    let terms = (0..dice.below(3)).map(|_| {
        let expressions = (0..dice.below(3)).map(|_| match dice.below(5) {
            0 => Requirement { key: known::HOSTNAME, operator: operator(dice, names, false) },
            1 => Requirement { key: words.disk, operator: operator(dice, &words.values, true) },
            _ => Requirement { key: known::ZONE, operator: operator(dice, &words.values, false) },
        });
        let expressions = expressions.collect();
        let fields = (0..usize::from(dice.one_in(3))).map(|_| {
            let name = [dice.pick(names)].into();
            let operator = if dice.one_in(3) { Operator::NotIn(name) } else { Operator::In(name) };
            Requirement { key: known::METADATA_NAME, operator }
        });
        NodeSelectorTerm { expressions, fields: fields.collect(), valid: !dice.one_in(8) }
    });
    NodeSelector { terms: terms.collect() }
}

fn selector(dice: &mut Dice, words: &Words) -> Option<LabelSelector> {
    match dice.below(12) {
        0 => None,
        1 => Some(LabelSelector::All(Box::default())),
        2 if dice.one_in(3) => Some(LabelSelector::Invalid(words.app)),
        _ => {
            let requirements = (0..1 + dice.below(2)).map(|_| {
                let key = if dice.one_in(3) { words.tier } else { words.app };
                Requirement { key, operator: operator(dice, &words.values[..2], false) }
            });
            Some(LabelSelector::All(requirements.collect()))
        }
    }
}

fn topology_key(dice: &mut Dice, words: &Words) -> Symbol {
    dice.pick(&[known::ZONE, known::HOSTNAME, words.rack])
}

fn term(dice: &mut Dice, words: &Words, own: Symbol) -> PodAffinityTerm {
    let (namespaces, namespace_selector) = match dice.below(4) {
        0 => (Box::from([dice.pick(&words.namespaces)]), None),
        1 => {
            let requirement = Requirement { key: words.tier, operator: operator(dice, &words.values, false) };
            let selector = match dice.below(3) {
                0 => LabelSelector::All(Box::default()),
                _ => LabelSelector::All([requirement].into()),
            };
            (Box::default(), Some(selector))
        }
        _ => (Box::from([own]), None),
    };
    PodAffinityTerm {
        selector: selector(dice, words),
        namespaces,
        namespace_selector,
        topology_key: topology_key(dice, words),
    }
}

fn spec(dice: &mut Dice, themes: Themes, words: &Words, names: &[Symbol], symbols: &mut Symbols) -> PodSpec {
    let namespace = if themes.affinity { dice.pick(&words.namespaces) } else { words.namespaces[0] };
    let mut labels = Vec::new();
    for key in [words.app, words.tier] {
        if !dice.one_in(3) {
            labels.push((key, dice.pick(&words.values)));
        }
    }
    let mut spec = PodSpec { labels: Labels::new(labels), ..PodSpec::bare(namespace) };
    if themes.statics {
        if dice.one_in(12) {
            spec.node_name = Some(dice.pick(names));
        }
        if dice.one_in(4) {
            let pair = match dice.below(3) {
                0 => (known::HOSTNAME, dice.pick(names)),
                _ => (words.disk, dice.pick(&words.values)),
            };
            spec.node_selector = Labels::new([pair]);
        }
        if dice.one_in(4) {
            spec.node_affinity = Some(node_selector(dice, words, names));
        }
        let operators = [
            TolerationOperator::Equal,
            TolerationOperator::Exists,
            TolerationOperator::Gt,
            TolerationOperator::Lt,
            TolerationOperator::Unknown,
        ];
        let tolerations = (0..dice.below(3)).map(|_| Toleration {
            key: dice.pick(&[words.dedicated, known::UNSCHEDULABLE, known::EMPTY, known::TO_BE_DELETED]),
            operator: dice.pick(&operators),
            value: dice.pick(&words.values),
            effect: dice.pick(&[None, Some(TaintEffect::NoSchedule), Some(TaintEffect::NoExecute)]),
        });
        spec.tolerations = tolerations.collect();
        if dice.one_in(5) {
            spec.features = [words.feature].into();
        }
    }
    if themes.resources {
        let mut amount = |most| i64::try_from(dice.below(most)).unwrap();
        spec.requests.cpu_milli = amount(5);
        spec.requests.memory_bytes = amount(5);
        spec.requests.ephemeral_storage_bytes = amount(2);
        if amount(3) == 0 {
            spec.requests = spec.requests.with_scalars([(words.gpu, amount(3))]);
        }
    }
    if themes.ports && dice.one_in(2) {
        let addresses = [known::ANY_ADDRESS, symbols.intern("127.0.0.1"), symbols.intern("10.0.0.1")];
        let protocols = [known::TCP, symbols.intern("UDP")];
        let port =
            HostPort { address: dice.pick(&addresses), protocol: dice.pick(&protocols), port: dice.pick(&[80, 443]) };
        spec.host_ports = [port].into();
    }
    if themes.spread && !dice.one_in(3) {
        let policies = [NodeInclusion::Honor, NodeInclusion::Ignore];
        let constraints = (0..1 + dice.below(2)).map(|_| SpreadConstraint {
            max_skew: dice.pick(&[1, 1, 2, 3]),
            topology_key: topology_key(dice, words),
            selector: selector(dice, words),
            min_domains: dice.pick(&[1, 1, 2, 3, 4]),
            node_affinity_policy: dice.pick(&policies),
            node_taints_policy: dice.pick(&policies),
        });
        spec.spread = constraints.collect();
    }
    if themes.affinity {
        if dice.one_in(3) {
            spec.affinity = (0..1 + dice.below(2)).map(|_| term(dice, words, namespace)).collect();
        }
        if dice.one_in(3) {
            spec.anti_affinity = (0..1 + dice.below(2)).map(|_| term(dice, words, namespace)).collect();
        }
    }
    if themes.volumes && dice.one_in(2) {
        spec.volumes = (0..1 + dice.below(2)).map(|_| volume(dice, words, symbols)).collect();
    }
    spec
}

fn volume(dice: &mut Dice, words: &Words, symbols: &mut Symbols) -> Volume {
    let [one, other, _] = words.values;
    let read_only = dice.one_in(2);
    match dice.below(12) {
        0 => Volume::Disk(InlineDisk::GcePersistentDisk { name: one, read_only }),
        1 => Volume::Disk(InlineDisk::AwsElasticBlockStore { id: one }),
        2 => Volume::Disk(InlineDisk::Iscsi { iqn: other, read_only }),
        3 => Volume::Disk(InlineDisk::Rbd {
            monitors: if dice.one_in(2) { [one, other].into() } else { [one].into() },
            pool: one,
            image: other,
            read_only,
        }),
        4 if dice.one_in(3) => Volume::Claim(symbols.intern("missing")),
        5 => {
            let pod_uid = if dice.one_in(4) { one } else { other };
            Volume::Ephemeral { claim: symbols.intern("owned"), pod: symbols.intern("pod"), pod_uid }
        }
        _ => Volume::Claim(symbols.intern(&format!("claim{}", dice.below(9)))),
    }
}

/// Claims, volumes and classes of every standing. Some nodes limit the volumes of drivers.
fn storage(dice: &mut Dice, cluster: &mut Cluster, words: &Words, names: &[Symbol]) {
    let Cluster { symbols, storage, .. } = cluster;
    let mut word = |text: &str| symbols.intern(text);
    let (csi, unlimited, successor) = (word("csi"), word("unlimited"), word("ebs.csi.aws.com"));
    let in_tree = word("kubernetes.io/aws-ebs");
    let classes = ["wait", "now", "hand", "old"].map(&mut word);
    let provisioners = [csi, unlimited, word("kubernetes.io/no-provisioner"), in_tree];
    let (once, once_pod, several_zones) = (word("ReadWriteOnce"), word("ReadWriteOncePod"), word("a__b"));
    let claims: Vec<Symbol> = (0..9).map(|index| word(&format!("claim{index}"))).collect();
    let (owned, pod) = (word("owned"), word("pod"));
    let volumes: Vec<Symbol> = (0..6).map(|index| word(&format!("pv{index}"))).collect();
    let amount = |dice: &mut Dice, most| i64::try_from(dice.below(most)).unwrap();

    for (class, provisioner) in classes.into_iter().zip(provisioners) {
        let delayed = class != classes[1];
        let binding_mode = match dice.below(10) {
            0 => None,
            _ if delayed => Some(BindingMode::WaitForFirstConsumer),
            _ => Some(BindingMode::Immediate),
        };
        let topology = (known::ZONE, Box::from([dice.pick(&words.values)]));
        let allowed_topologies = if dice.one_in(3) { vec![vec![topology]] } else { Vec::new() };
        storage.classes.insert(class, StorageClass { provisioner, binding_mode, allowed_topologies });
    }
    for name in claims.iter().copied().chain([owned]) {
        for &namespace in &words.namespaces {
            let bound = dice.one_in(2);
            let claim = Claim {
                volume: (bound || dice.one_in(8)).then(|| dice.pick(&volumes)),
                bind_completed: bound,
                class: (!dice.one_in(10)).then(|| dice.pick(&classes)),
                access_modes: [if dice.one_in(4) { once_pod } else { once }].into(),
                request_bytes: (!dice.one_in(5)).then(|| amount(dice, 5)),
                mode: VolumeMode::Filesystem,
                selector: None,
                attributes_class: None,
                phase: if dice.one_in(15) { VolumePhase::Lost } else { VolumePhase::Unset },
                deleting: dice.one_in(15),
                selected_node: dice.one_in(8).then(|| dice.pick(names)),
                owner_pod: (name == owned).then(|| (pod, dice.pick(&words.values[..2]))),
                uid: name,
            };
            storage.claims.insert((namespace, name), claim);
        }
    }
    for &name in &volumes {
        if dice.one_in(9) {
            continue;
        }
        let mut labels = Vec::new();
        if dice.one_in(3) {
            labels.push((known::ZONE, dice.pick(&[words.values[0], several_zones])));
        }
        let csi_volume = (!dice.one_in(4)).then(|| (dice.pick(&[csi, unlimited, successor]), dice.pick(&words.values)));
        let volume = PersistentVolume {
            labels: Labels::new(labels),
            node_affinity: dice.one_in(2).then(|| node_selector(dice, words, names)),
            csi: csi_volume,
            in_tree: csi_volume.is_none().then(|| (in_tree, dice.pick(&words.values))),
            capacity_bytes: amount(dice, 6),
            class: dice.pick(&classes),
            access_modes: [once, once_pod].into(),
            mode: VolumeMode::Filesystem,
            attributes_class: None,
            phase: dice.pick(&[VolumePhase::Available, VolumePhase::Available, VolumePhase::Bound]),
            deleting: dice.one_in(10),
            claim: dice.one_in(4).then(|| (words.namespaces[0], dice.pick(&claims), known::EMPTY)),
        };
        storage.volumes.insert(name, volume);
    }
    for &name in names {
        if dice.one_in(2) {
            continue;
        }
        let limit = |dice: &mut Dice| (!dice.one_in(5)).then(|| i32::try_from(dice.below(3)).unwrap());
        let drivers = vec![(csi, limit(dice)), (successor, limit(dice))];
        let migrated_plugins = if dice.one_in(2) { [in_tree].into() } else { Box::default() };
        storage.csi_nodes.insert(name, CsiNode { drivers, migrated_plugins });
    }
    if dice.one_in(2) {
        let driver = CsiDriver { storage_capacity: true, prevent_scheduling_if_missing: dice.one_in(3) };
        storage.csi_drivers.insert(csi, driver);
        storage.capacities = (0..dice.below(3))
            .map(|_| CsiStorageCapacity {
                class: classes[0],
                topology: selector(dice, words).map(|_| {
                    let zone = Requirement { key: known::ZONE, operator: operator(dice, &words.values, false) };
                    LabelSelector::All([zone].into())
                }),
                capacity_bytes: (!dice.one_in(3)).then(|| amount(dice, 5)),
                maximum_volume_bytes: dice.one_in(3).then(|| amount(dice, 5)),
            })
            .collect();
    }
    storage.attachments = (0..dice.below(3))
        .map(|_| VolumeAttachment { attacher: csi, node: dice.pick(names), volume: Some(dice.pick(&volumes)) })
        .collect();
}
