//! PodTopologySpread: hard constraints on how evenly pods spread over domains.

use hashbrown::HashMap;
use plimsoll_model::pod::{NodeInclusion, SpreadConstraint};
use plimsoll_model::selector::{LabelSelector, NodeSelector};
use plimsoll_model::{Labels, Node, PodSpec, Symbol, Taint, Toleration};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{Admission, DynamicRule, Predicate, Tracker, Verdict, node_affinity};
use crate::facts::{Facts, TO_BE_DELETED};
use crate::oracle::{Place, World};
use crate::predicates::taint_toleration::keeps_away;
use crate::refusal::Reason;
use crate::snapshot::base::{Base, ClassId, Life, NodeId};
use crate::snapshot::classes::LabelSetId;
use crate::snapshot::kinds::KindId;
use crate::snapshot::topology::{Counts, DomainId, KeyId, NOWHERE};
use crate::table::{Table, ids};

/// For every constraint: matching pods in the node's domain, plus the pod itself if it matches, are at most `max_skew` more
/// than in the emptiest domain.
///
/// Only nodes that have the keys of all constraints count, and that the pod's affinity and tolerations allow where the
/// constraint honours them. The tested node itself need not be one of them. Pods that are being deleted do not count.
pub(crate) struct PodTopologySpread;

/// Whether a pod's labels match a selector; none matches nothing.
fn matches(facts: &Facts<'_>, selector: Option<&LabelSelector>, labels: &Labels) -> bool {
    selector.is_some_and(|selector| selector.matches(labels, facts.symbols()))
}

/// The scheduler counts no pod for a selector that selects everything.
fn counts_pods(selector: Option<&LabelSelector>) -> bool {
    selector.is_some_and(|selector| !selector.is_everything())
}

/// Whether a node counts for a constraint, its labels being there.
fn included<'t>(
    facts: &Facts<'_>,
    pod: &PodSpec,
    constraint: &SpreadConstraint,
    node: &Node,
    mut taints: impl Iterator<Item = &'t Taint>,
) -> bool {
    let affinity =
        || node_affinity::accepts(facts, &pod.node_selector, pod.node_affinity.as_ref(), &node.labels, node.name);
    (constraint.node_affinity_policy == NodeInclusion::Ignore || affinity())
        && (constraint.node_taints_policy == NodeInclusion::Ignore
            || taints.all(|taint| !keeps_away(taint) || facts.tolerated(&pod.tolerations, taint)))
}

fn skew(facts: &Facts<'_>, constraint: &SpreadConstraint, matching: i64, fewest: i64) -> Reason {
    let max_skew = i64::from(constraint.max_skew);
    Reason::SpreadSkew { key: facts.text(constraint.topology_key), matching, fewest, max_skew }
}

impl Predicate for PodTopologySpread {
    fn name(&self) -> &'static str {
        "PodTopologySpread"
    }

    fn admit(&self, facts: &Facts<'_>, pod: &PodSpec) -> Admission {
        let invalid = pod.spread.iter().find_map(|constraint| match &constraint.selector {
            Some(LabelSelector::Invalid(why)) => Some(facts.text(*why)),
            Some(LabelSelector::All(_)) | None => None,
        });
        invalid.map_or(Admission::Anywhere, |why| {
            Admission::Nowhere(Reason::InvalidSelector {
                place: "obtaining pod's hard topology spread constraints",
                why,
            })
        })
    }
}

