//! Machines that do not come.

use plimsoll_guest::{ActivityState, ErrorClass};
use plimsoll_tests_clouds::alicloud::{Group, Order};

use crate::bench::{Bench, SEEDS, step};

fn stock(left: Option<u32>) -> Order {
    Order::Stock { zone: "cn-hangzhou-a".into(), instance_type: "ecs.g7.xlarge".into(), left }
}

#[test]
fn a_stock_out_is_told_once_and_counted() {
    for seed in SEEDS {
        let in_stock = (seed / 8 % 2) as u32 * 2;
        let desired = seed % 8 < 4;
        let one = |id: &str| if desired { Group::new(id, 0, 20).desiring(0) } else { Group::new(id, 0, 20) };
        let mut other = one("asg-2");
        other.vswitches = vec!["vsw-b".into()];
        let mut bench = Bench::new(vec![one("asg-1"), other], &["0:20:asg-1", "0:20:asg-2"], seed);
        bench.human(&stock(Some(in_stock)));
        bench.refresh();
        bench.increase("asg-1", 3, 0, "k").unwrap();
        let mut told = std::collections::BTreeMap::new();
        for _ in 0..=180 / step(seed) {
            bench.advance(step(seed));
            for failure in bench.group("asg-1").failures {
                told.insert(failure.id.clone(), failure);
            }
        }
        let told: Vec<_> = told.into_values().collect();
        let [failure] = &told[..] else { panic!("seed {seed}: told {told:?}") };
        assert_eq!((failure.missing, failure.error.class), (3 - in_stock, ErrorClass::OutOfResources), "seed {seed}");
        let group = bench.group("asg-1");
        let state = if in_stock > 0 { ActivityState::Partial } else { ActivityState::Failed };
        assert!(
            group.activities.iter().any(|one| one.state == state && one.idempotency_key.as_deref() == Some("k")),
            "seed {seed}: {:?}",
            group.activities
        );
        // Another group is not concerned, and stock comes back.
        bench.increase("asg-2", 1, 0, "k2").unwrap();
        bench.human(&stock(None));
        bench.advance(300);
        assert_eq!(bench.group("asg-2").instances.len(), 1);
        let expected = if desired { 3 } else { in_stock as usize };
        assert_eq!(bench.group("asg-1").instances.len(), expected, "seed {seed}");
        bench.clean(&format!("seed {seed}"));
    }
}

#[test]
fn each_cause_has_its_class() {
    let causes = [
        (Order::Quota { instance_type: "ecs.g7.xlarge".into(), most: Some(0) }, ErrorClass::Quota),
        (Order::Addresses { vswitch: "vsw-a".into(), free: 0 }, ErrorClass::Quota),
        (Order::Billing { code: Some("Account.Arrearage".into()) }, ErrorClass::Billing),
        (broken("InvalidParameter.NotMatch"), ErrorClass::Config),
        (broken("RecommendEmpty.InstanceTypeNotAuthorized"), ErrorClass::Auth),
        (broken("InvalidParameter.KMSKeyId.KMSUnauthorized"), ErrorClass::Auth),
        (broken("InvalidResourceType.NotSupported"), ErrorClass::OutOfResources),
        (broken("SomethingNew"), ErrorClass::Other),
    ];
    for seed in SEEDS {
        let (cause, class) = &causes[seed as usize % causes.len()];
        let mut bench = Bench::new(vec![Group::new("asg-1", 0, 20).desiring(0)], &["0:20:asg-1"], seed);
        bench.human(cause);
        if let Err(error) = bench.increase("asg-1", 2, 0, "k") {
            assert_eq!(error.class, *class, "seed {seed}: {error:?}");
            continue;
        }
        bench.advance(20);
        let group = bench.group("asg-1");
        let [failure] = &group.failures[..] else { panic!("seed {seed}, {cause:?}: {:?}", group.failures) };
        assert_eq!((failure.error.class, failure.missing), (*class, 2), "seed {seed}, {cause:?}");
    }
}

fn broken(code: &str) -> Order {
    Order::Break { group: "asg-1".into(), failure: Some((code.into(), "it does not work".into())) }
}
