//! `plimsoll run` against the fakes of the clouds over TLS, with an in-memory cluster.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_tests_clouds::Cloud;
use plimsoll_tests_clouds::alicloud::AliCloud;
use plimsoll_tests_clouds::serve::{Options, Server};
use plimsoll_tests_clouds::utho::Utho;
use serde_json::{Value, json};

/// Simulated seconds in a second, of the cloud and of the run.
const SPEED: u32 = 60;

/// A cloud behind sockets, for as long as the process lives.
struct Served {
    https: SocketAddr,
    http: SocketAddr,
    ca: PathBuf,
}

fn serve(folder: &Path, cloud: Box<dyn Cloud + Send>) -> Served {
    let ca = folder.join("ca.pem");
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let options = Options { listen: any, listen_plain: any, ca_out: ca.clone(), speed: f64::from(SPEED) };
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::open(cloud, &options).await.unwrap();
            tell.send(server.addresses().unwrap()).unwrap();
            server.run().await;
        });
    });
    let (https, http) = told.recv().unwrap();
    Served { https, http, ca }
}

impl Served {
    fn control(&self, what: &str) -> Value {
        let mut stream = TcpStream::connect(self.http).unwrap();
        write!(stream, "GET /_ctl/{what} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.http).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// From no pods to `pods`, each of which fills a machine, and back.
fn scenario(folder: &Path, pods: u32, cpu: &str) -> PathBuf {
    let path = folder.join("scenario.yaml");
    let text = format!(
        "apiVersion: plimsoll.dev/v1alpha1\nkind: Scenario\nspec:\n  length: 45m\n  joinsAfter: 20s\n  readyAfter: 10s\n  \
         workloads:\n    - {{name: web, requests: {{cpu: {cpu}, memory: 1Gi}}, replicas: {{1m: {pods}, 16m: 0}}}}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// Flags of a self-built cluster's manifest, with waits that fit a short day.
const FLAGS: &[&str] = &[
    "--expander=least-waste",
    "--scan-interval=30s",
    "--scale-down-delay-after-add=3m",
    "--scale-down-delay-after-failure=1m",
    "--scale-down-unneeded-time=3m",
    "--scale-down-unready-time=2m",
    "--ok-total-unready-count=1000",
    "--max-node-provision-time=5m",
    "--scale-down-utilization-threshold=0.3",
    "--max-graceful-termination-sec=14400",
    "--max-scale-down-parallelism=50",
    "--max-drain-parallelism=50",
    "--max-empty-bulk-delete=50",
    "--scale-up-from-zero=true",
    "--skip-nodes-with-system-pods=true",
    "--skip-nodes-with-local-storage=false",
    "--min-replica-count=0",
    "--leader-elect=false",
    "-v=4",
];

fn run(
    folder: &Path,
    provider: &str,
    scenario: &Path,
    config: &str,
    more: &[&str],
    environment: &[(&str, String)],
) -> String {
    let plugin_config = folder.join("plugins.yaml");
    std::fs::write(&plugin_config, config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["run", "--cluster=simulated", "--cloud-provider", provider, "--scenario"]).arg(scenario);
    command.arg(format!("--speed={SPEED}")).arg("--plugin-config").arg(&plugin_config).args(FLAGS).args(more);
    command.env_clear();
    for (name, value) in environment {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn alicloud_from_nothing_to_forty_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let group = |id: &str| json!({"id": id, "name": id, "min": 0, "max": 50, "desired": 0});
    let mut sold_out = group("asg-b");
    sold_out["broken"] = json!(["OperationDenied.NoStock", "The resource is out of stock in the specified zone."]);
    let cloud = json!({
        "start": now(), "seed": 7,
        // Keys that end three times before the day does.
        "metadata": {"role": "worker", "lifetime_s": 900},
        "groups": [group("asg-a"), sold_out],
    });
    let mut cloud = AliCloud::start(serde_json::from_value(cloud).unwrap()).unwrap();
    let begun = cloud.now();
    let throttled = json!({
        "name": "minute", "fault": {"kind": "throttled-minute"}, "action": "DescribeScalingGroups",
        "from": begun + std::time::Duration::from_secs(600), "until": begun + std::time::Duration::from_secs(720),
    });
    cloud.faults().add(serde_json::from_value(throttled).unwrap());
    let served = serve(folder.path(), Box::new(cloud));
    let config = format!(
        "network:\n  extra-ca-file: {}\n  host-aliases: {{'*.aliyuncs.com': '{}'}}\nplugins:\n  alicloud:\n    hosts: \
         ['https://*.aliyuncs.com']\n    cidrs: [127.0.0.0/8]\n    credentials:\n      api: {{kind: alicloud-v3, hosts: \
         ['*.aliyuncs.com'], environment: true}}\n",
        served.ca.display(),
        served.https
    );
    let environment =
        [("METADATA_ENDPOINT", format!("http://{}", served.http)), ("REGION_ID", "cn-hangzhou".to_owned())];
    let nodes = ["--nodes=0:50:asg-a", "--nodes=0:50:asg-b"];
    let told = run(folder.path(), "alicloud", &scenario(folder.path(), 40, "2500m"), &config, &nodes, &environment);

    assert!(told.contains("OperationDenied.NoStock"), "{told}");
    assert!(told.contains("asg-a 0 → 40 for 40 pods"), "{told}");
    assert!(told.contains("Throttling"), "{told}");
    assert!(told.ends_with("at the end: 0 nodes, 0 pods waiting; asg-a 0, asg-b 0\n"), "{told}");
    assert_eq!(served.control("violations"), json!([]));
    let calls = served.control("journal")["calls"].clone();
    let calls = calls.as_array().unwrap();
    let code = |call: &Value| call["code"].as_str().unwrap_or_default().to_owned();
    assert!(
        !calls.iter().any(|call| code(call).contains("SecurityToken") || code(call).contains("Signature")),
        "{told}"
    );
    assert!(calls.iter().any(|call| code(call).contains("Throttling")));
}

#[test]
fn utho_from_one_to_twelve_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let cloud = json!({
        "start": now(), "seed": 5,
        // The unkind ways, but for one: where deleted machines come back, nothing can shrink.
        "switches": {
            "delete_recreates": false, "count_lag_ms": 45_000, "errors_in_200": true, "unknown_node_in_200": true,
            "unknown_size_resizes": false, "size_required": true, "zero_text_refused": true, "stock_checked_late": true,
        },
        "pools": [{"id": "pool-a", "plan": "10045", "min": 1, "max": 20, "count": 1}],
    });
    let cloud = Utho::start(serde_json::from_value(cloud).unwrap()).unwrap();
    let served = serve(folder.path(), Box::new(cloud));
    let cloud_config = folder.path().join("utho.json");
    std::fs::write(&cloud_config, r#"{"cluster_id": "1111", "update_payload": "documented"}"#).unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, plimsoll_tests_clouds::utho::TOKEN).unwrap();
    let config = format!(
        "network:\n  extra-ca-file: {}\n  host-aliases: {{api.utho.com: '{}'}}\nplugins:\n  utho:\n    hosts: \
         ['https://api.utho.com']\n    cidrs: [127.0.0.0/8]\n    credentials:\n      api: {{kind: bearer, hosts: [api.utho.com], \
         file: {}}}\n",
        served.ca.display(),
        served.https,
        token.display()
    );
    let flag = format!("--cloud-config={}", cloud_config.display());
    let told = run(folder.path(), "utho", &scenario(folder.path(), 12, "1500m"), &config, &[&flag], &[]);
    assert!(told.contains("pool-a 1 → 12 for"), "{told}");
    assert!(told.contains("at the end: 1 node, 0 pods waiting; pool-a 1\n"), "{told}");
    assert_eq!(served.control("violations"), json!([]));
}
