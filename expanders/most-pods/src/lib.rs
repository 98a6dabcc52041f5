//! Most pods: prefer the option that helps the largest number of pods.

use plimsoll_guest::text::counted;
use plimsoll_guest::{Expander, GrowthOption, Manifest, PluginError, RankRequest, Score, Verdict, export_expander};

/// The expander `most-pods`.
pub struct MostPods;

impl Expander for MostPods {
    const MANIFEST: Manifest = Manifest::expander("most-pods", env!("CARGO_PKG_VERSION"));

    fn rank(request: &RankRequest) -> Result<Vec<Verdict>, PluginError> {
        Ok(request.score_each(score))
    }
}

export_expander!(MostPods);

fn score(option: &GrowthOption) -> Option<Score> {
    let pods = option.pod_count();
    Some(Score::best_high(pods as f64).because(counted(pods, "pod")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_guest::{ClassCount, Resources};
    use rstest::rstest;

    fn option(counts: &[u32]) -> GrowthOption {
        let pods = (0..).zip(counts).map(|(class_index, &count)| ClassCount { class_index, count }).collect();
        GrowthOption { pods, ..GrowthOption::growing("group", 1, Resources::default()) }
    }

    #[rstest]
    #[case::classes_add_up(&[3, 55], 58.0, "58 pods")]
    #[case::one_pod(&[1], 1.0, "1 pod")]
    #[case::none(&[], 0.0, "0 pods")]
    #[case::more_than_a_u32(&[u32::MAX, u32::MAX], 8_589_934_590.0, "8589934590 pods")]
    fn pods_are_counted(#[case] counts: &[u32], #[case] value: f64, #[case] reason: &str) {
        assert_eq!(score(&option(counts)), Some(Score::best_high(value).because(reason)));
    }

    #[test]
    fn more_pods_win_and_equal_numbers_tie() {
        let verdicts = MostPods::rank(&RankRequest::about(vec![option(&[2, 2]), option(&[5]), option(&[4])])).unwrap();
        assert!(verdicts[1].score > verdicts[0].score);
        assert_eq!(verdicts[0].score, verdicts[2].score);
    }
}
