//! InterPodAffinity: required affinity and anti-affinity between pods.

use hashbrown::HashMap;
use plimsoll_model::pod::PodAffinityTerm;
use plimsoll_model::selector::LabelSelector;
use plimsoll_model::{Labels, PodSpec, Symbol};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{Admission, DynamicRule, Predicate, Tracker, Verdict};
use crate::facts::Facts;
use crate::oracle::{Place, World};
use crate::refusal::Reason;
use crate::snapshot::base::{Base, ClassId, Life, NodeId};
use crate::snapshot::classes::{LabelSet, LabelSetId};
use crate::snapshot::topology::{Counts, KeyId, NOWHERE};
use crate::table::{Table, ids};

/// Affinity: in every term's domain of the node is a pod that matches all terms; or no such pod is in any domain, the node
/// has all keys, and the pod matches its own terms (the first of its kind). Anti-affinity: no pod that a term matches is in
/// its domain of the node, and no pod is there whose own terms match the new one.
///
/// Terms are read as Kubernetes 1.37 does; the inter-pod affinity fast path for host names is off.
pub(crate) struct InterPodAffinity;

fn selects(facts: &Facts<'_>, term: &PodAffinityTerm, labels: &Labels) -> bool {
    term.selector.as_ref().is_some_and(|selector| selector.matches(labels, facts.symbols()))
}

/// Whether a term of the pod to place means another pod. Its namespace selector finds namespaces among the objects that
/// there are; one that selects everything means namespaces without objects too.
fn means(facts: &Facts<'_>, term: &PodAffinityTerm, namespace: Symbol, labels: &Labels) -> bool {
    let by_labels = |selector: &LabelSelector| {
        let known = || facts.namespace(namespace);
        selector.is_everything() || known().is_some_and(|labels| selector.matches(labels, facts.symbols()))
    };
    (term.namespaces.contains(&namespace) || term.namespace_selector.as_ref().is_some_and(by_labels))
        && selects(facts, term, labels)
}

/// Whether a term of a pod that is placed already means the pod to place. A namespace without an object counts as one
/// without labels.
fn guards_against(facts: &Facts<'_>, term: &PodAffinityTerm, namespace: Symbol, labels: &Labels) -> bool {
    let by_labels = |selector: &LabelSelector| {
        let none = Labels::default();
        selector.matches(facts.namespace(namespace).unwrap_or(&none), facts.symbols())
    };
    (term.namespaces.contains(&namespace) || term.namespace_selector.as_ref().is_some_and(by_labels))
        && selects(facts, term, labels)
}

fn invalid(term: &PodAffinityTerm) -> Option<Symbol> {
    [&term.selector, &term.namespace_selector].into_iter().find_map(|selector| match selector {
        Some(LabelSelector::Invalid(why)) => Some(*why),
        Some(LabelSelector::All(_)) | None => None,
    })
}

/// Anti-affinity terms of a pod that is placed. One that cannot be read spoils the whole list.
fn guards(spec: &PodSpec) -> &[PodAffinityTerm] {
    if spec.anti_affinity.iter().any(|term| invalid(term).is_some()) { &[] } else { &spec.anti_affinity }
}

impl Predicate for InterPodAffinity {
    fn name(&self) -> &'static str {
        "InterPodAffinity"
    }

    fn admit(&self, facts: &Facts<'_>, pod: &PodSpec) -> Admission {
        let why = pod.affinity.iter().chain(&pod.anti_affinity).find_map(invalid).map(|why| facts.text(why));
        why.map_or(Admission::Anywhere, |why| Admission::Nowhere(Reason::InvalidSelector { place: "parsing pod", why }))
    }
}

