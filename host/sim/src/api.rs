//! The simulated cloud's API: JSON over HTTP, as `providers/simulated` speaks it.

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use plimsoll_provider_simulated::wire::{
    self, Call, Class, DeleteAnswer, DeleteOrder, DeleteResult, DeleteStatus, Failure, IncreaseOrder, Scope, SizeAnswer,
};
use serde::Serialize;

use crate::cloud::{Done, Machine, MachineState, Pool, Stock, Wish};
use crate::events::What;
use crate::world::World;

/// Answers one request.
pub fn answer(world: &mut World, request: &Request<Bytes>) -> Response<Bytes> {
    let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let call = match Call::parse(request.method().as_str(), path, request.body()) {
        Ok(call) => call,
        Err(failure) => return refuse(&failure),
    };
    match call {
        Call::Health => json(&serde_json::json!({"status": "ok"})),
        Call::State(query) => json(&state(world, &query)),
        Call::Templates(query) => json(&templates(world, &query)),
        Call::Prices => json(&prices(world)),
        Call::Increase(group, order) => respond(increase(world, &group, &order)),
        Call::DecreaseTarget(group, order) => respond(decrease(world, &group, &order)),
        Call::DeleteInstances(group, order) => respond(delete(world, &group, &order)),
    }
}

fn respond<T: Serialize>(result: Result<T, Failure>) -> Response<Bytes> {
    match result {
        Ok(answer) => json(&answer),
        Err(failure) => refuse(&failure),
    }
}

fn json(body: &impl Serialize) -> Response<Bytes> {
    // Maps with text keys and numbers: nothing here can fail to be written.
    let mut response = Response::new(Bytes::from(serde_json::to_vec(body).unwrap_or_default()));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn refuse(failure: &Failure) -> Response<Bytes> {
    let mut response = json(failure);
    *response.status_mut() = StatusCode::from_u16(failure.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn millis(world: &World) -> u64 {
    u64::try_from(world.now().millis()).unwrap_or(0)
}

fn state(world: &World, query: &wire::StateQuery) -> wire::State {
    let groups: Vec<wire::Group> = world
        .pools
        .iter()
        .filter(|pool| query.groups.is_empty() || query.groups.contains(&pool.id))
        .map(group)
        .collect();
    let revision = revision(&groups);
    let unchanged = query.revision.as_ref() == Some(&revision);
    wire::State {
        revision,
        observed_at_ms: millis(world),
        groups: (!unchanged).then_some(groups),
        next_refresh_ms: None,
    }
}

/// A name for the content: equal states, and only they, have equal names (FNV-1a over the JSON text).
fn revision(groups: &[wire::Group]) -> String {
    let text = serde_json::to_vec(groups).unwrap_or_default();
    let hash = text
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}-{}", text.len())
}

fn group(pool: &Pool) -> wire::Group {
    wire::Group {
        id: pool.id.clone(),
        min: pool.min,
        max: pool.max,
        target: pool.target,
        instances: pool.machines.iter().map(|machine| instance(machine, pool)).collect(),
        template_version: pool.template.key.clone(),
        failures: pool.wishes.iter().map(|wish| unfulfilled(wish, pool)).collect(),
        options: wire::GroupOptions { priority: pool.priority, ..wire::GroupOptions::default() },
        ..wire::Group::default()
    }
}

fn instance(machine: &Machine, pool: &Pool) -> wire::Instance {
    let failed = machine.state == MachineState::Failed;
    wire::Instance {
        id: machine.id.clone(),
        state: match machine.state {
            MachineState::Booting => wire::InstanceState::Creating,
            MachineState::Up => wire::InstanceState::Running,
            MachineState::Deleting => wire::InstanceState::Deleting,
            MachineState::Failed => wire::InstanceState::Failed,
        },
        provider_id: Some(format!("sim://{}", machine.id)),
        node_name: Some(machine.id.clone()),
        created_at_ms: u64::try_from(machine.asked_at.millis()).ok(),
        zone: pool.template.zone.clone(),
        instance_type: Some(pool.template.instance_type.clone()),
        error: failed.then(|| sold_out(pool)),
        ..wire::Instance::default()
    }
}

fn sold_out(pool: &Pool) -> Failure {
    let message = format!("no {} left", pool.template.instance_type);
    Failure::new(Class::OutOfResources, "OutOfStock", message).about(Scope::Group(pool.id.clone()))
}

fn unfulfilled(wish: &Wish, pool: &Pool) -> wire::ScaleFailure {
    wire::ScaleFailure {
        id: wish.id.clone(),
        at_ms: u64::try_from(wish.since.millis()).unwrap_or(0),
        missing: wish.count,
        error: sold_out(pool),
        zone: pool.template.zone.clone(),
        instance_type: Some(pool.template.instance_type.clone()),
    }
}

fn templates(world: &World, query: &wire::TemplatesQuery) -> wire::Templates {
    let one = |id: &String| match world.pools.iter().find(|pool| pool.id == *id) {
        Some(pool) => wire::GroupTemplates {
            group: id.clone(),
            version: pool.template.key.clone(),
            templates: vec![pool.template.clone()],
            error: None,
        },
        None => wire::GroupTemplates { group: id.clone(), error: Some(unknown(id)), ..wire::GroupTemplates::default() },
    };
    wire::Templates { groups: query.groups.iter().map(one).collect() }
}

fn unknown(group: &str) -> Failure {
    let about = Scope::Group(group.to_owned());
    Failure::new(Class::NotFound, "NoSuchGroup", format!("there is no group {group:?}")).about(about)
}

fn prices(world: &World) -> wire::Prices {
    let price = |pool: &Pool| wire::TemplatePrice {
        group: pool.id.clone(),
        template_key: pool.template.key.clone(),
        micros_per_hour: pool.micros_per_hour,
    };
    let unit = |name: &str, micros_per_hour| wire::UnitPrice {
        resource_name: name.to_owned(),
        micros_per_hour,
        ..wire::UnitPrice::default()
    };
    wire::Prices {
        currency: "EUR".to_owned(),
        valid_until_ms: None,
        templates: world.pools.iter().filter(|pool| pool.micros_per_hour > 0).map(price).collect(),
        units: vec![unit("cpu", 30_000), unit("memory", 4_000)],
    }
}

/// The pool, if its target is what the caller thinks.
fn expecting<'a>(world: &'a World, group: &str, expected: u32) -> Result<(usize, &'a Pool), Failure> {
    let found = world.pools.iter().enumerate().find(|(_, pool)| pool.id == group);
    let (index, pool) = found.ok_or_else(|| unknown(group))?;
    if pool.target != expected {
        let message = format!("the target is {}, not {expected}", pool.target);
        return Err(Failure::new(Class::Conflict, "StaleTarget", message).about(Scope::Group(group.to_owned())));
    }
    Ok((index, pool))
}

/// The answer to an order with this key, if it was given before.
fn before<'a>(world: &'a World, group: &str, key: &str) -> Option<&'a Done> {
    world.pools.iter().find(|pool| pool.id == group)?.done.get(key)
}

