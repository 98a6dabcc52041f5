//! The providers of one process, seen as one cloud: last good state, templates, prices, and who owns which group.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use plimsoll_core::cloud::{
    Capabilities, CloudError, DeleteOutcome, ErrorClass, ErrorScope, GroupId, InstanceId, NodeHint, NodeMatch,
    NodeTemplate, PriceBook, SizeOutcome, Snapshot, WriteOptions,
};
use plimsoll_core::observation::CloudView;
use plimsoll_model::{Cluster, Template};
use plimsoll_plugins::provider::{RefreshRequest, Status};
use plimsoll_plugins::{CallError, Provider};

use crate::acting::Api;

/// How long a write may take.
const WRITE_PATIENCE: Duration = Duration::from_secs(60);

/// One provider with what is known of its cloud.
struct Attached {
    provider: Provider,
    capabilities: Option<Capabilities>,
    revision: Option<String>,
    /// The last good one.
    snapshot: Snapshot,
    /// Why the last read failed, if it did.
    trouble: Option<CloudError>,
    template_versions: BTreeMap<GroupId, String>,
    templates: BTreeMap<GroupId, Result<Vec<NodeTemplate>, CloudError>>,
}

/// All providers.
pub struct Clouds {
    attached: Vec<Attached>,
    /// Groups of all providers.
    snapshot: Snapshot,
    /// What the providers can do together; the first to name an accelerator label decides it.
    capabilities: Capabilities,
    templates: BTreeMap<GroupId, Result<Vec<NodeTemplate>, CloudError>>,
    prices: Option<PriceBook>,
    fixed: BTreeMap<GroupId, Template>,
}

impl Clouds {
    /// Clouds of which nothing was read yet.
    pub fn new(providers: Vec<Provider>) -> Self {
        Self {
            attached: providers.into_iter().map(Attached::new).collect(),
            snapshot: Snapshot::default(),
            capabilities: Capabilities::default(),
            templates: BTreeMap::new(),
            prices: None,
            fixed: BTreeMap::new(),
        }
    }

    /// Puts one provider in the place of all. What was known of the cloud stays until the new one has read it.
    pub fn replace(&mut self, provider: Provider) {
        let snapshot = self.attached.drain(..).next().map(|attached| attached.snapshot).unwrap_or_default();
        self.attached.push(Attached { snapshot, ..Attached::new(provider) });
    }

    /// Reads every cloud. A provider that fails keeps its last good state, marked as not read, so that nothing is
    /// written on the strength of it; the others are not affected. Returns what went wrong, but for one that was not asked
    /// because it rests after failures.
    pub async fn refresh(&mut self, api: &impl Api) -> Vec<String> {
        let mut troubles = Vec::new();
        for attached in &mut self.attached {
            let failed = attached.refresh(api).await.err();
            // The host told when it went to rest, and tells when it is back.
            let news = failed.as_ref().is_some_and(|error| error.failure.was_tried());
            attached.trouble = failed.map(CallError::into_cloud_error);
            let name = attached.provider.name();
            troubles.extend(attached.trouble.as_ref().filter(|_| news).map(|error| in_words(name, error)));
        }
        troubles.extend(self.unite());
        let known = |attached: &Attached| attached.capabilities.clone();
        let first = self.attached.iter().filter_map(known).find(|known| known.accelerator_label.is_some());
        self.capabilities = first.or_else(|| self.attached.iter().find_map(known)).unwrap_or_default();
        self.read_prices().await;
        troubles
    }

    /// Puts together what the providers have. What two of them claim, a group or a machine, belongs to the first; nothing
    /// that the other says of it counts. Returns what was refused.
    fn unite(&mut self) -> Vec<String> {
        let mut refused = Vec::new();
        self.snapshot = Snapshot { groups: vec![], complete: true };
        self.templates.clear();
        let mut machines: HashSet<NodeMatch> = HashSet::new();
        for attached in &self.attached {
            self.snapshot.complete &= attached.snapshot.complete;
            let first = self.snapshot.groups.len();
            for group in &attached.snapshot.groups {
                if self.snapshot.groups.iter().any(|known| known.id == group.id) {
                    refused.push(format!("node group {} is claimed by two providers; the first has it", group.id));
                    continue;
                }
                let mut group = group.clone();
                let listed = group.instances.len();
                group.instances.retain(|instance| !instance.matches.iter().any(|known| machines.contains(known)));
                if group.instances.len() < listed {
                    let count = listed - group.instances.len();
                    refused.push(format!("{count} machines of node group {} are another provider's", group.id));
                }
                group.error = attached.trouble.clone().or(group.error);
                let templates = attached.templates.get(&group.id).cloned();
                self.templates.extend(templates.map(|templates| (group.id.clone(), templates)));
                self.snapshot.groups.push(group);
            }
            let own = self.snapshot.groups.iter().skip(first).flat_map(|group| &group.instances);
            machines.extend(own.flat_map(|instance| instance.matches.iter().cloned()));
        }
        refused
    }

    async fn read_prices(&mut self) {
        let mut all: Option<PriceBook> = None;
        for attached in &self.attached {
            // A provider without prices, or one that cannot tell them now, leaves its groups without.
            let Ok(Some(mut book)) = attached.provider.prices().await else { continue };
            let owns = |id: &GroupId| attached.snapshot.groups.iter().any(|group| group.id == *id);
            let priced =
                all.as_ref().map(|all: &PriceBook| all.templates.iter().map(|price| price.group.clone()).collect());
            let priced: HashSet<GroupId> = priced.unwrap_or_default();
            book.templates.retain(|price| owns(&price.group) && !priced.contains(&price.group));
            match &mut all {
                None => all = Some(book),
                Some(all) => {
                    all.templates.extend(book.templates);
                    all.units.extend(book.units);
                }
            }
        }
        self.prices = all;
    }

