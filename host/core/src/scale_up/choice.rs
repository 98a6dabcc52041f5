//! Which option wins: the chain of expanders, and the draw between what they leave equal.

use crate::plan::{Because, Rival, Warning};
use crate::ranking::{GrowthOption, RankRequest, Ranking, Verdict};

/// A choice that is being made.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Everything that was on offer.
    request: RankRequest,
    /// Names of the expanders, in order.
    chain: Vec<String>,
    /// The next expander to ask.
    next: usize,
    /// Options that are still in the race, as indices into the request.
    left: Vec<usize>,
    /// The expander that last told options apart, with its scores by option.
    decided: Option<(String, Vec<Option<Verdict>>)>,
}

/// What to do to get on with a choice.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Next {
    /// Ask this expander.
    Ask(String, RankRequest),
    /// This option won.
    Won(usize, Because),
    /// The expanders rejected every option.
    Nothing,
}

impl Choice {
    pub(crate) fn new(request: RankRequest, chain: &[String]) -> Self {
        let left = (0..request.options.len()).collect();
        Self { request, chain: chain.to_vec(), next: 0, left, decided: None }
    }

    /// The next question, or the winner. One option wins unasked; what the whole chain leaves equal is drawn by the seed.
    pub(crate) fn next(&self) -> Next {
        match self.left.as_slice() {
            [] => return Next::Nothing,
            &[only] => return Next::Won(only, self.because(only)),
            _ => {}
        }
        if let Some(expander) = self.chain.get(self.next) {
            let options = self.left.iter().filter_map(|&index| self.request.options.get(index).cloned()).collect();
            return Next::Ask(expander.clone(), RankRequest { options, ..self.request.clone() });
        }
        let lot = |index: &usize| {
            let group = self.request.options.get(*index).map_or("", |option| option.group.as_str());
            draw(self.request.seed, group)
        };
        match self.left.iter().copied().min_by_key(lot) {
            Some(winner) => Next::Won(winner, self.because(winner)),
            None => Next::Nothing,
        }
    }

    /// Takes the answer to the last question: the options with the best score stay. An expander without an answer, or
    /// with an empty one, leaves the choice to the next.
    pub(crate) fn answered(&mut self, ranking: Ranking) -> Option<Warning> {
        let name = self.chain.get(self.next).cloned().unwrap_or_default();
        self.next += 1;
        let verdicts = match ranking {
            Ok(verdicts) => verdicts,
            Err(failure) => return Some(Warning::Expander(failure)),
        };
        let best = verdicts.iter().map(|verdict| verdict.score).max_by(f64::total_cmp)?;
        let mut scores: Vec<Option<Verdict>> = vec![None; self.request.options.len()];
        let mut winners = Vec::new();
        for verdict in verdicts {
            let Some(&option) = usize::try_from(verdict.index).ok().and_then(|asked| self.left.get(asked)) else {
                continue;
            };
            if verdict.score >= best {
                winners.push(option);
            }
            if let Some(slot) = scores.get_mut(option) {
                *slot = Some(verdict);
            }
        }
        winners.sort_unstable();
        self.left = winners;
        self.decided = Some((name, scores));
        None
    }

    fn because(&self, winner: usize) -> Because {
        let score_of = |index: usize| self.decided.as_ref().and_then(|(_, scores)| scores.get(index)?.as_ref());
        let rivals = self.request.options.iter().enumerate().filter(|&(index, _)| index != winner);
        let against = rivals.map(|(index, option): (usize, &GrowthOption)| Rival {
            group: option.group.clone(),
            nodes: option.node_count,
            score: score_of(index).map(|verdict| verdict.score),
        });
        let verdict = score_of(winner);
        Because {
            expander: self.decided.as_ref().map(|(name, _)| name.clone()),
            score: verdict.map(|verdict| verdict.score),
            reason: verdict.and_then(|verdict| verdict.reason.clone()),
            against: against.collect(),
        }
    }
}