fn remember(world: &mut World, index: usize, key: &str, done: Done) {
    if let Some(pool) = world.pools.get_mut(index) {
        pool.done.insert(key.to_owned(), done);
    }
}

fn increase(world: &mut World, group: &str, order: &IncreaseOrder) -> Result<SizeAnswer, Failure> {
    if let Some(Done::Size(answer)) = before(world, group, &order.key) {
        return Ok(answer.clone());
    }
    let (index, pool) = expecting(world, group, order.expected_target)?;
    let room = pool.max.saturating_sub(pool.target);
    if order.delta > room {
        let message = format!("{} more than {} would be above the maximum {}", order.delta, pool.target, pool.max);
        return Err(Failure::new(Class::Quota, "AboveMaximum", message).about(Scope::Group(group.to_owned())));
    }
    let accepted = match pool.stock {
        Stock::Plenty | Stock::SoldOutLate | Stock::Unfulfilled => order.delta,
        Stock::SoldOut => 0,
        Stock::Left(left) => order.delta.min(left),
    };
    if accepted == 0 || (order.atomic && accepted < order.delta) {
        let failure = sold_out(pool);
        let what = What::MachineFailed { group: group.to_owned(), why: failure.message.clone() };
        world.tell(what);
        return Err(failure);
    }
    let shortfall = (accepted < order.delta).then(|| sold_out(pool));
    let target = pool.target + accepted;
    let answer = SizeAnswer { target, accepted, shortfall, ..SizeAnswer::default() };
    if order.dry_run {
        return Ok(answer);
    }
    let now = world.now();
    if let Some(pool) = world.pools.get_mut(index) {
        pool.target = target;
        if pool.stock == Stock::Unfulfilled {
            pool.wishes.push(Wish { id: order.key.clone(), count: accepted, since: now, ordered: true });
        }
        if let Stock::Left(left) = &mut pool.stock {
            *left -= accepted;
        }
    }
    world.fill(index);
    remember(world, index, &order.key, Done::Size(answer.clone()));
    Ok(answer)
}

