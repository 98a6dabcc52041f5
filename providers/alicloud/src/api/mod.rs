//! Speaks to the cloud: finds the place, waits out throttling, reads answers and errors.

mod call;
mod lenient;
mod location;
mod page;
mod throttle;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_guest::http::{Client, Error, Response, Transport};
use plimsoll_guest::{Deadline, ErrorClass, PluginError};
use serde_json::Value;

pub(crate) use call::{Call, Product};
pub(crate) use lenient::Lenient;
pub(crate) use page::{PAGE_SIZE, Pages};

use self::location::Found;
use self::throttle::Throttle;
use crate::endpoints;
use crate::errors::{Classifier, Refusal};
use crate::settings::{Endpoints, Lookup, Settings};

/// Slot of the credential that every request is signed with.
pub(crate) const CREDENTIAL_SLOT: &str = "api";
/// Requests in flight at one time. Of two, only one can be sent in vain once the other is throttled.
const PARALLEL: usize = 2;
/// Longest wait for one answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer: 50 instances are some 50 kB, the largest pool lists some MB.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// The cloud of one region.
pub(crate) struct Api<T> {
    transport: Rc<T>,
    clients: BTreeMap<Product, Client<Rc<T>>>,
    found: BTreeMap<Product, Found>,
    throttle: Throttle,
    classifier: Classifier,
    endpoints: Endpoints,
    region: String,
    user_agent: String,
    clock: crate::Clock,
}

impl<T: Transport> Api<T> {
    /// A cloud that is reached by this transport. Nothing is sent yet.
    pub(crate) fn new(transport: T, settings: &Settings, user_agent: &str, clock: crate::Clock) -> Self {
        Self {
            transport: Rc::new(transport),
            clients: BTreeMap::new(),
            found: BTreeMap::new(),
            throttle: Throttle::remembered(),
            classifier: Classifier::with_overrides(settings.errors.clone()),
            endpoints: settings.endpoints.clone(),
            region: settings.region.clone(),
            user_agent: user_agent.to_owned(),
            clock,
        }
    }

    /// The region.
    pub(crate) fn region(&self) -> &str {
        &self.region
    }

    /// Milliseconds since the epoch.
    pub(crate) fn now_ms(&self) -> u64 {
        (self.clock)()
    }

    /// The class and scope of a code that came inside an answer, such as an activity's.
    pub(crate) fn failure(&self, code: &str, message: &str, group: &str) -> PluginError {
        let refusal = Refusal { code, message, status: 0, action: "", group: Some(group) };
        self.classifier.error(&refusal)
    }

    /// Asks once; a read is asked a second time if the network or the server failed.
    ///
    /// # Errors
    /// What the cloud or the way to it said, by class and scope.
    pub(crate) fn ask(&mut self, call: &Call, deadline: Deadline) -> Result<Value, PluginError> {
        let mut answer = None;
        self.ask_all(std::slice::from_ref(call), deadline, |_, one| answer = Some(one));
        answer.unwrap_or_else(|| Err(call.incomplete("body")))
    }

    /// Asks many things, a few at a time; hands over each answer as it comes, with the index of its call.
    pub(crate) fn ask_all(
        &mut self,
        calls: &[Call],
        deadline: Deadline,
        mut take: impl FnMut(usize, Result<Value, PluginError>),
    ) {
        for (wave, calls) in calls.chunks(PARALLEL).enumerate() {
            let answers = self.wave(calls, deadline);
            for (index, (call, answer)) in calls.iter().zip(answers).enumerate() {
                let answer = match answer {
                    Err(error) if may_ask_again(call, &error) => {
                        self.wave(std::slice::from_ref(call), deadline).pop().unwrap_or(Err(error))
                    }
                    answer => answer,
                };
                take(wave * PARALLEL + index, answer);
            }
        }
    }

    /// Calls of one product at once; other mixtures one after another.
    fn wave(&mut self, calls: &[Call], deadline: Deadline) -> Vec<Result<Value, PluginError>> {
        let mut answers: Vec<Option<Result<Value, PluginError>>> = Vec::new();
        let mut ready = Vec::new();
        for call in calls {
            let refused = self.throttle.refusal(call, self.now_ms()).map(|error| scoped(error, call));
            let refused = refused.or_else(|| self.connect(call.product).err());
            if refused.is_none() {
                ready.push(call);
            }
            answers.push(refused.map(Err));
        }
        let mut came = Vec::with_capacity(ready.len());
        for same in ready.chunk_by(|one, other| one.product == other.product) {
            let Some(client) = same.first().and_then(|call| self.clients.get(&call.product)) else { continue };
            let requests: Vec<_> = same.iter().map(|call| call.request(&self.region)).collect();
            came.extend(client.send_all(&requests, deadline));
        }
        let mut came = ready
            .into_iter()
            .zip(came)
            .map(|(call, response)| self.read(call, response))
            .collect::<Vec<_>>()
            .into_iter();
        let missing = |call: &Call| Err(call.incomplete("body"));
        let answer =
            |(answer, call): (Option<_>, &Call)| answer.or_else(|| came.next()).unwrap_or_else(|| missing(call));
        answers.into_iter().zip(calls).map(answer).collect()
    }

