//! Node pools of Container Service (ACK): the wish is the pool's desired size, and ACK carries it out.

mod pools;
mod writes;

use plimsoll_guest::http::Transport;
use plimsoll_guest::{
    Deadline, Diagnostic, ErrorScope, GroupTemplates, NodeGroup, PluginError, RefreshAnswer, RefreshRequest, Severity,
    TemplateChoice,
};

use crate::api::Api;
use crate::fingerprint::Fingerprint;
use crate::settings::Settings;
use crate::spec::GroupSpec;

pub(crate) use self::pools::{Pool, question as pools_question};
pub(crate) use self::writes::{decrease, delete, increase};

/// Reads all pools and their nodes.
///
/// # Errors
/// The pools cannot be read.
pub(crate) fn refresh<T: Transport>(
    api: &mut Api<T>,
    settings: &Settings,
    cluster: &str,
    last: &mut std::collections::BTreeMap<String, NodeGroup>,
    request: &RefreshRequest,
) -> Result<RefreshAnswer, PluginError> {
    let deadline = request.deadline();
    let now_ms = api.now_ms();
    let pools = pools::list(api, cluster, deadline)?;
    let (mut groups, mut diagnostics) = (vec![], vec![]);
    for spec in settings.groups.iter().filter(|spec| request.wants(&spec.id)) {
        let Some(pool) = pools.iter().find(|pool| pool.id == spec.id) else {
            let message = format!(
                "node pool {} does not exist in cluster {cluster}; create it, or take it out of --nodes",
                spec.id
            );
            let scope = ErrorScope::Group(spec.id.clone());
            diagnostics.push(Diagnostic { scope, ..Diagnostic::new(Severity::Warning, "group-gone", message) });
            last.remove(&spec.id);
            continue;
        };
        let group = match pools::nodes(api, cluster, &spec.id, deadline) {
            Ok(nodes) => node_group(api, spec, pool, &nodes),
            Err(error) => match last.get(&spec.id) {
                Some(known) => NodeGroup { error: Some(error), ..known.clone() },
                // The sizes are known, the machines are not.
                None => NodeGroup { error: Some(error), instances_complete: false, ..node_group(api, spec, pool, &[]) },
            },
        };
        if group.error.is_none() {
            last.insert(spec.id.clone(), group.clone());
        }
        groups.push(group);
    }
    let text = groups.iter().fold(Fingerprint::new(), |print, group| {
        let print = print.with(&group.id).with_number(group.target_size.into()).with(&group.template_version);
        group.instances.iter().fold(print, |print, one| print.with(&one.id).with_number(one.state as u64))
    });
    let complete = request.only_groups.is_empty();
    Ok(RefreshAnswer { observed_at: now_ms, diagnostics, ..RefreshAnswer::read(text.name(), groups, complete) })
}

fn node_group<T: Transport>(api: &Api<T>, spec: &GroupSpec, pool: &Pool, nodes: &[pools::PoolNode]) -> NodeGroup {
    let target = pool.desired.unwrap_or(pool.total);
    NodeGroup {
        name: pool.name.clone(),
        status: pool.status(),
        instances: nodes.iter().map(|node| node.instance(api)).collect(),
        template_version: pool.source_fingerprint().name(),
        template_choice: if pool.group.vswitches.len() > 1 { TemplateChoice::AnyOf } else { TemplateChoice::Single },
        observed_at: api.now_ms(),
        ..NodeGroup::sized(spec.id.clone(), spec.min, spec.max, target)
    }
}

/// Templates of some pools.
///
/// # Errors
/// The pools cannot be read.
pub(crate) fn templates<T: Transport>(
    api: &mut Api<T>,
    settings: &Settings,
    memory: &mut crate::memory::Memory,
    cluster: &str,
    groups: Vec<String>,
    deadline: Deadline,
) -> Result<Vec<GroupTemplates>, PluginError> {
    let pools = pools::list(api, cluster, deadline)?;
    let mut one = |id: String| {
        let Some(pool) = pools.iter().find(|pool| pool.id == id) else {
            let error =
                PluginError::not_found(format!("node pool {id} does not exist in cluster {cluster}")).for_group(&id);
            return GroupTemplates::failed(id, error);
        };
        match crate::template::from_source(api, settings, memory, &pool.group, &pool.source, deadline) {
            Ok(templates) => GroupTemplates::of(id, pool.source_fingerprint().name(), templates),
            Err(error) => GroupTemplates::failed(id, error),
        }
    };
    Ok(groups.into_iter().map(&mut one).collect())
}
