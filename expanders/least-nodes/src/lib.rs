//! Least nodes: prefer the option that adds the smallest number of nodes. An option that adds none is rejected.

use plimsoll_guest::text::counted;
use plimsoll_guest::{Expander, GrowthOption, Manifest, PluginError, RankRequest, Score, Verdict, export_expander};

/// The expander `least-nodes`.
pub struct LeastNodes;

impl Expander for LeastNodes {
    const MANIFEST: Manifest = Manifest::expander("least-nodes", env!("CARGO_PKG_VERSION"));

    fn rank(request: &RankRequest) -> Result<Vec<Verdict>, PluginError> {
        Ok(request.score_each(score))
    }
}

export_expander!(LeastNodes);

fn score(option: &GrowthOption) -> Option<Score> {
    let nodes = option.node_count;
    (nodes > 0).then(|| Score::best_low(nodes.into()).because(counted(nodes.into(), "node")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_guest::Resources;
    use rstest::rstest;

    fn option(nodes: u32) -> GrowthOption {
        GrowthOption::growing("group", nodes, Resources::default())
    }

    #[rstest]
    #[case::none_is_rejected(0, None)]
    #[case::one(1, Some(Score::best_low(1.0).because("1 node")))]
    #[case::many(u32::MAX, Some(Score::best_low(4_294_967_295.0).because("4294967295 nodes")))]
    fn nodes_are_counted(#[case] nodes: u32, #[case] expected: Option<Score>) {
        assert_eq!(score(&option(nodes)), expected);
    }

    #[test]
    fn fewer_nodes_win_and_equal_numbers_tie() {
        let verdicts = LeastNodes::rank(&RankRequest::about([3, 0, 2, 3].map(option).into())).unwrap();
        let scores: Vec<_> = verdicts.iter().map(|verdict| (verdict.index, verdict.score)).collect();
        assert_eq!(scores, [(0, -3.0), (2, -2.0), (3, -3.0)]);
    }
}
