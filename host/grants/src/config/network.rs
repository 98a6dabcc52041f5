//! The section `network`: how the host reaches the internet for all plug-ins.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{ConfigError, error, range};
use crate::alias::Alias;
use crate::environment::Environment;
use crate::proxy::{NoProxy, Proxy};

/// How the host reaches the internet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NetworkConfig {
    /// A proxy in between.
    pub proxy: ProxyConfig,
    /// File with roots that are trusted besides Mozilla's.
    pub extra_ca_file: Option<PathBuf>,
    /// Ranges of pods, services and nodes, which no plug-in may reach.
    pub cluster_cidrs: Vec<IpNet>,
    /// Names whose addresses are written down.
    pub host_aliases: Vec<Alias>,
}

/// Which proxy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ProxyConfig {
    /// None.
    #[default]
    Direct,
    /// What `HTTPS_PROXY` and `NO_PROXY` say.
    Environment,
    /// This one.
    Given(Proxy),
}

const EXAMPLE: &str = "network:
  proxy: http://proxy.example:3128
  no-proxy: [.internal.example, 10.0.0.0/8]
  extra-ca-file: /etc/plimsoll/ca.pem
  cluster-cidrs: [10.244.0.0/16, 10.96.0.0/12]
  host-aliases: {api.example.com: 10.0.0.7}";

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct RawNetwork {
    proxy: Option<Spanned<String>>,
    no_proxy: Vec<Spanned<String>>,
    extra_ca_file: Option<PathBuf>,
    cluster_cidrs: Vec<Spanned<String>>,
    host_aliases: BTreeMap<String, Spanned<String>>,
}

pub(super) fn read(file: &str, raw: RawNetwork) -> Result<NetworkConfig, ConfigError> {
    let fail = |at: &Spanned<String>, key: &str, message| {
        error(file, at.referenced, format!("network.{key}"), message, EXAMPLE)
    };
    let mut cluster_cidrs = vec![];
    for (index, cidr) in raw.cluster_cidrs.iter().enumerate() {
        let range = range(&cidr.value);
        cluster_cidrs.push(range.map_err(|message| fail(cidr, &format!("cluster-cidrs[{index}]"), message))?);
    }
    let mut host_aliases = vec![];
    for (name, address) in &raw.host_aliases {
        let alias = Alias::parse(name, &address.value);
        host_aliases.push(alias.map_err(|error| fail(address, "host-aliases", error.to_string()))?);
    }
    for (index, entry) in raw.no_proxy.iter().enumerate() {
        let read = NoProxy::new([entry.value.as_str()]);
        read.map_err(|error| fail(entry, &format!("no-proxy[{index}]"), error.to_string()))?;
    }
    let proxy = match &raw.proxy {
        Some(text) if text.value == "environment" && raw.no_proxy.is_empty() => ProxyConfig::Environment,
        Some(text) if text.value == "environment" => {
            let message = "environment takes NO_PROXY too; leave no-proxy out".to_owned();
            return Err(fail(text, "proxy", message));
        }
        Some(text) => {
            let past = NoProxy::new(raw.no_proxy.iter().map(|entry| entry.value.as_str()));
            let proxy = past.and_then(|past| Proxy::new(&text.value, past));
            // Not the text: it may hold a password.
            ProxyConfig::Given(proxy.map_err(|error| fail(text, "proxy", error.to_string()))?)
        }
        None => match raw.no_proxy.first() {
            Some(entry) => return Err(fail(entry, "no-proxy", "has no effect without proxy".to_owned())),
            None => ProxyConfig::Direct,
        },
    };
    Ok(NetworkConfig { proxy, extra_ca_file: raw.extra_ca_file, cluster_cidrs, host_aliases })
}

impl NetworkConfig {
    /// Ranges that no plug-in may reach: the cluster's, and the address of the API server.
    pub fn closed_ranges(&self, environment: &Environment) -> Vec<IpNet> {
        let server = environment.get("KUBERNETES_SERVICE_HOST").and_then(|host| host.parse::<IpAddr>().ok());
        self.cluster_cidrs.iter().copied().chain(server.map(IpNet::from)).collect()
    }
}
