//! Keys that come and go: against token and metadata services in this process, on a virtual clock.

mod environment;
mod lifetimes;
mod metadata;
mod services;
mod sts;