    fn read(&mut self, call: &Call, response: Result<Response, Error>) -> Result<Value, PluginError> {
        let error = match response.map(|response| (response.json::<Value>(), response)) {
            Ok((Ok(value), response)) => match said(&value) {
                None if response.is_success() => return Ok(value),
                told => self.refusal(call, &response, told),
            },
            // A gateway's page, or half an answer.
            Ok((Err(undecodable), response)) => match response.success() {
                Ok(_) => scoped(undecodable.into(), call),
                Err(status) => scoped(self.by_status(call, status), call),
            },
            Err(error) => scoped(error.into(), call),
        };
        if error.class != ErrorClass::Throttled {
            return Err(error);
        }
        let now_ms = self.now_ms();
        let wait = self.throttle.note(call, now_ms);
        Err(error.with_retry_after(Duration::from_millis(wait)))
    }

    /// The cloud's own account.
    fn refusal(&self, call: &Call, response: &Response, told: Option<Told>) -> PluginError {
        let told = told.unwrap_or_default();
        let permission = call.permission();
        let error = self.classifier.error(&Refusal {
            code: &told.code,
            message: &told.message,
            status: response.status(),
            action: &permission,
            group: call.group.as_deref(),
        });
        let unknown = call.writes && error.class == ErrorClass::Transient && told.code != "SignatureNonceUsed";
        let error = if unknown { error.with_unknown_outcome() } else { error };
        if told.request_id.is_empty() { error } else { error.with_request_id(told.request_id) }
    }

    /// A status without the cloud's own words comes from something in between.
    fn by_status(&self, call: &Call, error: Error) -> PluginError {
        let class = match error.response().map(Response::status) {
            Some(429) => ErrorClass::Throttled,
            _ => ErrorClass::Transient,
        };
        let outcome_unknown = call.writes && class == ErrorClass::Transient;
        PluginError { class, outcome_unknown, ..error.into() }
    }

    /// Makes sure that there is a client for a product.
    fn connect(&mut self, product: Product) -> Result<(), PluginError> {
        let written = self.endpoints.written.get(product.name()).cloned();
        let looks_up = written.is_none() && self.endpoints.lookup == Lookup::Location && product != Product::Location;
        let known = self.clients.contains_key(&product);
        if known && !(looks_up && self.found.get(&product).is_none_or(|found| found.is_old(self.now_ms()))) {
            return Ok(());
        }
        let host = match written {
            Some(written) => written,
            None if looks_up => self.look_up(product),
            None => endpoints::host(product, &self.region, self.endpoints.network),
        };
        let client = Client::new(&endpoints::base_url(&host), self.transport.clone())?
            .credential(CREDENTIAL_SLOT)
            .user_agent(&self.user_agent)
            .timeout(TIMEOUT)
            .max_answer_bytes(MAX_ANSWER_BYTES);
        self.clients.insert(product, client);
        Ok(())
    }

    /// The place by lookup; by the last good lookup; by the table.
    fn look_up(&mut self, product: Product) -> String {
        let now_ms = self.now_ms();
        let question = location::question(product, &self.region);
        let told = self.ask(&question, location::deadline());
        let found = told.and_then(|value| location::answer(product, &value, now_ms)).ok();
        let known =
            || self.found.get(&product).cloned().or_else(|| Found::remembered(product)).map(|old| old.renewed(now_ms));
        match found.or_else(known) {
            Some(found) => {
                let host = found.host.clone();
                self.found.insert(product, found);
                host
            }
            None => endpoints::host(product, &self.region, self.endpoints.network),
        }
    }
}

/// What an error body says.
#[derive(Default)]
struct Told {
    code: String,
    message: String,
    request_id: String,
}

/// The error in a body, if it is one: `Code` and `Message`, or in small letters.
fn said(value: &Value) -> Option<Told> {
    let either = |one: &str, other: &str| {
        Some(value.text(one)).filter(|text| !text.is_empty()).unwrap_or_else(|| value.text(other))
    };
    let told = Told {
        code: either("Code", "code"),
        message: either("Message", "message"),
        request_id: either("RequestId", "requestId"),
    };
    (!told.code.is_empty() && told.code != "200" && told.code != "Success").then_some(told)
}

fn scoped(error: PluginError, call: &Call) -> PluginError {
    let message = format!("{}: {}", call.permission(), error.message);
    PluginError { message, ..error }
}

/// A nonce that was used before means that nothing was done; the host makes a new one for the next request.
fn may_ask_again(call: &Call, error: &PluginError) -> bool {
    error.class == ErrorClass::Transient && (!call.writes || error.code == "SignatureNonceUsed")
}
