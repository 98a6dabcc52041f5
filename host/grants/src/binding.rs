//! What an operator binds to a credential slot: where its signatures may go, and what for.

use crate::action::ActionGrant;
use crate::grant::HostPattern;

/// The hosts that the signatures of a slot may go to, and the API actions that they may be for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    /// Hosts.
    pub hosts: Vec<HostPattern>,
    /// Operations that requests name in the header `x-acs-action`; none: any.
    pub actions: Option<Vec<ActionGrant>>,
}

impl Binding {
    /// For these hosts: names as in `api.example.com` or `*.example.com`.
    ///
    /// # Errors
    /// The first host that is not a host name.
    pub fn new<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let parse = |host: &'a str| HostPattern::parse(host).map_err(|error| format!("{host:?}: {error}"));
        Ok(Self { hosts: hosts.into_iter().map(parse).collect::<Result<_, _>>()?, actions: None })
    }

    /// Only for these operations.
    #[must_use]
    pub fn only_for(mut self, actions: impl IntoIterator<Item = ActionGrant>) -> Self {
        self.actions = Some(actions.into_iter().collect());
        self
    }
}