fn decrease(world: &mut World, group: &str, order: &wire::DecreaseOrder) -> Result<SizeAnswer, Failure> {
    if let Some(Done::Size(answer)) = before(world, group, &order.key) {
        return Ok(answer.clone());
    }
    let (index, pool) = expecting(world, group, order.expected_target)?;
    // Only wishes without a machine may be given up.
    let free = pool.target.saturating_sub(pool.alive()).min(pool.target.saturating_sub(pool.min));
    let accepted = order.delta.min(free);
    let answer = SizeAnswer { target: pool.target - accepted, accepted, ..SizeAnswer::default() };
    if order.dry_run {
        return Ok(answer);
    }
    if let Some(pool) = world.pools.get_mut(index) {
        pool.target = answer.target;
        pool.give_up(answer.accepted);
    }
    remember(world, index, &order.key, Done::Size(answer.clone()));
    Ok(answer)
}

fn delete(world: &mut World, group: &str, order: &DeleteOrder) -> Result<DeleteAnswer, Failure> {
    if let Some(Done::Delete(answer)) = before(world, group, &order.key) {
        return Ok(answer.clone());
    }
    let (index, _) = expecting(world, group, order.expected_target)?;
    let mut results = Vec::with_capacity(order.ids.len());
    for id in &order.ids {
        let Some(pool) = world.pools.get(index) else { continue };
        let state = pool.machines.iter().find(|machine| machine.id == *id).map(|machine| machine.state);
        let status = match state {
            None => DeleteStatus::AlreadyGone,
            Some(MachineState::Deleting) => DeleteStatus::Accepted,
            Some(MachineState::Failed) => {
                // Its wish goes with it, unless the group would fall below its minimum: then another one comes.
                let lowers = pool.target > order.min_size.max(pool.min) && pool.target > pool.alive();
                begin(world, index, id, order.dry_run, lowers);
                if !order.dry_run {
                    world.fill(index);
                }
                DeleteStatus::Accepted
            }
            Some(_) if pool.target <= order.min_size.max(pool.min) => {
                let message = format!("the group would fall below {}", order.min_size.max(pool.min));
                DeleteStatus::Failed(Failure::new(Class::Conflict, "BelowMinimum", message))
            }
            Some(_) => {
                begin(world, index, id, order.dry_run, true);
                DeleteStatus::Accepted
            }
        };
        results.push(DeleteResult { id: id.clone(), status });
    }
    let target = world.pools.get(index).map_or(0, |pool| pool.target);
    let answer = DeleteAnswer { target, results, activity: None };
    if !order.dry_run {
        remember(world, index, &order.key, Done::Delete(answer.clone()));
    }
    Ok(answer)
}

