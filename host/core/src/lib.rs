//! What to do next: observation in, plan out.
//!
//! ```text
//!  Observation ──► Loop ──► Step::Rank(question) ──► (expander) ──► answer ─┐
//!                   ▲  └──► Step::Act(action)    ──► (cloud, API) ──► outcome ─┤
//!                   │                                                       │
//!                   └───────────────────────────────────────────────────────┘
//!                           Step::Done(plan)
//! ```
//!
//! The core is a state machine without I/O, clock or chance: a driver feeds it an observation, answers its questions and
//! carries out its actions. The same inputs give the same plan.

pub mod cloud;
pub mod ranking;
