//! What must hold for every cluster: properties of whole loops, on random inputs.
//!
//! Each seed draws a cluster. An optimized build plays 2,000 of them for each property, another one 200; the environment
//! variable `SEEDS` says otherwise. A failure names its seed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

mod draw;
mod support;

use std::time::Duration;

use draw::{Dice, Drawn};
use plimsoll_core::cloud::ErrorClass;
use plimsoll_core::plan::{NodeOutcome, PodOutcome};
use plimsoll_core::saved;
use plimsoll_model::pod::Scheduling;
use support::{Scene, Told};

fn seeds() -> std::ops::Range<u64> {
    let default = if cfg!(debug_assertions) { 200 } else { 2000 };
    0..std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(default)
}

fn scene(yaml: &str) -> Scene {
    let mut scene = Scene::new(yaml);
    scene.settings.max_scale_down_parallelism = 100;
    scene.settings.max_drain_parallelism = 100;
    scene
}

fn nodes_asked(told: &Told) -> u32 {
    told.growth().values().sum()
}

/// Pods that have, or will have, a node.
fn served(told: &Told) -> usize {
    let counts = told.counts();
    ["existing", "upcoming", "new"].iter().map(|word| counts.get(word).copied().unwrap_or_default()).sum()
}

/// The cloud did what it was asked for: its targets are what the plan says.
fn grow_targets(scene: &mut Scene, told: &Told) {
    for growth in &told.plan.scale_up {
        let group = scene.snapshot.groups.iter_mut().find(|group| group.id == growth.group).unwrap();
        group.target_size = growth.to;
    }
}

#[test]
fn a_every_new_node_has_a_pod() {
    for seed in seeds() {
        let told = scene(&Drawn::new(seed).yaml()).turn();
        let new = told.counts().get("new").copied().unwrap_or_default();
        assert!(usize::try_from(nodes_asked(&told)).unwrap() <= new, "seed {seed}: {:?} for {new} pods", told.growth());
    }
}

/// Nothing grows, ever. With nodes gone, the search for places may find room that it did not find before, so that another
/// node may go; that must be rare.
#[test]
fn b_a_second_loop_with_nothing_new_decides_nothing() {
    let mut more = Vec::new();
    for seed in seeds() {
        let mut scene = scene(&Drawn::new(seed).yaml());
        let first = scene.turn();
        grow_targets(&mut scene, &first);
        let second = scene.turn();
        assert_eq!(second.growth(), [].into(), "seed {seed}: after {:?}, {:?}", first.growth(), first.going());
        if !second.going().is_empty() {
            more.push(format!("seed {seed}: {:?} after {:?}", second.going(), first.going()));
        }
    }
    assert!(more.len() * 20 <= seeds().count(), "{more:#?}");
}

#[test]
fn c_the_order_of_the_input_does_not_matter() {
    for seed in seeds() {
        let drawn = Drawn::new(seed);
        let told = scene(&drawn.yaml()).turn();
        let other = scene(&drawn.shuffled(&mut Dice::new(seed ^ 77)).yaml()).turn();
        assert_eq!(told.growth(), other.growth(), "seed {seed}");
        assert_eq!(told.counts(), other.counts(), "seed {seed}");
        assert_eq!(told.going(), other.going(), "seed {seed}");
    }
}

#[test]
fn d_nothing_that_goes_is_missed() {
    for seed in seeds() {
        let mut scene = scene(&Drawn::new(seed).yaml());
        let first = scene.turn();
        if first.going().is_empty() || !first.growth().is_empty() {
            continue;
        }
        take_away(&mut scene, &first);
        let second = scene.turn();
        assert_eq!(second.growth(), [].into(), "seed {seed}: after {:?} went", first.going());
        assert!(served(&second) >= served(&first), "seed {seed}: after {:?} went", first.going());
    }
}

