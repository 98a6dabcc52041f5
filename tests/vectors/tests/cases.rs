//! All golden cases pass. Debug builds take a part of them, lest the tests take minutes; `make vectors` runs all.

#![allow(clippy::unwrap_used, reason = "a test may fail by a panic")]

use std::path::Path;

use plimsoll_tests_vectors::{Outcome, read_cases, run_case};

fn run(file: &str) {
    let cases = read_cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(file)).unwrap();
    assert!(cases.len() > 100, "{file} holds {} cases", cases.len());
    // The larger files only.
    let every = if cfg!(debug_assertions) && cases.len() > 1000 { 12 } else { 1 };
    let failures: Vec<String> = cases
        .iter()
        .step_by(every)
        .filter_map(|case| match run_case(case).unwrap() {
            Outcome::Passed { .. } => None,
            Outcome::Failed { difference, .. } => Some(format!("{}: {difference}", case.id)),
        })
        .collect();
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn predicates() {
    run("predicates.jsonl.xz");
}

#[test]
fn estimate() {
    run("estimate.jsonl.xz");
}

#[test]
fn drain() {
    run("drain.jsonl.xz");
}

#[test]
fn utilization() {
    run("utilization.jsonl.xz");
}

#[test]
fn similar() {
    run("similar.jsonl.xz");
}

#[test]
fn dra() {
    run("dra.jsonl.xz");
}

#[test]
fn dra_estimate() {
    run("dra-estimate.jsonl.xz");
}

/// The runner can tell right from wrong.
#[test]
fn a_wrong_answer_is_noticed() {
    for (file, from, to) in [
        ("predicates.jsonl.xz", "\"fits\":true", "\"fits\":false"),
        ("estimate.jsonl.xz", "\"scheduled\":{", "\"scheduled\":{\"nobody\":100000,"),
        ("drain.jsonl.xz", "\"reason\":\"NotReplicated\"", "\"reason\":\"NotEnoughPdb\""),
        ("utilization.jsonl.xz", "\"resource\":\"cpu\"", "\"resource\":\"memory\""),
        ("similar.jsonl.xz", "\"similar\":true", "\"similar\":false"),
        ("dra.jsonl.xz", "\"fits\":true", "\"fits\":false"),
        ("dra-estimate.jsonl.xz", "\"scheduled\":{", "\"scheduled\":{\"nobody\":100000,"),
    ] {
        let cases = read_cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(file)).unwrap();
        let mut case = cases.into_iter().find(|case| case.expect.to_string().contains(from)).unwrap();
        case.expect = serde_json::from_str(&case.expect.to_string().replacen(from, to, 1)).unwrap();
        assert!(matches!(run_case(&case).unwrap(), Outcome::Failed { .. }), "{file}: {}", case.id);
    }
}