impl DynamicRule for PodTopologySpread {
    fn refuse(&self, world: &World<'_>, pod: &PodSpec, node: &Place) -> Vec<Reason> {
        let facts = &world.facts;
        for constraint in &pod.spread {
            let selector = constraint.selector.as_ref();
            let mut domains = FxHashMap::<Symbol, i64>::default();
            for place in &world.places {
                let has_all = pod.spread.iter().all(|other| place.node.labels.get(other.topology_key).is_some());
                let Some(value) = place.node.labels.get(constraint.topology_key).filter(|_| has_all) else { continue };
                if included(facts, pod, constraint, &place.node, place.taints()) {
                    let residents = place.pods.iter().filter(|resident| !resident.terminating);
                    let matching = residents.map(|resident| world.spec(resident.spec)).filter(|resident| {
                        counts_pods(selector)
                            && resident.namespace == pod.namespace
                            && matches(facts, selector, &resident.labels)
                    });
                    *domains.entry(value).or_default() += i64::try_from(matching.count()).unwrap_or(i64::MAX);
                }
            }
            let enough = i64::try_from(domains.len()).unwrap_or(i64::MAX) >= i64::from(constraint.min_domains.max(1));
            let fewest = if enough { domains.values().copied().min().unwrap_or(0) } else { 0 };
            let Some(value) = node.node.labels.get(constraint.topology_key) else {
                return vec![Reason::SpreadLabelMissing { key: facts.text(constraint.topology_key) }];
            };
            let matching = domains.get(&value).copied().unwrap_or(0);
            let own = i64::from(matches(facts, selector, &pod.labels));
            if matching + own - fewest > i64::from(constraint.max_skew) {
                return vec![skew(facts, constraint, matching, fewest)];
            }
        }
        Vec::new()
    }

    fn tracker(&self) -> Box<dyn Tracker> {
        Box::new(Spread::default())
    }
}

ids! {
    /// Which nodes count, and by which key.
    ScopeId;
    /// Pods that are counted together.
    GroupId;
}

/// Which nodes count, and by which key. Shared by all constraints that agree on that.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ScopeKey {
    key: KeyId,
    /// Keys that a node must have, sorted.
    keys: Vec<KeyId>,
    /// Node selector and affinity, if they are honoured.
    affinity: Option<(Labels, Option<NodeSelector>)>,
    /// Tolerations, if taints are honoured.
    tolerations: Option<Box<[Toleration]>>,
}

struct Scope {
    of: ScopeKey,
    by_identity: bool,
    closed_count: bool,
    /// Whether nodes of a kind count, domains aside.
    kinds: Table<KindId, Option<bool>>,
    counts: Table<NodeId, bool>,
    /// Nodes that count, by domain.
    nodes: Counts,
    /// Domains with at least one node that counts.
    domains: i64,
    groups: Vec<GroupId>,
}

/// Pods of one namespace that one selector matches, counted by the domains of one scope.
struct Group {
    scope: ScopeId,
    namespace: Symbol,
    selector: LabelSelector,
    pods: Counts,
    /// How many domains have how many pods; domains without any are not here. Sorted.
    levels: Vec<(i64, i64)>,
    /// Domains with at least one pod.
    occupied: i64,
}

/// A constraint of a class, ready to be asked.
struct Constraint {
    key: KeyId,
    scope: ScopeId,
    /// None if it can count no pods.
    group: Option<GroupId>,
    own: i64,
    max_skew: i64,
    min_domains: i64,
}

/// Counters for the constraints of all classes that were asked about.
#[derive(Default)]
struct Spread {
    scopes: Table<ScopeId, Scope>,
    scope_ids: HashMap<ScopeKey, ScopeId, FxBuildHasher>,
    groups: Table<GroupId, Group>,
    group_ids: HashMap<(ScopeId, Symbol, LabelSelector), GroupId, FxBuildHasher>,
    groups_in: FxHashMap<Symbol, Vec<GroupId>>,
    constraints: Table<ClassId, Option<Vec<Constraint>>>,
    /// Groups that pods with these labels belong to.
    memberships: Table<LabelSetId, Vec<GroupId>>,
}

