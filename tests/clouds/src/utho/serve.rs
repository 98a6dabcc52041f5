//! Requests: well formed, authorised, meant, and what they do.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use serde_json::{Map, Value, json};

use crate::answer;
use crate::clock::UnixMs;
use crate::fake::{Context, Logic, Refusal};
use crate::faults::Target;
use crate::journal::Cause;
use crate::nodes::{Machine, Node, Script};
use crate::stale::Kept;

use super::console::Order;
use super::settings::{Quirks, Switches};
use super::wire;
use super::world::{Naming, World};
use super::{HOST, TOKEN};

/// The API in front of a world.
#[derive(Clone, Debug)]
pub struct Utho {
    kept: Kept<World>,
    /// How it behaves.
    pub switches: Switches,
    /// How its answers look.
    pub quirks: Quirks,
    /// How its machines become nodes.
    pub script: Script,
}

/// What a request asks for.
enum Asked<'a> {
    Cluster { cluster: &'a str },
    Update { cluster: &'a str, pool: &'a str },
    Delete { cluster: &'a str, pool: &'a str, worker: &'a str },
    Plans { machine: &'a str },
}

impl Asked<'_> {
    fn action(&self) -> &'static str {
        match self {
            Self::Cluster { .. } => "cluster",
            Self::Update { .. } => "update",
            Self::Delete { .. } => "delete",
            Self::Plans { .. } => "plans",
        }
    }
}

fn asked<'a>(method: &Method, path: &'a str) -> Option<Asked<'a>> {
    let parts: Vec<&str> = path.strip_prefix("/v2/")?.split('/').collect();
    match (method.as_str(), &parts[..]) {
        ("GET", ["kubernetes", cluster]) => Some(Asked::Cluster { cluster }),
        ("POST", ["kubernetes", cluster, "nodepool", pool, "update"]) => Some(Asked::Update { cluster, pool }),
        ("DELETE", ["kubernetes", cluster, "nodepool", pool, worker, "delete"]) => {
            Some(Asked::Delete { cluster, pool, worker })
        }
        ("GET", ["cloud", machine, "resizeplans"]) => Some(Asked::Plans { machine }),
        _ => None,
    }
}

impl Utho {
    /// The API of a world.
    pub fn new(world: World, switches: Switches, quirks: Quirks) -> Self {
        Self { kept: Kept::new(world), switches, quirks, script: Script::default() }
    }

    /// The world behind it.
    pub fn world(&self) -> &World {
        &self.kept.world
    }

