//! What to do next: observation in, plan out.
//!
//! ```text
//!  Observation ──► Loop ──► Step::Rank(question) ──► (expander)   ──► answer ──┐
//!                   ▲  └──► Step::Act(action)    ──► (cloud, API) ──► outcome ─┤
//!                   └──────────────────────────────────────────────────────────┘
//!                           Step::Done ──► Plan
//! ```
//!
//! The core is a state machine without I/O, clock or chance: a driver feeds it an observation, answers its questions and
//! carries out its actions. The same inputs give the same plan, so that a run can be recorded, replayed and explained.
//! What one loop must know of the ones before is in [`memory::Memory`].

pub mod backoff;
pub mod cloud;
pub mod control_loop;
pub mod drain;
pub mod drift;
pub mod guard;
pub mod health;
pub mod ledger;
pub mod limits;
pub mod memory;
pub mod observation;
pub mod plan;
pub mod priorities;
pub mod ranking;
pub mod readiness;
pub mod saved;
mod scale_down;
mod scale_up;
pub mod settings;
pub mod similar;
pub mod templates;
pub mod utilization;
mod words;

pub use control_loop::{Action, Eviction, Loop, Outcome, Phase, Step};
pub use memory::Memory;
pub use observation::Observation;
pub use plan::Plan;
pub use scale_up::choice::draw;
pub use settings::Settings;