impl Scope {
    /// Whether a node counts, as it is now.
    fn includes(&mut self, base: &Base<'_>, node: NodeId) -> bool {
        match base.life[node] {
            Life::Removed => return false,
            Life::Closed if !self.closed_count => return false,
            Life::Open | Life::Closed => {}
        }
        if self.of.keys.iter().any(|&key| base.domain(key, node) == NOWHERE) {
            return false;
        }
        let of = &self.of;
        let judge = || {
            let listed = base.node(node);
            let affinity = of.affinity.as_ref().is_none_or(|(selector, affinity)| {
                node_affinity::accepts(&base.facts, selector, affinity.as_ref(), &listed.labels, listed.name)
            });
            let tolerated =
                |taint| !keeps_away(taint) || base.facts.tolerated(of.tolerations.as_deref().unwrap_or(&[]), taint);
            affinity && (of.tolerations.is_none() || listed.taints.iter().all(tolerated))
        };
        match self.by_identity {
            true => judge(),
            false => *self.kinds.grown(base.kind[node]).get_or_insert_with(judge),
        }
    }
}

impl Group {
    fn add(&mut self, domain: DomainId, delta: i64) {
        let (old, new) = self.pods.add(domain, delta);
        self.relevel(old, new);
    }

    fn relevel(&mut self, old: i64, new: i64) {
        if old != 0 {
            if let Ok(at) = self.levels.binary_search_by_key(&old, |level| level.0) {
                let emptied = self.levels.get_mut(at).is_some_and(|(_, domains)| {
                    *domains -= 1;
                    *domains == 0
                });
                if emptied {
                    self.levels.remove(at);
                }
            }
            self.occupied -= 1;
        }
        if new != 0 {
            match self.levels.binary_search_by_key(&new, |level| level.0) {
                Ok(at) => self.levels.get_mut(at).into_iter().for_each(|(_, domains)| *domains += 1),
                Err(at) => self.levels.insert(at, (new, 1)),
            }
            self.occupied += 1;
        }
    }
}

impl Spread {
    fn scope(&mut self, base: &Base<'_>, of: ScopeKey) -> ScopeId {
        if let Some(found) = self.scope_ids.get(&of) {
            return *found;
        }
        let column = &base.topology.columns[of.key];
        let by_identity = of
            .affinity
            .as_ref()
            .is_some_and(|(selector, affinity)| node_affinity::reads_identity(selector, affinity.as_ref()));
        let closed_count =
            of.tolerations.as_ref().is_none_or(|tolerations| base.facts.tolerated(tolerations, &TO_BE_DELETED));
        let mut scope = Scope {
            of: of.clone(),
            by_identity,
            closed_count,
            kinds: Table::default(),
            counts: Table::default(),
            nodes: Counts::new(column),
            domains: 0,
            groups: Vec::new(),
        };
        for node in base.life.ids() {
            let counts = scope.includes(base, node);
            scope.counts.push(counts);
            if counts && scope.nodes.add(base.domain(scope.of.key, node), 1).0 == 0 {
                scope.domains += 1;
            }
        }
        let id = self.scopes.push(scope);
        self.scope_ids.insert(of, id);
        id
    }

    fn group(&mut self, base: &Base<'_>, scope: ScopeId, namespace: Symbol, selector: &LabelSelector) -> GroupId {
        let name = (scope, namespace, selector.clone());
        if let Some(found) = self.group_ids.get(&name) {
            return *found;
        }
        let in_scope = &mut self.scopes[scope];
        let pods = Counts::new(&base.topology.columns[in_scope.of.key]);
        let mut group = Group { scope, namespace, selector: selector.clone(), pods, levels: Vec::new(), occupied: 0 };
        let id = self.groups.next();
        for &label_set in base.classes.by_namespace.get(&namespace).into_iter().flatten() {
            let set = &base.classes.label_sets[label_set];
            if !matches(&base.facts, Some(selector), &set.labels) {
                continue;
            }
            self.memberships.grown(label_set).push(id);
            for &class in set.classes.iter().filter(|class| !base.class(**class).terminating) {
                for (node, count) in base.sites(class) {
                    if in_scope.counts.get(node).copied().unwrap_or(false) {
                        group.add(base.domain(in_scope.of.key, node), count);
                    }
                }
            }
        }
        in_scope.groups.push(id);
        self.groups.push(group);
        self.group_ids.insert(name, id);
        self.groups_in.entry(namespace).or_default().push(id);
        id
    }

