//! The cloud's end of the provider's requests: the world's answer, the faults of the moment, and a look at every order.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use plimsoll_driver::lock;
use plimsoll_model::Time;
use plimsoll_plugins::egress::{InProcess, TransportError};
use plimsoll_provider_simulated::wire::{Call, Class, Failure, InstanceState, State as Answer};
use plimsoll_sim::{World, api};

use crate::faults::{Faults, Order};
use crate::orders::{self, Protected};
use crate::scenario::{Moment, ReadFault, WriteFault};
use crate::violation::Invariant;

/// Memory of the provider's component. It needs far less, and an answer of [`TOO_LARGE`] does not fit.
pub(crate) const COMPONENT_BYTES: usize = 4 << 20;
const TOO_LARGE: usize = 6 << 20;

/// The cloud as the provider reaches it.
pub(crate) fn transport(world: Arc<Mutex<World>>, faults: Faults, protected: Protected) -> InProcess {
    InProcess::faulty(move |request| {
        let (world, faults, protected) = (world.clone(), faults.clone(), protected.clone());
        async move {
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
            let call = Call::parse(request.method().as_str(), &path, request.body());
            let order = match &call {
                Ok(Call::Increase(..)) => Some(Order::Increase),
                Ok(Call::DecreaseTarget(..)) => Some(Order::Decrease),
                Ok(Call::DeleteInstances(..)) => Some(Order::Delete),
                _ => None,
            };
            let (before, after) = match order {
                Some(_) => (Moment::BeforeOrder, Moment::AfterOrder),
                None => (Moment::BeforeRead, Moment::AfterRead),
            };
            faults.step(before).await;
            let answer = match (order, &call) {
                (Some(order), Ok(call)) => {
                    orders::look_at(call, &world, &faults, &protected);
                    write(&world, &faults, &request, order)
                }
                (_, call) => {
                    let answer = read(&world, &faults, &request, &path);
                    if matches!(call, Ok(Call::State(_))) {
                        note(&world, &faults, &answer);
                    }
                    answer
                }
            };
            faults.step(after).await;
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
        Some(ReadFault::TooLarge) => Ok(Response::new(Bytes::from(vec![b' '; TOO_LARGE]))),
        Some(ReadFault::Zero) => Ok(changed(answer, |answer| {
            for group in answer.groups.iter_mut().flatten() {
                group.target = 0;
                group.instances.clear();
            }
        })),
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

/// What an answer to the question for the state tells the process.
fn note(world: &Mutex<World>, faults: &Faults, answer: &Result<Response<Bytes>, TransportError>) {
    let world = lock(world);
    let mut state = faults.lock();
    let lies = state.read() == Some(ReadFault::Zero);
    let books = &mut state.books;
    if lies {
        books.muddle_all();
    }
    let body = answer.as_ref().ok().filter(|answer| answer.status().is_success()).map(Response::body);
    let Some(told) = body.and_then(|body| serde_json::from_slice::<Answer>(body).ok()) else {
        books.told_nothing();
        return;
    };
    let of = Time::from_millis(i64::try_from(told.observed_at_ms).unwrap_or(0));
    let Some(groups) = told.groups else {
        books.told(world.pools.iter().map(|pool| pool.id.as_str()), of);
        return;
    };
    books.told(groups.iter().filter(|group| group.error.is_none()).map(|group| group.id.as_str()), of);
    let all = groups.iter().flat_map(|group| &group.instances);
    let going = all.filter(|instance| instance.state == InstanceState::Deleting);
    books.told_going(going.map(|instance| instance.id.clone()).collect());
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
        Some(WriteFault::LostBefore) => return Err(TransportError::Broken("reset".to_owned())),
        Some(WriteFault::LostAfter | WriteFault::TooLarge) | None => {}
    }
    let mut world = lock(world);
    let before: BTreeSet<String> = machines(&world).map(|(_, id)| id.to_owned()).collect();
    let answer = api::answer(&mut world, request);
    let mut state = faults.lock();
    if answer.status().is_success() {
        state.orders.push(order);
        let now = world.now();
        state.calls.deletions += u32::from(order == Order::Delete);
        if order == Order::Increase {
            // Others that come now are those that the cloud owed anyway.
            let fresh = machines(&world).filter(|(_, id)| !before.contains(*id));
            for (group, id) in fresh.take(orders::promised(&answer)) {
                state.books.brought(group, vec![id.to_owned()], now);
            }
        }
        for (id, status) in orders::deletions(&answer) {
            if status {
                state.books.deleted(&id, now);
            }
        }
    }
    match fault {
        Some(WriteFault::LostAfter) => Err(TransportError::Broken("reset".to_owned())),
        Some(WriteFault::TooLarge) => Ok(Response::new(Bytes::from(vec![b' '; TOO_LARGE]))),
        _ => Ok(answer),
    }
}

fn machines(world: &World) -> impl Iterator<Item = (&str, &str)> {
    world.pools.iter().flat_map(|pool| pool.machines.iter().map(|machine| (pool.id.as_str(), machine.id.as_str())))
}
