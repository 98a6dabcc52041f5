//! From a request to the operation and back.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Request, Response};
use serde_json::Value;

use super::account::Token;
use super::action::{Action, Product, Work};
use super::error::ApiError;
use super::front::{Caller, Front};
use super::parameters::Parameters;
use super::quirks::wrap_lists;
use super::wire::Incoming;
use super::{AliCloud, actions};
use crate::answer;
use crate::fake::Context;

/// Parameters that every operation may have.
const COMMON: &[&str] = &["RegionId", "OwnerId", "OwnerAccount", "ResourceOwnerId", "ResourceOwnerAccount"];

/// Parameters that belong to signature version 1.0 and to the choice of the operation.
const V1: &[&str] = &[
    "Action",
    "Version",
    "Format",
    "Timestamp",
    "SignatureMethod",
    "SignatureVersion",
    "SignatureType",
    "SignatureNonce",
    "AccessKeyId",
    "SecurityToken",
    "Signature",
];

/// What the journal does not keep.
const SECRET: &[&str] = &["Signature", "SecurityToken", "OIDCToken"];

impl AliCloud {
    pub(super) fn dispatch(&mut self, request: &Request<Bytes>, context: &mut Context<'_>) -> Response<Bytes> {
        let incoming = Incoming::read(request);
        let kept = incoming.parameters().filter(|(name, _)| !SECRET.contains(name));
        context.call.parameters = kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        for oddity in &incoming.oddities {
            context.violation(oddity.as_str());
        }
        let request_id = context.chance.uuid();
        let world = &self.kept.world;
        let product = Product::of_host(&incoming.host, &world.region, world.probes.location_in_vpc);
        let result = match product {
            None => Err(ApiError::missing("InvalidHost.NotFound", format!("nothing answers at {}", incoming.host))),
            Some(Product::Metadata) => return self.serve_metadata(&incoming, context),
            Some(_) if incoming.plain && !self.plain_http => {
                context.violation("a request that is not encrypted");
                Err(ApiError::bad("InvalidProtocol.NeedSsl", "Your request is denied as lack of ssl protect."))
            }
            Some(Product::Cs) => self.serve_cs(&incoming, context),
            Some(product) => self.serve_rpc(&incoming, product, context),
        };
        match result {
            Ok(Answer::Ready(response)) => response,
            Ok(Answer::Body(body)) => self.render(body, &request_id, false),
            Err(error) => {
                context.call.code = Some(error.code.clone());
                error.response(&incoming.host, &request_id)
            }
        }
    }

    /// Turn the body of an answer to its final form.
    fn render(&self, mut body: Value, request_id: &str, wrap: bool) -> Response<Bytes> {
        if let Some(fields) = body.as_object_mut() {
            fields.insert("RequestId".to_owned(), Value::String(request_id.to_owned()));
        }
        if wrap {
            wrap_lists(&mut body);
        }
        self.quirks.vary(&mut body);
        answer::json(200, &body)
    }

    fn serve_rpc(
        &mut self,
        incoming: &Incoming,
        product: Product,
        context: &mut Context<'_>,
    ) -> Result<Answer, ApiError> {
        let action = recognise(incoming, product)?;
        let probes = self.kept.world.probes.clone();
        let front = Front { incoming, action, now: context.now, probes: &probes };
        let caller = front.pass(&mut self.account)?;
        context.call.caller.clone_from(&caller.key);
        let newer = incoming.version() == "2022-02-22";
        let parameters = self.check(incoming, action, newer, context)?;
        let token = parameters.text("ClientToken").map(str::to_owned);
        let fingerprint = fingerprint(incoming);
        if let Some(token) = &token {
            match self.account.token(action.name, token, &fingerprint, context.now, probes.client_token_hours) {
                Token::New => {}
                Token::Again(response) => return Ok(Answer::Ready(response)),
                Token::Mismatch if probes.newer_token_mismatch => {
                    let text = "the request has the client token of another request";
                    return Err(ApiError::bad("IdempotentParameterMismatch", text));
                }
                Token::Mismatch => {
                    let text = "the request has the client token of another request";
                    return Err(ApiError::bad("IDEMPOTENCE_SIGNATURE_MISMATCH", text));
                }
            }
        }
        if action.writes {
            self.kept.writing(context.now);
        }
        let body = self.work(action, &parameters, &caller, context)?;
        let response = self.render(body, &context.chance.uuid(), !newer);
        if let Some(token) = &token {
            self.account.remember(action.name, token, &fingerprint, &response, context.now);
        }
        Ok(Answer::Ready(response))
    }

