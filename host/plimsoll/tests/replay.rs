//! Recordings as a user makes and replays them: `--record`, `plimsoll replay`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output};

use flate2::read::MultiGzDecoder;
use plimsoll_core::cloud::{Capabilities, Snapshot};
use plimsoll_core::observation::{CloudView, prepare};
use plimsoll_core::plan::Warning;
use plimsoll_core::ranking::RankingFailure;
use plimsoll_core::{Memory, Observation, Plan, Settings};
use plimsoll_model::{Cluster, Time};
use plimsoll_recording::{Recorder, Seen};
use serde_json::Value;

fn plimsoll(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plimsoll")).args(arguments).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn recorded(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

const OBJECTS: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: default
  uid: u1
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"password": "PLANTED-1"}'
    example.com/token: PLANTED-2
spec:
  containers:
    - name: main
      env:
        - {name: DB_PASSWORD, value: PLANTED-3}
      args: ["--key=PLANTED-4"]
      resources: {requests: {cpu: "1", memory: 1Gi}}
status:
  phase: Pending
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: default}
stringData: {key: PLANTED-5}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: kube-system}
data: {password: PLANTED-6}
---
apiVersion: plimsoll.dev/v1alpha1
kind: NodeGroup
metadata: {name: small}
spec:
  minSize: 0
  maxSize: 10
  template:
    apiVersion: v1
    kind: Node
    metadata: {name: t, annotations: {example.com/bootstrap-token: PLANTED-7}}
    status:
      allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
"#;

const PLUGINS: &str = r#"
plugins:
  simulated:
    settings: {api-key: PLANTED-8}
  least-waste:
    settings: {token: PLANTED-9}
"#;

#[test]
fn a_demo_decides_the_same_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("demo.rec");
    let demo = plimsoll(&["demo", "--headless", "--record", text(&file)]);
    assert!(demo.status.success(), "{}", String::from_utf8_lossy(&demo.stderr));

    let replay = plimsoll(&["replay", text(&file)]);
    let told = String::from_utf8(replay.stdout).unwrap();
    assert_eq!(replay.status.code(), Some(0), "{told}");
    assert!(told.contains("the same decisions"), "{told}");
    assert!(told.contains("up: workers-a 2 -> 6"), "{told}");

    let json = plimsoll(&["replay", text(&file), "--output", "json"]);
    let lines: Vec<Value> =
        String::from_utf8(json.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() > 50, "a loop every ten seconds");
    assert!(lines.iter().all(|line| line["same"] == true && line["unfinished"] == false));

    let one = plimsoll(&["replay", text(&file), "--loop", "3", "--output", "json"]);
    let one: Value = serde_json::from_slice(&one.stdout).unwrap();
    assert_eq!(one, lines[2]);
    let beyond = plimsoll(&["replay", text(&file), "--loop", "99999"]);
    assert_eq!(beyond.status.code(), Some(2));

    // The writer was killed: what is there can be read.
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let half = plimsoll(&["replay", text(&file)]);
    assert_eq!(half.status.code(), Some(0), "{}", String::from_utf8_lossy(&half.stderr));
    assert!(String::from_utf8(half.stdout).unwrap().contains("the same decisions"));
}

#[test]
fn secrets_are_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (objects, plugins) = (folder.path().join("objects.yaml"), folder.path().join("plugins.yaml"));
    std::fs::write(&objects, OBJECTS).unwrap();
    std::fs::write(&plugins, PLUGINS).unwrap();
    let (one, other) = (folder.path().join("simulate.rec"), folder.path().join("demo.rec"));
    let config = text(&plugins);
    let simulate =
        plimsoll(&["simulate", text(&objects), "--plugin-config", config, "--seed=1", "--record", text(&one)]);
    assert!(simulate.status.success(), "{}", String::from_utf8_lossy(&simulate.stderr));
    assert!(String::from_utf8_lossy(&simulate.stdout).contains("small"));
    let demo = plimsoll(&["demo", "--headless", "--plugin-config", config, "--record", text(&other)]);
    assert!(demo.status.success(), "{}", String::from_utf8_lossy(&demo.stderr));
    for (file, part) in [(&one, "web-1"), (&other, "workers-a")] {
        let bytes = recorded(file);
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(has(part), "the search finds what is there");
        assert!(!has("PLANTED"), "{}", file.display());
        assert_eq!(plimsoll(&["replay", text(file)]).status.code(), Some(0));
    }
}

#[test]
fn what_differs_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.rec");
    let mut recorder = Recorder::begin(Box::new(File::create(&file).unwrap())).unwrap();
    let (settings, memory, mut cluster) = (Settings::default(), Memory::default(), Cluster::default());
    let (snapshot, capabilities) = (Snapshot::default(), Capabilities::default());
    let clouds = CloudView {
        snapshot: &snapshot,
        capabilities: &capabilities,
        templates: &Default::default(),
        fixed_templates: &Default::default(),
        prices: None,
    };
    let at = Time::from_millis(1_767_200_400_000);
    let prepared = prepare(at, &mut cluster, clouds, &settings, &mut Default::default());
    recorder.begins(&Seen { at, settings: &settings, cluster: &cluster, clouds, memory: &memory });
    let observation = Observation::new(prepared, &cluster, clouds, &settings);
    let failure = RankingFailure::Failed { name: "lots".to_owned(), reason: "none".to_owned() };
    let plan = Plan { warnings: vec![Warning::Expander(failure)], ..Plan::default() };
    recorder.ends(&plan, &observation);
    assert!(recorder.take_trouble().is_none());
    drop(recorder);
    let replay = plimsoll(&["replay", text(&file)]);
    let told = String::from_utf8(replay.stdout).unwrap();
    assert_eq!(replay.status.code(), Some(1), "{told}");
    assert!(told.contains("differs: then only: warning: expander \"lots\" failed: none"), "{told}");
    assert!(told.contains("1 loop decides differently"), "{told}");
}

#[test]
fn other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x");
    for (what, content) in [("text", &b"hello, I am no recording"[..]), ("nothing", b""), ("a gzip of text", GZIP)] {
        std::fs::write(&file, content).unwrap();
        let output = plimsoll(&["replay", text(&file)]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{what}: {told}");
        assert!(told.contains("it is no recording of plimsoll; expected a file that --record wrote"), "{what}: {told}");
    }
    assert_eq!(plimsoll(&["replay", text(&folder.path().join("missing"))]).status.code(), Some(2));
}

/// `hello`, compressed.
const GZIP: &[u8] = &[31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0];
