//! Answers, in one of the forms that the API is known to give.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::clock::UnixMs;

use super::settings::{Quirks, Switches};
use super::world::{Pool, State, Worker, World};

/// The answer to the read of the cluster.
pub(super) fn cluster(world: &World, switches: &Switches, quirks: &Quirks, now: UnixMs) -> Value {
    let pools: Map<String, Value> =
        world.pools.iter().map(|(id, one)| (id.clone(), pool(id, one, world, switches, quirks, now))).collect();
    let pools = if pools.is_empty() && quirks.empty_map_as_list { json!([]) } else { Value::Object(pools) };
    let mut answer = json!({
        "info": {
            "cluster": {
                "id": number(world.cluster.parse().unwrap_or(0), quirks), "version": "1.30.0-utho", "label": "tests",
                "endpoint": "https://203.0.113.7:6443", "dcslug": world.region, "auto_upgrade": "0",
                "created_at": "2025-08-01 10:00:00", "deleted_at": "", "status": "Active", "powerstatus": "Running",
            },
            "master": {
                "cloudid": number(1_300_001, quirks), "hostname": "master", "ram": number(4096, quirks),
                "cpu": number(2, quirks), "disksize": number(80, quirks), "app_status": "Installed",
                "dcslug": world.region, "planid": number(10_045, quirks), "ip": "203.0.113.7",
            },
        },
        "vpc": [{"id": "1", "is_vpc": "1", "vpc_network": "10.210.0.0"}],
        "nodepools": pools,
        "load_balancers": [], "target_groups": [], "security_groups": [],
    });
    if !quirks.silent_success
        && let Some(answer) = answer.as_object_mut()
    {
        for key in ["rcode", "status", "message"] {
            answer.insert(key.to_owned(), json!("success"));
        }
    }
    answer
}

/// Numbers are quoted, or not.
fn number(value: u32, quirks: &Quirks) -> Value {
    if quirks.numbers_unquoted { json!(value) } else { json!(value.to_string()) }
}

fn truth(value: bool, quirks: &Quirks) -> Value {
    if quirks.bool_as_one { json!(if value { "1" } else { "0" }) } else { json!(value) }
}

fn id(text: &str, quirks: &Quirks) -> Value {
    text.parse().map_or_else(|_| json!(text), |value| number(value, quirks))
}

fn pool(name: &str, pool: &Pool, world: &World, switches: &Switches, quirks: &Quirks, now: UnixMs) -> Value {
    let workers = pool.workers.values().map(|one| worker(name, one, pool, world, quirks));
    let workers = if quirks.lists_as_maps && !pool.workers.is_empty() {
        // A list whose first entry was taken away.
        Value::Object(workers.enumerate().map(|(position, one)| ((position + 1).to_string(), one)).collect())
    } else {
        workers.collect()
    };
    let count = pool.shown_count(now, Duration::from_millis(switches.count_lag_ms));
    json!({
        "id": name, "size": pool.plan, "cost": 3600.5, "planid": id(&pool.plan, quirks), "ip": "203.0.113.8",
        "count": number(count, quirks), "auto_scale": truth(pool.auto_scale, quirks),
        // These two are numbers as a rule, so here the quirk is the other way round.
        "min_size": number(pool.min, &Quirks { numbers_unquoted: !quirks.numbers_unquoted, ..*quirks }),
        "max_size": number(pool.max, &Quirks { numbers_unquoted: !quirks.numbers_unquoted, ..*quirks }),
        "policies": [], "workers": workers,
    })
}

fn worker(name: &str, worker: &Worker, pool: &Pool, world: &World, quirks: &Quirks) -> Value {
    let (status, app_status) = match worker.state {
        State::Pending(_) | State::Failing(_) => ("Pending", "Installing"),
        State::Active => ("Active", "Installed"),
        State::Failed => ("Failed", ""),
        State::Deleting(_) => ("Deleting", "Installed"),
    };
    let is_pending = matches!(worker.state, State::Pending(_) | State::Failing(_));
    let shown_id = if is_pending && quirks.nameless_while_pending { json!("") } else { id(&worker.id, quirks) };
    let states = match (quirks.state_in_app_status, status) {
        (false, _) => json!({"status": status, "app_status": app_status}),
        (true, "Active") => json!({"app_status": "Installed"}),
        (true, other) => json!({"app_status": other}),
    };
    let mut shown = json!({"cloudid": shown_id, "nodepool": name, "planid": id(&pool.plan, quirks)});
    if !(quirks.missing_worker_fields && worker.id.ends_with(['0', '2', '4', '6', '8']))
        && let Some(plan) = world.plans.get(&pool.plan)
    {
        let more = json!({
            "hostname": hostname(worker), "ram": number(plan.memory_mib, quirks), "cost": "3600.5",
            "cpu": number(plan.cores, quirks), "disksize": number(plan.disk_gb, quirks), "bandwidth": "1000",
            "ip": "203.0.113.9",
            "private_network": {"ip": worker.private_ip, "vpc": "1", "vpc_network": "10.210.0.0"},
        });
        extend(&mut shown, more);
    }
    extend(&mut shown, states);
    shown
}

fn extend(target: &mut Value, more: Value) {
    if let (Value::Object(target), Value::Object(more)) = (target, more) {
        target.extend(more);
    }
}

/// Name of a worker's node.
pub(super) fn hostname(worker: &Worker) -> String {
    format!("utho-{}", worker.id)
}

/// The list of plans.
pub(super) fn plans(world: &World, quirks: &Quirks) -> Value {
    let plan = |(name, plan): (&String, &super::Plan)| {
        json!({
            "id": id(name, quirks), "type": "ramcpu", "disk": number(plan.disk_gb, quirks),
            "ram": number(plan.memory_mib, quirks), "cpu": number(plan.cores, quirks), "slug": "basic", "price": 3600.5,
        })
    };
    json!({"plans": world.plans.iter().map(plan).collect::<Vec<_>>(), "status": "success"})
}
