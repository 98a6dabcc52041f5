//! TaintToleration: taints that keep pods away.

use plimsoll_model::taint::TolerationOperator;
use plimsoll_model::{Node, PodSpec, Symbols, Taint, TaintEffect, Toleration};

use super::{Predicate, StaticRule};
use crate::facts::Facts;
use crate::refusal::Reason;

/// Every taint with effect NoSchedule or NoExecute must be tolerated.
pub(crate) struct TaintToleration;

/// Whether a taint keeps pods away that do not tolerate it.
pub(crate) fn keeps_away(taint: &Taint) -> bool {
    taint.effect != TaintEffect::PreferNoSchedule
}

/// The numeric half of the toleration rule (gate `TaintTolerationComparisonOperators`): key and effect agree, both values
/// are canonical decimal integers, and the taint's one is on the right side of the toleration's.
pub(crate) fn compares(toleration: &Toleration, taint: &Taint, symbols: &Symbols) -> bool {
    let on_right_side = match toleration.operator {
        TolerationOperator::Lt => |taint: i64, toleration: i64| taint < toleration,
        TolerationOperator::Gt => |taint: i64, toleration: i64| taint > toleration,
        TolerationOperator::Equal | TolerationOperator::Exists | TolerationOperator::Unknown => return false,
    };
    // The common half of the rule is the model's, asked with the operator that accepts every value.
    let any = Toleration { operator: TolerationOperator::Exists, ..*toleration };
    let numbers = (canonical(symbols.text(taint.value)), canonical(symbols.text(toleration.value)));
    any.tolerates(taint) && matches!(numbers, (Some(taint), Some(toleration)) if on_right_side(taint, toleration))
}

/// A decimal integer without plus sign, leading zeros or blanks.
fn canonical(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().filter(|number| number.to_string() == text)
}

impl Predicate for TaintToleration {
    fn name(&self) -> &'static str {
        "TaintToleration"
    }
}

impl StaticRule for TaintToleration {
    fn refuse(&self, facts: &Facts<'_>, pod: &PodSpec, node: &Node) -> Vec<Reason> {
        let mut taints = node.taints.iter().filter(|taint| keeps_away(taint));
        let refused = taints.find(|taint| !facts.tolerated(&pod.tolerations, taint));
        Vec::from_iter(refused.map(|taint| Reason::UntoleratedTaint { taint: describe(taint, facts.symbols()) }))
    }
}

fn describe(taint: &Taint, symbols: &Symbols) -> Box<str> {
    let (key, effect) = (symbols.text(taint.key), taint.effect.name());
    match symbols.text(taint.value) {
        "" => format!("{key}:{effect}").into(),
        value => format!("{key}={value}:{effect}").into(),
    }
}