/// The nodes that go are gone, and what ran on them needs a place.
fn take_away(scene: &mut Scene, told: &Told) {
    let gone: Vec<_> = told.plan.scale_down.iter().map(|removal| scene.cluster.nodes[removal.node].name).collect();
    let names = told.going();
    scene.cluster.nodes.retain(|node| !gone.contains(&node.name));
    for pod in &mut scene.cluster.pods {
        if pod.node.is_some_and(|node| gone.contains(&node)) {
            pod.node = None;
            pod.scheduling = Scheduling::Unschedulable;
        }
    }
    for group in &mut scene.snapshot.groups {
        group.instances.retain(|instance| !names.iter().any(|name| name == instance.id.as_str()));
        let left = u32::try_from(group.instances.len()).unwrap();
        group.target_size = group.target_size.min(left);
    }
    scene.memory.removals.clear();
}

#[test]
fn e_no_failure_of_a_provider_does_harm() {
    for seed in seeds() {
        let mut dice = Dice::new(seed ^ 0xe);
        let mut scene = scene(&Drawn::new(seed).yaml());
        let (mut untouchable, mut registered_in) = (Vec::new(), std::collections::BTreeMap::new());
        for group in &mut scene.snapshot.groups {
            let registered = u32::try_from(group.instances.len()).unwrap();
            registered_in.insert(group.id.clone(), registered);
            if dice.below(5) == 0 {
                // Garbage: fewer than there are.
                group.target_size = 0;
            }
            match dice.below(4) {
                0 => group.error = Some(support::error(ErrorClass::Throttled, false)),
                1 => group.observed_at = plimsoll_model::Time::from_millis(0),
                _ => continue,
            }
            untouchable.push((group.id.to_string(), registered));
        }
        let groups = ["g0", "g1", "g2", "g3"];
        for group in groups {
            let classes = [ErrorClass::OutOfResources, ErrorClass::Transient, ErrorClass::Conflict, ErrorClass::Quota];
            let say = |dice: &mut Dice| match dice.below(3) {
                0 => Err(classes[dice.index(classes.len())]),
                1 => Ok(0),
                _ => Ok(u32::try_from(dice.below(3)).unwrap()),
            };
            scene.increases.insert(group.to_owned(), (0..3).map(|_| say(&mut dice)).collect());
        }
        scene.deletes = (0..dice.below(3)).map(|_| ErrorClass::Transient).collect();
        for _ in 0..4 {
            let told = scene.turn();
            for (group, registered) in &untouchable {
                let wrote = |action: &&String| action.starts_with(&format!("increase {group} "));
                let wrote = scene.done.iter().find(wrote);
                assert_eq!(wrote, None, "seed {seed}: a write to {group}, with {registered} nodes");
            }
            for action in scene.done.iter().filter(|action| action.starts_with("delete ")) {
                for name in action.split(' ').skip(1) {
                    let planned =
                        scene.memory.removals.contains_key(name) || told.going().iter().any(|going| going == name);
                    let broken = untouchable.iter().any(|(group, _)| name.starts_with(group.as_str()));
                    assert!(planned && !broken, "seed {seed}: {name} was deleted");
                }
            }
            for growth in &told.plan.scale_up {
                let group = scene.snapshot.groups.iter().find(|group| group.id == growth.group).unwrap();
                let registered = registered_in[&growth.group];
                // What was asked for counts: the cloud may grant less.
                let asked =
                    |action: &String| action.strip_prefix(&format!("increase {} +", growth.group))?.parse().ok();
                let asked: u32 = scene.done.iter().find_map(asked).unwrap();
                let target = growth.from + asked;
                assert!((registered..=group.max_size).contains(&target), "seed {seed}: {target} for {growth:?}");
                assert!(growth.to <= group.max_size, "seed {seed}: {growth:?}");
            }
            scene.done.clear();
            scene.now = scene.now + Duration::from_secs(10);
            let stale: Vec<&str> = untouchable.iter().map(|(group, _)| group.as_str()).collect();
            for group in &mut scene.snapshot.groups {
                if !stale.contains(&group.id.as_str()) {
                    group.observed_at = scene.now;
                }
            }
        }
    }
}