    /// Fewest matching pods of any domain that counts, `without` aside; none if no other domain counts.
    fn fewest(&self, constraint: &Constraint, without: Option<DomainId>) -> Option<i64> {
        let scope = &self.scopes[constraint.scope];
        let aside = without.filter(|&domain| scope.nodes.get(domain) > 0);
        let mut domains = scope.domains - i64::from(aside.is_some());
        if domains == 0 {
            return None;
        }
        let Some(group) = constraint.group.map(|group| &self.groups[group]) else { return Some(0) };
        let aside = aside.map_or(0, |domain| group.pods.get(domain));
        domains -= group.occupied - i64::from(aside != 0);
        if domains > 0 {
            return Some(0);
        }
        let mut levels = group.levels.iter().filter(|(pods, domains)| domains - i64::from(*pods == aside) > 0);
        levels.next().map(|(pods, _)| *pods)
    }

    /// What the scheduler compares with: the fewest, or 0 while there are not enough domains.
    fn floor(&self, constraint: &Constraint) -> i64 {
        let enough = self.scopes[constraint.scope].domains >= constraint.min_domains;
        if enough { self.fewest(constraint, None).unwrap_or(0) } else { 0 }
    }

    fn matching(&self, constraint: &Constraint, domain: DomainId) -> i64 {
        constraint.group.map_or(0, |group| self.groups[group].pods.get(domain))
    }

    fn constraints(&self, class: ClassId) -> &[Constraint] {
        self.constraints.get(class).and_then(Option::as_deref).unwrap_or(&[])
    }

    fn too_skewed(&self, constraint: &Constraint, domain: DomainId) -> bool {
        self.matching(constraint, domain) + constraint.own - self.floor(constraint) > constraint.max_skew
    }

    /// A node's standing in a scope is reckoned anew, and its pods move in or out with it.
    fn reconsider(&mut self, base: &Base<'_>, node: NodeId) {
        for scope in self.scopes.rows_mut() {
            let counts = scope.includes(base, node);
            let counted = std::mem::replace(scope.counts.grown(node), counts);
            if counts == counted {
                continue;
            }
            let (sign, domain) = (if counts { 1 } else { -1 }, base.domain(scope.of.key, node));
            let (old, new) = scope.nodes.add(domain, sign);
            scope.domains += i64::from(new > 0) - i64::from(old > 0);
            if scope.groups.is_empty() {
                continue;
            }
            for &(class, count) in &base.runs[node] {
                let row = base.class(class);
                let groups = self.memberships.get(row.label_set).map_or(&[][..], Vec::as_slice);
                for &group in groups.iter().filter(|_| !row.terminating) {
                    if scope.groups.contains(&group) {
                        self.groups[group].add(domain, sign * i64::from(count));
                    }
                }
            }
        }
    }
}

impl Tracker for Spread {
    fn meet(&mut self, base: &Base<'_>, class: ClassId) -> bool {
        let label_set = base.class(class).label_set;
        let set = &base.classes.label_sets[label_set];
        // Other classes with the same labels have been through this.
        if set.classes.len() == 1 {
            let groups = self.groups_in.get(&set.namespace).into_iter().flatten();
            let matching =
                groups.filter(|group| matches(&base.facts, Some(&self.groups[**group].selector), &set.labels));
            let matching: Vec<GroupId> = matching.copied().collect();
            if !matching.is_empty() {
                *self.memberships.grown(label_set) = matching;
            }
        }
        false
    }

