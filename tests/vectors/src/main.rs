//! `vectors FILE…`: compares the scheduling engine and its oracle with golden cases.
//!
//! `vectors --rounds FILE…`: compares one loop that decides everything with one choice a loop, over the same cases.
//!
//! A line per case that differs, then `N passed, N failed`. Exit status 1 if a case failed, 2 if a file cannot be read.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use plimsoll_tests_vectors::{Case, Outcome, compare_rounds, read_cases, run_case};

fn main() -> ExitCode {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let rounds = files.first().is_some_and(|first| first == "--rounds");
    files.drain(..usize::from(rounds));
    match run(&files, if rounds { compare_rounds } else { run_case }, &mut std::io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // Nothing is left to do if the error stream is gone too.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(files: &[String], of: fn(&Case) -> anyhow::Result<Outcome>, out: &mut impl Write) -> anyhow::Result<bool> {
    anyhow::ensure!(!files.is_empty(), "no file named; usage: vectors FILE… (KIND.jsonl or KIND.jsonl.xz)");
    let (mut passed, mut failed) = (0, 0);
    let mut remarks = BTreeMap::<&'static str, usize>::new();
    let mut causes = BTreeMap::<&'static str, usize>::new();
    let (mut ours, mut enough) = (0, 0);
    for file in files {
        for case in read_cases(file.as_ref())? {
            let outcome = of(&case)?;
            if let Outcome::Passed { nodes: Some((asked, trimmed)), .. }
            | Outcome::Failed { nodes: Some((asked, trimmed)), .. } = outcome
            {
                ours += asked;
                enough += trimmed;
            }
            match outcome {
                Outcome::Passed { remark, .. } => {
                    passed += 1;
                    remark.into_iter().for_each(|remark| *remarks.entry(remark).or_default() += 1);
                }
                Outcome::Failed { cause, difference, .. } => {
                    failed += 1;
                    *causes.entry(cause).or_default() += 1;
                    writeln!(out, "{}: {difference}", case.id)?;
                }
            }
        }
    }
    for (remark, cases) in remarks {
        writeln!(out, "{cases} cases: {remark}")?;
    }
    for (cause, cases) in causes {
        writeln!(out, "{cases} cases failed: {cause}")?;
    }
    if enough > 0 {
        writeln!(out, "{ours} nodes asked for where the peer's answer, trimmed, has {enough}")?;
    }
    writeln!(out, "{passed} passed, {failed} failed")?;
    Ok(failed == 0)
}
