//! A credential: what signs, and what the operator bound its signatures to.

use std::fmt;
use std::sync::Arc;

use plimsoll_grants::{ActionGrant, Binding};

use super::Signer;

/// A signer, the hosts that its signatures may go to, and the API actions that they may be for.
#[derive(Clone)]
pub struct Credential {
    pub(crate) binding: Binding,
    pub(crate) signer: Arc<dyn Signer>,
}

impl Credential {
    /// A credential for these hosts: names as in `api.example.com` or `*.example.com`.
    ///
    /// # Errors
    /// The first host that is not a host name.
    pub fn new<'a>(hosts: impl IntoIterator<Item = &'a str>, signer: Arc<dyn Signer>) -> Result<Self, String> {
        Ok(Self { binding: Binding::new(hosts)?, signer })
    }

    /// Only for these operations.
    #[must_use]
    pub fn only_for(self, actions: impl IntoIterator<Item = ActionGrant>) -> Self {
        Self { binding: self.binding.only_for(actions), ..self }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.binding.hosts.iter().map(ToString::to_string).collect();
        let actions = &self.binding.actions;
        f.debug_struct("Credential").field("hosts", &hosts).field("actions", actions).finish_non_exhaustive()
    }
}
