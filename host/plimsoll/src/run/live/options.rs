//! What the flags say about a live cluster.

use std::time::Duration;

use clap::ArgMatches;
use plimsoll_core::Settings;
use plimsoll_kubernetes::{Endpoint, LeaseOptions};

use crate::exit::Exit;
use crate::flags;

/// What the flags say about a live cluster.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) endpoint: Endpoint,
    pub(super) qps: f64,
    pub(super) burst: u32,
    /// Who competes for the Lease; none: this is the only replica.
    pub(super) lease: Option<LeaseOptions>,
    /// Where what must outlive the process is kept.
    pub(super) memory_name: String,
    pub(super) scan_interval: Duration,
    pub(super) frequent_loops: bool,
    /// Name of the status ConfigMap; none: it is not written.
    pub(super) status_name: Option<String>,
    pub(super) duplicated_events: bool,
    pub(super) soft_taints: SoftTaints,
    /// Whether objects of nodes whose machines are gone are deleted here.
    pub(super) delete_node_objects: bool,
}

/// How many nodes are marked softly after one loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct SoftTaints {
    pub(super) most: u32,
    pub(super) within: Duration,
}

impl Options {
    pub(super) fn new(matches: &ArgMatches, settings: &Settings) -> Result<Self, Exit> {
        let given = |name: &str| Some(flags::text(matches, name).to_owned()).filter(|text| !text.is_empty());
        let duration = |name| flags::duration(matches, name).map_err(Exit::flag);
        let switch = |name| flags::switch(matches, name).map_err(Exit::flag);
        let count = |name| flags::count(matches, name).map_err(Exit::flag);
        let lock = flags::text(matches, "leader-elect-resource-lock");
        if lock != "leases" {
            return Err(Exit::bad_input(format!(
                "--leader-elect-resource-lock: {lock:?} is not supported; the lock is a Lease, \"leases\""
            )));
        }
        let lease_name = flags::text(matches, "leader-elect-resource-name").to_owned();
        let lease = LeaseOptions {
            namespace: settings.namespace.clone(),
            name: lease_name.clone(),
            identity: plimsoll_kubernetes::identity(),
            duration: duration("leader-elect-lease-duration")?,
            renew_deadline: duration("leader-elect-renew-deadline")?,
            retry_period: duration("leader-elect-retry-period")?,
        };
        let lease = match switch("leader-elect")? {
            true => {
                lease.check().map_err(|(flag, problem)| Exit::bad_input(format!("--{flag}: {problem}")))?;
                Some(lease)
            }
            false => None,
        };
        let status_name = flags::text(matches, "status-config-map-name").to_owned();
        Ok(Self {
            endpoint: Endpoint {
                kubeconfig: given("kubeconfig").map(Into::into),
                server: given("kubernetes"),
                user_agent: given("user-agent").unwrap_or_else(|| format!("plimsoll/{}", env!("CARGO_PKG_VERSION"))),
            },
            qps: flags::float(matches, "kube-client-qps").map_err(Exit::flag)?,
            burst: count("kube-client-burst")?,
            memory_name: format!("{lease_name}-state"),
            lease,
            scan_interval: duration("scan-interval")?,
            frequent_loops: switch("frequent-loops-enabled")?,
            status_name: switch("write-status-configmap")?.then_some(status_name),
            duplicated_events: switch("record-duplicated-events")?,
            soft_taints: SoftTaints {
                most: count("max-bulk-soft-taint-count")?,
                within: duration("max-bulk-soft-taint-time")?,
            },
            delete_node_objects: matches.get_flag("delete-node-objects"),
        })
    }
}
