//! What an operator grants a plug-in: the file is read here, and requests are judged by it here.
//!
//! ```text
//!  plugins.yaml ──► PluginConfig ──► Grant, AddressPolicy, Binding
//!                                            │
//!                  request of a plug-in ──► permit ──► Permit, or a Refusal that says which entry would allow it
//! ```
//!
//! All of it is text in, verdict out: no network, no files, no keys, no runtime. So it builds in seconds, and a fuzzer can
//! play a hostile plug-in and a hurried operator (`fuzz/`). What carries the requests is `plimsoll_plugins::egress`, what
//! signs them `plimsoll_plugins::credentials`.

mod action;
mod address;
mod alias;
mod binding;
pub mod config;
mod denial;
mod environment;
mod grant;
mod keys;
mod kind;
mod proxy;
mod request;

pub use self::action::{ActionError, ActionGrant};
pub use self::address::{AddressPolicy, ClosedAddress};
pub use self::alias::{Alias, AliasError};
pub use self::binding::Binding;
pub use self::config::PluginConfig;
pub use self::denial::{Denial, Granted, Refusal};
pub use self::environment::{Chosen, Environment, EnvironmentError, alicloud_from_environment};
pub use self::grant::{Grant, GrantError, HostPattern, borrowed};
pub use self::keys::{AccessKey, Generation, KeyConfig, KeyOrigin, Place, RamRole, Role, Rrsa, SignerConfig};
pub use self::kind::Kind;
pub use self::proxy::{NoProxy, Proxy, ProxyError};
pub use self::request::{MOST_HEADERS, MOST_URL_BYTES, Permit, SLOT_HEADER, check_address, permit};

#[cfg(test)]
mod properties;
