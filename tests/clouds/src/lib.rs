//! Clouds in memory, for tests of providers: as strict as the real ones, on a virtual clock, with a journal and with
//! faults on demand. Equal seeds and equal requests give equal answers.
//!
//! ```text
//!  request ─► Fake::handle ─┬─ Faults: does a rule strike? ──────────────┐
//!                           ├─ Logic::serve (one per cloud) ─► response ─┴─► Answer (late, broken, or none)
//!                           └─ Journal: what was asked, what changed, what a good client would not have sent
//!  time ────► Fake::advance ── Logic::run: machines start and stop, activities end
//! ```
//!
//! A cloud is a plain value without I/O. A test hands it requests; the binary `clouds` serves it over TLS.

pub mod alicloud;
pub mod answer;
pub mod chance;
pub mod clock;
pub mod fake;
pub mod faults;
pub mod journal;
pub mod nodes;
pub mod stale;

pub use answer::{Answer, Lost, Reply};
pub use chance::Chance;
pub use clock::UnixMs;
pub use fake::{Cloud, Context, Fake, Logic, Refusal};
pub use faults::{Fault, Faults, Rule, Target, Twist};
pub use journal::{Call, Cause, Event, Happening, Journal};
pub use nodes::{Node, Script};
