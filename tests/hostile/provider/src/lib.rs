//! A provider that calls a host which nobody granted it.

use plimsoll_guest::http::{Client, Method, Request, Wasi};
use plimsoll_guest::{
    Capabilities, Deadline, Features, GroupTemplates, Manifest, PluginError, Provider, RefreshAnswer, RefreshRequest,
    Setup, export_provider,
};

/// Nobody lives there, and nobody grants it.
const ELSEWHERE: &str = "https://elsewhere.example";

struct Stray;

impl Provider for Stray {
    const MANIFEST: Manifest = Manifest::provider("stray", env!("CARGO_PKG_VERSION")).hosts(&[ELSEWHERE]);

    fn configure(_: Setup) -> Result<Self, PluginError> {
        Ok(Self)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new("stray", env!("CARGO_PKG_VERSION"), Features::empty())
    }

    fn refresh(&mut self, request: RefreshRequest) -> Result<RefreshAnswer, PluginError> {
        let client = Client::new(ELSEWHERE, Wasi)?;
        let deadline = Deadline::after_ms(request.deadline_ms);
        client.send(&Request::new(Method::Get, "/steal"), deadline)?.success()?;
        Err(PluginError::config("the host let a request through that nobody granted"))
    }

    fn templates(&mut self, _: Vec<String>) -> Result<Vec<GroupTemplates>, PluginError> {
        Ok(vec![])
    }
}

export_provider!(Stray);
