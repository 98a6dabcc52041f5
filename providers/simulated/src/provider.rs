//! The provider: one request for each call of the host.

use plimsoll_guest::http::{Client, Method, Request, Response, Transport};
use plimsoll_guest::{
    Capabilities, Deadline, Decrease, Delete, DeleteOutcome, Diagnostic, Features, GroupTemplates, Increase, Manifest,
    PluginError, PriceBook, Pricing, Provider, RefreshAnswer, RefreshRequest, Setup, SizeOutcome, Snapshot,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::contract;
use crate::wire::{self, Call};

/// Time for calls that come without a deadline, in milliseconds.
const OWN_DEADLINE_MS: u32 = 10_000;

/// The provider of the simulated cloud, over some transport.
pub struct Simulated<T> {
    client: Client<T>,
    settings: Settings,
}

/// The cloud configuration.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Settings {
    endpoint: String,
    provider_id_prefixes: Vec<String>,
    accelerator_label: Option<String>,
    accelerator_models: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            endpoint: wire::ENDPOINT.to_owned(),
            provider_id_prefixes: vec![],
            accelerator_label: None,
            accelerator_models: vec![],
        }
    }
}

impl<T: Transport> Simulated<T> {
    /// A provider that reaches its cloud by this transport.
    ///
    /// # Errors
    /// The cloud configuration is not what it should be.
    pub fn over(transport: T, setup: &Setup) -> Result<Self, PluginError> {
        let settings: Settings = if setup.config.is_some() { setup.json_config()? } else { Settings::default() };
        let client = Client::new(&settings.endpoint, transport)?.user_agent(&setup.user_agent);
        Ok(Self { client, settings })
    }

    fn ask<D: DeserializeOwned>(&self, call: &Call, deadline: Deadline) -> Result<D, PluginError> {
        let response = self.client.send(&request(call)?, deadline)?;
        match refusal(&response) {
            Some(failure) => Err(failure.into()),
            None => Ok(response.success()?.json()?),
        }
    }
}

/// The cloud's own account of what went wrong, if it gave one.
fn refusal(response: &Response) -> Option<wire::Failure> {
    if response.is_success() { None } else { response.json().ok() }
}

/// The request that a call is on the wire.
fn request(call: &Call) -> Result<Request, PluginError> {
    let group = |name: &str, group: &str| Request::post(&format!("/v1/groups/{{}}/{name}")).segment(group);
    match call {
        Call::Health => Ok(Request::new(Method::Get, "/v1/health")),
        Call::Prices => Ok(Request::new(Method::Get, "/v1/prices")),
        Call::State(query) => Ok(Request::post("/v1/state").json(query)?.read_only()),
        Call::Templates(query) => Ok(Request::post("/v1/templates").json(query)?.read_only()),
        Call::Increase(id, order) => group("increase", id).json(order),
        Call::DecreaseTarget(id, order) => group("decrease-target", id).json(order),
        Call::DeleteInstances(id, order) => group("delete-instances", id).json(order),
    }
}

