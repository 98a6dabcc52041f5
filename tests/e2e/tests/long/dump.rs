//! A dump of the cluster is decided about as the loop decided that came right after it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use plimsoll_tests_e2e::autoscaler::Autoscaler;
use plimsoll_tests_e2e::cloud::group;
use plimsoll_tests_e2e::stage::{FLAGS, LIMIT, Options, Stage};
use plimsoll_tests_e2e::workload::{container, deployment, put};
use plimsoll_tests_e2e::{cluster, wait};
use serde_json::{Value, json};

/// Long enough for the cluster to come to rest, and for a dump, between two loops.
const INTERVAL: &[&str] = &["--scan-interval=8s", "--frequent-loops-enabled=false", "--logging-format=json"];

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_is_decided_about_as_the_loop_did() -> anyhow::Result<()> {
    let options = Options::with_groups(vec![group("violet-workers", 60), group("spare", 5)]);
    let stage = Stage::set_up(crate::folder("dump"), crate::program(), options).await?;
    let nodes = ["--nodes=0:60:violet-workers", "--nodes=0:5:spare"];
    let flags = FLAGS.iter().filter(|flag| !flag.starts_with("--nodes")).chain(&nodes).chain(INTERVAL);
    let flags: Vec<&str> = flags.copied().collect();
    let mut program = stage.start("plimsoll-0", &flags).await?;

    // Up: ten pods that a group helps, one that none does, one that says no other kind of machine will do.
    after_a_loop(&program).await?;
    stage.plane.apply(&workloads().to_string())?;
    nowhere(&stage, 12).await?;
    let up = same_decision(&stage, &program, "up").await?;
    assert_eq!(count(&up, "scaleUp"), 1, "{up:#}");
    assert_eq!(outcomes(&up, "pods", "outcome").iter().filter(|outcome| *outcome == "not-helped").count(), 2);

    // Down: a few pods less, a node whose pods move, and one that stays.
    cluster::all_run(&stage.client, "app=zebra-shop", 10, LIMIT).await?;
    stage.plane.kubectl(&["scale", "deployment", "zebra-shop", "--replicas=4"])?;
    cluster::all_run(&stage.client, "app=zebra-shop", 4, LIMIT).await?;
    let mut down = Value::Null;
    for _ in 0..8 {
        after_a_loop(&program).await?;
        down = same_decision(&stage, &program, "down").await?;
        if count(&down, "scaleDown") > 0 {
            break;
        }
    }
    assert!(count(&down, "scaleDown") > 0, "{down:#}");
    program.terminate(LIMIT).await?;
    stage.done()
}

/// All names, label values and annotations are words that nobody else has.
fn workloads() -> Value {
    let mut shop = deployment("zebra-shop", 10, "900m", "1Gi");
    let template = ["spec", "template", "metadata"];
    put(&mut shop, &[&template[..], &["labels", "tier"]].concat(), json!("mandarin"));
    put(&mut shop, &[&template[..], &["annotations", "example.com/note"]].concat(), json!("tangerine"));
    let mut elsewhere = deployment("okapi", 1, "100m", "64Mi");
    put(&mut elsewhere, &["spec", "template", "spec", "nodeSelector"], json!({"disk": "heliotrope"}));
    let bare = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "lonely-gnu", "namespace": "savanna", "labels": {"app": "zebra-keeper"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container("64", "64Mi")]},
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "savanna"}});
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "savanna"},
    });
    json!({"apiVersion": "v1", "kind": "List", "items": [namespace, account, shop, elsewhere, bare]})
}

/// Waits for the end of the loop that runs or comes next.
async fn after_a_loop(program: &Autoscaler) -> anyhow::Result<()> {
    let loops = || async {
        let answer = program.get("/api/v1/plan").await?;
        let plan: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        anyhow::Ok(plan["loops"].as_u64().unwrap_or_default())
    };
    let before = loops().await?;
    wait::until("the end of a loop", LIMIT, || async {
        let now = loops().await?;
        Ok(if now > before { Ok(()) } else { Err(format!("{now} loops")) })
    })
    .await
}

