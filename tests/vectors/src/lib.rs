//! Golden cases: answers that the Go Cluster Autoscaler gave, and what ours must be beside them.
//!
//! One module per kind of case. `cases/` holds those that are free to look at; the answers of one program are no
//! specification, and `EXCEPTIONS.md` lists where it is wrong.

mod case;
mod dra;
mod drain;
mod estimate;
mod predicates;
mod similar;
mod utilization;

pub use case::{Case, read_cases};

/// What came of a case.
#[derive(Debug)]
pub enum Outcome {
    /// It agrees, as far as its kind asks for that.
    Passed {
        /// Something worth counting over all cases.
        remark: Option<&'static str>,
    },
    /// It does not.
    Failed {
        /// Both answers, on one line.
        difference: String,
    },
}

impl Outcome {
    fn of(differences: &[String]) -> Self {
        match differences {
            [] => Self::Passed { remark: None },
            _ => Self::Failed { difference: differences.join("; ") },
        }
    }
}

const EXCEPTIONS: &str = include_str!("../EXCEPTIONS.md");

/// Whether a case is listed as one in which the peer is wrong: a line of `EXCEPTIONS.md` that starts with its id.
fn is_exception(id: &str) -> bool {
    let ids = EXCEPTIONS.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next());
    ids.into_iter().any(|listed| listed == id)
}

/// Runs one case.
///
/// # Errors
///
/// If the case cannot be read or is of an unknown kind.
pub fn run_case(case: &Case) -> anyhow::Result<Outcome> {
    let run = match case.kind.as_str() {
        "predicates" => predicates::run,
        "estimate" | "dra-estimate" => estimate::run,
        "dra" => dra::run,
        "drain" => drain::run,
        "utilization" => utilization::run,
        "similar" => similar::run,
        kind => anyhow::bail!(
            "case {} is of kind {kind:?}; known kinds are predicates, dra, estimate, dra-estimate, drain, utilization and \
             similar",
            case.id
        ),
    };
    let outcome = run(case).map_err(|error| error.context(format!("case {}", case.id)))?;
    Ok(match outcome {
        Outcome::Failed { .. } if is_exception(&case.id) => {
            Outcome::Passed { remark: Some("differ and are listed as exceptions") }
        }
        outcome => outcome,
    })
}
