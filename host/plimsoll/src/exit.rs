//! How the program ends when something is wrong: 1 failed, 2 bad input.

use std::process::ExitCode;

use crate::flags::FlagError;
use crate::terminal;

/// Why the program ends early.
#[derive(Debug)]
pub(crate) enum Exit {
    /// What was given cannot be read; the text says what, where and what to do.
    BadInput(String),
    /// Something else went wrong.
    Failed(anyhow::Error),
    /// What was given cannot be used, and the output says so already.
    Told,
    /// What was to be the same is not, and the output says so already.
    Differs,
}

impl Exit {
    pub(crate) fn bad_input(text: String) -> Self {
        Self::BadInput(text)
    }

    pub(crate) fn failed(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }

    pub(crate) fn flag(error: FlagError) -> Self {
        Self::BadInput(format!("--{}: {}", error.flag, error.problem))
    }

    /// Tells the user and gives the exit status.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::BadInput(text) => {
                terminal::complain(&text);
                ExitCode::from(2)
            }
            Self::Told => ExitCode::from(2),
            Self::Differs => ExitCode::FAILURE,
            Self::Failed(error) => {
                terminal::complain(&format!("plimsoll: {error:#}"));
                ExitCode::FAILURE
            }
        }
    }
}
