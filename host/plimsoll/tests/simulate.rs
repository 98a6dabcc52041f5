//! `plimsoll simulate` as a user runs it: files in, a plan out, exit status, messages.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn plimsoll() -> Command {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn simulate(files: &[&Path], arguments: &[&str]) -> Output {
    plimsoll().arg("simulate").args(files).args(arguments).output().unwrap()
}

fn plan(files: &[&Path], arguments: &[&str]) -> Value {
    let output = simulate(files, &[arguments, &["--output", "json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn complaint(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty(), "nothing is printed when the input is bad");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const GROUPS: &str = "\
apiVersion: plimsoll.dev/v1alpha1
kind: NodeGroup
metadata: {name: small}
spec:
  minSize: 0
  maxSize: 10
  pricePerHour: '0.2'
  template:
    metadata: {labels: {pool: small}}
    status: {allocatable: {cpu: '4', memory: 16Gi, pods: '110'}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: NodeGroup
metadata: {name: large}
spec:
  minSize: 0
  maxSize: 10
  pricePerHour: '0.9'
  template:
    metadata: {labels: {pool: large}}
    status: {allocatable: {cpu: '16', memory: 256Gi, pods: '110'}}
";

fn pods(count: usize, cpu: &str) -> String {
    let mut text = String::new();
    for index in 0..count {
        let _ = writeln!(
            text,
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{namespace: shop, name: web-{index}}}, spec: {{containers: [{{name: c, \
             resources: {{requests: {{cpu: '{cpu}', memory: 1Gi}}}}}}]}}, status: {{phase: Pending, conditions: \
             [{{type: PodScheduled, status: 'False', reason: Unschedulable}}]}}}}"
        );
    }
    text
}

#[test]
fn a_plan_says_where_every_pod_goes() {
    let files = Files::new();
    let (pods, groups) = (files.write("pods.yaml", pods(10, "1")), files.write("groups.yaml", GROUPS));
    let plan = plan(&[&pods, &groups], &["--expander=least-waste"]);
    assert_eq!(plan["apiVersion"], "plimsoll.dev/v1alpha1");
    assert_eq!(plan["kind"], "Plan");
    let growth = &plan["scaleUp"][0];
    assert_eq!(
        (growth["group"].as_str(), growth["from"].as_u64(), growth["to"].as_u64()),
        (Some("small"), Some(0), Some(3))
    );
    assert_eq!(growth["pods"].as_array().unwrap().len(), 10);
    assert_eq!(growth["because"]["expander"], "least-waste");
    assert_eq!(growth["because"]["against"][0]["group"], "large");
    let mut on: BTreeMap<String, usize> = BTreeMap::new();
    for pod in plan["pods"].as_array().unwrap() {
        assert_eq!(pod["outcome"], "scale-up");
        *on.entry(pod["on"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert!(on.values().all(|&pods| pods <= 4), "four cores a node: {on:?}");
    assert_eq!(on.keys().map(String::as_str).collect::<Vec<_>>(), ["small#0", "small#1", "small#2"]);
    assert_eq!(plan["stats"]["pods"], 10);
    assert!(plan["stats"]["loopMs"].as_f64().unwrap() > 0.0);
}

#[test]
fn every_built_in_expander_decides() {
    let files = Files::new();
    let (pods, groups) = (files.write("pods.yaml", pods(10, "1")), files.write("groups.yaml", GROUPS));
    for (chain, group) in
        [("least-waste", "small"), ("least-nodes", "large"), ("price", "small"), ("most-pods,least-nodes", "large")]
    {
        let plan = plan(&[&pods, &groups], &[&format!("--expander={chain}")]);
        assert_eq!(plan["scaleUp"][0]["group"], group, "{chain}: {}", plan["scaleUp"]);
        assert_eq!(plan["warnings"], serde_json::json!([]), "{chain}");
    }
    let chosen: std::collections::BTreeSet<String> = (0..8)
        .map(|seed| {
            let plan = plan(&[&pods, &groups], &["--expander=random", &format!("--seed={seed}")]);
            plan["scaleUp"][0]["group"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(chosen.len(), 2, "random draws both in eight seeds");
}

#[test]
fn priorities_come_from_the_config_map() {
    let files = Files::new();
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: cluster-autoscaler-priority-expander}, \
               data: {priorities: \"10: ['.*']\\n50: ['lar.*']\\n\"}}";
    let pods = files.write("pods.yaml", pods(4, "1"));
    let (groups, map) = (files.write("groups.yaml", GROUPS), files.write("map.yaml", map));
    let plan = plan(&[&pods, &groups, &map], &["--expander=priority"]);
    assert_eq!(plan["scaleUp"][0]["group"], "large");
}

#[test]
fn the_table_is_for_people() {
    let files = Files::new();
    let (pods, groups) = (
        files.write("pods.yaml", pods(10, "1") + &self::pods(1, "99").replace("web-0", "huge")),
        files.write("groups.yaml", GROUPS),
    );
    let output = simulate(&[&pods, &groups], &[]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in
        ["SCALE UP", "small", "0 → 3", "NOT HELPED", "shop/huge", "insufficient cpu (asks 99, a new node has 4)"]
    {
        assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
    }
    assert!(!text.contains('\x1b'), "no colour when not on a terminal");
}

fn table(files: &[&Path], arguments: &[&str]) -> String {
    let output = simulate(files, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_table_says_who_decided_against_whom() {
    let files = Files::new();
    let spare = GROUPS
        .split("---\n")
        .next()
        .unwrap()
        .replace("small", "spare")
        .replace("'4', memory: 16Gi", "'8', memory: 16Gi");
    let pods = files.write("pods.yaml", pods(10, "1"));
    let groups = files.write("groups.yaml", format!("{GROUPS}---\n{spare}"));
    let text = table(&[&pods, &groups], &["--expander=least-nodes"]);
    assert!(text.contains("before spare (2 nodes, score -2.00), small (3 nodes, score -3.00)"), "{text}");
    let twin = GROUPS.split("---\n").next().unwrap();
    let twins = files.write("twins.yaml", format!("{twin}---\n{}", twin.replace("small", "other")));
    let text = table(&[&pods, &twins], &["--expander=least-nodes"]);
    assert!(text.contains("drawn by lot") && !text.contains("only group"), "{text}");
    let one = files.write("one.yaml", twin);
    let text = table(&[&pods, &one], &["--expander=least-nodes"]);
    assert!(text.contains("only group that helps"), "{text}");
}

#[test]
fn the_table_says_where_pods_fit_and_counts_nodes_of_no_group() {
    let files = Files::new();
    let node = |name: &str, pool: &str| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{pool: {pool}}}}}, status: {{allocatable: {{cpu: '4', \
             memory: 16Gi, pods: '110'}}, conditions: [{{type: Ready, status: 'True'}}]}}}}\n---\n"
        )
    };
    let nodes: String =
        [node("n1", "small"), node("n2", "small"), node("control-1", "none"), node("control-2", "none")].concat();
    let selector = "nodeSelector: {pool: small}, containers";
    let nodes = files.write("nodes.yaml", nodes + &pods(6, "1").replace("containers", selector)[4..]);
    let groups = files.write(
        "groups.yaml",
        GROUPS.replace("minSize: 0", "minSize: 0\n  nodeSelector: {pool: small}").replacen(
            "nodeSelector: {pool: small}\n  maxSize: 10\n  pricePerHour: '0.9'",
            "maxSize: 10\n  pricePerHour: '0.9'",
            1,
        ),
    );
    let text = table(&[&nodes, &groups], &[]);
    assert!(text.contains("FIT ON NODES THAT ARE THERE   6 pods\n  shop/web-0… ×6   n1 (4), n2 (2)\n"), "{text}");
    assert!(text.contains("IN NO GROUP   2 nodes, left alone\n") && !text.contains("control-1"), "{text}");
}

#[test]
fn times_are_told_to_a_thousandth_of_a_millisecond() {
    let files = Files::new();
    let (pods, groups) = (files.write("pods.yaml", pods(10, "1")), files.write("groups.yaml", GROUPS));
    let plan = plan(&[&pods, &groups], &[]);
    for name in ["loopMs", "readMs"] {
        let text = plan["stats"][name].to_string();
        let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        assert!((1..=3).contains(&decimals), "{name}: {text}");
    }
}

#[test]
fn yaml_is_the_same_plan() {
    let files = Files::new();
    let (pods, groups) = (files.write("pods.yaml", pods(2, "1")), files.write("groups.yaml", GROUPS));
    let output = simulate(&[&pods, &groups], &["--output=yaml"]);
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("kind: Plan"));
}

#[test]
fn bad_input_ends_with_status_2_and_says_what_and_where() {
    let files = Files::new();
    let good = files.write("groups.yaml", GROUPS);
    let node =
        "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '9'}}}";
    let big_sparse = {
        let path = files.folder.path().join("big.json");
        std::fs::File::create(&path).unwrap().set_len(200 << 20).unwrap();
        path
    };
    for (name, file, expected) in [
        ("malformed JSON", files.write("a.json", "{\"kind\": \"Pod\",\n \"apiVersion\": }"), &["a.json:2"][..]),
        ("malformed YAML", files.write("b.yaml", "kind: Pod\n  apiVersion: [v1\n"), &["b.yaml:"]),
        (
            "a quantity",
            files.write("c.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    resources:\n      requests:\n        cpu: 1.5.0\n"),
            &["c.yaml:9", "1.5.0", "spec.containers[0].resources.requests.cpu"],
        ),
        ("min above max", files.write("d.yaml", GROUPS.replace("minSize: 0", "minSize: 11")), &["d.yaml:", "small", "maxSize 10 is below minSize 11"]),
        ("a node twice", files.write("e.yaml", format!("{node}\n---\n{node}\n")), &["e.yaml:3", "n1"]),
        ("an empty file", files.write("f.yaml", ""), &["f.yaml", "empty"]),
        ("200 MB of nothing", big_sparse, &["big.json"]),
        ("a file that is not there", files.folder.path().join("none.yaml"), &["none.yaml", "cannot be read"]),
        ("binary rubbish", files.write("g.bin", [0u8, 159, 146, 150, 255, 1, 2]), &["g.bin"]),
    ] {
        let text = complaint(&simulate(&[&file, &good], &[]));
        for expected in expected {
            assert!(text.contains(expected), "{name}: {expected:?} is missing in {text:?}");
        }
    }
}

#[test]
fn what_is_only_odd_is_a_warning() {
    let files = Files::new();
    let odd = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}\n---\n{apiVersion: v1, kind: Pod, metadata: \
               {name: empty}, spec: {containers: [{name: c}]}, status: {conditions: [{type: PodScheduled, status: 'False', reason: \
               Unschedulable}]}}\n";
    let (odd, groups) = (files.write("odd.yaml", odd), files.write("groups.yaml", GROUPS));
    let plan = plan(&[&odd, &groups], &[]);
    let warnings = plan["warnings"].to_string();
    assert!(warnings.contains("Widget"), "{warnings}");
    assert!(warnings.contains("requests"), "{warnings}");
    assert_eq!(plan["pods"][0]["outcome"], "scale-up");
}

#[test]
fn flags_are_the_peers() {
    let files = Files::new();
    let (pods, groups) = (files.write("pods.yaml", pods(10, "1")), files.write("groups.yaml", GROUPS));
    let text = complaint(&simulate(&[&pods, &groups], &["--scale-down-utilisation-threshold=0.5"]));
    assert_eq!(
        text.trim(),
        "unknown flag --scale-down-utilisation-threshold; did you mean --scale-down-utilization-threshold?"
    );
    let text = complaint(&simulate(&[&pods, &groups], &["--scale-down-unneeded-time=ten"]));
    assert!(text.contains("--scale-down-unneeded-time") && text.contains("10m"), "{text}");
    let plan = plan(&[&pods, &groups], &["--max-nodes-total=1", "--scan_interval=10s"]);
    assert_eq!(plan["scaleUp"][0]["to"], 1);
    assert!(plan["warnings"].to_string().contains("--scan-interval"));
}

#[test]
fn an_expander_in_a_file_changes_the_choice_and_its_loss_is_told() {
    let files = Files::new();
    let (pods, groups) = (files.write("pods.yaml", pods(10, "1")), files.write("groups.yaml", GROUPS));
    let folder = files.folder.path().join("plugins");
    std::fs::create_dir(&folder).unwrap();
    let directory = format!("--plugin-dir={}", folder.display());
    // The built-in least-nodes under the name of another: a file replaces what is built in.
    let (_, other) = plimsoll_bundled::EXPANDERS.iter().find(|(name, _)| *name == "least-nodes").unwrap();
    std::fs::write(folder.join("least-waste.wasm"), other).unwrap();
    let chosen = plan(&[&pods, &groups], &["--expander=least-waste", &directory]);
    assert_eq!(chosen["scaleUp"][0]["group"], "large");
    std::fs::remove_file(folder.join("least-waste.wasm")).unwrap();
    let chosen = plan(&[&pods, &groups], &["--expander=least-waste", &directory]);
    assert_eq!(chosen["scaleUp"][0]["group"], "small");
    // A name that nobody has: a warning, and the next in the chain decides.
    let chosen = plan(&[&pods, &groups], &["--expander=mine,least-waste", &directory]);
    assert_eq!(chosen["scaleUp"][0]["group"], "small");
    assert!(chosen["warnings"].to_string().contains("mine"), "{}", chosen["warnings"]);
    for (name, bytes) in [("text", b"hello".as_slice()), ("core module", b"\0asm\x01\0\0\0".as_slice())] {
        std::fs::write(folder.join("mine.wasm"), bytes).unwrap();
        let chosen = plan(&[&pods, &groups], &["--expander=mine,least-waste", &directory]);
        assert_eq!(chosen["scaleUp"][0]["group"], "small", "{name}");
        assert!(chosen["warnings"].to_string().contains("mine"), "{name}: {}", chosen["warnings"]);
    }
}

#[test]
fn plugin_inspect_tells_and_refuses() {
    let files = Files::new();
    let (_, expander) = plimsoll_bundled::EXPANDERS.iter().find(|(name, _)| *name == "price").unwrap();
    let good = files.write("price.wasm", expander);
    let inspect = |path: &Path| plimsoll().args(["plugin", "inspect"]).arg(path).output().unwrap();
    let output = inspect(&good);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("price") && text.contains("expander") && text.contains("sha256"), "{text}");
    for (name, bytes, expected) in [
        ("text.wasm", b"hello".as_slice(), "text"),
        ("module.wasm", b"\0asm\x01\0\0\0", "core WebAssembly module"),
        ("empty.wasm", b"", "empty"),
    ] {
        let output = inspect(&files.write(name, bytes));
        let text = complaint(&output);
        assert!(text.contains(expected), "{name}: {text}");
    }
}
