//! Which happenings are needed to break what was broken.

use crate::stage::Components;
use crate::story::{Story, play};
use crate::violation::Violation;

/// Takes away happenings, in ever smaller pieces, as long as the same invariant is broken. At most so many runs.
///
/// # Errors
///
/// If a run cannot be set up.
pub fn shrink(
    components: &Components,
    story: &Story,
    violation: &Violation,
    most_runs: usize,
) -> anyhow::Result<(Story, Violation)> {
    let (mut best, mut last) = (story.clone(), violation.clone());
    let mut piece = best.numbers().len().div_ceil(2);
    let mut runs = 0;
    while piece > 0 {
        let mut from = 0;
        while from < best.numbers().len() && runs < most_runs {
            let numbers = best.numbers().into_iter().enumerate();
            let numbers: Vec<usize> =
                numbers.filter(|(index, _)| !(from..from + piece).contains(index)).map(|(_, number)| number).collect();
            let smaller = best.only(&numbers);
            runs += 1;
            match play(components, &smaller, None)? {
                Err(found) if found.invariant == violation.invariant => (best, last) = (smaller, found),
                _ => from += piece,
            }
        }
        piece /= 2;
    }
    Ok((best, last))
}
