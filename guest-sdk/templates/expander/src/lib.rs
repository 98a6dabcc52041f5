//! An expander that prefers one disk type, and among equals the option with the most pods per node.

use plimsoll_guest::text::{counted, rounded};
use plimsoll_guest::{Expander, GrowthOption, Manifest, PluginError, RankRequest, Score, Verdict, export_expander};

/// A node label, listed in the manifest so that the host sends it.
const DISK_LABEL: &str = "example.com/disk";

struct MyExpander;

impl Expander for MyExpander {
    const MANIFEST: Manifest =
        Manifest::expander(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).node_labels(&[DISK_LABEL]);

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
    let pods_per_node = option.pod_count() as f64 / f64::from(option.node_count);
    let fast = option.shape.label(DISK_LABEL) == Some("nvme");
    let reason = format!(
        "{} pods a node, {}{}",
        rounded(pods_per_node, 1),
        counted(option.node_count.into(), "node"),
        if fast { ", fast disk" } else { "" },
    );
    Some(Score::best_high(pods_per_node + if fast { 1000.0 } else { 0.0 }).because(reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_guest::{ClassCount, KeyValue, Resources};

    fn option(pods: u32, nodes: u32, disk: &str) -> GrowthOption {
        let mut option = GrowthOption::growing("group", nodes, Resources::new(4000, 16 << 30));
        option.pods = vec![ClassCount { class_index: 0, count: pods }];
        option.shape.labels = vec![KeyValue::new(DISK_LABEL, disk)];
        option
    }

    #[test]
    fn a_fast_disk_wins_over_denser_nodes() {
        let request = RankRequest::about(vec![option(90, 3, "hdd"), option(10, 2, "nvme"), option(10, 0, "nvme")]);
        let verdicts = MyExpander::rank(&request).unwrap();
        assert_eq!(verdicts.len(), 2, "an option without nodes is rejected");
        assert!(verdicts[1].score > verdicts[0].score);
        assert_eq!(verdicts[1].reason.as_deref(), Some("5.0 pods a node, 2 nodes, fast disk"));
    }
}
