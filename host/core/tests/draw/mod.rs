//! Clusters drawn by a seed.

/// A source of chance that gives the same numbers for the same seed (SplitMix64).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(u64::try_from(len).unwrap())).unwrap()
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

#[derive(Clone)]
struct Group {
    name: String,
    cores: u64,
    zone: &'static str,
    tainted: bool,
    min: u64,
    max: u64,
    /// Cores that are used on each of its nodes, in thousandths, by how many pods.
    nodes: Vec<Vec<u64>>,
}

#[derive(Clone)]
struct Workload {
    name: String,
    milli: u64,
    replicas: u64,
    /// More of the pod's spec, in flow style.
    rules: String,
    priority: u64,
}

/// A cluster: groups with nodes, and workloads without.
#[derive(Clone)]
pub(crate) struct Drawn {
    groups: Vec<Group>,
    workloads: Vec<Workload>,
    /// Places of documents in the file, if not in their own order.
    order: Option<u64>,
}

impl Drawn {
    pub(crate) fn new(seed: u64) -> Self {
        let dice = &mut Dice::new(seed);
        let groups = (0..1 + dice.below(4)).map(|number| group(number, dice)).collect();
        let workloads = (0..dice.below(5)).map(|number| workload(number, dice)).collect();
        Self { groups, workloads, order: None }
    }

    /// The same in another order.
    pub(crate) fn shuffled(&self, dice: &mut Dice) -> Self {
        Self { order: Some(dice.next()), ..self.clone() }
    }

    /// The same with a greater maximum, with a group more, and without a taint.
    pub(crate) fn with_more_room(&self, dice: &mut Dice) -> Vec<(&'static str, Self)> {
        let at = dice.index(self.groups.len());
        let mut larger = self.clone();
        larger.groups[at].max += 1 + dice.below(3);
        let mut another = self.clone();
        let mut more = group(9, dice);
        more.nodes.clear();
        another.groups.push(more);
        let mut open = self.clone();
        open.groups[at].tainted = false;
        vec![("greater maximum", larger), ("another group", another), ("no taint", open)]
    }

    /// As Kubernetes objects and node groups.
    pub(crate) fn yaml(&self) -> String {
        let mut documents = vec![super::support::WEB.to_owned()];
        for group in &self.groups {
            documents.push(group.yaml());
            for (number, used) in group.nodes.iter().enumerate() {
                let name = format!("{}-n{number}", group.name);
                documents.push(group.node(&name));
                for (pod, milli) in used.iter().enumerate() {
                    documents.push(running(&format!("on-{name}-{pod}"), *milli, &name));
                }
            }
        }
        for workload in &self.workloads {
            documents.extend((0..workload.replicas).map(|number| workload.pod(number)));
        }
        if let Some(seed) = self.order {
            let dice = &mut Dice::new(seed);
            for at in (1..documents.len()).rev() {
                documents.swap(at, dice.index(at + 1));
            }
        }
        documents.concat()
    }
}

const ZONES: [&str; 3] = ["a", "b", "c"];

fn group(number: u64, dice: &mut Dice) -> Group {
    let cores = [2, 4, 8, 16][dice.index(4)];
    let zone = ZONES[dice.index(ZONES.len())];
    let tainted = dice.one_in(4);
    let count = if dice.one_in(3) { 0 } else { dice.below(4) };
    let nodes: Vec<Vec<u64>> = (0..count)
        .map(|_| {
            let mut left = cores * 1000 * dice.below(100) / 100;
            let mut pods = Vec::new();
            while left > 100 && pods.len() < 5 {
                let milli = (100 + dice.below(cores * 400)).min(left);
                pods.push(milli);
                left -= milli;
            }
            pods
        })
        .collect();
    let min = if dice.one_in(3) { dice.below(count + 1) } else { 0 };
    Group { name: format!("g{number}"), cores, zone, tainted, min, max: count + dice.below(7), nodes }
}

fn workload(number: u64, dice: &mut Dice) -> Workload {
    let name = format!("w{number}");
    let selector = format!("labelSelector: {{matchLabels: {{app: {name}}}}}");
    let mut rules = String::new();
    match dice.below(8) {
        0 => {
            let skew = 1 + dice.below(2);
            rules += &format!(
                "topologySpreadConstraints: [{{maxSkew: {skew}, topologyKey: topology.kubernetes.io/zone, \
                 whenUnsatisfiable: DoNotSchedule, {selector}}}], "
            );
        }
        1 => {
            rules += &format!(
                "affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: \
                 kubernetes.io/hostname, {selector}}}]}}}}, "
            );
        }
        2 => rules += &format!("nodeSelector: {{topology.kubernetes.io/zone: {}}}, ", ZONES[dice.index(3)]),
        _ => {}
    }
    if dice.one_in(3) {
        rules += "tolerations: [{key: dedicated, operator: Exists}], ";
    }
    let priority = if dice.one_in(4) { dice.below(3) * 100 } else { 0 };
    let milli = [100, 250, 500, 1000, 1500, 1900, 3000, 7000][dice.index(8)] + dice.below(50);
    Workload { name, milli, replicas: 1 + dice.below(12), rules, priority }
}

impl Group {
    fn labels(&self) -> String {
        format!("topology.kubernetes.io/zone: {}, pool: {}", self.zone, self.name)
    }

    fn shape(&self) -> String {
        let amounts = format!("{{cpu: '{}', memory: {}Gi, pods: '110'}}", self.cores, self.cores * 4);
        let taints = if self.tainted { "spec: {taints: [{key: dedicated, effect: NoSchedule}]}, " } else { "" };
        format!("{taints}status: {{allocatable: {amounts}, capacity: {amounts}")
    }

    fn node(&self, name: &str) -> String {
        format!(
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}, {}}}}}, \
             {}, conditions: [{{type: Ready, status: 'True', lastTransitionTime: '2020-01-01T00:00:00Z'}}]}}}}\n",
            self.labels(),
            self.shape()
        )
    }

    fn yaml(&self) -> String {
        let (min, max) = (self.min, self.max);
        let nodes = match self.nodes.len() {
            0 => format!("template: {{metadata: {{labels: {{{}}}}}, {}}}}}", self.labels(), self.shape()),
            count => {
                let names: Vec<String> = (0..count).map(|number| format!("{}-n{number}", self.name)).collect();
                format!("nodes: [{}]", names.join(", "))
            }
        };
        format!(
            "---\n{{apiVersion: plimsoll.dev/v1alpha1, kind: NodeGroup, metadata: {{name: {}}}, spec: {{minSize: {min}, \
             maxSize: {max}, {nodes}}}}}\n",
            self.name
        )
    }
}

impl Workload {
    fn pod(&self, number: u64) -> String {
        let Self { name, milli, rules, priority, .. } = self;
        pod(&format!("{name}-{number}"), name, *milli, &format!("priority: {priority}, {rules}"), true)
    }
}

fn running(name: &str, milli: u64, node: &str) -> String {
    // Whoever runs on a tainted node tolerates the taint.
    let rules = format!("nodeName: {node}, tolerations: [{{key: dedicated, operator: Exists}}], ");
    pod(name, "running", milli, &rules, false)
}

fn pod(name: &str, app: &str, milli: u64, rules: &str, pending: bool) -> String {
    let status = if pending {
        "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}"
    } else {
        "{phase: Running}"
    };
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{namespace: shop, name: {name}, labels: {{app: {app}}}, \
         ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}}]}}, spec: \
         {{{rules}containers: [{{name: c, resources: {{requests: {{cpu: {milli}m, memory: 100Mi}}}}}}]}}, status: {status}}}\n"
    )
}
