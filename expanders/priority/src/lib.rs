//! Priority: prefer the groups that the operator ranks highest.
//!
//! The host matches the operator's rules and tells each group's priority. Groups that no rule names are rejected, and so
//! are those whose priority is below −1: the Cluster Autoscaler's expander of this name begins its search at −1. If that
//! leaves nobody, the answer is empty and the next expander decides among all.

use plimsoll_guest::{Expander, GrowthOption, Manifest, PluginError, RankRequest, Score, Verdict, export_expander};

const LOWEST: i32 = -1;

/// The expander `priority`.
pub struct Priority;

impl Expander for Priority {
    const MANIFEST: Manifest = Manifest::expander("priority", env!("CARGO_PKG_VERSION"));

    fn rank(request: &RankRequest) -> Result<Vec<Verdict>, PluginError> {
        Ok(request.score_each(score))
    }
}

export_expander!(Priority);

fn score(option: &GrowthOption) -> Option<Score> {
    let priority = option.priority.filter(|&priority| priority >= LOWEST)?;
    Some(Score::best_high(priority.into()).because(format!("priority {priority}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_guest::Resources;
    use rstest::rstest;

    fn option(priority: Option<i32>) -> GrowthOption {
        GrowthOption { priority, ..GrowthOption::growing("group", 1, Resources::default()) }
    }

    #[rstest]
    #[case::highest_wins(&[Some(10), Some(50), Some(20)], &[1])]
    #[case::ties_stay(&[Some(50), Some(10), Some(50)], &[0, 2])]
    #[case::unnamed_groups_lose(&[None, Some(0), None], &[1])]
    #[case::unnamed_groups_lose_even_to_minus_one(&[None, Some(-1)], &[1])]
    #[case::below_minus_one_loses_to_minus_one(&[Some(-2), Some(-1)], &[1])]
    #[case::below_minus_one_never_wins(&[Some(-2), None], &[])]
    #[case::nobody_is_named(&[None, None], &[])]
    #[case::extremes(&[Some(i32::MIN), Some(i32::MAX)], &[1])]
    fn the_highest_from_minus_one_up_wins(#[case] priorities: &[Option<i32>], #[case] winners: &[u32]) {
        let options = priorities.iter().copied().map(option).collect();
        let verdicts = Priority::rank(&RankRequest::about(options)).unwrap();
        let best = verdicts.iter().map(|verdict| verdict.score).fold(f64::NEG_INFINITY, f64::max);
        let won: Vec<_> =
            verdicts.iter().filter(|verdict| verdict.score == best).map(|verdict| verdict.index).collect();
        assert_eq!(won, winners);
    }

    #[test]
    fn the_reason_names_the_priority() {
        assert_eq!(score(&option(Some(50))), Some(Score::best_high(50.0).because("priority 50")));
    }
}