impl DynamicRule for InterPodAffinity {
    fn refuse(&self, world: &World<'_>, pod: &PodSpec, node: &Place) -> Vec<Reason> {
        let facts = &world.facts;
        let means = |term, other: &PodSpec| means(facts, term, other.namespace, &other.labels);
        let residents =
            || world.places.iter().flat_map(|place| place.pods.iter().map(move |pod| (place, world.spec(pod.spec))));
        let here = |key| node.node.labels.get(key);
        let near = |term: &PodAffinityTerm, place: &Place| {
            here(term.topology_key).is_some_and(|value| place.node.labels.get(term.topology_key) == Some(value))
        };

        let kin: Vec<&Place> = residents()
            .filter(|(_, other)| !pod.affinity.is_empty() && pod.affinity.iter().all(|term| means(term, other)))
            .map(|(place, _)| place)
            .collect();
        let has_keys = pod.affinity.iter().all(|term| here(term.topology_key).is_some());
        let met = pod.affinity.iter().all(|term| kin.iter().any(|place| near(term, place)));
        let counted =
            |place: &&Place| pod.affinity.iter().any(|term| place.node.labels.get(term.topology_key).is_some());
        let first = !kin.iter().any(counted) && pod.affinity.iter().all(|term| means(term, pod));
        if !(has_keys && (met || first)) {
            return vec![Reason::PodAffinity];
        }
        if pod
            .anti_affinity
            .iter()
            .any(|term| residents().any(|(place, other)| means(term, other) && near(term, place)))
        {
            return vec![Reason::PodAntiAffinity];
        }
        let guarded = residents().any(|(place, other)| {
            guards(other)
                .iter()
                .any(|term| guards_against(facts, term, pod.namespace, &pod.labels) && near(term, place))
        });
        Vec::from_iter(guarded.then_some(Reason::ExistingAntiAffinity))
    }

    fn tracker(&self) -> Box<dyn Tracker> {
        Box::new(Neighbours::default())
    }
}

ids! {
    /// Pods that an anti-affinity term of pods to place means.
    ShunnedId;
    /// Pods that all affinity terms of pods to place mean.
    KinId;
    /// Pods that have an anti-affinity term themselves.
    GuardId;
}

/// Pods that an anti-affinity term means, by domain of its key.
struct Shunned {
    term: PodAffinityTerm,
    key: KeyId,
    pods: Counts,
}

/// Pods that all of some affinity terms mean, by domain of each key.
struct Kin {
    terms: Box<[PodAffinityTerm]>,
    pods: Vec<(KeyId, Counts)>,
    /// Sum of all counts.
    total: i64,
    /// Domains with a count.
    occupied: u64,
}

/// Pods that have an anti-affinity term, by domain of its key.
struct Guard {
    term: PodAffinityTerm,
    owners: Vec<ClassId>,
    /// Counted only once a pod was asked about that the term means.
    pods: Option<(KeyId, Counts)>,
}

/// What questions about a class look at.
struct Concern {
    kin: Option<KinId>,
    /// Whether the class is its own kin.
    own_kin: bool,
    shunned: Vec<ShunnedId>,
    /// Keys of terms that keep two pods of the class apart.
    apart: Vec<KeyId>,
}

/// What pods with the same labels count for.
#[derive(Default)]
struct Membership {
    shunned: Vec<ShunnedId>,
    kin: Vec<KinId>,
    /// Terms of others that mean such pods; none: not reckoned yet.
    guards: Option<Vec<GuardId>>,
}

#[derive(Clone, Copy)]
enum Counter {
    Shunned(ShunnedId),
    Kin(KinId),
}

/// Counters for the terms of all classes that were asked about.
#[derive(Default)]
struct Neighbours {
    shunned: Table<ShunnedId, Shunned>,
    shunned_ids: HashMap<PodAffinityTerm, ShunnedId, FxBuildHasher>,
    kin: Table<KinId, Kin>,
    kin_ids: HashMap<Box<[PodAffinityTerm]>, KinId, FxBuildHasher>,
    guards: Table<GuardId, Guard>,
    /// Terms that may mean pods of a namespace; those that may mean pods of any under none.
    guards_in: FxHashMap<Option<Symbol>, Vec<GuardId>>,
    guard_ids: HashMap<PodAffinityTerm, GuardId, FxBuildHasher>,
    /// Counters that may concern pods of a namespace; those of every namespace under none.
    counters_in: FxHashMap<Option<Symbol>, Vec<Counter>>,
    members: Table<LabelSetId, Membership>,
    concerns: Table<ClassId, Option<Concern>>,
    own_guards: Table<ClassId, Vec<GuardId>>,
    any_guard_counts: bool,
}

impl Kin {
    fn add(&mut self, base: &Base<'_>, node: NodeId, delta: i64) {
        for (key, pods) in &mut self.pods {
            let domain = base.domain(*key, node);
            if domain != NOWHERE {
                let (old, new) = pods.add(domain, delta);
                self.total += delta;
                self.occupied = self.occupied.wrapping_add(u64::from(new > 0)).wrapping_sub(u64::from(old > 0));
            }
        }
    }
}

