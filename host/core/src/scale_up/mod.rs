//! Growing groups: options, the choice between them, what is trimmed, and what the cloud is asked for.

pub(crate) mod again;
mod balance;
pub(crate) mod choice;
mod increase;
pub(crate) mod options;
mod question;
mod trim;
