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

#[cfg(test)]
mod tests {
    use crate::Gates;
    use crate::testing::Scene;

    #[test]
    fn every_taint_that_keeps_away_must_be_tolerated() {
        let user1 = "{key: dedicated, value: user1, effect: NoSchedule}";
        for (name, taints, tolerations, fits) in [
            ("no toleration", user1, "", false),
            ("equal value", user1, "{key: dedicated, operator: Equal, value: user1, effect: NoSchedule}", true),
            ("Equal is the default", user1, "{key: dedicated, value: user1, effect: NoSchedule}", true),
            ("another value", user1, "{key: dedicated, operator: Equal, value: user2, effect: NoSchedule}", false),
            ("any value", user1, "{key: dedicated, operator: Exists, effect: NoSchedule}", true),
            ("another effect", user1, "{key: dedicated, value: user1, effect: PreferNoSchedule}", false),
            ("any effect", user1, "{key: dedicated, value: user1}", true),
            ("any key", user1, "{operator: Exists}", true),
            ("an operator of another version", user1, "{key: dedicated, operator: Like, value: user1}", false),
            (
                "numbers, while their gate is off",
                "{key: n, value: \"5\", effect: NoSchedule}",
                "{key: n, operator: Gt, value: \"3\"}",
                false,
            ),
            ("a soft taint", "{key: dedicated, value: user1, effect: PreferNoSchedule}", "", true),
            ("NoExecute keeps away too", "{key: dedicated, effect: NoExecute}", "", false),
            (
                "two taints, a toleration for each",
                "{key: a, value: x, effect: NoSchedule}, {key: b, value: y, effect: NoExecute}",
                "{key: b, value: y}, {key: a, operator: Exists}",
                true,
            ),
            (
                "two taints, a toleration for one",
                "{key: a, value: x, effect: NoSchedule}, {key: b, value: y, effect: NoExecute}",
                "{key: a, operator: Exists}",
                false,
            ),
        ] {
            let mut scene = Scene::new();
            scene.node("n1", &format!("{{spec: {{taints: [{taints}]}}}}"));
            let pod = scene.pod(&format!("{{spec: {{tolerations: [{tolerations}]}}}}"));
            let expected = if fits { "" } else { "TaintToleration: node(s) had untolerated taint(s)" };
            assert_eq!(scene.verdict(pod), expected, "{name}");
        }
    }

    #[test]
    fn numbers_are_compared_behind_their_gate() {
        for (name, taint, operator, toleration, fits) in [
            ("greater", "5", "Gt", "3", true),
            ("not greater", "3", "Gt", "3", false),
            ("less", "-2", "Lt", "3", true),
            ("not less", "4", "Lt", "3", false),
            ("a plus sign", "+5", "Gt", "3", false),
            ("a leading zero", "05", "Gt", "3", false),
            ("minus zero", "-0", "Lt", "3", false),
            ("no number", "five", "Gt", "3", false),
            ("too large", "9223372036854775808", "Gt", "3", false),
            ("the largest", "9223372036854775807", "Gt", "3", true),
            ("no number in the toleration", "5", "Gt", "three", false),
        ] {
            let mut scene = Scene::with_gates(Gates { numeric_tolerations: true });
            scene.node("n1", &format!("{{spec: {{taints: [{{key: k, value: \"{taint}\", effect: NoSchedule}}]}}}}"));
            let toleration = format!("{{key: k, operator: {operator}, value: \"{toleration}\"}}");
            let pod = scene.pod(&format!("{{spec: {{tolerations: [{toleration}]}}}}"));
            assert_eq!(scene.verdict(pod).is_empty(), fits, "{name}");
        }
    }
}