fn add(base: &Base<'_>, key: KeyId, pods: &mut Counts, node: NodeId, delta: i64) {
    let domain = base.domain(key, node);
    if domain != NOWHERE {
        pods.add(domain, delta);
    }
}

fn is_near(base: &Base<'_>, key: KeyId, pods: &Counts, node: NodeId) -> bool {
    let domain = base.domain(key, node);
    domain != NOWHERE && pods.get(domain) > 0
}

/// Namespaces that pods of a term may be in: none stands for any.
fn namespaces(term: &PodAffinityTerm) -> Vec<Option<Symbol>> {
    match term.namespace_selector {
        Some(_) => vec![None],
        None => term.namespaces.iter().copied().map(Some).collect(),
    }
}

/// Label sets that a term may mean.
fn label_sets(base: &Base<'_>, term: &PodAffinityTerm) -> Vec<LabelSetId> {
    let sets = namespaces(term).into_iter().flat_map(|namespace| match namespace {
        None => base.classes.label_sets.ids().collect(),
        Some(namespace) => base.classes.by_namespace.get(&namespace).cloned().unwrap_or_default(),
    });
    sets.collect()
}

impl Neighbours {
    fn means(base: &Base<'_>, term: &PodAffinityTerm, set: &LabelSet) -> bool {
        means(&base.facts, term, set.namespace, &set.labels)
    }

    fn shunned(&mut self, base: &mut Base<'_>, term: &PodAffinityTerm) -> ShunnedId {
        if let Some(found) = self.shunned_ids.get(term) {
            return *found;
        }
        let key = base.key(term.topology_key);
        let mut pods = Counts::new(&base.topology.columns[key]);
        let id = self.shunned.next();
        for label_set in label_sets(base, term) {
            let set = &base.classes.label_sets[label_set];
            if Self::means(base, term, set) {
                self.members.grown(label_set).shunned.push(id);
                let sites = set.classes.iter().flat_map(|class| base.sites(*class));
                sites.for_each(|(node, count)| add(base, key, &mut pods, node, count));
            }
        }
        for namespace in namespaces(term) {
            self.counters_in.entry(namespace).or_default().push(Counter::Shunned(id));
        }
        self.shunned_ids.insert(term.clone(), id);
        self.shunned.push(Shunned { term: term.clone(), key, pods })
    }

    fn kin(&mut self, base: &mut Base<'_>, terms: &[PodAffinityTerm]) -> Option<KinId> {
        let first = terms.first()?;
        if let Some(found) = self.kin_ids.get(terms) {
            return Some(*found);
        }
        let mut keys: Vec<KeyId> = terms.iter().map(|term| base.key(term.topology_key)).collect();
        keys.sort_unstable();
        keys.dedup();
        let pods = keys.into_iter().map(|key| (key, Counts::new(&base.topology.columns[key]))).collect();
        let mut kin = Kin { terms: terms.into(), pods, total: 0, occupied: 0 };
        let id = self.kin.next();
        for label_set in label_sets(base, first) {
            let set = &base.classes.label_sets[label_set];
            if terms.iter().all(|term| Self::means(base, term, set)) {
                self.members.grown(label_set).kin.push(id);
                let sites = set.classes.iter().flat_map(|class| base.sites(*class));
                sites.for_each(|(node, count)| kin.add(base, node, count));
            }
        }
        for namespace in namespaces(first) {
            self.counters_in.entry(namespace).or_default().push(Counter::Kin(id));
        }
        self.kin_ids.insert(terms.into(), id);
        self.kin.push(kin);
        Some(id)
    }

    /// Finds the terms of others that mean pods with these labels, and counts their owners.
    fn find_guards(&mut self, base: &mut Base<'_>, label_set: LabelSetId) {
        if self.members.grown(label_set).guards.is_some() {
            return;
        }
        let mut found = Vec::new();
        let namespace = base.classes.label_sets[label_set].namespace;
        let in_namespace = self.guards_in.get(&Some(namespace)).into_iter();
        for &id in in_namespace.chain(self.guards_in.get(&None)).flatten() {
            let set = &base.classes.label_sets[label_set];
            let guard = &mut self.guards[id];
            if !guards_against(&base.facts, &guard.term, set.namespace, &set.labels) {
                continue;
            }
            found.push(id);
            if guard.pods.is_none() {
                let key = base.key(guard.term.topology_key);
                let mut pods = Counts::new(&base.topology.columns[key]);
                let sites = guard.owners.iter().flat_map(|class| base.sites(*class));
                sites.for_each(|(node, count)| add(base, key, &mut pods, node, count));
                guard.pods = Some((key, pods));
                self.any_guard_counts = true;
            }
        }
        self.members[label_set].guards = Some(found);
    }

