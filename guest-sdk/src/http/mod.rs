//! A small HTTP client: JSON in and out, capped sizes, a deadline on every call, signed by the host.
//!
//! ```text
//!  Client ──► Request ──► Outgoing ──► Transport ──► (host signs, checks the grant, sends) ──► Answer
//!    base URL, credential slot, user agent     Wasi in a component, FakeCloud in tests           │
//!  Response ◄────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A request that needs credentials names a *slot*; the host replaces the slot by a signature or a token. The plug-in never
//! sees a secret. What the operator did not grant comes back as [`Failure::Denied`].
//!
//! A provider's logic takes a [`Transport`] as a type parameter. The component uses [`Wasi`], a test uses
//! [`FakeCloud`](crate::testing::FakeCloud).
//!
//! ```
//! use plimsoll_guest::http::{Client, Request, Transport};
//! use plimsoll_guest::{Deadline, PluginError};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize)]
//! struct Resize { count: u32 }
//! #[derive(Deserialize)]
//! struct Pool { id: String, count: u32 }
//!
//! fn resize<T: Transport>(client: &Client<T>, pool: &str, count: u32, deadline: Deadline) -> Result<Pool, PluginError> {
//!     let request = Request::post("/pools/{}/resize").segment(pool).query("wait", "false").json(&Resize { count })?;
//!     Ok(client.json(&request, deadline)?)
//! }
//! ```

mod client;
mod error;
mod request;
mod response;
mod transport;
#[cfg(target_arch = "wasm32")]
mod wasi;

pub use client::Client;
pub use error::{Error, Failure};
pub use request::{Method, Request};
pub use response::Response;
pub use transport::{Answer, Outgoing, Scheme, SendError, Transport, Wasi};
