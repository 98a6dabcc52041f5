//! What the autoscaler tells people and their tools.
//!
//! ```text
//!  run loop ──► Signals::begins ──► Driver::turn(…, look) ──► Signals::ended
//!                                        │ Signals::look          │
//!                                        ▼                        ▼
//!                              account (plan as data)   metrics · health · decisions in the log
//!                                        │                        │
//!                                        └────────► serve ◄───────┘
//!                                  /metrics · /health-check · /api/v1/…
//! ```
//!
//! The run loop calls [`Signals`] and nothing else here; the same three calls serve a live cluster and one in memory.

pub mod account;
pub mod anonymize;
pub mod api;
mod decisions;
pub mod health;
pub mod metrics;
mod seam;
mod serve;
pub mod state;
pub mod telemetry;

pub use health::HealthLimits;
pub use seam::{Options, Signals};
pub use serve::{ServeError, Serving};