/// Waits until the scheduler has found that so many pods fit nowhere.
async fn nowhere(stage: &Stage, count: usize) -> anyhow::Result<()> {
    wait::until(&format!("{count} pods that fit nowhere"), LIMIT, || async {
        let pods = cluster::pods(&stage.client, "").await?;
        let refused = |pod: &&k8s_openapi::api::core::v1::Pod| {
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
            conditions.iter().any(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
        };
        let refused = pods.iter().filter(refused).count();
        Ok(if refused == count { Ok(()) } else { Err(format!("{refused} do")) })
    })
    .await
}

/// Dumps the cluster, decides about the dump, and compares that with what the loop said of the same moment, in its log and
/// when asked. Then the same of the anonymous dump, in which nothing may be left of the names. Returns the decision.
async fn same_decision(stage: &Stage, program: &Autoscaler, name: &str) -> anyhow::Result<Value> {
    let file = |end: &str| stage.file(&format!("{name}{end}")).display().to_string();
    let (dump, anonymous) = (file(".json"), file("-anonymous.json"));
    let kubeconfig = format!("--kubeconfig={}", stage.plane.kubeconfig().display());
    let address = format!("--address={}", program.address());
    stage.run(&["dump", &kubeconfig, &address, "--out", &dump])?;
    let simulated: Value = serde_json::from_str(&stage.run(&["simulate", &dump, "--output=json"])?)?;

    let at = simulated["at"].as_str().context("the answer has no time")?.to_owned();
    let lived = wait::until("the end of the loop that was dumped", Duration::from_secs(5), || async {
        let plan: Value = serde_json::from_str(&program.get("/api/v1/plan").await?.body)?;
        Ok(if plan["at"] == at { Ok(plan) } else { Err(format!("{} is not {at}", plan["at"])) })
    })
    .await?;
    assert_eq!(decided(&simulated), lived_decision(&lived), "{at}");
    assert_eq!(logged(program, &at), logged_words(&simulated), "{at}");
    let nodes: Value = serde_json::from_str(&program.get("/api/v1/nodes").await?.body)?;
    if nodes["at"] == at {
        let verdicts = |of: &Value, key: &str| {
            let nodes = of[key].as_array().cloned().unwrap_or_default();
            let with_outcome = nodes.into_iter().filter(|node| node["outcome"].is_string());
            let verdict =
                |node: Value| (node["node"].to_string(), node["outcome"].to_string(), node["reasons"].clone());
            with_outcome.map(verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(&simulated, "nodes"), verdicts(&nodes, "nodes"), "{at}");
    }

    stage.run(&["dump", &dump, "--anonymize", "--anonymize-key=key", "--out", &anonymous])?;
    let without_names: Value = serde_json::from_str(&stage.run(&["simulate", &anonymous, "--output=json"])?)?;
    assert_eq!(shape(&without_names), shape(&simulated), "{at}");
    let (original, anonymous) = (std::fs::read_to_string(&dump)?, std::fs::read_to_string(&anonymous)?);
    let names = names(&serde_json::from_str(&original)?);
    for name in ["zebra-shop", "mandarin", "tangerine", "heliotrope", "lonely-gnu", "savanna", "violet-workers"] {
        assert!(names.contains(name), "{name} is not in the dump");
    }
    let left: Vec<&String> = names.iter().filter(|name| anonymous.contains(&format!("{name}\""))).collect();
    assert!(left.is_empty(), "left in the anonymous dump: {left:?}");
    Ok(simulated)
}

/// The decision of an answer of `simulate`.
fn decided(answer: &Value) -> Value {
    let list = |key: &str| answer[key].as_array().cloned().unwrap_or_default();
    let up = list("scaleUp").into_iter().map(|growth| {
        let because = &growth["because"];
        json!({
            "group": growth["group"], "from": growth["from"], "to": growth["to"],
            "pods": growth["pods"].as_array().map(Vec::len), "expander": because["expander"], "score": because["score"],
            "against": because["against"],
        })
    });
    let down = list("scaleDown").into_iter().map(|removal| {
        let moves = removal["moves"].as_array().into_iter().flatten();
        let moves: Vec<Value> = moves.map(|one| json!([one["pod"], one["to"]])).collect();
        json!({"node": removal["node"], "group": removal["group"], "drain": removal["how"] == "drain", "moves": moves})
    });
    let mut unhelped: Vec<Value> = list("pods")
        .into_iter()
        .filter(|pod| pod["outcome"] == "not-helped")
        .map(|pod| json!({"pod": pod["pod"], "reasons": pod["reasons"]}))
        .collect();
    unhelped.sort_by_key(Value::to_string);
    json!({"up": up.collect::<Vec<_>>(), "down": down.collect::<Vec<_>>(), "unhelped": unhelped})
}

/// The same of the loop's own account. Each class here has one pod.
fn lived_decision(plan: &Value) -> Value {
    let list = |key: &str| plan[key].as_array().cloned().unwrap_or_default();
    let keep = |value: &Value, keys: &[&str]| -> Value {
        keys.iter().map(|key| ((*key).to_owned(), value[*key].clone())).collect::<serde_json::Map<_, _>>().into()
    };
    let up: Vec<Value> = list("scaleUp")
        .iter()
        .map(|growth| keep(growth, &["group", "from", "to", "pods", "expander", "score", "against"]))
        .collect();
    let down: Vec<Value> =
        list("scaleDown").iter().map(|removal| keep(removal, &["node", "group", "drain", "moves"])).collect();
    let mut unhelped: Vec<Value> = list("notHelped")
        .iter()
        .map(|class| {
            assert_eq!(class["pods"], 1, "{class:#}");
            json!({"pod": class["example"], "reasons": class["reasons"]})
        })
        .collect();
    unhelped.sort_by_key(Value::to_string);
    json!({"up": up, "down": down, "unhelped": unhelped})
}

/// What the log says that the loop of this time decided.
fn logged(program: &Autoscaler, at: &str) -> BTreeSet<String> {
    let log = program.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines = lines.map(|line| line.get("fields").cloned().unwrap_or(line)).filter(|fields| fields["at"] == at);
    let words = lines.filter_map(|fields| match fields["message"].as_str()? {
        "scale-up" => Some(format!(
            "{} from {} to {} for {} by {} {}",
            fields["group"], fields["from"], fields["to"], fields["pods"], fields["expander"], fields["score"]
        )),
        "scale-down" => Some(format!(
            "{} of {}, drained {}, {} move",
            fields["node"], fields["group"], fields["drain"], fields["moves"]
        )),
        _ => None,
    });
    words.collect()
}

/// The same words for an answer of `simulate`.
fn logged_words(answer: &Value) -> BTreeSet<String> {
    let decided = decided(answer);
    let list = |key: &str| decided[key].as_array().cloned().unwrap_or_default();
    let up = list("up").into_iter().map(|growth| {
        format!(
            "{} from {} to {} for {} by {} {}",
            growth["group"], growth["from"], growth["to"], growth["pods"], growth["expander"], growth["score"]
        )
    });
    let down = list("down").into_iter().map(|removal| {
        let moves = removal["moves"].as_array().map_or(0, Vec::len);
        format!("{} of {}, drained {}, {moves} move", removal["node"], removal["group"], removal["drain"])
    });
    up.chain(down).collect()
}

/// A decision without names.
fn shape(answer: &Value) -> Value {
    let decided = decided(answer);
    let list = |key: &str| decided[key].as_array().cloned().unwrap_or_default();
    let up: Vec<Value> = list("up")
        .iter()
        .map(|growth| {
            json!([
                growth["from"],
                growth["to"],
                growth["pods"],
                growth["expander"],
                growth["score"],
                growth["against"].as_array().map(Vec::len)
            ])
        })
        .collect();
    let down: Vec<Value> = list("down")
        .iter()
        .map(|removal| json!([removal["drain"], removal["moves"].as_array().map(Vec::len)]))
        .collect();
    let mut codes: Vec<String> = answer["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|node| {
            let codes = node["reasons"].as_array().into_iter().flatten().map(|reason| reason["code"].to_string());
            format!("{} {:?}", node["outcome"], codes.collect::<Vec<_>>())
        })
        .collect();
    codes.sort();
    let mut pods = outcomes(answer, "pods", "outcome");
    pods.sort();
    json!({"up": up, "down": down, "nodes": codes, "pods": pods})
}

fn outcomes(answer: &Value, list: &str, key: &str) -> Vec<String> {
    let all = answer[list].as_array().into_iter().flatten();
    all.filter_map(|one| one[key].as_str().map(str::to_owned)).collect()
}

fn count(answer: &Value, list: &str) -> usize {
    answer[list].as_array().map_or(0, Vec::len)
}

/// Names, label values and annotations of all objects of a dump, but for the words that every cluster has.
fn names(dump: &Value) -> BTreeSet<String> {
    const EVERYBODYS: &[&str] = &[
        "",
        "amd64",
        "cluster-autoscaler-priority-expander",
        "default",
        "default-scheduler",
        "false",
        "kube-node-lease",
        "kube-public",
        "kube-system",
        "linux",
        "plimsoll",
        "system-cluster-critical",
        "system-node-critical",
        "true",
    ];
    let mut names = BTreeSet::new();
    for object in dump["items"].as_array().into_iter().flatten() {
        let metadata = &object["metadata"];
        names.extend(["name", "namespace", "uid"].iter().filter_map(|key| metadata[*key].as_str()).map(str::to_owned));
        collect(object, &mut names);
    }
    names.retain(|name| !EVERYBODYS.contains(&name.as_str()) && name.parse::<i64>().is_err());
    names
}

/// Values under `labels`, `annotations`, `matchLabels` and `nodeSelector`, and names of nodes, groups and machines.
fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(fields) => {
            for (field, value) in fields {
                match (field.as_str(), value) {
                    ("labels" | "annotations" | "matchLabels" | "nodeSelector", Value::Object(pairs)) => {
                        names.extend(pairs.values().filter_map(Value::as_str).map(str::to_owned));
                    }
                    ("nodeName" | "providerID" | "group", Value::String(name)) => drop(names.insert(name.clone())),
                    _ => collect(value, names),
                }
            }
        }
        _ => {}
    }
}
