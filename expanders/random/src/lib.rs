//! Random: draw lots. The lots come from the request's seed, so that a recorded decision can be replayed.
//!
//! A lot depends on the seed and the group only, not on the order of the options.

use plimsoll_guest::text::rounded;
use plimsoll_guest::{Expander, Manifest, PluginError, RankRequest, Score, Verdict, export_expander};

struct Random;

impl Expander for Random {
    const MANIFEST: Manifest = Manifest::expander("random", env!("CARGO_PKG_VERSION"));

    fn rank(request: &RankRequest) -> Result<Vec<Verdict>, PluginError> {
        let mut drawn: Vec<u64> = Vec::with_capacity(request.options.len());
        Ok(request.score_each(|option| {
            let mut lot = lot(request.seed, &option.group);
            // A group with several options draws again for each: one option wins, never two.
            while drawn.contains(&lot) {
                lot = mix(lot);
            }
            drawn.push(lot);
            let value = lot as f64 / (1u64 << LOT_BITS) as f64;
            Some(Score::best_high(value).because(format!("lot {}", rounded(value, 4))))
        }))
    }
}

export_expander!(Random);

/// As many as a floating point number holds exactly.
const LOT_BITS: u32 = 53;

fn lot(seed: u64, group: &str) -> u64 {
    group.bytes().fold(mix(seed), |state, byte| mix(state ^ u64::from(byte)))
}

/// One step of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators"), cut to a lot's bits.
fn mix(state: u64) -> u64 {
    let mut bits = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) >> (u64::BITS - LOT_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_guest::{GrowthOption, Resources};
    use std::collections::BTreeMap;

    fn ranked(groups: &[&str], seed: u64) -> Vec<Verdict> {
        let options = groups.iter().map(|&group| GrowthOption::growing(group, 1, Resources::default())).collect();
        Random::rank(&RankRequest { seed, ..RankRequest::about(options) }).unwrap()
    }

    fn winner<'a>(groups: &[&'a str], seed: u64) -> &'a str {
        let verdicts = ranked(groups, seed);
        let best = verdicts.iter().max_by(|a, b| a.score.total_cmp(&b.score)).unwrap();
        groups[best.index as usize]
    }

    #[test]
    fn the_same_seed_draws_the_same_lots() {
        assert_eq!(ranked(&["a", "b"], 7), ranked(&["a", "b"], 7));
        assert_ne!(ranked(&["a", "b"], 7), ranked(&["a", "b"], 8));
    }

    #[test]
    fn the_order_of_options_does_not_matter() {
        for seed in 0..200 {
            assert_eq!(winner(&["a", "b", "c"], seed), winner(&["c", "a", "b"], seed), "seed {seed}");
        }
    }

    #[test]
    fn every_group_wins_about_equally_often() {
        let mut wins = BTreeMap::<_, u32>::new();
        for seed in 0..3000 {
            *wins.entry(winner(&["pool-1", "pool-2", "pool-3"], seed)).or_default() += 1;
        }
        assert!(wins.len() == 3 && wins.values().all(|&count| (900..1100).contains(&count)), "{wins:?}");
    }

    #[test]
    fn options_of_one_group_never_tie() {
        let verdicts = ranked(&["a", "a", "a"], 1);
        assert!(verdicts[0].score != verdicts[1].score && verdicts[1].score != verdicts[2].score);
        assert!(verdicts[0].score != verdicts[2].score);
    }
}
