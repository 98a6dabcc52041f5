use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use super::{HOST, Order, Quirks, Scenario, State, Switches, TOKEN, Utho, World};
use crate::{Cause, Cloud as _, Fake, Happening, UnixMs};

const NOW: UnixMs = UnixMs(1_800_000_000_000);

fn cloud(switches: Switches, quirks: Quirks) -> Fake<Utho> {
    let mut logic = Utho::new(World::new("1111"), switches, quirks);
    let named = logic.named();
    logic.world_mut().add_pool("p", "10045", (1, 5), 3, named);
    Fake::new(logic, NOW, 1)
}

fn ask(cloud: &mut Fake<Utho>, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(format!("https://{HOST}/v2/{path}"))
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("accept", "application/json")
        .header("content-type", "application/json")
        .header("user-agent", "test")
        .body(body.map(|body| Bytes::from(body.to_string())).unwrap_or_default())
        .unwrap();
    let response = cloud.handle(request).within(Duration::from_secs(30)).unwrap();
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
}

fn read(cloud: &mut Fake<Utho>) -> Value {
    ask(cloud, "GET", "kubernetes/1111", None).1
}

fn update(cloud: &mut Fake<Utho>, body: Value) -> (u16, Value) {
    ask(cloud, "POST", "kubernetes/1111/nodepool/p/update", Some(body))
}

fn first_worker(cloud: &Fake<Utho>) -> String {
    cloud.logic().world().pools["p"].workers.keys().next().unwrap().clone()
}

fn delete(cloud: &mut Fake<Utho>, worker: &str) -> (u16, Value) {
    ask(cloud, "DELETE", &format!("kubernetes/1111/nodepool/p/{worker}/delete"), None)
}

fn count(cloud: &Fake<Utho>) -> (u32, u32) {
    let pool = &cloud.logic().world().pools["p"];
    (pool.count, pool.staying())
}

#[test]
fn the_plain_answer_is_the_documented_one() {
    let mut cloud = cloud(Switches::default(), Quirks::default());
    let answer = read(&mut cloud);
    let pool = &answer["nodepools"]["p"];
    assert_eq!((&answer["info"]["cluster"]["id"], &answer["status"]), (&json!("1111"), &json!("success")));
    assert_eq!((&pool["count"], &pool["auto_scale"], &pool["planid"]), (&json!("3"), &json!(true), &json!("10045")));
    assert_eq!((&pool["min_size"], &pool["max_size"]), (&json!(1), &json!(5)));
    let worker = &pool["workers"][0];
    assert_eq!((&worker["ram"], &worker["status"]), (&json!("4096"), &json!("Active")));
    assert_eq!(cloud.journal().violations(), Vec::<String>::new());
}

#[test]
fn quirks_change_the_look() {
    let all = Quirks {
        numbers_unquoted: true,
        empty_map_as_list: true,
        missing_worker_fields: true,
        nameless_while_pending: true,
        bool_as_one: true,
        state_in_app_status: true,
        ids_not_numeric: true,
        silent_success: true,
        lists_as_maps: true,
    };
    let mut cloud = cloud(Switches::default(), all);
    update(&mut cloud, json!({"count": "4"}));
    let answer = read(&mut cloud);
    let pool = &answer["nodepools"]["p"];
    assert_eq!((&pool["count"], &pool["auto_scale"], &pool["min_size"]), (&json!(4), &json!("1"), &json!("1")));
    assert!(answer.get("status").is_none() && pool["workers"].is_object());
    let workers: Vec<_> = pool["workers"].as_object().unwrap().values().collect();
    assert!(workers.iter().any(|worker| worker["cloudid"] == json!("")), "on its way");
    assert!(workers.iter().any(|worker| worker["cloudid"].as_str().unwrap().starts_with("wrk-")));
    assert!(workers.iter().all(|worker| worker.get("status").is_none() && worker.get("app_status").is_some()));
    assert!(workers.iter().any(|worker| worker.get("ram").is_none()));
    cloud.with(|logic, context| logic.obey(&Order::Count { pool: "p".into(), count: 0 }, context)).unwrap();
    assert_eq!(read(&mut cloud)["nodepools"], json!([]));
}

