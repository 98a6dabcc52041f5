//! The engine is the oracle: on random clusters, after every random move, for every pod on every node.

use proptest::prelude::*;

use super::config;
use super::mirror::Mirror;
use super::random::{Dice, Sample, Themes, sample};
use crate::oracle::Resident;
use crate::{Candidates, Gates, NodeId};

/// Plays random moves and compares after each. `prepared`: all classes are asked about at the start, so that states can
/// be compared by digest; else questions come at random, so that counters are built in the midst of things.
fn play(seed: u64, themes: Themes, prepared: bool, moves: usize) {
    let dice = &mut Dice::new(seed);
    let Sample { cluster, specs, templates } = sample(dice, themes);
    let mut mirror = Mirror::new(&cluster, Gates { numeric_tolerations: dice.one_in(2) });
    let shapes = match prepared {
        true => mirror.prepare_all(&specs, &templates),
        false => templates.iter().map(|template| mirror.snapshot.shape(template)).collect(),
    };
    mirror.set_cordon_policy(dice.one_in(2));
    let mut depth = 0;
    for _ in 0..moves {
        let nodes: Vec<NodeId> = mirror.nodes().collect();
        let node = dice.pick(&nodes);
        let spec = dice.pick(&specs);
        let pod = Resident { spec, terminating: dice.one_in(4) };
        let count = 1 + u32::try_from(dice.below(2)).unwrap();
        match dice.below(16) {
            0..=4 => mirror.place(pod, node, count),
            5 | 6 => mirror.unplace(pod, node, count),
            7 | 8 => {
                mirror.fork();
                depth += 1;
            }
            9 => {
                mirror.commit();
                depth = usize::saturating_sub(depth, 1);
            }
            10 => {
                mirror.revert(prepared);
                depth = usize::saturating_sub(depth, 1);
            }
            11 if nodes.len() < 14 => {
                let which = dice.below(templates.len());
                mirror.add_copy(shapes[which], &templates[which]);
            }
            12 if dice.one_in(2) => mirror.remove(node),
            13 if dice.one_in(2) => mirror.close(node),
            _ => {
                let mut list = nodes.clone();
                for index in 0..list.len() {
                    let other = dice.below(list.len());
                    list.swap(index, other);
                }
                let candidates = match dice.below(3) {
                    0 => Candidates::All,
                    1 => Candidates::From(node),
                    _ => Candidates::Of(&list),
                };
                mirror.pack(spec, 1 + u32::try_from(dice.below(9)).unwrap(), candidates);
            }
        }
        let asked = if prepared || dice.one_in(3) { &specs[..] } else { &[] };
        for node in mirror.nodes() {
            mirror.check_sums(node);
            asked.iter().for_each(|&spec| mirror.check(spec, node));
        }
    }
    if prepared {
        mirror.check_rebuild(&specs, &templates);
        for _ in 0..depth {
            mirror.revert(true);
        }
        mirror.check_rebuild(&specs, &templates);
    }
}

/// Pods on other nodes share a claim to all devices, which leaves one device to the first pod that comes and none to the
/// next; without the others there would be none for the first.
#[test]
fn pods_that_find_devices_only_beside_others_keep_them() {
    play(17_108_154_952_643_001_239, Themes { devices: true, ..Themes::NONE }, false, 8);
}

/// Of two nodes with equal devices one has itself the resource that stands for devices on the other.
#[test]
fn nodes_that_differ_only_in_resources_of_their_own_are_told_apart() {
    play(8_374_741_891_016_442_013, Themes { devices: true, ..Themes::NONE }, true, 8);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn resources_ports_and_static_rules(seed: u64, prepared: bool) {
        play(seed, Themes { statics: true, resources: true, ports: true, ..Themes::NONE }, prepared, 30);
    }

    #[test]
    fn spreading(seed: u64, prepared: bool) {
        play(seed, Themes { spread: true, ..Themes::NONE }, prepared, 30);
    }

    #[test]
    fn spreading_with_static_rules(seed: u64, prepared: bool) {
        play(seed, Themes { spread: true, statics: true, resources: true, ..Themes::NONE }, prepared, 30);
    }

    #[test]
    fn affinity_between_pods(seed: u64, prepared: bool) {
        play(seed, Themes { affinity: true, ..Themes::NONE }, prepared, 30);
    }

    #[test]
    fn spreading_and_affinity(seed: u64, prepared: bool) {
        play(seed, Themes { affinity: true, spread: true, resources: true, ..Themes::NONE }, prepared, 30);
    }

    #[test]
    fn volumes(seed: u64, prepared: bool) {
        play(seed, Themes { volumes: true, ..Themes::NONE }, prepared, 30);
    }

    #[test]
    fn devices(seed: u64, prepared: bool) {
        play(seed, Themes { devices: true, ..Themes::NONE }, prepared, 8);
    }

    #[test]
    fn devices_and_resources(seed: u64, prepared: bool) {
        play(seed, Themes { devices: true, resources: true, statics: true, ..Themes::NONE }, prepared, 8);
    }

    #[test]
    fn everything(seed: u64, prepared: bool) {
        play(seed, Themes { devices: false, ..Themes::ALL }, prepared, 30);
    }

    #[test]
    fn everything_and_devices(seed: u64, prepared: bool) {
        play(seed, Themes::ALL, prepared, 8);
    }
}