    /// The world behind it, to set up a scene.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.kept.world
    }

    /// How workers are named.
    pub fn named(&self) -> Naming {
        Naming { numeric: !self.quirks.ids_not_numeric }
    }

    /// Obeys a human at the console.
    ///
    /// # Errors
    /// There is no such thing.
    pub fn obey(&mut self, order: &Order, context: &mut Context<'_>) -> Result<(), String> {
        let (switches, named) = (self.switches, self.named());
        self.kept.world.obey(order, &switches, named, context)
    }

    fn refusal(&self, status: u16, code: &str, message: &str, context: &mut Context<'_>) -> Response<Bytes> {
        context.call.code = Some(code.to_owned());
        let status = if self.switches.errors_in_200 { 200 } else { status };
        answer::json(status, &json!({"rcode": "error", "status": "error", "message": message}))
    }

    fn no_cluster(&self, context: &mut Context<'_>) -> Response<Bytes> {
        self.refusal(404, "no-cluster", "Invalid Cluster ID or you do not have access to it", context)
    }

    fn update(&mut self, cluster: &str, pool: &str, body: &[u8], context: &mut Context<'_>) -> Response<Bytes> {
        let world = &self.kept.world;
        if cluster != world.cluster {
            return self.no_cluster(context);
        }
        let Some(found) = world.pools.get(pool) else {
            return self.refusal(404, "no-pool", "Node pool not found", context);
        };
        let Ok(Value::Object(body)) = serde_json::from_slice(body) else {
            context.violation("the body is no JSON object");
            return self.refusal(400, "bad-body", "Invalid request", context);
        };
        for key in body.keys().filter(|key| !["count", "size", "label"].contains(&key.as_str())) {
            context.violation(format!("unknown member {key:?}"));
        }
        let Some((count, is_text)) = count(&body) else {
            context.violation("count is not a whole number");
            return self.refusal(400, "bad-count", "The count must be a number", context);
        };
        let (label, size) = (text(&body, "label"), text(&body, "size"));
        if self.switches.size_required && (label.is_none() || size.is_none()) {
            return self.refusal(400, "no-size", "The size and label fields are required", context);
        }
        if let Some(label) = label.as_ref().filter(|label| **label != found.label) {
            context.violation(format!("label {label:?} is not the pool's, which is {:?}", found.label));
        }
        if let Some(size) = size.as_ref().filter(|size| **size != found.plan) {
            context.violation(format!("size {size:?} is not the pool's plan, which is {:?}", found.plan));
            if !world.plans.contains_key(size) && !self.switches.unknown_size_resizes {
                return self.refusal(400, "bad-size", "Invalid plan size", context);
            }
        }
        if count == 0 && is_text && self.switches.zero_text_refused {
            context.violation("a count of zero");
            return self.refusal(400, "bad-count", "The count must be at least 1", context);
        }
        if let Some(refused) = self.cannot_grow(pool, count, context) {
            return refused;
        }
        self.kept.writing(context.now);
        if let Some(found) = self.kept.world.pools.get_mut(pool) {
            found.label = label.unwrap_or_else(|| found.label.clone());
            found.plan = size.unwrap_or_else(|| found.plan.clone());
        }
        self.apply_count(pool, count, context)
    }

    fn cannot_grow(&self, pool: &str, count: u32, context: &mut Context<'_>) -> Option<Response<Bytes>> {
        let world = &self.kept.world;
        let found = world.pools.get(pool)?;
        let more = count.saturating_sub(found.count);
        if more == 0 {
            return None;
        }
        if world.in_arrears {
            return Some(self.refusal(402, "arrears", "Insufficient balance in your account", context));
        }
        if world.quota.is_some_and(|quota| world.staying() + more > quota) {
            return Some(self.refusal(400, "quota", "Server limit reached for your account", context));
        }
        let stock = world.plans.get(&found.plan).and_then(|plan| plan.stock);
        if stock.is_some_and(|stock| stock < more) && !self.switches.stock_checked_late {
            return Some(self.refusal(400, "no-stock", "The selected plan is out of stock", context));
        }
        None
    }

    fn apply_count(&mut self, pool: &str, count: u32, context: &mut Context<'_>) -> Response<Bytes> {
        let named = self.named();
        let (cluster, world) = (self.kept.world.cluster.clone(), &mut self.kept.world);
        let old = world.pools.get(pool).map_or(0, |pool| pool.count);
        let message = if count == 0 {
            context.violation("a count of zero removes the pool");
            world.remove_pool(pool, Cause::Asked, context);
            "Node Pool removed successfully".to_owned()
        } else {
            world.resize(pool, count, Cause::Asked, named, context);
            format!("Node Pool updated and node count adjusted to {count}")
        };
        context.changed(format!("{pool} count {old} to {count}"));
        answer::json(200, &json!({"status": "success", "message": message, "id": cluster}))
    }

    fn delete(&mut self, cluster: &str, pool: &str, worker: &str, context: &mut Context<'_>) -> Response<Bytes> {
        if cluster != self.kept.world.cluster {
            return self.no_cluster(context);
        }
        let Some(found) = self.kept.world.pools.get(pool) else {
            return self.refusal(404, "no-pool", "Node pool not found", context);
        };
        let Some(stays) = found.workers.get(worker).map(super::Worker::stays) else {
            context.call.code = Some("no-node".to_owned());
            let status = if self.switches.unknown_node_in_200 { 200 } else { 404 };
            return answer::json(status, &json!({"status": "error", "message": "Node not found in this pool"}));
        };
        if stays {
            if found.count <= 1 && !self.switches.delete_recreates {
                context.violation("the last node of a pool");
            }
            let (switches, world) = (self.switches, &mut self.kept);
            world.writing(context.now);
            world.world.delete(pool, worker, Cause::Asked, &switches, context);
            context.changed(format!("{pool} deleted {worker}"));
        }
        answer::json(200, &json!({"status": "success", "message": "Node deletion is in process"}))
    }
}

/// A count, and whether it came as text.
fn count(body: &Map<String, Value>) -> Option<(u32, bool)> {
    match body.get("count")? {
        Value::String(text) => text.parse().ok().map(|count| (count, true)),
        Value::Number(number) => {
            number.as_u64().and_then(|count| u32::try_from(count).ok()).map(|count| (count, false))
        }
        _ => None,
    }
}

