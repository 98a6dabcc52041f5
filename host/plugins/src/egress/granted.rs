//! What one plug-in is granted, with the credentials that the broker made of the operator's file.

use std::collections::BTreeMap;

use ipnet::IpNet;
use plimsoll_grants::config::Entry;
use plimsoll_grants::{AddressPolicy, Grant, Refusal, check_address};
use url::Url;

use super::InternetOptions;
use crate::credentials::{Broker, Credential};

/// What the operator grants one plug-in on the network. The default grants nothing.
#[derive(Clone, Debug, Default)]
pub struct NetworkGrants {
    /// Places that it may talk to.
    pub hosts: Vec<Grant>,
    /// Credential slots by name.
    pub credentials: BTreeMap<String, Credential>,
    /// Address ranges opened for it, and closed for everybody.
    pub addresses: AddressPolicy,
    /// Whether its places may be without encryption, for messages.
    pub insecure_http: bool,
    /// File that holds these grants, for messages; empty if there is none.
    pub file: String,
}

impl NetworkGrants {
    /// What an entry of `file` grants, with this machine's clock, environment and network for its credentials. `closed`:
    /// ranges that no plug-in may reach: pods, services, nodes.
    ///
    /// # Errors
    /// As [`Self::brokered`], and if the network cannot be set up.
    pub fn of_this_machine(entry: &Entry, file: &str, closed: Vec<IpNet>) -> Result<Self, String> {
        if entry.credentials.is_empty() {
            return Ok(Self::without_credentials(entry, file, closed));
        }
        let broker = Broker::of_this_machine(InternetOptions::default()).map_err(|error| error.to_string())?;
        Self::brokered(entry, file, closed, &broker)
    }

    /// What an entry of `file` grants, with credentials of this broker.
    ///
    /// # Errors
    /// If a credential should come from the environment, and that speaks of none.
    pub fn brokered(entry: &Entry, file: &str, closed: Vec<IpNet>, broker: &Broker) -> Result<Self, String> {
        let mut grants = Self::without_credentials(entry, file, closed);
        for (slot, entry) in &entry.credentials {
            let signer = broker.signer(&entry.signer).map_err(|error| format!("credential {slot:?}: {error}"))?;
            let mut credential = Credential::new(entry.hosts.iter().map(String::as_str), signer)?;
            if let Some(actions) = &entry.actions {
                credential = credential.only_for(actions.iter().cloned());
            }
            grants.credentials.insert(slot.clone(), credential);
        }
        Ok(grants)
    }

    fn without_credentials(entry: &Entry, file: &str, closed: Vec<IpNet>) -> Self {
        Self {
            hosts: entry.hosts.clone(),
            credentials: BTreeMap::new(),
            addresses: AddressPolicy { opened: entry.cidrs.clone(), closed },
            insecure_http: entry.insecure_http,
            file: file.to_owned(),
        }
    }

    /// Reads and checks the address of a request; see [`check_address`].
    ///
    /// # Errors
    /// Why it is refused.
    pub fn check_address(&self, text: &str) -> Result<Url, Refusal> {
        check_address(&self.hosts, &self.addresses, text).map(|(url, _)| url)
    }
}