#[test]
fn f_a_restart_between_any_two_loops_changes_nothing() {
    for seed in seeds() {
        let yaml = Drawn::new(seed).yaml();
        let play = |restarts: bool| {
            let mut scene = scene(&yaml);
            scene.settings.waits_elapsed = false;
            scene.settings.scale_down_unneeded_time = Duration::from_secs(20);
            scene.settings.scale_down_delay_after_add = Duration::from_secs(15);
            for _ in 0..6 {
                let told = scene.turn();
                grow_targets(&mut scene, &told);
                if restarts {
                    let (bytes, _) = saved::save(&scene.memory).unwrap();
                    scene.memory = saved::restore(&bytes).unwrap();
                }
                scene.now = scene.now + Duration::from_secs(10);
                scene.snapshot.groups.iter_mut().for_each(|group| group.observed_at = scene.now);
            }
            scene.done
        };
        assert_eq!(play(false), play(true), "seed {seed}");
    }
}

#[test]
fn g_everything_has_a_reason() {
    for seed in seeds() {
        let scene = &mut scene(&Drawn::new(seed).yaml());
        let groups = scene.snapshot.groups.len();
        let told = scene.turn();
        let unhelped: usize = told.plan.not_helped.iter().map(|class| class.pods.len()).sum();
        assert_eq!(unhelped, told.counts().get("not helped").copied().unwrap_or_default(), "seed {seed}");
        for class in &told.plan.not_helped {
            assert_eq!(class.reasons.len(), groups, "seed {seed}: one reason for each group");
            assert!(class.reasons.iter().all(|(_, reason)| !reason.to_string().is_empty()), "seed {seed}");
        }
        let pending = told.cluster.pods.iter().filter(|pod| pod.node.is_none()).count();
        assert_eq!(told.plan.pods.len(), pending, "seed {seed}: each pending pod is told of once");
        assert_eq!(told.plan.nodes.len(), told.cluster.nodes.len(), "seed {seed}: each node is told of once");
        for verdict in &told.plan.nodes {
            let explained = verdict.outcome == NodeOutcome::Removable || !verdict.reasons.is_empty();
            assert!(explained, "seed {seed}: node {} stays without a reason", verdict.node);
        }
    }
}

/// More room never serves fewer pods. Packing is a heuristic, so that this can fail; it must not do so often.
#[test]
fn h_more_room_serves_no_fewer_pods() {
    let mut worse = Vec::new();
    let (mut played, mut lost, mut all) = (0, 0, 0);
    for seed in seeds() {
        let drawn = Drawn::new(seed);
        let before = scene(&drawn.yaml()).turn();
        for (what, more) in drawn.with_more_room(&mut Dice::new(seed ^ 0x4)) {
            let after = scene(&more.yaml()).turn();
            played += 1;
            all += served(&before);
            if served(&after) < served(&before) {
                lost += served(&before) - served(&after);
                worse.push(format!("seed {seed}, {what}: {} instead of {}", served(&after), served(&before)));
            }
        }
    }
    assert!(worse.len() * 200 <= played, "{} of {played}, {lost} of {all} pods: {worse:#?}", worse.len());
}

/// What is drawn is worth playing: all that a loop can do occurs.
#[test]
fn the_inputs_are_of_all_kinds() {
    let (mut grows, mut shrinks, mut unhelped, mut fits) = (0, 0, 0, 0);
    for seed in 0..100 {
        let told = scene(&Drawn::new(seed).yaml()).turn();
        grows += u32::from(!told.growth().is_empty());
        shrinks += u32::from(!told.going().is_empty());
        unhelped += u32::from(told.plan.pods.iter().any(|(_, outcome)| *outcome == PodOutcome::NotHelped));
        fits += u32::from(told.counts().contains_key("existing"));
    }
    for (what, count) in [("grow", grows), ("shrink", shrinks), ("cannot help all", unhelped), ("have room", fits)] {
        assert!(count >= 10, "{count} of 100 {what}");
    }
}