fn text(body: &Map<String, Value>, key: &str) -> Option<String> {
    body.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// What a well-written client does, whatever it asks for.
fn check(request: &Request<Bytes>, context: &mut Context<'_>) {
    let header = |name: &str| header(request.headers(), name);
    if header("accept").as_deref() != Some("application/json") {
        context.violation("accept is not application/json");
    }
    if header("accept-encoding").is_some_and(|encoding| encoding != "identity") {
        context.violation("accept-encoding is not identity");
    }
    if header("user-agent").is_none() {
        context.violation("no user agent");
    }
    if header("x-autoscaler-credential").is_some() {
        context.violation("the name of a credential slot went out");
    }
    if request.uri().query().is_some() {
        context.violation("a query");
    }
    let posts = request.method() == Method::POST;
    if posts && header("content-type").as_deref() != Some("application/json") {
        context.violation("content-type is not application/json");
    }
    if !posts && !request.body().is_empty() {
        context.violation("a body");
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

impl Logic for Utho {
    fn name(&self) -> &'static str {
        "utho"
    }

    fn hosts(&self) -> Vec<String> {
        vec![HOST.to_owned()]
    }

    fn target(&self, request: &Request<Bytes>) -> Target {
        let host = header(request.headers(), "host").or_else(|| request.uri().host().map(str::to_owned));
        let path = request.uri().path();
        let action = asked(request.method(), path).map(|asked| asked.action()).unwrap_or_default();
        let values = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Target { host: host.unwrap_or_default(), action: action.to_owned(), values }
    }

    fn serve(&mut self, request: &Request<Bytes>, context: &mut Context<'_>) -> Response<Bytes> {
        check(request, context);
        if header(request.headers(), "authorization") != Some(format!("Bearer {TOKEN}")) {
            return self.refusal(401, "unauthorized", "Unauthorized access. Please provide a valid API key.", context);
        }
        context.call.caller = "token".to_owned();
        let path = request.uri().path();
        let Some(asked) = asked(request.method(), path) else {
            context.violation(format!("no such page: {path}"));
            return self.refusal(404, "no-page", "Page not found", context);
        };
        let put = |key: &str, value: &str, context: &mut Context<'_>| {
            context.call.parameters.insert(key.to_owned(), value.to_owned());
        };
        match asked {
            Asked::Cluster { cluster } if cluster != self.kept.world.cluster => self.no_cluster(context),
            Asked::Cluster { .. } => {
                let seen = self.kept.seen(context.now, context.stale_for());
                answer::json(200, &wire::cluster(seen, &self.switches, &self.quirks, context.now))
            }
            Asked::Update { cluster, pool } => {
                put("pool", pool, context);
                put("body", &String::from_utf8_lossy(request.body()), context);
                self.update(cluster, pool, request.body(), context)
            }
            Asked::Delete { cluster, pool, worker } => {
                put("pool", pool, context);
                put("worker", worker, context);
                self.delete(cluster, pool, worker, context)
            }
            Asked::Plans { machine } => {
                let known = |pool: &super::Pool| pool.workers.contains_key(machine);
                if machine != "1300001" && !self.kept.world.pools.values().any(known) {
                    return self.refusal(404, "no-machine", "Server not found", context);
                }
                answer::json(200, &wire::plans(&self.kept.world, &self.quirks))
            }
        }
    }

    fn refuse(&mut self, _: &Target, refusal: &Refusal, context: &mut Context<'_>) -> Response<Bytes> {
        match refusal {
            Refusal::Throttled { retry_after_s } => {
                context.call.code = Some("throttled".to_owned());
                let body = json!({"status": "error", "message": "Too many requests"});
                let mut response = answer::json(429, &body);
                if let Some(seconds) = retry_after_s {
                    response.headers_mut().insert(http::header::RETRY_AFTER, (*seconds).into());
                }
                response
            }
            Refusal::Error { status, code, message } => {
                context.call.code = Some(code.clone());
                answer::json(*status, &json!({"rcode": "error", "status": "error", "message": message}))
            }
        }
    }

    fn run(&mut self, context: &mut Context<'_>) {
        let named = self.named();
        self.kept.world.run(named, context);
        let outlives = Duration::from_millis(self.script.outlives_ms);
        self.kept.world.gone.retain(|(.., at)| *at + outlives > context.now);
    }

    fn nodes(&self, now: UnixMs) -> Vec<Node> {
        let world = &self.kept.world;
        let living = world.pools.iter().flat_map(|(id, pool)| pool.workers.values().map(move |one| (one, id, None)));
        let gone = world.gone.iter().map(|(worker, pool, at)| (worker, pool, Some(*at)));
        let shown = living.chain(gone).flat_map(|(worker, group, gone)| {
            let machine = Machine {
                id: &worker.id,
                group,
                name: wire::hostname(worker),
                usual: format!("utho://{}", worker.id),
                alias: worker.id.clone(),
                started: worker.started,
                gone,
            };
            self.script.nodes(&machine, now)
        });
        shown.collect()
    }

    fn dump(&self) -> Value {
        json!({"world": self.kept.world, "switches": self.switches, "quirks": self.quirks})
    }

    fn console(&mut self, order: &Value, context: &mut Context<'_>) -> Result<(), String> {
        let order: Order = serde_json::from_value(order.clone()).map_err(|error| error.to_string())?;
        self.obey(&order, context)
    }
}
