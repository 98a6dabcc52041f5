use plimsoll_guest::Resources;
use rstest::rstest;

use super::*;

/// A node of four cores suits a cluster of ten nodes.
const CLUSTER: u32 = 10;

fn option(nodes: u32, cpu_milli: u64, cost: Cost) -> GrowthOption {
    let growing = GrowthOption::growing("group", nodes, Resources::new(cpu_milli, 16 << 30));
    GrowthOption { cost: Some(cost), ..growing }
}

fn value(option: GrowthOption, cluster_nodes: u32) -> Option<f64> {
    let request = RankRequest { cluster_nodes, ..RankRequest::about(vec![option]) };
    Price::rank(&request).unwrap().first().map(|verdict| -verdict.score)
}

#[rstest]
#[case::twice_1(2.0, 1, 2.0)]
#[case::twice_2(2.0, 2, 1.9334)]
#[case::twice_5(2.0, 5, 1.7395)]
#[case::twice_10(2.0, 10, 1.4630)]
#[case::twice_20(2.0, 20, 1.1471)]
#[case::twice_50(2.0, 50, 1.0029)]
#[case::four_times_1(4.0, 1, 4.0)]
#[case::four_times_2(4.0, 2, 3.8003)]
#[case::four_times_5(4.0, 5, 3.2184)]
#[case::four_times_10(4.0, 10, 2.3889)]
#[case::four_times_20(4.0, 20, 1.4413)]
#[case::four_times_50(4.0, 50, 1.0087)]
#[case::eight_times_1(8.0, 1, 8.0)]
#[case::eight_times_2(8.0, 2, 7.5340)]
#[case::eight_times_5(8.0, 5, 6.1764)]
#[case::eight_times_10(8.0, 10, 4.2407)]
#[case::eight_times_20(8.0, 20, 2.0298)]
#[case::eight_times_50(8.0, 50, 1.0203)]
#[case::the_right_size(1.0, 7, 1.0)]
fn the_size_matters_less_with_more_nodes(#[case] unfitness: f64, #[case] nodes: u32, #[case] expected: f64) {
    assert!((suppressed(unfitness, nodes) - expected).abs() < 5e-5, "{}", suppressed(unfitness, nodes));
}

#[rstest]
#[case::two_nodes(2, 1000)]
#[case::three_nodes(3, 2000)]
#[case::six_nodes(6, 2000)]
#[case::seven_nodes(7, 4000)]
#[case::twenty_nodes(20, 4000)]
#[case::sixty_nodes(60, 8000)]
#[case::two_hundred_nodes(200, 16000)]
#[case::more_nodes(201, 32000)]
#[case::an_empty_cluster(0, 1000)]
fn the_preferred_size_grows_with_the_cluster(#[case] cluster_nodes: u32, #[case] cpu_milli: u64) {
    let fitness = |cpu_milli| unfitness(&option(1, cpu_milli, Cost::new(1, Some(1))).shape, cluster_nodes).unwrap();
    assert_eq!(fitness(cpu_milli), 1.0);
    assert_eq!(fitness(cpu_milli * 2), 2.0);
    assert_eq!(fitness(cpu_milli / 4), 4.0);
}

#[rstest]
#[case::ratio_alone(option(1, 4000, Cost::new(300, Some(100))), 3.0)]
#[case::steadied_by_a_small_pod(option(1, 4000, Cost { small_pod_micros_per_hour: Some(100), ..Cost::new(300, Some(100)) }), 2.0)]
#[case::too_large_a_node(option(1, 8000, Cost::new(300, Some(100))), 6.0)]
#[case::a_new_group(GrowthOption { exists: false, ..option(1, 4000, Cost::new(300, Some(100))) }, 6.0)]
fn scores(#[case] option: GrowthOption, #[case] expected: f64) {
    assert_eq!(value(option, CLUSTER), Some(expected));
}

#[test]
fn accelerators_count_a_thousand_whatever_the_number_of_nodes() {
    let mut by_model = option(40, 4000, Cost::new(100, Some(100)));
    let mut by_resource = by_model.clone();
    by_model.shape.accelerator_model = Some("nvidia-l4".into());
    by_resource.shape.allocatable = by_resource.shape.allocatable.with_extended("amd.com/gpu", 1);
    assert_eq!(value(by_model, CLUSTER), Some(1000.0));
    assert_eq!(value(by_resource, CLUSTER), Some(1000.0));
}

#[rstest]
#[case::no_prices(GrowthOption { cost: None, ..option(1, 4000, Cost::new(1, Some(1))) })]
#[case::a_pod_without_price(option(1, 4000, Cost::new(300, None)))]
#[case::pods_for_nothing(option(1, 4000, Cost::new(300, Some(0))))]
#[case::a_node_without_processors(option(1, 0, Cost::new(300, Some(100))))]
fn options_without_a_measure_are_rejected(#[case] option: GrowthOption) {
    assert_eq!(value(option, CLUSTER), None);
}

#[test]
fn equal_options_tie_exactly() {
    let one = option(3, 6000, Cost::new(123_457, Some(98_765)));
    let verdicts = Price::rank(&RankRequest::about(vec![one.clone(), one])).unwrap();
    assert_eq!(verdicts[0].score.to_bits(), verdicts[1].score.to_bits());
}

#[test]
fn the_reason_tells_price_ratio_and_fitness() {
    let option = option(1, 8000, Cost::new(400_000, Some(200_000)));
    let expected = "price 4.00 (0.40 USD/h, 2.00 times the pods' own, unfitness 2.00)";
    assert_eq!(score(&option, CLUSTER), Some(Score::best_low(4.0).because(expected)));
}