    /// What is known.
    pub fn view(&self) -> CloudView<'_> {
        CloudView {
            snapshot: &self.snapshot,
            capabilities: &self.capabilities,
            templates: &self.templates,
            fixed_templates: &self.fixed,
            prices: self.prices.as_ref(),
        }
    }

    /// How each provider fared in the last read, by name: why it could not be read, if it could not.
    pub fn readings(&self) -> impl Iterator<Item = (&str, Option<&CloudError>)> {
        self.attached.iter().map(|attached| (attached.provider.name(), attached.trouble.as_ref()))
    }

    /// How the plug-in of each provider is doing, by name. One that does not answer is left out.
    pub async fn status(&self) -> Vec<(String, Status)> {
        let mut all = Vec::new();
        for attached in &self.attached {
            if let Ok(status) = attached.provider.status().await {
                all.push((attached.provider.name().to_owned(), status));
            }
        }
        all
    }

    fn owner(&self, group: &GroupId) -> Result<&Provider, CloudError> {
        let owns = |attached: &&Attached| attached.snapshot.groups.iter().any(|known| known.id == *group);
        let found = self.attached.iter().find(owns).map(|attached| &attached.provider);
        found.ok_or_else(|| {
            let message = format!("no provider has the node group {group}");
            CloudError::new(ErrorClass::NotFound, ErrorScope::Group(group.clone()), message)
        })
    }

    pub(crate) async fn increase(
        &self,
        group: &GroupId,
        delta: u32,
        expected_target: u32,
        idempotency_key: String,
        reason: String,
    ) -> Result<SizeOutcome, CloudError> {
        let options = write_options(idempotency_key, reason);
        let call = self.owner(group)?.increase_size(group.clone(), delta, expected_target, false, options);
        call.await.map_err(CallError::into_cloud_error)
    }

    pub(crate) async fn decrease(
        &self,
        group: &GroupId,
        delta: u32,
        expected_target: u32,
        idempotency_key: String,
        reason: String,
    ) -> Result<SizeOutcome, CloudError> {
        let options = write_options(idempotency_key, reason);
        let call = self.owner(group)?.decrease_target(group.clone(), delta, expected_target, options);
        call.await.map_err(CallError::into_cloud_error)
    }

    pub(crate) async fn delete(
        &self,
        group: &GroupId,
        instances: Vec<InstanceId>,
        expected_target: u32,
        min_size: u32,
        idempotency_key: String,
        reason: String,
    ) -> Result<DeleteOutcome, CloudError> {
        let options = write_options(idempotency_key, reason);
        let owner = self.owner(group)?;
        let call = owner.delete_instances(group.clone(), instances, expected_target, min_size, false, options);
        call.await.map_err(CallError::into_cloud_error)
    }
}

/// What a provider complained about, with its name; what the host says of it has the name already.
fn in_words(plugin: &str, error: &CloudError) -> String {
    let text = error.to_string();
    if text.contains(&format!("{plugin:?}")) { text } else { format!("provider {plugin:?}: {text}") }
}

/// How every write is made.
fn write_options(idempotency_key: String, reason: String) -> WriteOptions {
    WriteOptions { idempotency_key, deadline: WRITE_PATIENCE, dry_run: false, reason }
}

impl Attached {
    fn new(provider: Provider) -> Self {
        Self {
            provider,
            capabilities: None,
            revision: None,
            snapshot: Snapshot::default(),
            trouble: None,
            template_versions: BTreeMap::new(),
            templates: BTreeMap::new(),
        }
    }

    async fn refresh(&mut self, api: &impl Api) -> Result<(), CallError> {
        let capabilities = match &self.capabilities {
            Some(known) => known.clone(),
            None => self.provider.capabilities().await?,
        };
        let wanted = capabilities.features.needs_node_hints;
        let nodes = if wanted { api.with(|cluster| hints(cluster, &capabilities)) } else { vec![] };
        self.capabilities = Some(capabilities);
        let request = RefreshRequest { previous_revision: self.revision.clone(), only_groups: vec![], nodes };
        let refresh = self.provider.refresh(request).await?;
        self.revision = Some(refresh.revision);
        match refresh.snapshot {
            Some(snapshot) => self.snapshot = snapshot,
            // Unchanged groups are as fresh as this read.
            None => self.snapshot.groups.iter_mut().for_each(|group| group.observed_at = refresh.observed_at),
        }
        let versions = &self.template_versions;
        let changed = |group: &&plimsoll_core::cloud::Group| versions.get(&group.id) != Some(&group.template_version);
        let changed: Vec<GroupId> = self.snapshot.groups.iter().filter(changed).map(|group| group.id.clone()).collect();
        if changed.is_empty() {
            return Ok(());
        }
        for answer in self.provider.templates(changed).await? {
            if answer.templates.is_ok() {
                self.template_versions.insert(answer.group.clone(), answer.version);
            }
            self.templates.insert(answer.group, answer.templates);
        }
        Ok(())
    }
}

fn hints(cluster: &Cluster, capabilities: &Capabilities) -> Vec<NodeHint> {
    let hint = |node: &plimsoll_model::Node| NodeHint {
        name: cluster.text(node.name).to_owned(),
        provider_id: node.provider_id.to_string(),
        internal_ip: node.internal_ip.as_deref().map(str::to_owned),
        labels: capabilities
            .wanted_node_labels
            .iter()
            .filter_map(|key| {
                let value = node.labels.get(cluster.symbols.find(key)?)?;
                Some((key.clone(), cluster.text(value).to_owned()))
            })
            .collect(),
    };
    cluster.nodes.iter().map(hint).collect()
}
