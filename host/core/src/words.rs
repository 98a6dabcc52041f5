//! Refusals and amounts in words for people. The data stay in [`plimsoll_scheduling::Refusal`].

use plimsoll_scheduling::{Phase, Reason, Refusal};

/// Why a fresh node of a group would be refused.
pub(crate) fn refusal(refusal: &Refusal) -> String {
    if refusal.reasons.is_empty() && refusal.phase == Phase::NodeSet {
        return "the pod names other nodes".to_owned();
    }
    let words: Vec<String> = refusal.reasons.iter().map(reason).collect();
    words.join(", ")
}

/// Why a node is refused, without the numbers in which like nodes differ.
pub(crate) fn in_short(refusal: &Refusal) -> String {
    if refusal.reasons.is_empty() && refusal.phase == Phase::NodeSet {
        return "the pod names other nodes".to_owned();
    }
    let words: Vec<String> = refusal
        .reasons
        .iter()
        .map(|reason| match reason {
            Reason::Insufficient { resource, .. } => format!("insufficient {resource}"),
            Reason::UntoleratedTaint { taint } => format!("untolerated taint {taint}"),
            Reason::TooManyPods { .. } => "too many pods".to_owned(),
            other => other.to_string(),
        })
        .collect();
    words.join(", ")
}

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Insufficient { resource, asked, free, .. } => {
            format!(
                "insufficient {resource} (asks {}, a new node has {})",
                amount(resource, *asked),
                amount(resource, *free)
            )
        }
        Reason::UntoleratedTaint { taint } => format!("untolerated taint {taint}"),
        Reason::TooManyPods { limit } => format!("too many pods (a node takes {limit})"),
        Reason::HostPort { port } => format!("host port {port} is taken on every new node"),
        other => other.to_string(),
    }
}

/// An amount in the unit that people use: cores, GiB, MiB, or the plain number.
pub fn amount(resource: &str, value: i64) -> String {
    let plain = |number: f64| {
        let text = format!("{number:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match resource {
        "cpu" => plain(value as f64 / 1000.0),
        "memory" | "ephemeral-storage" if value.unsigned_abs() >= 1 << 30 => {
            format!("{}Gi", plain((value as f64 / f64::from(1 << 30) * 100.0).round() / 100.0))
        }
        "memory" | "ephemeral-storage" if value.unsigned_abs() >= 1 << 20 => {
            format!("{}Mi", plain((value as f64 / f64::from(1 << 20)).round()))
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_units_of_people() {
        for (resource, value, expected) in [
            ("cpu", 9000, "9"),
            ("cpu", 7500, "7.5"),
            ("cpu", -250, "-0.25"),
            ("memory", 16 << 30, "16Gi"),
            ("memory", 512 << 20, "512Mi"),
            ("memory", 1000, "1000"),
            ("nvidia.com/gpu", 2, "2"),
        ] {
            assert_eq!(amount(resource, value), expected);
        }
    }

    #[test]
    fn refusals_say_the_numbers() {
        let short = Reason::Insufficient { resource: "cpu".into(), asked: 9000, free: 7500, allocatable: 8000 };
        let refused = Refusal { predicate: "NodeResourcesFit", phase: Phase::Filter, reasons: vec![short] };
        assert_eq!(refusal(&refused), "insufficient cpu (asks 9, a new node has 7.5)");
    }
}
