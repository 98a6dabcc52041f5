//! An expander that prefers the largest machine.

use plimsoll_guest::{Expander, GrowthOption, Manifest, PluginError, RankRequest, Score, Verdict, export_expander};

struct MyExpander;

impl Expander for MyExpander {
    const MANIFEST: Manifest = Manifest::expander(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));

    fn rank(request: &RankRequest) -> Result<Vec<Verdict>, PluginError> {
        Ok(request.score_each(score))
    }
}

export_expander!(MyExpander);

/// The higher the better; none rejects the option.
fn score(option: &GrowthOption) -> Option<Score> {
    if option.node_count == 0 {
        return None;
    }
    let cores = option.shape.capacity.cpu_milli as f64 / 1000.0;
    Some(Score::best_high(cores).because(format!("{cores} cores a node")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_guest::Resources;

    fn option(nodes: u32, cores: u64) -> GrowthOption {
        GrowthOption::growing("group", nodes, Resources::new(cores * 1000, 16 << 30))
    }

    #[test]
    fn the_largest_machine_wins() {
        let request = RankRequest::about(vec![option(4, 4), option(1, 16), option(0, 64)]);
        let verdicts = MyExpander::rank(&request).unwrap();
        assert_eq!(verdicts.len(), 2, "an option without nodes is rejected");
        assert!(verdicts[1].score > verdicts[0].score);
        assert_eq!(verdicts[1].reason.as_deref(), Some("16 cores a node"));
    }
}
