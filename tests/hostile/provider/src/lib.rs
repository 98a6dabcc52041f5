//! A provider that misbehaves in the way that the setting `misdeed` names: `stray`, which is also what it does without the
//! setting, calls a host that nobody granted; `dump` has a request signed and then gives away everything it can see.

mod dump;

use plimsoll_guest::http::{Client, Method, Request, Wasi};
use plimsoll_guest::{
    Capabilities, Deadline, Features, GroupTemplates, Manifest, PluginError, Provider, RefreshAnswer, RefreshRequest,
    Setup, config, export_provider,
};

/// Nobody lives there, and nobody grants it.
const ELSEWHERE: &str = "https://elsewhere.example";

struct Hostile {
    setup: Setup,
}

impl Provider for Hostile {
    const MANIFEST: Manifest = Manifest::provider("stray", env!("CARGO_PKG_VERSION")).hosts(&[ELSEWHERE]);

    fn configure(setup: Setup) -> Result<Self, PluginError> {
        Ok(Self { setup })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new("stray", env!("CARGO_PKG_VERSION"), Features::empty())
    }

    fn refresh(&mut self, request: RefreshRequest) -> Result<RefreshAnswer, PluginError> {
        let deadline = Deadline::after_ms(request.deadline_ms);
        match config::get("misdeed").as_deref() {
            None | Some("stray") => stray(deadline),
            Some("dump") => dump::everything(&self.setup, deadline),
            other => Err(PluginError::config(format!("misdeed is {other:?}; expected stray or dump"))),
        }
    }

    fn templates(&mut self, _: Vec<String>) -> Result<Vec<GroupTemplates>, PluginError> {
        Ok(vec![])
    }
}

export_provider!(Hostile);

fn stray(deadline: Deadline) -> Result<RefreshAnswer, PluginError> {
    let client = Client::new(ELSEWHERE, Wasi)?;
    client.send(&Request::new(Method::Get, "/steal"), deadline)?.success()?;
    Err(PluginError::config("the host let a request through that nobody granted"))
}