#[test]
fn only_the_right_token_is_let_in() {
    for (errors_in_200, expected) in [(false, 401), (true, 200)] {
        let mut cloud = cloud(Switches { errors_in_200, ..Switches::default() }, Quirks::default());
        let request = Request::get(format!("https://{HOST}/v2/kubernetes/1111")).body(Bytes::new()).unwrap();
        let response = cloud.handle(request).within(Duration::from_secs(1)).unwrap();
        assert_eq!(response.status().as_u16(), expected);
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(body["status"], json!("error"));
        assert!(cloud.journal().violations().contains(&"cluster: no user agent".to_owned()));
    }
}

#[test]
fn a_worker_goes_through_its_life() {
    let mut cloud = cloud(Switches::default(), Quirks::default());
    let (status, answer) = update(&mut cloud, json!({"count": "4"}));
    let text = "Node Pool updated and node count adjusted to 4";
    assert_eq!((status, answer), (200, json!({"status": "success", "message": text, "id": "1111"})));
    assert_eq!(count(&cloud), (4, 4));
    cloud.advance(Duration::from_secs(59));
    let coming = |cloud: &Fake<Utho>| {
        cloud.logic().world().pools["p"].workers.values().filter(|one| matches!(one.state, State::Pending(_))).count()
    };
    assert_eq!(coming(&cloud), 1);
    cloud.advance(Duration::from_secs(121));
    assert_eq!(coming(&cloud), 0);
    cloud.advance(Duration::from_secs(30));
    assert_eq!(cloud.nodes().len(), 4);

    let worker = first_worker(&cloud);
    assert_eq!(delete(&mut cloud, &worker).0, 200);
    cloud.advance(Duration::from_secs(9));
    assert!(cloud.logic().world().pools["p"].workers.contains_key(&worker));
    cloud.advance(Duration::from_secs(21));
    assert!(!cloud.logic().world().pools["p"].workers.contains_key(&worker));
    assert_eq!(cloud.nodes().len(), 3);
}

#[test]
fn a_deletion_lowers_the_count_or_is_made_good() {
    for (delete_recreates, expected) in [(false, (2, 2)), (true, (3, 3))] {
        let mut cloud = cloud(Switches { delete_recreates, ..Switches::default() }, Quirks::default());
        let worker = first_worker(&cloud);
        delete(&mut cloud, &worker);
        delete(&mut cloud, &worker);
        assert_eq!(count(&cloud).1, 2, "named twice is deleted once");
        cloud.advance(Duration::from_secs(61));
        assert_eq!(count(&cloud), expected);
        assert!(cloud.journal().random_kills().is_empty());
    }
}

#[test]
fn a_lower_count_kills_at_random_and_zero_removes_the_pool() {
    let mut lower = cloud(Switches::default(), Quirks::default());
    update(&mut lower, json!({"count": "1"}));
    assert_eq!((count(&lower), lower.journal().random_kills().len()), ((1, 1), 2));

    for (zero_text_refused, zero, removed) in
        [(false, json!("0"), true), (false, json!(0), true), (true, json!("0"), false), (true, json!(0), true)]
    {
        let mut cloud = cloud(Switches { zero_text_refused, ..Switches::default() }, Quirks::default());
        update(&mut cloud, json!({"count": zero}));
        assert_eq!(cloud.logic().world().pools.is_empty(), removed);
        assert_eq!(cloud.journal().random_kills().len(), if removed { 3 } else { 0 });
        assert!(!cloud.journal().violations().is_empty());
    }
}

#[test]
fn a_wrong_size_or_label_is_a_violation() {
    for (unknown_size_resizes, plan) in [(false, "10045"), (true, "3")] {
        let mut cloud = cloud(Switches { unknown_size_resizes, ..Switches::default() }, Quirks::default());
        update(&mut cloud, json!({"count": "3", "size": "3", "label": "utho.com"}));
        assert_eq!(cloud.logic().world().pools["p"].plan, plan);
        let violations = cloud.journal().violations();
        assert!(violations.iter().any(|text| text.contains("size \"3\"")), "{violations:?}");
        assert!(violations.iter().any(|text| text.contains("label \"utho.com\"")), "{violations:?}");
        assert_eq!(cloud.logic().world().pools["p"].label == "utho.com", unknown_size_resizes);
    }
}

