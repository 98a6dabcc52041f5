//! Names in the state of a loop. What the clouds say is renamed record by record; the memory is renamed as text, since its
//! parts are its own.

use std::collections::BTreeSet;

use plimsoll_core::cloud::{
    CloudError, ErrorScope, Group, GroupId, Instance, InstanceId, NodeMatch, NodeTemplate, PriceBook, TaintText,
};
use serde_json::Value;

use super::AnonymizeError;
use super::names::Names;
use crate::state::{Cloud, LoopState};

/// Fields of the memory whose text is a word of ours.
const WORDS: [&str; 2] = ["state", "stage"];
/// Flags of which some part is a name.
const NAMED_FLAGS: [&str; 3] = ["--namespace=", "--bypassed-scheduler-names=", "--gpu-total="];

/// Names of the groups in a state.
pub(super) fn groups(object: &Value) -> Vec<String> {
    let groups = object.pointer("/spec/cloud/snapshot/groups").and_then(Value::as_array);
    let names = groups.into_iter().flatten().filter_map(|group| group.get("id").and_then(Value::as_str));
    names.map(str::to_owned).collect()
}

/// Every text of a state that is renamed; none of other objects.
pub(super) fn texts(object: &Value) -> Result<BTreeSet<String>, AnonymizeError> {
    let mut texts = BTreeSet::new();
    if LoopState::is(object) {
        each(&mut object.clone(), &mut |text| {
            texts.insert(text.to_owned());
            text.to_owned()
        })?;
    }
    Ok(texts)
}

/// Renames everything in a state. False if an object is no state.
pub(super) fn rewrite(object: &mut Value, names: &Names) -> Result<bool, AnonymizeError> {
    if !LoopState::is(object) {
        return Ok(false);
    }
    each(object, &mut |text| names.of(text))?;
    Ok(true)
}

type Rename<'a> = &'a mut dyn FnMut(&str) -> String;

fn each(object: &mut Value, rename: Rename<'_>) -> Result<(), AnonymizeError> {
    let mut state: LoopState = serde_json::from_value(object.clone())?;
    cloud(&mut state.spec.cloud, rename);
    state.spec.flags.iter_mut().for_each(|text| flag(text, rename));
    let mut renamed = serde_json::to_value(state)?;
    if let Some(memory) = renamed.pointer_mut("/spec/memory") {
        self::memory(memory, "", rename);
    }
    *object = renamed;
    Ok(())
}

/// Maps of the memory are from names to something; its records have the fields that they are made of.
fn memory(value: &mut Value, field: &str, rename: Rename<'_>) {
    const MAPS: [&str; 7] = ["backoff", "unneeded_since_ms", "removals", "strays", "withdrawals", "known", "missed"];
    match value {
        Value::String(text) if field == "reason" => *text = told(text),
        Value::String(text) if !WORDS.contains(&field) => *text = rename(text),
        Value::Array(items) => items.iter_mut().for_each(|item| memory(item, field, rename)),
        Value::Object(fields) if MAPS.contains(&field) => {
            let renamed = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                memory(&mut value, "", rename);
                (rename(&name), value)
            });
            *fields = renamed.collect();
        }
        Value::Object(fields) if !WORDS.contains(&field) => {
            fields.iter_mut().for_each(|(field, value)| memory(value, field, rename));
        }
        _ => {}
    }
}

/// What somebody said may name anything.
fn told(text: &str) -> String {
    if text.is_empty() { String::new() } else { "(left out)".to_owned() }
}

fn flag(text: &mut String, rename: Rename<'_>) {
    let Some((name, value)) = NAMED_FLAGS.iter().find_map(|name| Some((*name, text.strip_prefix(name)?))) else {
        return;
    };
    let value = match name {
        "--gpu-total=" => match value.split_once(':') {
            Some((model, bounds)) => format!("{}:{bounds}", rename(model)),
            None => value.to_owned(),
        },
        _ => value.split(',').map(&mut *rename).collect::<Vec<_>>().join(","),
    };
    *text = format!("{name}{value}");
}