    fn concern(&self, class: ClassId) -> Option<&Concern> {
        self.concerns.get(class)?.as_ref()
    }

    fn guards_near(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> bool {
        let members = self.members.get(base.class(class).label_set);
        let guards = members.and_then(|members| members.guards.as_ref()).into_iter().flatten();
        guards.filter_map(|guard| self.guards[*guard].pods.as_ref()).any(|(key, pods)| is_near(base, *key, pods, node))
    }

    fn shunned_near(&self, base: &Base<'_>, concern: &Concern, node: NodeId) -> bool {
        let shunned = concern.shunned.iter().map(|id| &self.shunned[*id]);
        shunned.into_iter().any(|shunned| is_near(base, shunned.key, &shunned.pods, node))
    }

    /// Whether affinity lets a pod onto a node, and if not, by which key.
    fn kin_verdict(&self, base: &Base<'_>, concern: &Concern, node: NodeId) -> Verdict {
        let Some(kin) = concern.kin.map(|kin| &self.kin[kin]) else { return Verdict::Fits };
        let mut verdict = Verdict::Fits;
        for (key, pods) in &kin.pods {
            match base.domain(*key, node) {
                NOWHERE => return Verdict::Never,
                domain if pods.get(domain) == 0 => verdict = Verdict::NotNow(Some(*key)),
                _ => {}
            }
        }
        let first = kin.total == 0 && concern.own_kin;
        if first { Verdict::Fits } else { verdict }
    }
}

impl Tracker for Neighbours {
    fn meet(&mut self, base: &Base<'_>, class: ClassId) -> bool {
        let label_set = base.class(class).label_set;
        let set = &base.classes.label_sets[label_set];
        // Other classes with the same labels have been through this.
        if set.classes.len() == 1 {
            let in_namespace = self.counters_in.get(&Some(set.namespace)).into_iter();
            let counters: Vec<Counter> = in_namespace.chain(self.counters_in.get(&None)).flatten().copied().collect();
            for counter in counters {
                match counter {
                    Counter::Shunned(id) if Self::means(base, &self.shunned[id].term, set) => {
                        self.members.grown(label_set).shunned.push(id);
                    }
                    Counter::Kin(id) if self.kin[id].terms.iter().all(|term| Self::means(base, term, set)) => {
                        self.members.grown(label_set).kin.push(id);
                    }
                    Counter::Shunned(_) | Counter::Kin(_) => {}
                }
            }
        }
        let mut stale = false;
        for term in guards(base.spec(class)) {
            let next = self.guards.next();
            let id = *self.guard_ids.entry_ref(term).or_insert(next);
            if id == next {
                self.guards.push(Guard { term: term.clone(), owners: Vec::new(), pods: None });
                for namespace in namespaces(term) {
                    self.guards_in.entry(namespace).or_default().push(id);
                }
                // Whoever was asked about before did not know this term.
                for members in self.members.rows_mut() {
                    stale |= members.guards.take().is_some();
                }
            }
            if !self.guards[id].owners.contains(&class) {
                self.guards[id].owners.push(class);
            }
            self.own_guards.grown(class).push(id);
        }
        stale
    }

    fn prepare(&mut self, base: &mut Base<'_>, class: ClassId) -> bool {
        let spec = base.spec(class);
        let label_set = base.class(class).label_set;
        self.find_guards(base, label_set);
        if self.concern(class).is_none() {
            let kin = self.kin(base, &spec.affinity);
            let own_kin = spec.affinity.iter().all(|term| means(&base.facts, term, spec.namespace, &spec.labels));
            let shunned = spec.anti_affinity.iter().map(|term| self.shunned(base, term)).collect();
            let mut apart = Vec::new();
            for term in &spec.anti_affinity {
                if means(&base.facts, term, spec.namespace, &spec.labels)
                    || guards_against(&base.facts, term, spec.namespace, &spec.labels)
                {
                    apart.push(base.key(term.topology_key));
                }
            }
            *self.concerns.grown(class) = Some(Concern { kin, own_kin, shunned, apart });
        }
        let guarded = self.members[label_set].guards.as_ref().is_some_and(|guards| !guards.is_empty());
        guarded || !spec.affinity.is_empty() || !spec.anti_affinity.is_empty()
    }

