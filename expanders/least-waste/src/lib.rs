//! Least waste: prefer the option whose new nodes are filled best.
//!
//! Waste is the unused share of the processors plus the unused share of the memory of all new nodes, measured against
//! what the machines have (their capacity); what DaemonSets and the system take is not subtracted, and other resources
//! do not count. So says the Cluster Autoscaler's expander of this name. An option without a capacity is rejected.

use plimsoll_guest::text::{percent, rounded};
use plimsoll_guest::{Expander, GrowthOption, Manifest, PluginError, RankRequest, Score, Verdict, export_expander};

/// The expander `least-waste`.
pub struct LeastWaste;

impl Expander for LeastWaste {
    const MANIFEST: Manifest = Manifest::expander("least-waste", env!("CARGO_PKG_VERSION"));

    fn rank(request: &RankRequest) -> Result<Vec<Verdict>, PluginError> {
        Ok(request.score_each(score))
    }
}

export_expander!(LeastWaste);

fn score(option: &GrowthOption) -> Option<Score> {
    let (machine, wanted) = (&option.shape.capacity, &option.usage.wanted);
    let cpu = unused_share(machine.cpu_milli, option.node_count, wanted.cpu_milli)?;
    let memory = unused_share(machine.memory_bytes, option.node_count, wanted.memory_bytes)?;
    let waste = cpu + memory;
    let reason = format!("waste {} (cpu {}, memory {})", rounded(waste, 2), percent(cpu), percent(memory));
    Some(Score::best_low(waste).because(reason))
}

/// Share of what `nodes` machines have that nobody wants. None if they have nothing.
fn unused_share(per_machine: u64, nodes: u32, wanted: u64) -> Option<f64> {
    let offered = u128::from(per_machine) * u128::from(nodes);
    (offered > 0).then(|| (offered as f64 - wanted as f64) / offered as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_guest::{Resources, Usage};
    use rstest::rstest;

    const GIB: u64 = 1 << 30;

    fn option(nodes: u32, cores: u64, gib: u64, wanted_cores: u64, wanted_gib: u64) -> GrowthOption {
        let wanted = Resources::new(wanted_cores * 1000, wanted_gib * GIB);
        let growing = GrowthOption::growing("group", nodes, Resources::new(cores * 1000, gib * GIB));
        GrowthOption { usage: Usage { wanted, ..Usage::default() }, ..growing }
    }

    #[rstest]
    #[case::two_middle_nodes(option(2, 4, 16, 6, 12), 0.875, "waste 0.88 (cpu 25%, memory 63%)")]
    #[case::one_big_node(option(1, 8, 32, 6, 12), 0.875, "waste 0.88 (cpu 25%, memory 63%)")]
    #[case::exact_fit(option(3, 2, 4, 6, 12), 0.0, "waste 0.00 (cpu 0%, memory 0%)")]
    #[case::nothing_wanted(option(1, 4, 16, 0, 0), 2.0, "waste 2.00 (cpu 100%, memory 100%)")]
    #[case::half_of_each(option(1, 4, 16, 2, 8), 1.0, "waste 1.00 (cpu 50%, memory 50%)")]
    fn waste_is_the_sum_of_unused_shares(#[case] option: GrowthOption, #[case] waste: f64, #[case] reason: &str) {
        assert_eq!(score(&option), Some(Score::best_low(waste).because(reason)));
    }

    #[test]
    fn the_best_fit_wins_and_equal_waste_is_an_exact_tie() {
        let options = vec![option(2, 4, 16, 6, 12), option(1, 8, 32, 6, 12), option(3, 2, 4, 6, 12)];
        let verdicts = LeastWaste::rank(&RankRequest::about(options)).unwrap();
        assert!(verdicts[2].score > verdicts[0].score);
        assert_eq!(verdicts[0].score.to_bits(), verdicts[1].score.to_bits());
    }

    #[test]
    fn allocatable_and_other_resources_do_not_count() {
        let mut less = option(1, 8, 32, 6, 12);
        less.shape.allocatable = Resources::new(7000, 28 * GIB).with_extended("nvidia.com/gpu", 8);
        less.shape.capacity = less.shape.capacity.with_extended("nvidia.com/gpu", 8);
        assert_eq!(score(&less), score(&option(1, 8, 32, 6, 12)));
    }

    #[rstest]
    #[case::no_capacity_known(option(1, 0, 0, 1, 1))]
    #[case::no_memory_known(option(1, 4, 0, 1, 1))]
    #[case::no_nodes(option(0, 4, 16, 1, 1))]
    fn options_without_a_measure_are_rejected(#[case] option: GrowthOption) {
        assert_eq!(score(&option), None);
    }
}