    fn prepare(&mut self, base: &mut Base<'_>, class: ClassId) -> bool {
        let spec = base.spec(class);
        if spec.spread.is_empty() || self.constraints.get(class).is_some_and(Option::is_some) {
            return !spec.spread.is_empty();
        }
        let mut keys: Vec<KeyId> = spec.spread.iter().map(|constraint| base.key(constraint.topology_key)).collect();
        let own_keys = keys.clone();
        keys.sort_unstable();
        keys.dedup();
        let affinity = || {
            let asks = !spec.node_selector.is_empty() || spec.node_affinity.is_some();
            asks.then(|| (spec.node_selector.clone(), spec.node_affinity.clone()))
        };
        let mut constraints = Vec::new();
        for (constraint, key) in spec.spread.iter().zip(own_keys) {
            let scope = ScopeKey {
                key,
                keys: keys.clone(),
                affinity: affinity().filter(|_| constraint.node_affinity_policy == NodeInclusion::Honor),
                tolerations: (constraint.node_taints_policy == NodeInclusion::Honor).then(|| spec.tolerations.clone()),
            };
            let scope = self.scope(base, scope);
            let selector = constraint.selector.as_ref().filter(|selector| counts_pods(Some(selector)));
            let group = selector.map(|selector| self.group(base, scope, spec.namespace, selector));
            constraints.push(Constraint {
                key,
                scope,
                group,
                own: i64::from(matches(&base.facts, constraint.selector.as_ref(), &spec.labels)),
                max_skew: i64::from(constraint.max_skew),
                min_domains: i64::from(constraint.min_domains.max(1)),
            });
        }
        *self.constraints.grown(class) = Some(constraints);
        true
    }

    fn is_awake(&self) -> bool {
        self.scopes.len() > 0
    }

    fn moved(&mut self, base: &Base<'_>, class: ClassId, node: NodeId, delta: i64) {
        let row = base.class(class);
        if row.terminating {
            return;
        }
        for &group in self.memberships.get(row.label_set).map_or(&[][..], Vec::as_slice) {
            let group = &mut self.groups[group];
            let scope = &self.scopes[group.scope];
            if scope.counts.get(node).copied().unwrap_or(false) {
                group.add(base.domain(scope.of.key, node), delta);
            }
        }
    }

    fn node_added(&mut self, base: &Base<'_>, node: NodeId) {
        self.reconsider(base, node);
    }

    fn node_undone(&mut self, base: &Base<'_>, node: NodeId) {
        self.reconsider(base, node);
    }

    fn node_changed(&mut self, base: &Base<'_>, node: NodeId) {
        self.reconsider(base, node);
    }

