//! The plug-in dies at every request, before or after it arrived, and the host repeats what it was doing.

use plimsoll_guest::DeleteStatus;
use plimsoll_tests_clouds::alicloud::Group;

use crate::bench::Bench;

#[test]
fn growth_happens_once_whenever_the_plug_in_dies() {
    for seed in 0..25 {
        for boundary in 0..4 {
            for arrives in [false, true] {
                let group = Group::new("asg-1", 0, 20).running(1);
                let group = if seed % 8 < 4 { group.desiring(1) } else { group };
                let mut bench = Bench::new(vec![group], &["0:20:asg-1"], seed);
                bench.wire.dies.set(Some((boundary, arrives)));
                let _ = bench.increase("asg-1", 2, 1, "k");
                bench.restart();
                bench.advance(seed % 5 * 10);
                let again = bench.increase("asg-1", 2, 1, "k");
                assert!(again.is_ok(), "seed {seed}, boundary {boundary}, {arrives}: {again:?}");
                bench.advance(250);
                let group = bench.group("asg-1");
                assert_eq!(
                    (group.target_size, group.instances.len()),
                    (3, 3),
                    "seed {seed}, boundary {boundary}, {arrives}"
                );
                bench.clean("growth");
            }
        }
    }
}

#[test]
fn a_removal_is_not_lost_whenever_the_plug_in_dies() {
    for seed in 0..25 {
        for boundary in 0..4 {
            for arrives in [false, true] {
                let group = Group::new("asg-1", 0, 20).running(4);
                let group = if seed % 8 < 4 { group.desiring(4) } else { group };
                let mut bench = Bench::new(vec![group], &["0:20:asg-1"], seed);
                let going: Vec<_> =
                    bench.group("asg-1").instances.iter().take(2).map(|instance| instance.id.clone()).collect();
                bench.wire.dies.set(Some((boundary, arrives)));
                let _ = bench.delete("asg-1", &going, 0, "k");
                bench.restart();
                let mut again = bench.delete("asg-1", &going, 0, "k").unwrap();
                if again.results.iter().any(|result| matches!(result.status, DeleteStatus::Failed(_))) {
                    bench.advance(70);
                    again = bench.delete("asg-1", &going, 0, "k").unwrap();
                }
                let well = |status: &DeleteStatus| matches!(status, DeleteStatus::Accepted | DeleteStatus::AlreadyGone);
                assert!(again.results.iter().all(|result| well(&result.status)), "seed {seed}: {again:?}");
                bench.advance(250);
                let group = bench.group("asg-1");
                assert_eq!(
                    (group.target_size, group.instances.len()),
                    (2, 2),
                    "seed {seed}, boundary {boundary}, {arrives}"
                );
                bench.clean("removal");
            }
        }
    }
}