fn begin(world: &mut World, index: usize, id: &str, dry_run: bool, counted: bool) {
    if dry_run {
        return;
    }
    if let Some(pool) = world.pools.get_mut(index).filter(|_| counted) {
        pool.target -= 1;
    }
    world.begin_deletion(index, id);
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Time;

    fn world() -> World {
        let mut world = World::new(Time::from_millis(1_000_000));
        let template = wire::Template {
            key: "v1".into(),
            capacity: [("cpu", "4"), ("memory", "16Gi"), ("pods", "110")].map(|(k, v)| (k.into(), v.into())).into(),
            ..wire::Template::default()
        };
        world.pools.push(Pool::new("a", 0, 5, template));
        world
    }

    fn post(world: &mut World, path: &str, body: &impl Serialize) -> (u16, serde_json::Value) {
        let request = Request::post(format!("https://sim.plimsoll.internal{path}"))
            .body(Bytes::from(serde_json::to_vec(body).unwrap()))
            .unwrap();
        let response = answer(world, &request);
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
    }

    fn order(key: &str, delta: u32, expected_target: u32) -> IncreaseOrder {
        IncreaseOrder { key: key.into(), delta, expected_target, ..IncreaseOrder::default() }
    }

    #[test]
    fn one_key_acts_once_and_a_stale_target_is_refused() {
        let mut world = world();
        for _ in 0..2 {
            let (status, answer) = post(&mut world, "/v1/groups/a/increase", &order("k1", 2, 0));
            assert_eq!((status, answer["target"].as_u64()), (200, Some(2)));
        }
        assert_eq!(world.pools[0].machines.len(), 2);
        let (status, answer) = post(&mut world, "/v1/groups/a/increase", &order("k2", 1, 0));
        assert_eq!((status, answer["code"].as_str()), (409, Some("StaleTarget")));
        let (status, answer) = post(&mut world, "/v1/groups/a/increase", &order("k3", 4, 2));
        assert_eq!((status, answer["code"].as_str()), (403, Some("AboveMaximum")));
        let (status, _) = post(&mut world, "/v1/groups/nope/increase", &order("k4", 4, 2));
        assert_eq!(status, 404);
    }

    #[test]
    fn stock_runs_out() {
        let mut world = world();
        world.pools[0].stock = Stock::Left(1);
        let (status, answer) = post(&mut world, "/v1/groups/a/increase", &order("k1", 3, 0));
        assert_eq!((status, answer["accepted"].as_u64()), (200, Some(1)));
        assert_eq!(answer["shortfall"]["class"].as_str(), Some("out-of-resources"));
        let (status, answer) = post(&mut world, "/v1/groups/a/increase", &order("k2", 1, 1));
        assert_eq!((status, answer["class"].as_str()), (409, Some("out-of-resources")));
    }

    #[test]
    fn a_wish_stays_until_it_is_taken_back_or_fulfilled() {
        let mut world = world();
        world.pools[0].stock = Stock::Unfulfilled;
        let (status, answer) = post(&mut world, "/v1/groups/a/increase", &order("k1", 3, 0));
        assert_eq!((status, answer["target"].as_u64()), (200, Some(3)));
        assert!(world.pools[0].machines.is_empty());
        let (_, state) = post(&mut world, "/v1/state", &wire::StateQuery::default());
        let failure = &state["groups"][0]["failures"][0];
        assert_eq!((failure["missing"].as_u64(), failure["error"]["code"].as_str()), (Some(3), Some("OutOfStock")));
        let decrease =
            wire::DecreaseOrder { key: "k2".into(), delta: 2, expected_target: 3, ..wire::DecreaseOrder::default() };
        let (_, answer) = post(&mut world, "/v1/groups/a/decrease-target", &decrease);
        assert_eq!(answer["target"].as_u64(), Some(1));
        // The last one is fulfilled when there are machines again.
        world.pools[0].stock = Stock::Plenty;
        world.settle();
        assert_eq!(world.pools[0].machines.len(), 1);
        let (_, state) = post(&mut world, "/v1/state", &wire::StateQuery::default());
        assert!(state["groups"][0].get("failures").is_none());
    }

    #[test]
    fn an_unchanged_state_is_not_told_again() {
        let mut world = world();
        let (_, first) = post(&mut world, "/v1/state", &wire::StateQuery::default());
        let revision = first["revision"].as_str().map(str::to_owned);
        let query = wire::StateQuery { revision, groups: vec![] };
        let (_, second) = post(&mut world, "/v1/state", &query);
        assert!(second.get("groups").is_none());
        post(&mut world, "/v1/groups/a/increase", &order("k1", 1, 0));
        let (_, third) = post(&mut world, "/v1/state", &query);
        assert_eq!(third["groups"][0]["instances"][0]["state"].as_str(), Some("creating"));
    }

    #[test]
    fn machines_boot_register_turn_ready_and_go() {
        let mut world = world();
        post(&mut world, "/v1/groups/a/increase", &order("k1", 1, 0));
        let start = world.now();
        let at = |seconds| start + std::time::Duration::from_secs(seconds);
        world.advance_to(at(39));
        assert!(world.cluster.nodes.is_empty());
        world.advance_to(at(40));
        assert_eq!(world.cluster.nodes.len(), 1);
        assert_eq!(world.cluster.nodes[0].taints.len(), 1, "not ready yet");
        world.advance_to(at(50));
        assert!(world.cluster.nodes[0].taints.is_empty());
        let id = world.pools[0].machines[0].id.clone();
        let delete = |key: &str, id: &str, expected_target| DeleteOrder {
            key: key.into(),
            ids: vec![id.into(), "ghost".into()],
            expected_target,
            ..DeleteOrder::default()
        };
        let (_, answer) = post(&mut world, "/v1/groups/a/delete-instances", &delete("k2", &id, 1));
        assert_eq!(answer["results"][0]["status"], "accepted");
        assert_eq!(answer["results"][1]["status"], "already-gone");
        assert_eq!(world.pools[0].target, 0);
        world.advance_to(at(71));
        assert!(world.cluster.nodes.is_empty());
        assert!(world.pools[0].machines.is_empty());
    }

    #[test]
    fn a_bad_request_gets_a_failure() {
        let mut world = world();
        let request = Request::post("https://sim.plimsoll.internal/v1/state").body(Bytes::from("nonsense")).unwrap();
        assert_eq!(answer(&mut world, &request).status(), 400);
        let request = Request::get("https://sim.plimsoll.internal/v9").body(Bytes::new()).unwrap();
        assert_eq!(answer(&mut world, &request).status(), 404);
    }
}