    fn work(
        &mut self,
        action: &Action,
        parameters: &Parameters,
        caller: &Caller,
        context: &mut Context<'_>,
    ) -> Result<Value, ApiError> {
        let body = (action.handler)(&mut Work { cloud: self, parameters, caller, context })?;
        self.kept.world.run(context);
        Ok(body)
    }

    /// The strict part: everything that the cloud would forgive, or refuse, is written down as a violation.
    fn check(
        &self,
        incoming: &Incoming,
        action: &Action,
        newer: bool,
        context: &mut Context<'_>,
    ) -> Result<Parameters, ApiError> {
        let checked = self
            .own_parameters(incoming)
            .and_then(|sent| Parameters::check(&sent, action.parameters, newer, &self.kept.world.probes));
        checked.inspect_err(|error| context.violation(error.message.as_str()))
    }

    fn own_parameters(&self, incoming: &Incoming) -> Result<BTreeMap<String, String>, ApiError> {
        if let Some(broken) = &incoming.broken {
            return Err(ApiError::bad("InvalidParameter", broken.as_str()));
        }
        let v3 = incoming.is_v3();
        if !v3 && incoming.parameter("Format") != Some("JSON") {
            return Err(ApiError::bad("InvalidParameter.Format", "Format is not JSON, the answer would be XML"));
        }
        if let Some(region) = incoming.parameter("RegionId").filter(|region| *region != self.kept.world.region) {
            let text = format!("RegionId is {region:?}, this region is {}", self.kept.world.region);
            return Err(ApiError::missing("InvalidRegionId.NotFound", text));
        }
        let mut sent = BTreeMap::new();
        for (name, value) in incoming.parameters() {
            if COMMON.contains(&name) || (!v3 && V1.contains(&name)) {
                continue;
            }
            if sent.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(ApiError::bad("InvalidParameter", format!("the parameter {name} is there twice")));
            }
        }
        Ok(sent)
    }
}

/// An answer, ready or still without its request's identifier.
pub(super) enum Answer {
    /// Ready.
    Ready(Response<Bytes>),
    /// A body.
    Body(Value),
}

/// The operation that a request asks for.
fn recognise(incoming: &Incoming, product: Product) -> Result<&'static Action, ApiError> {
    if incoming.method != "POST" && incoming.method != "GET" {
        let text = format!("the method is {}, expected POST or GET", incoming.method);
        return Err(ApiError::new(405, "UnsupportedHTTPMethod", text));
    }
    if incoming.path != "/" {
        return Err(ApiError::missing("InvalidAction.NotFound", format!("nothing is at {}", incoming.path)));
    }
    let name = incoming.action();
    let action = product.actions().iter().find(|action| action.name == name);
    let missing = || ApiError::missing("InvalidAction.NotFound", format!("Specified api is not found: {name:?}."));
    let action = action.ok_or_else(missing)?;
    if !product.versions().contains(&incoming.version()) {
        let text =
            format!("Specified version {:?} is not found, known are {:?}.", incoming.version(), product.versions());
        return Err(ApiError::missing("NoSuchVersion", text));
    }
    Ok(action)
}

/// What makes two requests the same: all but what belongs to signing.
fn fingerprint(incoming: &Incoming) -> String {
    let mut own: Vec<String> = incoming
        .parameters()
        .filter(|(name, _)| !V1.contains(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    own.sort_unstable();
    own.join("&")
}

impl AliCloud {
    fn serve_metadata(&mut self, incoming: &Incoming, context: &mut Context<'_>) -> Response<Bytes> {
        actions::metadata::serve(self, incoming, context)
    }

    fn serve_cs(&mut self, incoming: &Incoming, context: &mut Context<'_>) -> Result<Answer, ApiError> {
        actions::cs::serve(self, incoming, context).map(Answer::Body)
    }
}
