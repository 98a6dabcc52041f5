//! `check-plan PLAN.json FILES…`: whether every placement of a plan is valid, by the naive oracle.
//!
//! FILES are those that the plan was made from. Exit status 1 if the plan is wrong, 2 if a file cannot be read.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use plimsoll_model::read::{Input, Reader};
use plimsoll_tests_plans::{Plan, check};

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let (plan, input) = match read(&files) {
        Ok(read) => read,
        Err(error) => return end(2, &format!("error: {error:#}")),
    };
    match check(&input, &plan) {
        Ok(sums) => end(
            0,
            &format!(
                "all placements are valid: {} pods helped by {} new nodes, {} left over",
                sums.helped, sums.nodes, sums.left_over
            ),
        ),
        Err(error) => end(1, &format!("the plan is wrong: {error:#}")),
    }
}

fn read(files: &[String]) -> anyhow::Result<(Plan, Input)> {
    let (plan, files) = files.split_first().context("usage: check-plan PLAN.json FILES…")?;
    let text = std::fs::read_to_string(plan).with_context(|| format!("cannot read {plan}"))?;
    let plan = serde_json::from_str(&text).with_context(|| format!("{plan} is no plan"))?;
    let mut reader = Reader::default();
    for file in files {
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {file}"))?;
        reader.add(file, &bytes)?;
    }
    Ok((plan, reader.finish()?))
}

fn end(code: u8, text: &str) -> ExitCode {
    // Nothing is left to do if nobody reads it.
    let _ = writeln!(std::io::stdout().lock(), "{text}");
    ExitCode::from(code)
}
