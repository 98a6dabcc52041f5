//! The one read of the API: a cluster with its pools and their workers.

use std::collections::BTreeMap;

use plimsoll_guest::InstanceState;
use serde_json::Value;

use crate::lenient::{identifier, list, map, text, truth, whole};

/// A cluster as it was read. What could not be read is marked as such, and never left out in silence.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cluster {
    /// Its id, as the answer says.
    pub(crate) id: Option<String>,
    /// Data centre.
    pub(crate) region: String,
    /// Pools by id.
    pub(crate) pools: BTreeMap<String, Pool>,
    /// Sizes of plans, as the machines of this cluster show them.
    pub(crate) plans: BTreeMap<String, MachineSize>,
    /// Some machine of the cluster, through which the list of plans can be asked for.
    pub(crate) some_machine: Option<String>,
}

/// A pool.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Pool {
    pub(crate) id: String,
    /// Its label, if the answer shows one.
    pub(crate) label: Option<String>,
    /// Id of its plan.
    pub(crate) plan: Option<String>,
    /// Machines that Utho works towards; none: unreadable.
    pub(crate) count: Option<u32>,
    pub(crate) auto_scale: Option<bool>,
    /// The answer says something about `auto_scale` that cannot be read.
    pub(crate) auto_scale_is_odd: bool,
    pub(crate) min: Option<u32>,
    pub(crate) max: Option<u32>,
    pub(crate) workers: Vec<Worker>,
    /// Workers without an id, or that are no objects: they exist, and that is all that is known.
    pub(crate) nameless: u32,
    /// The list of workers could be read.
    pub(crate) workers_readable: bool,
}

/// A worker with an id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Worker {
    pub(crate) id: String,
    pub(crate) plan: Option<String>,
    pub(crate) hostname: Option<String>,
    pub(crate) private_ip: Option<String>,
    pub(crate) size: Option<MachineSize>,
    /// What the API says of its state, in lower case.
    pub(crate) words: Vec<String>,
}

/// What a machine has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct MachineSize {
    pub(crate) cores: u32,
    pub(crate) memory_mib: u32,
    /// None: unknown.
    pub(crate) disk_gb: Option<u32>,
}

/// Words for a worker that is on its way out.
const DELETING: &[&str] = &["deleting", "deleted", "destroying", "destroyed", "terminating", "terminated", "removing"];
/// Words for one that will not come up.
const FAILED: &[&str] = &["failed", "failure", "error", "errored"];
/// Words for one that is on its way.
const CREATING: &[&str] = &[
    "pending",
    "creating",
    "installing",
    "provisioning",
    "initializing",
    "building",
    "deploying",
    "starting",
    "queued",
];
/// Words for one that is up.
const RUNNING: &[&str] = &["installed", "active", "running"];

impl Cluster {
    /// Reads an answer; none if it does not say which pools there are.
    pub(crate) fn read(body: &Value) -> Option<Self> {
        let info = body.get("info").and_then(|info| info.get("cluster"));
        let master = body.get("info").and_then(|info| info.get("master"));
        let entries = map(body.get("nodepools"))?;
        let pools: BTreeMap<_, _> = entries.into_iter().map(|(id, pool)| (id.clone(), Pool::read(id, pool))).collect();
        let mut plans = BTreeMap::new();
        let masters = master.map(Worker::read).map(|master| (master.plan, master.size));
        let plan_of = |pool: &Pool, worker: &Worker| worker.plan.clone().or_else(|| pool.plan.clone());
        let machines = |pool: &Pool| pool.workers.iter().map(|one| (plan_of(pool, one), one.size)).collect::<Vec<_>>();
        for machine in pools.values().flat_map(machines).chain(masters) {
            if let (Some(plan), Some(size)) = machine {
                plans.entry(plan).or_insert(size);
            }
        }
        let first_worker = || pools.values().flat_map(|pool| &pool.workers).map(|worker| worker.id.clone()).next();
        Some(Self {
            id: info.and_then(|info| identifier(info.get("id"))),
            region: info.and_then(|info| text(info.get("dcslug"))).unwrap_or_default(),
            some_machine: master.and_then(|master| identifier(master.get("cloudid"))).or_else(first_worker),
            plans,
            pools,
        })
    }
}

