//! Removing nodes: which are idle, what holds them, where their pods would go, and when they may go.

mod candidates;
mod marks;
mod removal;
mod search;
mod select;
mod strays;