fn cloud(cloud: &mut Cloud, rename: Rename<'_>) {
    cloud.snapshot.groups.iter_mut().for_each(|found| group(found, rename));
    let templates = std::mem::take(&mut cloud.templates).into_iter().map(|(id, mut found)| {
        match &mut found {
            Ok(templates) => templates.iter_mut().for_each(|found| template(found, rename)),
            Err(failed) => error(failed, rename),
        }
        (GroupId::from(rename(id.as_str())), found)
    });
    cloud.templates = templates.collect();
    cloud.capabilities.attributes.clear();
    cloud.capabilities.accelerator_models.iter_mut().for_each(|model| *model = rename(model));
    cloud.capabilities.provider_id_prefixes.clear();
    if let Some(book) = &mut cloud.prices {
        prices(book, rename);
    }
}

fn group(group: &mut Group, rename: Rename<'_>) {
    group.id = GroupId::from(rename(group.id.as_str()));
    group.name = group.id.to_string();
    group.instances.iter_mut().for_each(|found| instance(found, rename));
    group.options.attributes.clear();
    group.attributes.clear();
    // Only whether it changed has a meaning.
    group.template_version = rename(&group.template_version);
    for activity in &mut group.activities {
        activity.id = rename(&activity.id);
    }
    for failure in &mut group.failures {
        failure.id = rename(&failure.id);
        failure.zone = failure.zone.as_deref().map(&mut *rename);
        failure.instance_type = failure.instance_type.as_deref().map(&mut *rename);
        error(&mut failure.error, rename);
    }
    if let Some(failed) = &mut group.error {
        error(failed, rename);
    }
}

fn instance(instance: &mut Instance, rename: Rename<'_>) {
    instance.id = InstanceId::from(rename(instance.id.as_str()));
    for found in &mut instance.matches {
        match found {
            NodeMatch::ProviderId(text) | NodeMatch::NodeName(text) | NodeMatch::InternalIp(text) => {
                *text = rename(text);
            }
            NodeMatch::Label(_, value) => *value = rename(value),
        }
    }
    instance.zone = instance.zone.as_deref().map(&mut *rename);
    instance.instance_type = instance.instance_type.as_deref().map(&mut *rename);
    instance.protected = instance.protected.as_deref().map(told);
    instance.attributes.clear();
    if let Some(failed) = &mut instance.error {
        error(failed, rename);
    }
}

fn error(error: &mut CloudError, rename: Rename<'_>) {
    error.message = told(&error.message);
    error.request_id = None;
    match &mut error.scope {
        ErrorScope::Provider => {}
        ErrorScope::Region(name) | ErrorScope::Zone(name) | ErrorScope::InstanceType(name) => *name = rename(name),
        ErrorScope::Group(id) => *id = GroupId::from(rename(id.as_str())),
        ErrorScope::Instance(id) => *id = InstanceId::from(rename(id.as_str())),
    }
}

fn template(template: &mut NodeTemplate, rename: Rename<'_>) {
    template.key = rename(&template.key);
    template.instance_type = rename(&template.instance_type);
    template.arch = rename(&template.arch);
    template.os = rename(&template.os);
    template.region = rename(&template.region);
    template.zone = template.zone.as_deref().map(&mut *rename);
    template.labels.iter_mut().for_each(|(_, value)| *value = rename(value));
    template.annotations.clear();
    template.attributes.clear();
    for TaintText { value, .. } in template.taints.iter_mut().chain(&mut template.startup_taints) {
        *value = rename(value);
    }
    if let Some(accelerator) = &mut template.accelerator {
        accelerator.model = rename(&accelerator.model);
    }
}

fn prices(book: &mut PriceBook, rename: Rename<'_>) {
    for price in &mut book.templates {
        price.group = GroupId::from(rename(price.group.as_str()));
        price.template_key = rename(&price.template_key);
    }
    for unit in &mut book.units {
        unit.selector.iter_mut().for_each(|(_, value)| *value = rename(value));
    }
}