#[test]
fn size_and_label_may_be_required() {
    let mut cloud = cloud(Switches { size_required: true, ..Switches::default() }, Quirks::default());
    assert_eq!(update(&mut cloud, json!({"count": "4"})).0, 400);
    assert_eq!(update(&mut cloud, json!({"count": "4", "size": "10045", "label": "p"})).0, 200);
    assert_eq!(cloud.journal().violations(), Vec::<String>::new());
}

#[test]
fn a_count_may_show_late() {
    let mut cloud = cloud(Switches { count_lag_ms: 30_000, ..Switches::default() }, Quirks::default());
    update(&mut cloud, json!({"count": "4"}));
    assert_eq!(read(&mut cloud)["nodepools"]["p"]["count"], json!("3"));
    cloud.advance(Duration::from_secs(30));
    assert_eq!(read(&mut cloud)["nodepools"]["p"]["count"], json!("4"));
}

#[test]
fn refusals_come_in_both_forms() {
    for unknown_node_in_200 in [false, true] {
        let mut cloud = cloud(Switches { unknown_node_in_200, ..Switches::default() }, Quirks::default());
        let (status, answer) = delete(&mut cloud, "9");
        assert_eq!((status, &answer["status"]), (if unknown_node_in_200 { 200 } else { 404 }, &json!("error")));
    }
    for (order, expected) in [
        (Order::Stock { plan: "10045".into(), left: Some(0) }, 400),
        (Order::Quota { workers: Some(3) }, 400),
        (Order::Arrears { on: true }, 402),
    ] {
        for errors_in_200 in [false, true] {
            let mut cloud = cloud(Switches { errors_in_200, ..Switches::default() }, Quirks::default());
            cloud.with(|logic, context| logic.obey(&order, context)).unwrap();
            let (status, answer) = update(&mut cloud, json!({"count": "4"}));
            assert_eq!((status, &answer["status"]), (if errors_in_200 { 200 } else { expected }, &json!("error")));
            assert_eq!(count(&cloud), (3, 3));
        }
    }
}

#[test]
fn a_stock_that_is_noticed_late_leaves_a_gap_until_it_comes_back() {
    let mut cloud = cloud(Switches { stock_checked_late: true, ..Switches::default() }, Quirks::default());
    let mut stock = |left| {
        let order = Order::Stock { plan: "10045".into(), left };
        cloud.with(|logic, context| logic.obey(&order, context)).unwrap();
    };
    stock(Some(1));
    update(&mut cloud, json!({"count": "5"}));
    assert_eq!(count(&cloud), (5, 4));
    cloud.console(&json!({"order": "stock", "plan": "10045", "left": null})).unwrap();
    cloud.advance(Duration::from_secs(1));
    assert_eq!(count(&cloud), (5, 5));
}

#[test]
fn what_a_human_takes_away_comes_back() {
    let mut cloud = cloud(Switches::default(), Quirks::default());
    let worker = first_worker(&cloud);
    cloud.console(&json!({"order": "delete-worker", "pool": "p", "worker": worker})).unwrap();
    assert!(cloud.console(&json!({"order": "delete-worker", "pool": "q", "worker": "1"})).is_err());
    cloud.advance(Duration::from_secs(60));
    assert_eq!(count(&cloud), (3, 3));
    let created = |cause| {
        let events = &cloud.journal().events;
        events.iter().filter(|event| event.what == Happening::Created && event.cause == cause).count()
    };
    assert_eq!((created(Cause::Cloud), created(Cause::Asked)), (1, 0));
}

#[test]
fn a_scenario_is_read_and_checked() {
    let start = |text: &str| Utho::start(serde_json::from_str::<Scenario>(text).unwrap());
    let pool =
        |plan: &str| format!(r#"{{"pools": [{{"id": "p", "plan": "{plan}", "min": 1, "max": 5, "count": 2}}]}}"#);
    let cloud = start(&pool("10045")).unwrap();
    assert_eq!((count(&cloud), cloud.now()), ((2, 2), UnixMs::parse("2026-01-01T00:00:00Z").unwrap()));
    assert!(start(&pool("7")).unwrap_err().to_string().contains("expected one of 10045, 10046, 10215"));
    assert!(start(r#"{"start": "soon"}"#).unwrap_err().to_string().contains("\"soon\""));
    assert!(serde_json::from_str::<Scenario>(r#"{"pool": []}"#).is_err());
}
