//! The cloud's end of the provider's requests: the world's answer, the faults of the moment, and a look at every order.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use plimsoll_driver::lock;
use plimsoll_model::symbol::known;
use plimsoll_plugins::egress::{InProcess, TransportError};
use plimsoll_provider_simulated::wire::{
    Call, Class, DecreaseOrder, DeleteOrder, Failure, IncreaseOrder, State as Answer,
};
use plimsoll_sim::cloud::MachineState;
use plimsoll_sim::{World, api};

use crate::faults::{Faults, Order};
use crate::scenario::{Hold, ReadFault, WriteFault};
use crate::violation::Invariant;

/// Which pods must not lose their node: names of their workloads.
pub(crate) type Protected = Arc<Vec<(String, Hold)>>;

/// The cloud as the provider reaches it.
pub(crate) fn transport(world: Arc<Mutex<World>>, faults: Faults, protected: Protected) -> InProcess {
    InProcess::faulty(move |request| {
        let (world, faults, protected) = (world.clone(), faults.clone(), protected.clone());
        async move {
            faults.step().await;
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
            let answer = match Call::parse(request.method().as_str(), &path, request.body()) {
                Ok(Call::Increase(group, order)) => {
                    look_at_increase(&world, &faults, &group, &order);
                    write(&world, &faults, &request, Order::Increase)
                }
                Ok(Call::DecreaseTarget(group, order)) => {
                    look_at_decrease(&world, &faults, &group, &order);
                    write(&world, &faults, &request, Order::Decrease)
                }
                Ok(Call::DeleteInstances(group, order)) => {
                    look_at_deletion(&world, &faults, &protected, &group, &order);
                    write(&world, &faults, &request, Order::Delete)
                }
                _ => read(&world, &faults, &request, &path),
            };
            faults.step().await;
            answer
        }
    })
}

fn status(code: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(b"try again later"));
    *response.status_mut() = code;
    response
}