/// A number that depends on the seed and the name alone (FNV-1a, mixed), so that the draw is the same in every replay
/// and does not depend on the order of the options. The least wins.
pub fn draw(seed: u64, name: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = name.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::GroupId;
    use crate::ranking::{RankingFailure, Shape, Usage};
    use std::time::Duration;

    fn choice(groups: &[&str], chain: &[&str], seed: u64) -> Choice {
        let option = |name: &&str| GrowthOption {
            group: GroupId::from(*name),
            node_count: 1,
            target_size: 0,
            max_size: 10,
            pods: vec![],
            shape: Shape::default(),
            usage: Usage::default(),
            cost: None,
            priority: None,
            exists: true,
            similar: vec![],
        };
        let request = RankRequest {
            options: groups.iter().map(option).collect(),
            pod_classes: vec![],
            cluster_nodes: 0,
            seed,
            deadline: Duration::from_secs(1),
        };
        Choice::new(request, &chain.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
    }

    fn scores(scores: &[f64]) -> Ranking {
        let verdict = |(index, &score): (u32, &f64)| Verdict { index, score, reason: None };
        Ok((0..).zip(scores).map(verdict).collect())
    }

    fn winner(choice: &Choice) -> Option<usize> {
        match choice.next() {
            Next::Won(index, _) => Some(index),
            _ => None,
        }
    }

    #[test]
    fn one_option_wins_unasked() {
        assert_eq!(winner(&choice(&["a"], &["least-waste"], 0)), Some(0));
        assert_eq!(choice(&[], &["least-waste"], 0).next(), Next::Nothing);
    }

    #[test]
    fn equal_options_go_to_the_next_expander() {
        let mut choice = choice(&["a", "b", "c"], &["first", "second"], 0);
        assert!(matches!(choice.next(), Next::Ask(name, request) if name == "first" && request.options.len() == 3));
        choice.answered(scores(&[1.0, 0.5, 1.0]));
        let Next::Ask(name, request) = choice.next() else { panic!("the tie must be put to the second") };
        assert_eq!((name.as_str(), request.options.len()), ("second", 2));
        choice.answered(scores(&[0.0, 2.0]));
        let Next::Won(2, because) = choice.next() else { panic!("c must win") };
        assert_eq!(because.expander.as_deref(), Some("second"));
        assert_eq!(because.score, Some(2.0));
        assert_eq!(because.against.len(), 2);
    }

    #[test]
    fn a_failing_or_silent_expander_leaves_the_choice_to_the_next() {
        let mut choice = choice(&["a", "b"], &["broken", "silent", "good"], 0);
        let failure = RankingFailure::Failed { name: "broken".into(), reason: "trap".into() };
        assert_eq!(choice.answered(Err(failure.clone())), Some(Warning::Expander(failure)));
        choice.answered(Ok(vec![]));
        assert!(matches!(choice.next(), Next::Ask(name, request) if name == "good" && request.options.len() == 2));
        choice.answered(scores(&[3.0, 1.0]));
        assert_eq!(winner(&choice), Some(0));
    }

    #[test]
    fn options_without_a_verdict_are_rejected() {
        let mut choice = choice(&["a", "b"], &["picky"], 0);
        choice.answered(Ok(vec![Verdict { index: 1, score: -5.0, reason: None }]));
        assert_eq!(winner(&choice), Some(1));
    }

    #[test]
    fn the_last_draw_hangs_on_the_seed_and_not_on_the_order() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..32 {
            let one = choice(&["a", "b", "c"], &[], seed);
            let other = choice(&["c", "a", "b"], &[], seed);
            let (Some(one), Some(other)) = (winner(&one), winner(&other)) else { panic!("somebody must win") };
            assert_eq!(["a", "b", "c"][one], ["c", "a", "b"][other]);
            seen.insert(one);
        }
        assert_eq!(seen.len(), 3, "every option wins for some seed");
    }
}