    fn is_awake(&self) -> bool {
        self.shunned.len() + self.kin.len() > 0 || self.any_guard_counts
    }

    fn moved(&mut self, base: &Base<'_>, class: ClassId, node: NodeId, delta: i64) {
        if let Some(members) = self.members.get(base.class(class).label_set) {
            for id in &members.shunned {
                let shunned = &mut self.shunned[*id];
                add(base, shunned.key, &mut shunned.pods, node, delta);
            }
            for id in &members.kin {
                self.kin[*id].add(base, node, delta);
            }
        }
        for id in self.own_guards.get(class).map_or(&[][..], Vec::as_slice) {
            if let Some((key, pods)) = &mut self.guards[*id].pods {
                add(base, *key, pods, node, delta);
            }
        }
    }

    fn verdict(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Verdict {
        let Some(concern) = self.concern(class) else { return Verdict::Fits };
        if self.shunned_near(base, concern, node) || self.guards_near(base, class, node) {
            return Verdict::Never;
        }
        self.kin_verdict(base, concern, node)
    }

    fn room(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> u32 {
        let Some(concern) = self.concern(class) else { return u32::MAX };
        let apart = concern.apart.iter().any(|&key| base.domain(key, node) != NOWHERE);
        if apart { 1 } else { u32::MAX }
    }

    fn reasons(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Vec<Reason> {
        let Some(concern) = self.concern(class) else { return Vec::new() };
        let reason = if self.kin_verdict(base, concern, node) != Verdict::Fits {
            Some(Reason::PodAffinity)
        } else if self.shunned_near(base, concern, node) {
            Some(Reason::PodAntiAffinity)
        } else {
            self.guards_near(base, class, node).then_some(Reason::ExistingAntiAffinity)
        };
        Vec::from_iter(reason)
    }

    fn shifting_keys(&self, class: ClassId, keys: &mut Vec<KeyId>) {
        let kin = self.concern(class).and_then(|concern| concern.kin).map(|kin| &self.kin[kin]);
        keys.extend(kin.into_iter().flat_map(|kin| kin.pods.iter().map(|(key, _)| *key)));
    }

    fn epoch(&self, class: ClassId, keys: &[KeyId]) -> u64 {
        let kin = self.concern(class).and_then(|concern| concern.kin).map(|kin| &self.kin[kin]);
        kin.filter(|kin| kin.pods.iter().any(|(key, _)| keys.contains(key))).map_or(0, |kin| kin.occupied)
    }

    fn digest(&self, base: &Base<'_>, state: &mut dyn std::hash::Hasher) {
        let mut write = |key: KeyId, pods: &Counts| {
            let alive = base.life.ids().filter(|node| base.life[*node] != Life::Removed);
            let on = alive.map(|node| base.domain(key, node)).filter(|domain| *domain != NOWHERE);
            on.for_each(|domain| state.write_i64(pods.get(domain)));
        };
        for (_, shunned) in self.shunned.iter() {
            write(shunned.key, &shunned.pods);
        }
        for (_, guard) in self.guards.iter() {
            guard.pods.iter().for_each(|(key, pods)| write(*key, pods));
        }
        for (_, kin) in self.kin.iter() {
            kin.pods.iter().for_each(|(key, pods)| write(*key, pods));
        }
        for (_, kin) in self.kin.iter() {
            state.write_i64(kin.total);
            state.write_u64(kin.occupied);
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::convert::Kind;

    use crate::testing::Scene;

    const AFFINITY: &str = "InterPodAffinity: node(s) didn't match pod affinity rules";
    const ANTI: &str = "InterPodAffinity: node(s) didn't match pod anti-affinity rules";
    const EXISTING: &str = "InterPodAffinity: node(s) didn't satisfy existing pods anti-affinity rules";

    fn term(key: &str, selector: &str, more: &str) -> String {
        format!("{{topologyKey: {key}, labelSelector: {selector}, {more}}}")
    }

    fn pod(labels: &str, near: &[String], far: &[String]) -> String {
        let list =
            |terms: &[String]| format!("{{requiredDuringSchedulingIgnoredDuringExecution: [{}]}}", terms.join(", "));
        let affinity = format!("podAffinity: {}, podAntiAffinity: {}", list(near), list(far));
        format!("{{metadata: {{labels: {{{labels}}}}}, spec: {{affinity: {{{affinity}}}}}}}")
    }

    fn labelled(labels: &str) -> String {
        format!("{{metadata: {{labels: {{{labels}}}}}}}")
    }

    /// Nodes a and b in zone 1, x in zone 2, all in one region; n without labels.
    fn scene() -> Scene {
        let mut scene = Scene::new();
        scene.node("a", "{metadata: {labels: {zone: z1, region: r}}}");
        scene.node("b", "{metadata: {labels: {zone: z1, region: r}}}");
        scene.node("x", "{metadata: {labels: {zone: z2, region: r}}}");
        scene.node("n", "{}");
        scene
    }

    #[test]
    fn affinity() {
        let web = "{matchLabels: {app: web}}";
        let both = "{matchExpressions: [{key: app, operator: In, values: [web]}, {key: tier, operator: Exists}]}";
        for (name, residents, labels, near, expected) in [
            ("near a pod of the zone", vec![("a", "app: web")], "app: x", vec![term("zone", web, "")], "a b"),
            (
                "near a pod of the node",
                vec![("a", "app: web")],
                "app: x",
                vec![term("kubernetes.io/hostname", web, "")],
                "a",
            ),
            ("nobody matches", vec![("a", "app: db")], "app: x", vec![term("zone", web, "")], ""),
            (
                "NotIn matches pods without the key",
                vec![("a", "tier: t")],
                "app: x",
                vec![term("zone", "{matchExpressions: [{key: app, operator: NotIn, values: [db]}]}", "")],
                "a b",
            ),
            ("one of two requirements", vec![("a", "app: web")], "app: x", vec![term("zone", both, "")], ""),
            ("no selector matches nobody", vec![("a", "app: web")], "app: web", vec![term("zone", "null", "")], ""),
            (
                "the empty selector matches everybody",
                vec![("x", "app: web")],
                "app: x",
                vec![term("zone", "{}", "")],
                "x",
            ),
            ("the first of its kind", vec![], "app: web", vec![term("zone", web, "")], "a b x"),
            (
                "the first, of two terms",
                vec![("a", "app: web")],
                "app: web, tier: t",
                vec![term("zone", web, ""), term("region", "{matchLabels: {tier: t}}", "")],
                "a b x",
            ),
            ("not the first once there is one", vec![("x", "app: web")], "app: web", vec![term("zone", web, "")], "x"),
            (
                "one on a node without the key does not count",
                vec![("n", "app: web")],
                "app: web",
                vec![term("zone", web, "")],
                "a b x",
            ),
            (
                "two terms, each matched by another pod",
                vec![("a", "app: web"), ("a", "tier: t")],
                "app: x",
                vec![term("zone", web, ""), term("zone", "{matchLabels: {tier: t}}", "")],
                "",
            ),
            (
                "two keys",
                vec![("a", "app: web")],
                "app: x",
                vec![term("zone", web, ""), term("kubernetes.io/hostname", web, "")],
                "a",
            ),
        ] {
            let mut scene = scene();
            residents.iter().for_each(|(node, labels)| scene.resident(node, &labelled(labels)));
            let pod = scene.pod(&pod(labels, &near, &[]));
            assert_eq!(scene.fitting(pod).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn anti_affinity() {
        let web = "{matchLabels: {app: web}}";
        for (name, residents, far, expected) in [
            ("far from a pod of the zone", vec![("a", "app: web")], vec![term("zone", web, "")], "x n"),
            ("far from a pod of the region", vec![("a", "app: web")], vec![term("region", web, "")], "n"),
            ("nobody matches", vec![("a", "app: db")], vec![term("zone", web, "")], "a b x n"),
            (
                "two terms, each by its key",
                vec![("a", "app: web"), ("x", "app: db")],
                vec![term("zone", web, ""), term("kubernetes.io/hostname", "{matchLabels: {app: db}}", "")],
                "n",
            ),
            ("one on a node without the key", vec![("n", "app: web")], vec![term("zone", web, "")], "a b x n"),
        ] {
            let mut scene = scene();
            residents.iter().for_each(|(node, labels)| scene.resident(node, &labelled(labels)));
            let pod = scene.pod(&pod("app: x", &[], &far));
            assert_eq!(scene.fitting(pod).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn existing_pods_keep_others_away() {
        let web = "{matchLabels: {app: web}}";
        for (name, guard, labels, expected) in [
            ("by zone", term("zone", web, ""), "app: web", "x n"),
            ("not meant", term("zone", web, ""), "app: db", "a b x n"),
            ("a key that no node has", term("rack", web, ""), "app: web", "a b x n"),
            ("in another namespace", term("zone", web, "namespaces: [other]"), "app: web", "a b x n"),
        ] {
            let mut scene = scene();
            scene.resident("a", &pod("app: guard", &[], &[guard]));
            let pod = scene.pod(&labelled(labels));
            assert_eq!(scene.fitting(pod).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn the_first_rule_that_fails_is_named() {
        let web = "{matchLabels: {app: web}}";
        for (name, near, far, expected) in [
            (
                "affinity before anti-affinity",
                vec![term("zone", "{matchLabels: {app: none}}", "")],
                vec![term("zone", web, "")],
                AFFINITY,
            ),
            ("own before existing", vec![], vec![term("zone", web, "")], ANTI),
            ("existing", vec![], vec![], EXISTING),
        ] {
            let mut scene = scene();
            scene.resident("a", &pod("app: web", &[], &[term("zone", "{matchLabels: {app: x}}", "")]));
            let pod = scene.pod(&pod("app: x", &near, &far));
            assert_eq!(scene.verdict(pod), expected, "{name}");
        }
    }

    #[test]
    fn namespaces() {
        let web = "{matchLabels: {app: web}}";
        let team = |team: &str| format!("namespaceSelector: {{matchLabels: {{team: {team}}}}}");
        for (name, more, expected) in [
            ("the pod's own", String::new(), ""),
            ("by name", "namespaces: [other]".into(), "a b"),
            ("by labels", team("one"), "a b"),
            ("by other labels", team("two"), ""),
            ("all", "namespaceSelector: {}".into(), "a b"),
            ("by name or labels", format!("namespaces: [other], {}", team("two")), "a b"),
        ] {
            let mut scene = scene();
            scene.add(Kind::Namespace, "{metadata: {name: other, labels: {team: one}}}");
            scene.resident("a", "{metadata: {namespace: other, labels: {app: web}}}");
            let pod = scene.pod(&pod("app: x", &[term("zone", web, &more)], &[]));
            assert_eq!(scene.fitting(pod).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn a_namespace_without_an_object() {
        let web = "{matchLabels: {app: web}}";
        let absent = "namespaceSelector: {matchExpressions: [{key: team, operator: DoesNotExist}]}";
        for (name, more, incoming, existing) in [
            ("a selector that no labels satisfy", absent, "", "x n"),
            ("a selector of everything", "namespaceSelector: {}", "a b", "x n"),
        ] {
            let mut here = scene();
            here.resident("a", "{metadata: {namespace: ghost, labels: {app: web}}}");
            let pod_near = here.pod(&pod("app: x", &[term("zone", web, more)], &[]));
            assert_eq!(here.fitting(pod_near).join(" "), incoming, "{name}: the term of the pod to place");
            let mut here = scene();
            here.resident("a", &pod("app: guard", &[], &[term("zone", web, more)]));
            let ghost = here.pod("{metadata: {namespace: ghost, labels: {app: web}}}");
            assert_eq!(here.fitting(ghost).join(" "), existing, "{name}: the term of a pod that runs");
        }
    }

    #[test]
    fn a_selector_that_cannot_be_read() {
        let bad = "{matchExpressions: [{key: app, operator: In}]}";
        let mut scene = scene();
        scene.resident("a", &pod("app: guard", &[], &[term("zone", bad, ""), term("zone", "{}", "")]));
        let (own, other) = (scene.pod(&pod("app: x", &[term("zone", bad, "")], &[])), scene.pod(&labelled("app: x")));
        assert!(scene.verdict(own).starts_with("InterPodAffinity (everywhere): parsing pod"), "{}", scene.verdict(own));
        assert_eq!(scene.verdict(other), "", "a bad term spoils the list of the pod that has it");
    }
}