fn read(
    world: &Mutex<World>,
    faults: &Faults,
    request: &Request<Bytes>,
    path: &str,
) -> Result<Response<Bytes>, TransportError> {
    let answer = api::answer(&mut lock(world), request);
    let mut state = faults.lock();
    state.calls.reads += 1;
    let fault = state.read();
    if fault.is_none() {
        // A read that asks for what changed since a revision is no whole answer.
        if answer.status().is_success() && whole(answer.body()) {
            state.answers.insert(path.to_owned(), answer.body().clone());
        }
        return Ok(answer);
    }
    match fault {
        None => Ok(answer),
        Some(ReadFault::Fails) => Ok(status(StatusCode::SERVICE_UNAVAILABLE)),
        Some(ReadFault::Silence) => Err(TransportError::Refused),
        Some(ReadFault::Stale) => {
            Ok(state.answers.get(path).cloned().map_or(status(StatusCode::SERVICE_UNAVAILABLE), Response::new))
        }
        Some(ReadFault::Garbage) => Ok(Response::new(Bytes::from_static(b"<html>oops</html>"))),
        Some(ReadFault::Wrong) => Ok(Response::new(Bytes::from_static(br#"{"revision":"r","groups":{"a":1}}"#))),
        Some(ReadFault::Broken) => Ok(changed(answer, |answer| {
            let group = answer.groups.iter_mut().flatten().next();
            if let Some(group) = group {
                group.error = Some(Failure::new(Class::Transient, "Busy", "cannot be told now"));
                group.instances.clear();
                group.target = 0;
            }
        })),
        Some(ReadFault::Incomplete) => Ok(changed(answer, |answer| {
            for group in answer.groups.iter_mut().flatten() {
                group.instances.truncate(group.instances.len() / 2);
                group.instances_incomplete = true;
            }
        })),
    }
}

fn whole(body: &Bytes) -> bool {
    serde_json::from_slice::<Answer>(body).is_ok_and(|answer| answer.groups.is_some())
}

/// The answer with a change, under a revision of its own; another answer as it is.
fn changed(answer: Response<Bytes>, change: impl FnOnce(&mut Answer)) -> Response<Bytes> {
    let Ok(mut state) = serde_json::from_slice::<Answer>(answer.body()) else { return answer };
    change(&mut state);
    state.revision.push_str("-odd");
    Response::new(Bytes::from(serde_json::to_vec(&state).unwrap_or_default()))
}

fn write(
    world: &Mutex<World>,
    faults: &Faults,
    request: &Request<Bytes>,
    order: Order,
) -> Result<Response<Bytes>, TransportError> {
    let fault = {
        let mut state = faults.lock();
        state.calls.orders += 1;
        if state.lease_lost() {
            state.found(Invariant::NoWriteWithoutLease, format!("{order:?}"));
        }
        state.write()
    };
    match fault {
        Some(WriteFault::Fails) => return Ok(status(StatusCode::SERVICE_UNAVAILABLE)),
        Some(WriteFault::Throttled) => return Ok(status(StatusCode::TOO_MANY_REQUESTS)),
        Some(WriteFault::LostBefore) => return Err(TransportError::Refused),
        Some(WriteFault::LostAfter) | None => {}
    }
    let answer = api::answer(&mut lock(world), request);
    if answer.status().is_success() {
        faults.lock().orders.push(order);
    }
    match fault {
        Some(WriteFault::LostAfter) => Err(TransportError::ConnectTimeout),
        _ => Ok(answer),
    }
}

fn look_at_increase(world: &Mutex<World>, faults: &Faults, group: &str, order: &IncreaseOrder) {
    let world = lock(world);
    let Some(pool) = world.pools.iter().find(|pool| pool.id == group) else { return };
    let target = order.expected_target.saturating_add(order.delta);
    if target > pool.max {
        faults
            .found(Invariant::TargetsInBounds, format!("{group}: asked for {target}, above its maximum {}", pool.max));
    }
}

fn look_at_decrease(world: &Mutex<World>, faults: &Faults, group: &str, order: &DecreaseOrder) {
    let world = lock(world);
    let Some(pool) = world.pools.iter().find(|pool| pool.id == group) else { return };
    let target = order.expected_target.saturating_sub(order.delta);
    if order.expected_target == pool.target && target < pool.alive() {
        let alive = pool.alive();
        faults.found(
            Invariant::TargetsInBounds,
            format!("{group}: asked for {target}, below the {alive} that are there"),
        );
    }
}

fn look_at_deletion(
    world: &Mutex<World>,
    faults: &Faults,
    protected: &[(String, Hold)],
    group: &str,
    order: &DeleteOrder,
) {
    let world = lock(world);
    let cluster = &world.cluster;
    for id in &order.ids {
        let machine = world.pools.iter().flat_map(|pool| &pool.machines).find(|machine| machine.id == *id);
        let Some(machine) = machine.filter(|machine| machine.state == MachineState::Up) else { continue };
        let name = cluster.symbols.find(&machine.id);
        let Some(node) = cluster.nodes.iter().find(|node| Some(node.name) == name) else { continue };
        if node.taint(known::TO_BE_DELETED).is_none() {
            faults.found(Invariant::DeletesOnlyMarked, format!("{group}: {id} is deleted without a mark"));
        }
        let here = cluster.pods.iter().filter(|pod| pod.node == name && pod.deletion.is_none());
        for pod in here {
            let holds = |(workload, hold): &&(String, Hold)| {
                hold.protects() && pod.name.strip_prefix(workload.as_str()).is_some_and(|rest| rest.starts_with('-'))
            };
            if let Some((_, hold)) = protected.iter().find(holds) {
                faults
                    .found(Invariant::ProtectedPodsStay, format!("{id} is deleted with {} on it ({hold:?})", pod.name));
            }
        }
    }
}
