//! A day of chance: growth, removals, humans, faults.

use std::collections::BTreeSet;

use plimsoll_guest::{DeleteStatus, NodeGroup};
use plimsoll_tests_clouds::alicloud::{Group, Order};
use plimsoll_tests_clouds::{Cause, Chance, Cloud, Fault, Happening, Rule};

use crate::bench::{Bench, SEEDS, Signing, scenario, setup};

const MAX: u32 = 12;

struct Day {
    bench: Bench,
    chance: Chance,
    asked_to_go: BTreeSet<String>,
    removed_by_human: bool,
    keys: u32,
}

impl Day {
    fn dawn(seed: u64) -> Self {
        let groups = vec![Group::new("asg-1", 0, MAX).desiring(2).running(2), Group::new("asg-2", 0, MAX).running(2)];
        let mut start = scenario(groups, seed);
        // Where it is not so, a growth whose answer is lost for good is taken back by the cloud, at its choice.
        start.probes.quantity_moves_desired = true;
        let signing = if seed.is_multiple_of(2) { Signing::V3 } else { Signing::V1 };
        let bench = Bench::with(start, setup(&["0:12:asg-1", "0:12:asg-2"]), signing);
        Self {
            bench,
            chance: Chance::new(seed ^ 0xdad),
            asked_to_go: BTreeSet::new(),
            removed_by_human: false,
            keys: 0,
        }
    }

    fn key(&mut self) -> String {
        self.keys += 1;
        format!("key-{}", self.keys)
    }

    fn hour(&mut self) {
        self.weather();
        for _ in 0..6 {
            if self.chance.percent(3) {
                self.bench.restart();
            }
            let calls = self.bench.all_calls();
            let groups = match self.bench.answer() {
                Ok(answer) => answer.snapshot.map(|snapshot| snapshot.groups).unwrap_or_default(),
                Err(_) => vec![],
            };
            assert!(self.bench.all_calls() - calls <= 16, "{} calls in a loop", self.bench.all_calls() - calls);
            for group in groups.iter().filter(|group| group.error.is_none()) {
                assert!(group.min_size <= group.max_size && group.max_size <= MAX, "{group:?}");
                self.act(group);
            }
            self.bench.advance(30);
        }
        for _ in 0..38 {
            self.bench.advance(90);
        }
    }

    fn act(&mut self, group: &NodeGroup) {
        let key = self.key();
        if self.chance.percent(15) {
            let _ = self.bench.increase(&group.id, 1 + u32::from(self.chance.percent(50)), group.target_size, &key);
        } else if self.chance.percent(10) && !group.instances.is_empty() {
            let id = group.instances[0].id.clone();
            self.asked_to_go.insert(id.clone());
            if let Ok(outcome) = self.bench.delete(&group.id, &[id], group.min_size, &key) {
                assert_eq!(outcome.results.len(), 1);
                assert!(!matches!(outcome.results[0].status, DeleteStatus::Skipped(_)));
            }
        } else if self.chance.percent(10) && group.target_size as usize > group.instances.len() {
            let missing = group.target_size - group.instances.len() as u32;
            let _ = self.bench.decrease(&group.id, missing, group.target_size);
        }
    }

    /// Faults and people change every hour.
    fn weather(&mut self) {
        let faults = [
            Fault::Reset,
            Fault::Html { status: 502 },
            Fault::HalfBody,
            Fault::Throttled { retry_after_s: None },
            Fault::Error { status: 500, code: "InternalError".into(), message: "no".into() },
            Fault::EmptyBody { status: 200 },
        ];
        let fault = faults[self.bench.all_calls() % faults.len()].clone();
        let handled = self.chance.percent(50);
        let mut world = self.bench.world.borrow_mut();
        world.faults().clear();
        let mut rule = Rule::new("weather", fault);
        rule.percent = Some(10);
        world.faults().add(if handled { rule.after_handling() } else { rule });
        drop(world);
        let left = if self.chance.percent(30) { Some(1) } else { None };
        self.bench.human(&Order::Stock { zone: "cn-hangzhou-a".into(), instance_type: "ecs.g7.xlarge".into(), left });
        if self.chance.percent(20) {
            self.removed_by_human = true;
            let some = self.bench.world.borrow().logic().kept.world.machines.keys().next().cloned();
            if let Some(machine) = some {
                self.bench.human(&Order::Release { machine });
            }
        }
    }

    fn dusk(mut self, seed: u64) {
        self.bench.world.borrow_mut().faults().clear();
        self.bench.human(&Order::Stock {
            zone: "cn-hangzhou-a".into(),
            instance_type: "ecs.g7.xlarge".into(),
            left: None,
        });
        for _ in 0..40 {
            self.bench.advance(30);
        }
        for group in self.bench.refresh() {
            assert_eq!(group.error, None);
            assert!(
                group.target_size >= group.min_size && group.target_size <= group.max_size,
                "seed {seed}: {group:?}"
            );
            assert_eq!(group.instances.len(), group.target_size as usize, "seed {seed}: {}", group.id);
        }
        let world = self.bench.world.borrow();
        let gone = world.journal().events.iter().filter(|event| event.what == Happening::Leaving);
        for event in gone {
            let explained = self.asked_to_go.contains(&event.subject) || event.cause == Cause::Human;
            assert!(explained, "seed {seed}: nobody asked {} to go: {event:?}", event.subject);
        }
        assert_eq!(world.journal().violations(), Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn a_day_of_chance_loses_no_machine() {
    for seed in SEEDS {
        let mut day = Day::dawn(seed);
        for _ in 0..24 {
            day.hour();
        }
        day.dusk(seed);
    }
}
