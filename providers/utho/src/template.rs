//! The node that a pool would create next.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use plimsoll_guest::{KeyValue, NodeTemplate, PluginError, Quantity};

use crate::cluster::{Cluster, MachineSize, Pool};
use crate::config::PoolTemplate;

/// Pods on one node, as Kubernetes limits them.
const PODS: &str = "110";

/// What a template is made from.
pub(crate) struct Source<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) pool: &'a Pool,
    /// What the operator says about the pool.
    pub(crate) told: Option<&'a PoolTemplate>,
}

impl Source<'_> {
    /// Size of the pool's machines, as machines of the same plan show it.
    fn shown_size(&self) -> Option<MachineSize> {
        match &self.pool.plan {
            Some(plan) => self.cluster.plans.get(plan).copied(),
            None => self.pool.workers.iter().find_map(|worker| worker.size),
        }
    }

    /// The list of plans has to be read: neither a machine nor the operator tells the size.
    pub(crate) fn needs_plans(&self) -> bool {
        let told = |name: &str| self.told.is_some_and(|told| told.capacity.contains_key(name));
        self.shown_size().is_none() && !(told("cpu") && told("memory"))
    }

    /// Changes whenever the template would, and depends only on what every read of the cluster shows.
    pub(crate) fn version(&self) -> String {
        let mut hasher = DefaultHasher::new();
        (&self.cluster.id, &self.cluster.region, &self.pool.id, &self.pool.plan).hash(&mut hasher);
        format!("{:?} {:?}", self.shown_size(), self.told).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// The template, with the list of plans if it was needed.
    ///
    /// # Errors
    /// Class `config`: nobody knows the size of the machines.
    pub(crate) fn template(&self, plans: &BTreeMap<String, MachineSize>) -> Result<NodeTemplate, PluginError> {
        let listed = || plans.get(self.pool.plan.as_ref()?).copied();
        let size = self.shown_size().or_else(listed);
        if size.is_none() && self.needs_plans() {
            let (pool, plan) = (&self.pool.id, self.pool.plan.as_deref().unwrap_or("unknown"));
            let message = format!(
                "pool {pool} has no machine to be modelled on, and its plan {plan} is not listed; give cpu and memory in \
                 pool_templates.{pool}.capacity of the cloud configuration"
            );
            return Err(PluginError::config(message).with_code("no-template").for_group(pool));
        }
        let plan = self.pool.plan.clone().unwrap_or_default();
        let base = NodeTemplate::new(self.version(), plan, self.capacity(size));
        let told = self.told;
        Ok(NodeTemplate {
            arch: told.and_then(|told| told.arch.clone()).unwrap_or(base.arch),
            region: self.cluster.region.clone(),
            zone: told.and_then(|told| told.zone.clone()),
            labels: self.labels(),
            taints: told.map(|told| told.taints.clone()).unwrap_or_default(),
            ..base
        })
    }

    fn capacity(&self, size: Option<MachineSize>) -> Vec<Quantity> {
        let mut amounts = BTreeMap::from([("pods".to_owned(), PODS.to_owned())]);
        if let Some(size) = size {
            amounts.insert("cpu".to_owned(), size.cores.to_string());
            amounts.insert("memory".to_owned(), format!("{}Mi", size.memory_mib));
            amounts.extend(size.disk_gb.map(|disk| ("ephemeral-storage".to_owned(), format!("{disk}G"))));
        }
        amounts.extend(self.told.into_iter().flat_map(|told| told.capacity.clone()));
        amounts.into_iter().map(|(name, amount)| Quantity { name, amount }).collect()
    }

    /// Those that Utho's controller puts on every node of the pool, and those that the operator names. Never `node_id`,
    /// which belongs to one node.
    fn labels(&self) -> Vec<KeyValue> {
        let mut labels = BTreeMap::from([("nodepool_id".to_owned(), self.pool.id.clone())]);
        labels.extend(self.cluster.id.clone().map(|id| ("cluster_id".to_owned(), id)));
        labels.insert("cluster_dcslug".to_owned(), self.cluster.region.clone());
        labels.extend(self.told.into_iter().flat_map(|told| told.labels.clone()));
        labels.into_iter().filter(|(_, value)| !value.is_empty()).map(KeyValue::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_guest::{ErrorClass, Taint, TaintEffect};
    use serde_json::json;

    fn cluster(workers: serde_json::Value) -> Cluster {
        let pool = json!({"size": "10045", "count": 1, "workers": workers});
        let info = json!({"cluster": {"id": "1111", "dcslug": "inmumbaizone2"}});
        Cluster::read(&json!({"info": info, "nodepools": {"p": pool}})).unwrap()
    }

    fn with_worker() -> Cluster {
        let worker = json!({"cloudid": "1300123", "planid": "10045", "cpu": "2", "ram": "4096", "disksize": "80"});
        cluster(json!([worker]))
    }

    fn source<'a>(cluster: &'a Cluster, told: Option<&'a PoolTemplate>) -> Source<'a> {
        Source { cluster, pool: &cluster.pools["p"], told }
    }

    fn capacity(template: &NodeTemplate) -> Vec<(&str, &str)> {
        template.capacity.iter().map(|amount| (amount.name.as_str(), amount.amount.as_str())).collect()
    }

    #[test]
    fn a_worker_shows_the_size_and_nothing_of_itself() {
        let cluster = with_worker();
        let source = source(&cluster, None);
        assert!(!source.needs_plans());
        let template = source.template(&BTreeMap::new()).unwrap();
        let expected = [("cpu", "2"), ("ephemeral-storage", "80G"), ("memory", "4096Mi"), ("pods", "110")];
        assert_eq!(capacity(&template), expected);
        assert_eq!((template.instance_type.as_str(), template.region.as_str()), ("10045", "inmumbaizone2"));
        assert_eq!((template.zone, template.arch.as_str()), (None, "amd64"));
        let labels = [("cluster_dcslug", "inmumbaizone2"), ("cluster_id", "1111"), ("nodepool_id", "p")];
        assert_eq!(template.labels, labels.map(KeyValue::from));
    }

    #[test]
    fn without_a_worker_the_list_of_plans_tells() {
        let cluster = cluster(json!([{"cloudid": "1", "status": "Pending"}]));
        let source = source(&cluster, None);
        assert!(source.needs_plans());
        let size = MachineSize { cores: 4, memory_mib: 8192, disk_gb: None };
        let template = source.template(&BTreeMap::from([("10045".to_owned(), size)])).unwrap();
        assert_eq!(capacity(&template), [("cpu", "4"), ("memory", "8192Mi"), ("pods", "110")]);

        let error = source.template(&BTreeMap::new()).unwrap_err();
        assert_eq!((error.class, error.code.as_str()), (ErrorClass::Config, "no-template"));
        assert!(error.message.contains("pool_templates.p.capacity"), "{}", error.message);
    }

    #[test]
    fn the_operator_has_the_last_word() {
        let cluster = with_worker();
        let told = PoolTemplate {
            labels: [("team".to_owned(), "ml".to_owned())].into(),
            taints: vec![Taint::new("gpu", "yes", TaintEffect::NoSchedule)],
            zone: Some("z1".into()),
            arch: Some("arm64".into()),
            capacity: [("cpu".to_owned(), "1900m".to_owned()), ("nvidia.com/gpu".to_owned(), "1".to_owned())].into(),
        };
        let template = source(&cluster, Some(&told)).template(&BTreeMap::new()).unwrap();
        assert_eq!(capacity(&template)[..2], [("cpu", "1900m"), ("ephemeral-storage", "80G")]);
        assert!(template.labels.contains(&KeyValue::new("team", "ml")));
        assert_eq!((template.zone.as_deref(), template.arch.as_str()), (Some("z1"), "arm64"));
        assert_eq!(template.taints, told.taints);
        assert_ne!(source(&cluster, Some(&told)).version(), source(&cluster, None).version());
    }

    #[test]
    fn versions_follow_what_is_read() {
        let (with, without) = (with_worker(), cluster(json!([])));
        assert_eq!(source(&with, None).version(), source(&with_worker(), None).version());
        assert_ne!(source(&with, None).version(), source(&without, None).version());
    }

    #[test]
    fn an_operator_who_tells_the_size_needs_no_plans() {
        let cluster = cluster(json!([]));
        let amount = |name: &str, amount: &str| (name.to_owned(), amount.to_owned());
        let capacity = [amount("cpu", "2"), amount("memory", "4Gi")].into();
        let told = PoolTemplate { capacity, ..PoolTemplate::default() };
        let source = source(&cluster, Some(&told));
        assert!(!source.needs_plans());
        assert_eq!(source.template(&BTreeMap::new()).unwrap().capacity[1], Quantity::new("memory", "4Gi"));
    }
}