    fn verdict(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Verdict {
        let mut verdict = Verdict::Fits;
        for constraint in self.constraints(class) {
            match base.domain(constraint.key, node) {
                NOWHERE => return Verdict::Never,
                domain if self.too_skewed(constraint, domain) => verdict = Verdict::NotNow(Some(constraint.key)),
                _ => {}
            }
        }
        verdict
    }

    fn room(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> u32 {
        let row = base.class(class);
        let rooms = self.constraints(class).iter().map(|constraint| {
            let scope = &self.scopes[constraint.scope];
            let counted = scope.counts.get(node).copied().unwrap_or(false);
            // Pods that change no count may come without end.
            if constraint.own == 0 || constraint.group.is_none() || !counted || row.terminating {
                return i64::MAX;
            }
            let domain = base.domain(constraint.key, node);
            let floor = if scope.domains < constraint.min_domains {
                0
            } else {
                // Once the domain has more than the others, their fewest is the floor; alone it is its own floor.
                match self.fewest(constraint, Some(domain)) {
                    Some(fewest) => fewest,
                    None => return i64::MAX,
                }
            };
            // While it has fewer than the others it is its own floor, which is never in the way.
            constraint.max_skew.saturating_add(floor) - self.matching(constraint, domain)
        });
        let room = rooms.min().unwrap_or(i64::MAX).clamp(1, i64::from(u32::MAX));
        u32::try_from(room).unwrap_or(u32::MAX)
    }

    fn reasons(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Vec<Reason> {
        let spec = base.spec(class);
        for (constraint, asked) in self.constraints(class).iter().zip(&spec.spread) {
            match base.domain(constraint.key, node) {
                NOWHERE => return vec![Reason::SpreadLabelMissing { key: base.facts.text(asked.topology_key) }],
                domain if self.too_skewed(constraint, domain) => {
                    let matching = self.matching(constraint, domain);
                    return vec![skew(&base.facts, asked, matching, self.floor(constraint))];
                }
                _ => {}
            }
        }
        Vec::new()
    }

    fn shifting_keys(&self, class: ClassId, keys: &mut Vec<KeyId>) {
        keys.extend(self.constraints(class).iter().map(|constraint| constraint.key));
    }

    fn epoch(&self, class: ClassId, keys: &[KeyId]) -> u64 {
        let fine = self.constraints(class).iter().filter(|constraint| keys.contains(&constraint.key));
        fine.fold(0, |epoch, constraint| {
            epoch.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(self.floor(constraint).cast_unsigned())
        })
    }

    fn digest(&self, base: &Base<'_>, state: &mut dyn std::hash::Hasher) {
        for (_, scope) in self.scopes.iter() {
            state.write_i64(scope.domains);
            for node in base.life.ids() {
                let counted = scope.counts.get(node).copied().unwrap_or(false);
                state.write_u8(u8::from(counted));
                if base.life[node] != Life::Removed {
                    state.write_i64(scope.nodes.get(base.domain(scope.of.key, node)));
                }
            }
        }
        for (_, group) in self.groups.iter() {
            state.write_usize(group.namespace.index());
            state.write_i64(group.occupied);
            for &(pods, domains) in &group.levels {
                state.write_i64(pods);
                state.write_i64(domains);
            }
            for node in base.life.ids().filter(|node| base.life[*node] != Life::Removed) {
                state.write_i64(group.pods.get(base.domain(self.scopes[group.scope].of.key, node)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::NodeId;
    use crate::testing::Scene;

    /// Nodes a and b in zone 1, x and y in zone 2, with so many pods `app=foo` on each. `lacks`: node and key that it has
    /// not.
    fn scene(pods: [usize; 4], lacks: Option<(&str, &str)>) -> Scene {
        let mut scene = Scene::new();
        for (name, zone) in [("a", 1), ("b", 1), ("x", 2), ("y", 2)] {
            let labels = [("zone", format!("z{zone}")), ("node", name.to_owned())];
            let labels: Vec<String> = labels
                .iter()
                .filter(|(key, _)| lacks != Some((name, key)))
                .map(|(key, value)| format!("{key}: {value}"))
                .collect();
            scene.node(name, &format!("{{metadata: {{labels: {{name: {name}, {}}}}}}}", labels.join(", ")));
        }
        for (name, count) in ["a", "b", "x", "y"].into_iter().zip(pods) {
            (0..count).for_each(|_| scene.resident(name, "{metadata: {labels: {app: foo}}}"));
        }
        scene
    }

    fn constraint(key: &str, max_skew: u32, more: &str) -> String {
        let selector = if more.contains("labelSelector") { "" } else { "labelSelector: {matchLabels: {app: foo}}, " };
        format!("{{topologyKey: {key}, maxSkew: {max_skew}, whenUnsatisfiable: DoNotSchedule, {selector}{more}}}")
    }

    fn pod(labels: &str, constraints: &[String], more: &str) -> String {
        let constraints = constraints.join(", ");
        format!("{{metadata: {{labels: {{{labels}}}}}, spec: {{topologySpreadConstraints: [{constraints}], {more}}}}}")
    }

    #[test]
    fn one_constraint() {
        let in_nodes = |names: &str, operator: &str| {
            format!(
                "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchExpressions: [{{key: name, operator: {operator}, values: [{names}]}}]}}]}}}}}}"
            )
        };
        for (name, pods, lacks, labels, constraint, more, expected) in [
            ("even zones", [2, 1, 0, 3], None, "app: foo", constraint("zone", 1, ""), String::new(), "a b x y"),
            (
                "a node without the key",
                [1, 1, 1, 1],
                Some(("b", "zone")),
                "app: foo",
                constraint("zone", 1, ""),
                String::new(),
                "a",
            ),
            ("a key that no node has", [1, 1, 1, 1], None, "app: foo", constraint("rack", 1, ""), String::new(), ""),
            ("the emptiest node", [2, 1, 0, 3], None, "app: foo", constraint("node", 1, ""), String::new(), "x"),
            (
                "nearly the emptiest nodes",
                [2, 1, 0, 3],
                None,
                "app: foo",
                constraint("node", 2, ""),
                String::new(),
                "b x",
            ),
            (
                "a pod that does not count itself",
                [2, 1, 0, 3],
                None,
                "app: bar",
                constraint("node", 1, ""),
                String::new(),
                "b x",
            ),
            (
                "affinity narrows what counts",
                [2, 1, 0, 3],
                None,
                "app: foo",
                constraint("node", 1, ""),
                in_nodes("a, y", "In"),
                "a",
            ),
            (
                "affinity is ignored",
                [2, 1, 0, 3],
                None,
                "app: foo",
                constraint("node", 1, "nodeAffinityPolicy: Ignore"),
                in_nodes("a, y", "In"),
                "",
            ),
            (
                "a node that does not count is no domain",
                [0, 2, 0, 1],
                None,
                "app: foo",
                constraint("zone", 1, ""),
                in_nodes("b", "NotIn"),
                "a",
            ),
            (
                "too few domains",
                [2, 2, 1, 9],
                None,
                "app: foo",
                constraint("node", 2, "minDomains: 5"),
                String::new(),
                "x",
            ),
            (
                "enough domains",
                [2, 2, 1, 2],
                None,
                "app: foo",
                constraint("node", 2, "minDomains: 2"),
                String::new(),
                "a b x y",
            ),
            (
                "too few zones",
                [1, 1, 1, 0],
                None,
                "app: foo",
                constraint("zone", 2, "minDomains: 3"),
                String::new(),
                "x y",
            ),
            (
                "no selector",
                [2, 1, 0, 3],
                None,
                "app: foo",
                constraint("node", 1, "labelSelector: null"),
                String::new(),
                "a b x y",
            ),
            (
                "a selector of everything",
                [2, 1, 0, 3],
                None,
                "app: foo",
                constraint("node", 1, "labelSelector: {}"),
                String::new(),
                "a b x y",
            ),
            (
                "soft constraints do not filter",
                [2, 1, 0, 3],
                None,
                "app: foo",
                constraint("node", 1, "").replace("DoNotSchedule", "ScheduleAnyway"),
                String::new(),
                "a b x y",
            ),
            (
                "pods of the same version only",
                [2, 1, 0, 3],
                None,
                "app: foo, v: two",
                constraint("node", 1, "matchLabelKeys: [v]"),
                String::new(),
                "a b x y",
            ),
        ] {
            let mut scene = scene(pods, lacks);
            let pod = scene.pod(&pod(labels, &[constraint], &more));
            assert_eq!(scene.fitting(pod).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn several_constraints() {
        let both = |zone_app: &str, node_app: &str| {
            let of = |app: &str| format!("labelSelector: {{matchLabels: {{{app}}}}}");
            [constraint("zone", 1, &of(zone_app)), constraint("node", 1, &of(node_app))]
        };
        let same = both("app: foo", "app: foo");
        for (name, pods, bars, lacks, labels, constraints, expected) in [
            ("even zones, one empty node", [2, 1, 0, 3], [0; 4], None, "app: foo", same.clone(), "x"),
            ("the fuller zone has the empty node", [2, 1, 0, 4], [0; 4], None, "app: foo", same.clone(), ""),
            (
                "different selectors",
                [1, 1, 2, 1],
                [1, 0, 0, 1],
                None,
                "app: foo, kind: bar",
                both("app: foo", "kind: bar"),
                "b",
            ),
            (
                "a pod outside the zone selector",
                [1, 0, 0, 0],
                [0, 0, 1, 1],
                None,
                "kind: bar",
                both("app: foo", "kind: bar"),
                "a b",
            ),
            (
                "a node without one key counts for neither",
                [1, 0, 3, 1],
                [0; 4],
                Some(("x", "node")),
                "app: foo",
                same,
                "b",
            ),
        ] {
            let mut scene = scene(pods, lacks);
            for (node, count) in ["a", "b", "x", "y"].into_iter().zip(bars) {
                (0..count).for_each(|_| scene.resident(node, "{metadata: {labels: {kind: bar}}}"));
            }
            let pod = scene.pod(&pod(labels, &constraints, ""));
            assert_eq!(scene.fitting(pod).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn who_counts() {
        let foo = "metadata: {labels: {app: foo}";
        for (name, resident, expected) in [
            ("a live pod", format!("{{{foo}}}}}"), "a x y"),
            (
                "one that is being deleted",
                format!("{{{foo}, deletionTimestamp: \"2026-01-01T00:00:00Z\"}}}}"),
                "a b x y",
            ),
            ("one of another namespace", format!("{{{foo}, namespace: other}}}}"), "a b x y"),
        ] {
            let mut scene = scene([0; 4], None);
            scene.resident("b", &resident);
            let pod = scene.pod(&pod("app: foo", &[constraint("node", 1, "")], ""));
            assert_eq!(scene.fitting(pod).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn tainted_nodes_count_unless_taints_are_honoured() {
        for (name, policy, expected) in [("ignored", "Ignore", "a b x"), ("honoured", "Honor", "a b x")] {
            let mut scene = scene([1, 1, 1, 0], None);
            let dedicated = scene.cluster.symbols.intern("dedicated");
            let taint = plimsoll_model::Taint {
                key: dedicated,
                value: plimsoll_model::symbol::known::EMPTY,
                effect: plimsoll_model::TaintEffect::NoSchedule,
            };
            scene.cluster.nodes[3].taints = [taint].into();
            let pod = scene.pod(&pod("app: foo", &[constraint("node", 1, &format!("nodeTaintsPolicy: {policy}"))], ""));
            let expected = if policy == "Ignore" { "" } else { expected };
            assert_eq!(scene.fitting(pod).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn a_selector_that_cannot_be_read_keeps_the_pod_from_every_node() {
        let mut scene = scene([0; 4], None);
        let bad = "labelSelector: {matchExpressions: [{key: app, operator: In}]}";
        let pod = scene.pod(&pod("app: foo", &[constraint("node", 1, bad)], ""));
        assert!(scene.verdict(pod).starts_with("PodTopologySpread (everywhere): "), "{}", scene.verdict(pod));
    }

    #[test]
    fn a_closed_node_stays_a_domain_unless_taints_are_honoured() {
        for (name, policy, fits) in [("ignored", "Ignore", false), ("honoured", "Honor", true)] {
            let mut scene = scene([1, 1, 1, 0], None);
            let pod = scene.pod(&pod("app: foo", &[constraint("node", 1, &format!("nodeTaintsPolicy: {policy}"))], ""));
            let mut snapshot = scene.snapshot();
            let class = snapshot.class(pod);
            let [a, y] = [0, 3].map(NodeId::new);
            snapshot.fork();
            snapshot.close(y);
            assert_eq!(snapshot.fits(class, a), fits, "{name}");
            assert!(!snapshot.fits(class, y), "{name}: nothing comes to a closed node");
            snapshot.revert();
            assert!(snapshot.fits(class, y), "{name}: open again");
        }
    }
}