impl<T: Transport + Default + 'static> Provider for Simulated<T> {
    const MANIFEST: Manifest = Manifest::provider("simulated", env!("CARGO_PKG_VERSION"))
        .hosts(&[wire::ENDPOINT])
        .memory_mib(256)
        .call_seconds(20);

    fn configure(setup: Setup) -> Result<Self, PluginError> {
        Self::over(T::default(), &setup)
    }

    fn capabilities(&self) -> Capabilities {
        let features = Features::INCREASE
            | Features::ATOMIC_INCREASE
            | Features::DECREASE_TARGET
            | Features::DELETE
            | Features::FORCE_DELETE
            | Features::SCALE_TO_ZERO
            | Features::SCALE_FROM_ZERO
            | Features::DISCOVERY
            | Features::INSTANCE_ERRORS
            | Features::ACTIVITIES
            | Features::CONDITIONAL_SIZE
            | Features::IDEMPOTENT_WRITES;
        Capabilities {
            provider_id_prefixes: self.settings.provider_id_prefixes.clone(),
            accelerator_label: self.settings.accelerator_label.clone(),
            accelerator_models: self.settings.accelerator_models.clone(),
            ..Capabilities::new("simulated", env!("CARGO_PKG_VERSION"), features)
        }
    }

    fn self_test(&mut self) -> Vec<Diagnostic> {
        let answer = self.ask::<serde::de::IgnoredAny>(&Call::Health, Deadline::after_ms(OWN_DEADLINE_MS));
        answer.err().map(Diagnostic::from).into_iter().collect()
    }

    fn refresh(&mut self, request: RefreshRequest) -> Result<RefreshAnswer, PluginError> {
        let complete = request.only_groups.is_empty();
        let deadline = request.deadline();
        let query = wire::StateQuery { revision: request.previous_revision, groups: request.only_groups };
        let state: wire::State = self.ask(&Call::State(query), deadline)?;
        let observed_at = state.observed_at_ms;
        let group = |group| contract::node_group(group, observed_at);
        let snapshot = |groups: Vec<_>| Snapshot { groups: groups.into_iter().map(group).collect(), complete };
        Ok(RefreshAnswer {
            observed_at,
            snapshot: state.groups.map(snapshot),
            next_refresh_ms: state.next_refresh_ms,
            ..RefreshAnswer::unchanged(state.revision)
        })
    }

    fn templates(&mut self, groups: Vec<String>) -> Result<Vec<GroupTemplates>, PluginError> {
        let call = Call::Templates(wire::TemplatesQuery { groups: groups.clone() });
        let told: wire::Templates = self.ask(&call, Deadline::after_ms(OWN_DEADLINE_MS))?;
        let mut told: std::collections::BTreeMap<_, _> =
            told.groups.into_iter().map(|templates| (templates.group.clone(), templates)).collect();
        let entry = |group: String| match told.remove(&group) {
            Some(templates) => contract::group_templates(templates),
            None => {
                let error = PluginError::not_found("the cloud told no templates of this group").for_group(&group);
                GroupTemplates::failed(group, error)
            }
        };
        Ok(groups.into_iter().map(entry).collect())
    }

    fn increase_size(&mut self, call: Increase) -> Result<SizeOutcome, PluginError> {
        let deadline = call.options.deadline();
        let order = wire::IncreaseOrder {
            key: call.options.idempotency_key,
            delta: call.delta,
            expected_target: call.expected_target,
            atomic: call.atomic,
            dry_run: call.options.dry_run,
            reason: call.options.reason,
        };
        let answer = self.ask(&Call::Increase(call.group, order), deadline)?;
        Ok(contract::size_outcome(answer, call.delta))
    }

    fn decrease_target(&mut self, call: Decrease) -> Result<SizeOutcome, PluginError> {
        let deadline = call.options.deadline();
        let order = wire::DecreaseOrder {
            key: call.options.idempotency_key,
            delta: call.delta,
            expected_target: call.expected_target,
            dry_run: call.options.dry_run,
            reason: call.options.reason,
        };
        let answer = self.ask(&Call::DecreaseTarget(call.group, order), deadline)?;
        Ok(contract::size_outcome(answer, call.delta))
    }

    fn delete_instances(&mut self, call: Delete) -> Result<DeleteOutcome, PluginError> {
        let deadline = call.options.deadline();
        let order = wire::DeleteOrder {
            key: call.options.idempotency_key,
            ids: call.ids.clone(),
            expected_target: call.expected_target,
            min_size: call.min_size,
            force: call.force,
            dry_run: call.options.dry_run,
            reason: call.options.reason,
        };
        let answer = self.ask(&Call::DeleteInstances(call.group, order), deadline)?;
        Ok(contract::delete_outcome(answer, &call.ids))
    }
}

impl<T: Transport + Default + 'static> Pricing for Simulated<T> {
    fn prices(&mut self) -> Result<PriceBook, PluginError> {
        Ok(contract::price_book(self.ask(&Call::Prices, Deadline::after_ms(OWN_DEADLINE_MS))?))
    }
}

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;
