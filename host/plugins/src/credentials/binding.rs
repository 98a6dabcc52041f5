//! What an operator binds to a slot: a signer, and what its signatures may be used for.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::Signer;
use crate::egress::HostPattern;

/// A signer, the hosts that its signatures may go to, and the API actions that they may be for.
#[derive(Clone)]
pub struct Credential {
    pub(crate) hosts: Vec<HostPattern>,
    /// None: any.
    pub(crate) actions: Option<BTreeSet<String>>,
    pub(crate) signer: Arc<dyn Signer>,
}

impl Credential {
    /// A credential for these hosts: names as in `api.example.com` or `*.example.com`.
    ///
    /// # Errors
    /// The first host that is not a host name.
    pub fn new<'a>(hosts: impl IntoIterator<Item = &'a str>, signer: Arc<dyn Signer>) -> Result<Self, String> {
        let parse = |host: &'a str| HostPattern::parse(host).map_err(|error| format!("{host:?}: {error}"));
        Ok(Self { hosts: hosts.into_iter().map(parse).collect::<Result<_, _>>()?, actions: None, signer })
    }

    /// Only for these values of the header `x-acs-action`.
    #[must_use]
    pub fn only_for(mut self, actions: impl IntoIterator<Item = String>) -> Self {
        self.actions = Some(actions.into_iter().collect());
        self
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.hosts.iter().map(ToString::to_string).collect();
        f.debug_struct("Credential").field("hosts", &hosts).field("actions", &self.actions).finish_non_exhaustive()
    }
}