impl Pool {
    /// The key of the map is the id, whatever the pool says inside.
    fn read(id: String, value: &Value) -> Self {
        let auto_scale = truth(value.get("auto_scale"));
        let said = value.get("auto_scale").is_some_and(|said| !said.is_null());
        let workers = list(value.get("workers"));
        let mut pool = Self {
            id,
            label: text(value.get("label")),
            plan: identifier(value.get("planid")).or_else(|| identifier(value.get("size"))),
            count: whole(value.get("count")),
            auto_scale,
            auto_scale_is_odd: said && auto_scale.is_none(),
            min: whole(value.get("min_size")),
            max: whole(value.get("max_size")),
            workers_readable: workers.is_some(),
            ..Self::default()
        };
        for worker in workers.unwrap_or_default().into_iter().map(Worker::read) {
            // Named twice is one machine.
            if worker.id.is_empty() {
                pool.nameless += 1;
            } else if pool.worker(&worker.id).is_none() {
                pool.workers.push(worker);
            }
        }
        pool.workers.sort_by(|a, b| a.id.cmp(&b.id));
        pool
    }

    /// A worker by its id.
    pub(crate) fn worker(&self, id: &str) -> Option<&Worker> {
        self.workers.iter().find(|worker| worker.id == id)
    }

    /// Workers that are not on their way out, nameless ones included.
    pub(crate) fn staying(&self) -> u32 {
        let staying = self.workers.iter().filter(|worker| worker.state() != InstanceState::Deleting).count();
        u32::try_from(staying).unwrap_or(u32::MAX).saturating_add(self.nameless)
    }

    /// Every worker is known by its id.
    pub(crate) fn workers_complete(&self) -> bool {
        self.workers_readable && self.nameless == 0
    }
}

impl Worker {
    /// What is no object gives a worker without an id.
    fn read(value: &Value) -> Self {
        let cores = whole(value.get("cpu")).filter(|&cores| cores > 0);
        let memory_mib = whole(value.get("ram")).filter(|&memory| memory > 0);
        let disk_gb = whole(value.get("disksize")).filter(|&disk| disk > 0);
        let word = |key: &str| text(value.get(key)).map(|word| word.to_ascii_lowercase());
        Self {
            id: identifier(value.get("cloudid")).unwrap_or_default(),
            plan: identifier(value.get("planid")),
            hostname: text(value.get("hostname")),
            private_ip: value.get("private_network").and_then(|network| text(network.get("ip"))),
            size: cores.zip(memory_mib).map(|(cores, memory_mib)| MachineSize { cores, memory_mib, disk_gb }),
            words: ["status", "app_status"].into_iter().filter_map(word).collect(),
        }
    }

