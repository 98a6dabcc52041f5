//! Why an option was chosen, in words.

use plimsoll_core::plan::{Because, Rival};
use plimsoll_signals::account::Growth;

/// Who decided, and how. Without an expander's word there was one option only, or a draw.
pub(crate) fn verdict(because: &Because) -> String {
    let rivals: Vec<Option<f64>> = because.against.iter().map(|rival| rival.score).collect();
    in_words(because.expander.as_deref(), because.reason.as_deref(), because.score, &rivals)
}

/// The same of a growth that somebody else's loop decided.
pub(crate) fn of_growth(growth: &Growth) -> String {
    let rivals: Vec<Option<f64>> = growth.against.iter().map(|rival| rival.score).collect();
    let verdict = in_words(growth.expander.as_deref(), growth.reason.as_deref(), growth.score, &rivals);
    let against: Vec<&str> = growth.against.iter().map(|rival| rival.group.as_str()).collect();
    if against.is_empty() { verdict } else { format!("{verdict}, before {}", against.join(", ")) }
}

fn in_words(expander: Option<&str>, reason: Option<&str>, score: Option<f64>, rivals: &[Option<f64>]) -> String {
    let Some(expander) = expander else {
        return if rivals.is_empty() { "only group that helps".to_owned() } else { "drawn by lot".to_owned() };
    };
    let verdict = match (reason, score) {
        (Some(reason), _) => format!("{expander}: {reason}"),
        (None, Some(score)) => format!("{expander}: score {score:.2}"),
        (None, None) => expander.to_owned(),
    };
    // The whole chain left these equal.
    let equal = score.is_some() && rivals.contains(&score);
    if equal { format!("{verdict}, drawn by lot among equals") } else { verdict }
}

/// What it was chosen over, the best first; what the deciding expander gave no score comes last.
pub(crate) fn rivals(because: &Because) -> Vec<&Rival> {
    let mut rivals: Vec<&Rival> = because.against.iter().collect();
    rivals.sort_by(|one, other| {
        let score = |rival: &Rival| rival.score.unwrap_or(f64::NEG_INFINITY);
        score(other).total_cmp(&score(one)).then_with(|| one.group.as_str().cmp(other.group.as_str()))
    });
    rivals
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::cloud::GroupId;

    fn because(expander: Option<&str>, score: Option<f64>, against: &[(&str, Option<f64>)]) -> Because {
        let rival = |&(group, score): &(&str, Option<f64>)| Rival { group: GroupId::from(group), nodes: 1, score };
        Because {
            expander: expander.map(str::to_owned),
            score,
            reason: None,
            against: against.iter().map(rival).collect(),
        }
    }

    #[test]
    fn who_decided() {
        for (name, because, expected) in [
            ("one option", because(None, None, &[]), "only group that helps"),
            ("nobody told them apart", because(None, None, &[("b", None)]), "drawn by lot"),
            ("an expander did", because(Some("price"), Some(-1.0), &[("b", Some(-2.0))]), "price: score -1.00"),
            (
                "an expander, but not between these two",
                because(Some("price"), Some(-1.0), &[("b", Some(-1.0)), ("c", Some(-2.0))]),
                "price: score -1.00, drawn by lot among equals",
            ),
        ] {
            assert_eq!(verdict(&because), expected, "{name}");
        }
    }

    #[test]
    fn the_best_rival_comes_first() {
        let because = because(
            Some("price"),
            Some(-0.5),
            &[("spare", Some(-1.21)), ("rejected", None), ("workers-b", Some(-1.0)), ("workers-a", Some(-1.0))],
        );
        let order: Vec<&str> = rivals(&because).iter().map(|rival| rival.group.as_str()).collect();
        assert_eq!(order, ["workers-a", "workers-b", "spare", "rejected"]);
    }
}
