//! Which node is which machine.

use plimsoll_guest::{KeyValue, NodeHint, NodeMatch, Provider, RefreshRequest};
use plimsoll_tests_clouds::Script;
use plimsoll_tests_clouds::nodes::ProviderId;

use super::bench::{Bench, CLUSTER, POOL, under_all_seeds};

fn with_nodes(bench: &mut Bench, nodes: Vec<NodeHint>) -> Vec<(String, Vec<NodeMatch>)> {
    let request = RefreshRequest { nodes, ..RefreshRequest::everything() };
    let groups = bench.provider().refresh(request).unwrap().snapshot.unwrap().groups;
    let matches = |one: &plimsoll_guest::Instance| (one.id.clone(), one.matches.clone());
    groups.iter().find(|group| group.id == POOL).unwrap().instances.iter().map(matches).collect()
}

fn node(name: &str, provider_id: &str, label: Option<&str>, ip: Option<&str>) -> NodeHint {
    let labels = label.map(|id| KeyValue::new("node_id", id)).into_iter().collect();
    let ip = ip.map(str::to_owned);
    NodeHint { name: name.to_owned(), provider_id: provider_id.to_owned(), internal_ip: ip, labels }
}

#[test]
fn provider_ids_match_in_both_spellings() {
    under_all_seeds(3, |bench| {
        for usual in [ProviderId::Usual, ProviderId::Alias] {
            bench.cloud(|cloud| {
                let script = Script { provider_id: usual.clone(), ..Script::default() };
                cloud.with(|logic, _| logic.script = script);
            });
            bench.advance(40);
            let nodes = bench.hints();
            assert_eq!(nodes.len(), 3);
            let machines = with_nodes(bench, nodes.clone());
            for node in nodes {
                let wanted = NodeMatch::ProviderId(node.provider_id.clone());
                let found: Vec<_> = machines.iter().filter(|(_, matches)| matches.contains(&wanted)).collect();
                assert_eq!(found.len(), 1, "{node:?}");
                assert_eq!(node.labels[0].value, found[0].0);
            }
        }
    });
}

#[test]
fn a_node_without_provider_id_matches_by_label_and_one_without_label_by_address_or_name() {
    under_all_seeds(3, |bench| {
        let ids: Vec<_> = with_nodes(bench, vec![]).into_iter().map(|(id, _)| id).collect();
        let ip = bench.cloud(|cloud| cloud.logic().world().pools[POOL].workers[&ids[1]].private_ip.clone());
        let named = format!("utho-{}", ids[2]);
        let nodes = vec![
            node("by-label", "", Some(&ids[0]), None),
            node("by-address", "", None, Some(&ip)),
            node(&named, "", None, None),
            node("stranger", "aws:///x/i-1", None, Some(&ip)),
        ];
        let machines = with_nodes(bench, nodes);
        let name = |name: &str| NodeMatch::NodeName(name.to_owned());
        assert!(machines[0].1.contains(&name("by-label")));
        // A worker that shows neither address nor name cannot be recognised by them.
        let quirks = bench.cloud(|cloud| cloud.logic().quirks);
        if !quirks.missing_worker_fields {
            assert!(machines[1].1.contains(&name("by-address")));
            assert!(machines[2].1.contains(&name(&named)));
        }
        assert!(machines.iter().all(|(_, matches)| !matches.contains(&name("stranger"))));
    });
}

#[test]
fn an_edited_label_changes_nothing() {
    under_all_seeds(3, |bench| {
        let ids: Vec<_> = with_nodes(bench, vec![]).into_iter().map(|(id, _)| id).collect();
        let usual = format!("utho://{}", ids[1]);
        let machines = with_nodes(bench, vec![node("edited", &usual, Some(&ids[0]), None)]);
        for match_of_first in &machines[0].1 {
            assert!(matches!(match_of_first, NodeMatch::ProviderId(id) if id.ends_with(&ids[0])), "{match_of_first:?}");
        }
        assert!(machines[1].1.contains(&NodeMatch::ProviderId(usual)));
    });
}

#[test]
fn without_hints_the_label_is_named() {
    under_all_seeds(1, |bench| {
        let machines = with_nodes(bench, vec![]);
        assert!(machines[0].1.contains(&NodeMatch::Label(KeyValue::new("node_id", machines[0].0.clone()))));
    });
}

#[test]
fn nodes_of_another_cluster_are_reported() {
    under_all_seeds(1, |bench| {
        let mut other = node("n", "utho://1", None, None);
        other.labels = vec![KeyValue::new("cluster_id", "2222")];
        let mut ours = other.clone();
        ours.labels = vec![KeyValue::new("cluster_id", CLUSTER)];
        for (nodes, expected) in [(vec![ours.clone()], 0), (vec![ours, other], 1)] {
            let request = RefreshRequest { nodes, ..RefreshRequest::everything() };
            let answer = bench.provider().refresh(request).unwrap();
            let found = answer.diagnostics.iter().filter(|one| one.code == "other-cluster").count();
            assert_eq!(found, expected);
        }
    });
}

#[test]
fn a_machine_that_is_on_its_way_has_an_age() {
    under_all_seeds(1, |bench| {
        bench.group();
        bench.advance(10);
        bench.grow(1, 1).unwrap();
        let asked_at = bench.now_ms();
        bench.group();
        bench.advance(20);
        bench.restart();
        let instances = bench.instances();
        let nameless = bench.cloud(|cloud| cloud.logic().quirks.nameless_while_pending);
        let ages: Vec<_> = instances.iter().map(|instance| instance.created_at).collect();
        if nameless {
            assert_eq!(ages, [None], "the machine on its way has no id, and the other was there before");
            assert!(!bench.group().instances_complete);
        } else {
            assert_eq!(ages, [None, Some(asked_at)]);
        }
    });
}