    /// Where it is in its life. Two fields speak of it, and which of them means what is not documented: the worst wins.
    pub(crate) fn state(&self) -> InstanceState {
        let says = |words: &[&str]| self.words.iter().any(|word| words.contains(&word.as_str()));
        if says(DELETING) {
            InstanceState::Deleting
        } else if says(FAILED) {
            InstanceState::Failed
        } else if says(CREATING) {
            InstanceState::Creating
        } else if says(RUNNING) {
            InstanceState::Running
        } else {
            InstanceState::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn documented() -> Value {
        json!({
            "info": {
                "cluster": {"id": "1111", "dcslug": "inmumbaizone2"},
                "master": {"cloudid": "1300001", "ram": "8192", "cpu": "4", "planid": "10046"},
            },
            "nodepools": {
                "pool-b": {"id": "ignored", "size": "10045", "planid": "10045", "count": "2", "auto_scale": true,
                    "min_size": 1, "max_size": 5, "workers": [
                        {"cloudid": "1300124", "planid": "10045", "cpu": "2", "ram": "4096", "disksize": "80",
                         "status": "Active", "app_status": "Installed", "hostname": "w2",
                         "private_network": {"ip": "10.0.0.3"}},
                        {"cloudid": "1300123", "status": "Pending"},
                    ]},
                "pool-a": {"count": 0, "auto_scale": "0", "workers": []},
            },
            "status": "success",
        })
    }

    #[test]
    fn the_documented_answer_is_read() {
        let cluster = Cluster::read(&documented()).unwrap();
        assert_eq!((cluster.id.as_deref(), cluster.region.as_str()), (Some("1111"), "inmumbaizone2"));
        assert_eq!(cluster.some_machine.as_deref(), Some("1300001"));
        assert_eq!(cluster.pools.keys().collect::<Vec<_>>(), ["pool-a", "pool-b"]);
        let pool = &cluster.pools["pool-b"];
        assert_eq!((pool.id.as_str(), pool.plan.as_deref(), pool.count), ("pool-b", Some("10045"), Some(2)));
        assert_eq!((pool.auto_scale, pool.min, pool.max), (Some(true), Some(1), Some(5)));
        let [pending, active] = &pool.workers[..] else { panic!("two workers") };
        assert_eq!((pending.id.as_str(), pending.state()), ("1300123", InstanceState::Creating));
        assert_eq!((active.state(), active.private_ip.as_deref()), (InstanceState::Running, Some("10.0.0.3")));
        assert_eq!(cluster.plans["10045"], MachineSize { cores: 2, memory_mib: 4096, disk_gb: Some(80) });
        assert_eq!(cluster.plans["10046"].cores, 4);
    }

    #[rstest]
    #[case::missing(json!({"status": "success"}))]
    #[case::null(json!({"nodepools": null}))]
    #[case::text(json!({"nodepools": "pool-a"}))]
    #[case::strangers(json!({"nodepools": [1]}))]
    fn without_pools_nothing_is_read(#[case] body: Value) {
        assert_eq!(Cluster::read(&body), None);
    }

    #[rstest]
    #[case::object(json!({}))]
    #[case::list(json!([]))]
    fn no_pools_are_no_pools(#[case] pools: Value) {
        assert!(Cluster::read(&json!({"nodepools": pools})).unwrap().pools.is_empty());
    }

    #[test]
    fn broken_workers_do_not_hide_the_others() {
        let workers = json!([{"cloudid": ""}, 7, {"cloudid": "0"}, {"cloudid": "w"}, {"cloudid": "w"}]);
        let cluster = Cluster::read(&json!({"nodepools": {"p": {"count": "x", "workers": workers}}})).unwrap();
        let pool = &cluster.pools["p"];
        assert_eq!((pool.workers.len(), pool.nameless, pool.count), (1, 3, None));
        assert!(pool.workers_readable && !pool.workers_complete());
        assert_eq!(pool.staying(), 4);
    }

    #[test]
    fn a_pool_without_a_list_of_workers_is_not_empty() {
        for workers in [json!(null), json!("none")] {
            let cluster = Cluster::read(&json!({"nodepools": {"p": {"count": 2, "workers": workers}}})).unwrap();
            assert!(!cluster.pools["p"].workers_complete());
        }
    }

    #[rstest]
    #[case::installed("Active", "Installed", InstanceState::Running)]
    #[case::other_way_round("Installed", "Active", InstanceState::Running)]
    #[case::one_field("Active", "", InstanceState::Running)]
    #[case::not_installed_yet("Active", "Installing", InstanceState::Creating)]
    #[case::pending("Pending", "", InstanceState::Creating)]
    #[case::deleting("Deleting", "Installed", InstanceState::Deleting)]
    #[case::failed("Failed", "Installing", InstanceState::Failed)]
    #[case::stopped("Inactive", "", InstanceState::Unknown)]
    #[case::nothing("", "", InstanceState::Unknown)]
    fn states(#[case] status: &str, #[case] app_status: &str, #[case] expected: InstanceState) {
        let worker = Worker::read(&json!({"cloudid": "1", "status": status, "app_status": app_status}));
        assert_eq!(worker.state(), expected);
    }
}
