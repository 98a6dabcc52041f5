//! The requests: one read, two writes, and the list of plans.

use std::collections::BTreeMap;

use plimsoll_guest::http::{Client, Request, Transport};
use plimsoll_guest::{Deadline, ErrorClass, PluginError, Setup};
use serde::Serialize;
use serde_json::Value;

use crate::cluster::{Cluster, MachineSize, Pool};
use crate::config::{Config, Payload};
use crate::errors::{OwnWords, judge};
use crate::lenient::{identifier, list, whole};

/// Slot of the credential that the host signs with.
pub(crate) const CREDENTIAL: &str = "api";

/// The API of one cluster.
pub(crate) struct Api<T> {
    client: Client<T>,
    cluster: String,
    payload: Payload,
    words: OwnWords,
}

/// Body of an update. Counts go out quoted, as the vendor shows them.
#[derive(Serialize)]
struct Update<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<&'a str>,
    count: String,
}

impl<T: Transport> Api<T> {
    /// # Errors
    /// The base URL is none.
    pub(crate) fn new(config: &Config, transport: T, setup: &Setup) -> Result<Self, PluginError> {
        let client = Client::new(&config.base_url, transport)?
            .credential(CREDENTIAL)
            .user_agent(&setup.user_agent)
            .header("accept", "application/json")
            .header("accept-encoding", "identity")
            .timeout(config.timeout);
        let (cluster, words) = (config.cluster.clone(), config.words.clone());
        Ok(Self { client, cluster, payload: config.payload, words })
    }

    /// Reads the cluster.
    ///
    /// # Errors
    /// It could not be read, or the answer is about another cluster.
    pub(crate) fn cluster(&self, deadline: Deadline) -> Result<Cluster, PluginError> {
        let body = self.read(&Request::get("/kubernetes/{}").segment(&self.cluster), deadline);
        let body = body.map_err(|error| match error.class {
            ErrorClass::NotFound => PluginError { class: ErrorClass::Config, ..error },
            _ => error,
        })?;
        let unreadable = |what: &str| {
            let message = format!("the answer about cluster {} {what}; nothing is concluded from it", self.cluster);
            PluginError::transient(message).with_code("undecodable")
        };
        let cluster = Cluster::read(&body).ok_or_else(|| unreadable("does not list its node pools"))?;
        match &cluster.id {
            Some(id) if *id == self.cluster => Ok(cluster),
            Some(id) => Err(unreadable(&format!("is about cluster {id}"))),
            None => Err(unreadable("does not name the cluster")),
        }
    }

    /// Writes a pool's count. Zero would remove the pool, so it is never sent.
    ///
    /// # Errors
    /// It was refused, or nobody knows what happened: then `outcome_unknown` is set.
    pub(crate) fn set_count(&self, pool: &Pool, count: u32, deadline: Deadline) -> Result<(), PluginError> {
        if count == 0 {
            return Err(PluginError::other("count-zero", "a count of zero would remove the pool").for_group(&pool.id));
        }
        let update = self.update(pool, count)?;
        let request = Request::post("/kubernetes/{}/nodepool/{}/update").segment(&self.cluster).segment(&pool.id);
        self.write(&request.json(&update)?, deadline)
    }

    fn update<'a>(&self, pool: &'a Pool, count: u32) -> Result<Update<'a>, PluginError> {
        let count = count.to_string();
        match (self.payload, &pool.plan) {
            (Payload::CountOnly, _) => Ok(Update { label: None, size: None, count }),
            (Payload::Documented, Some(plan)) => {
                Ok(Update { label: Some(pool.label.as_deref().unwrap_or(&pool.id)), size: Some(plan), count })
            }
            // A wrong plan would resize the pool's machines.
            (Payload::Documented, None) => Err(PluginError::config(
                "the answer does not name the pool's plan, which update_payload \"documented\" has to send; set it to \
                 \"count-only\"",
            )
            .with_code("no-plan")
            .for_group(&pool.id)),
        }
    }

    /// Deletes a worker.
    ///
    /// # Errors
    /// Class `not-found`: it is gone already. Else as for [`set_count`](Self::set_count).
    pub(crate) fn delete(&self, pool: &Pool, worker: &str, deadline: Deadline) -> Result<(), PluginError> {
        let request = Request::delete("/kubernetes/{}/nodepool/{}/{}/delete");
        self.write(&request.segment(&self.cluster).segment(&pool.id).segment(worker), deadline)
    }

    /// Sizes of all plans, which are listed for some machine.
    ///
    /// # Errors
    /// They could not be read.
    pub(crate) fn plans(
        &self,
        machine: &str,
        deadline: Deadline,
    ) -> Result<BTreeMap<String, MachineSize>, PluginError> {
        let body = self.read(&Request::get("/cloud/{}/resizeplans").segment(machine), deadline)?;
        let size = |plan: &Value| {
            let (cores, memory_mib) = whole(plan.get("cpu")).zip(whole(plan.get("ram")))?;
            Some((identifier(plan.get("id"))?, MachineSize { cores, memory_mib, disk_gb: whole(plan.get("disk")) }))
        };
        Ok(list(body.get("plans")).unwrap_or_default().into_iter().filter_map(size).collect())
    }

    fn read(&self, request: &Request, deadline: Deadline) -> Result<Value, PluginError> {
        let body = judge(self.client.send(request, deadline)?, &self.words, true);
        body.map_err(|error| PluginError { outcome_unknown: false, ..error })
    }

    fn write(&self, request: &Request, deadline: Deadline) -> Result<(), PluginError> {
        let answer = judge(self.client.send(request, deadline)?, &self.words, false);
        let unknown = |error: &PluginError| error.outcome_unknown || error.code == "undecodable";
        answer.map(drop).map_err(|error| PluginError { outcome_unknown: unknown(&error), ..error })
    }
}

/// The failure of a write to a pool, with the scope that its class has: what is wrong with the account or the network is
/// wrong with every pool.
pub(crate) fn in_pool(error: PluginError, pool: &str) -> PluginError {
    match error.class {
        ErrorClass::Auth | ErrorClass::Billing | ErrorClass::Throttled | ErrorClass::Config => error,
        _ => error.for_group(pool),
    }
}
