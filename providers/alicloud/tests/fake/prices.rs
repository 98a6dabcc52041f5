//! Prices, as far as the cloud tells them.

use plimsoll_guest::{ErrorClass, Pricing};
use plimsoll_tests_clouds::alicloud::world::{Configuration, Source};
use plimsoll_tests_clouds::alicloud::{Group, Scenario};
use plimsoll_tests_clouds::{Cloud, Fault, Rule};

use crate::bench::{Bench, SEEDS, Signing, scenario, setup};

/// Two groups of one type, and one of a type with a GPU.
fn start(seed: u64) -> Scenario {
    let groups = ["asg-1", "asg-2", "asg-3"].map(|id| Group::new(id, 0, 10).desiring(0));
    let mut start = scenario(groups.to_vec(), seed);
    start.types[0].price_per_hour = Some(1.0);
    let mut gpu = Configuration { id: "asc-gpu".into(), system_disk_gib: 100, ..Configuration::default() };
    gpu.types[0].instance_type = "ecs.gn7i-c8g1.2xlarge".into();
    start.configurations.push(gpu);
    start.groups[2].source = Some(Source::Configuration("asc-gpu".into()));
    start
}

const SPECS: &[&str] = &["0:10:asg-1", "0:10:asg-2", "0:10:asg-3"];

fn priced(bench: &mut Bench) -> Vec<(String, u64)> {
    let book = bench.provider.prices().unwrap();
    assert_eq!(book.currency, "CNY");
    let mut prices: Vec<_> = book.templates.into_iter().map(|price| (price.group, price.micros_per_hour)).collect();
    prices.sort();
    prices.dedup();
    prices
}

#[test]
fn every_group_has_the_price_of_its_machines() {
    for seed in SEEDS {
        let signing = if seed % 2 == 0 { Signing::V3 } else { Signing::V1 };
        let mut bench = Bench::with(start(seed), setup(SPECS), signing);
        bench.refresh();
        let own = |id: &str, micros| (id.to_owned(), micros);
        // Machine and disk: 1 and 40 GiB; 8 cores, 30 GiB, a GPU, and 100 GiB.
        let expected = [own("asg-1", 1_080_000), own("asg-2", 1_080_000), own("asg-3", 11_000_000)];
        assert_eq!(priced(&mut bench), expected, "seed {seed}");
        assert_eq!(bench.calls("DescribePrice"), 2, "what is the same is asked once");
        bench.clean("prices");
    }
}

#[test]
fn a_group_without_a_price_leaves_the_others_theirs() {
    let mut bench = Bench::with(start(6), setup(SPECS), Signing::V3);
    bench.refresh();
    let fault = Fault::Error { status: 400, code: "PriceNotFound".into(), message: "no price".into() };
    bench.world.borrow_mut().faults().add(Rule::new("unpriced", fault).on("DescribePrice").times(1));
    let groups: Vec<_> = priced(&mut bench).into_iter().map(|(group, _)| group).collect();
    assert!(groups.contains(&"asg-3".to_owned()) && groups.len() < 3, "{groups:?}");
}

#[test]
fn without_the_permission_there_are_none_and_the_action_is_named() {
    let mut start = start(6);
    start.keys[0].allow = ["ess:*", "ecs:DescribeInstanceTypes", "vpc:*"].map(str::to_owned).to_vec();
    let mut bench = Bench::with(start, setup(SPECS), Signing::V3);
    bench.refresh();
    let error = bench.provider.prices().unwrap_err();
    assert_eq!(error.class, ErrorClass::Auth);
    assert!(error.message.contains("ecs:DescribePrice"), "{}", error.message);
}
