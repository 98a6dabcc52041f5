//! A thousand nodes and thirty thousand pods: how long, how much memory, how many requests.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use plimsoll_tests_e2e::autoscaler::Autoscaler;
use plimsoll_tests_e2e::cluster;
use plimsoll_tests_e2e::proxy::Proxy;
use plimsoll_tests_e2e::stage::{Options, Stage};
use plimsoll_tests_e2e::workload::deployment;
use plimsoll_tests_e2e::{cloud, wait};
use serde_json::json;

const NODES: u32 = 1_000;
const PODS: u32 = 30_000;
const DEPLOYMENTS: u32 = 30;
/// How long it takes to make all that, at most.
const SET_UP: Duration = Duration::from_secs(1_500);
/// How long the idle loop is watched.
const WATCH: Duration = Duration::from_secs(60);
const LOOPS: &str = "cluster_autoscaler_function_duration_seconds_count";
const MAIN: &[&str] = &["function=\"main\""];

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_nodes_and_thirty_thousand_pods() -> anyhow::Result<()> {
    let mut group = cloud::group("workers", 1_200);
    group["running"] = json!(NODES);
    group["desired"] = json!(NODES);
    let mut options = Options::with_groups(vec![group]);
    options.renew = Duration::from_secs(25);
    options.pods_run = false;
    let stage = Stage::set_up(crate::folder("scale"), crate::program(), options).await?;
    cluster::has_nodes(&stage.client, NODES as usize, SET_UP).await?;
    for number in 0..DEPLOYMENTS {
        let text = deployment(&format!("web-{number}"), PODS / DEPLOYMENTS, "100m", "256Mi").to_string();
        stage.plane.apply(&text)?;
    }
    let begun = Instant::now();
    wait::until("all pods to have a node", SET_UP, || async {
        let bound = cluster::count_pods(&stage.client, "spec.nodeName!=").await?;
        Ok(if bound == PODS as usize { Ok(()) } else { Err(format!("{bound} have one")) })
    })
    .await?;
    println!("{NODES} nodes, {PODS} pods; the scheduler took {:?}", begun.elapsed());
    // Let the control plane come to rest.
    tokio::time::sleep(Duration::from_secs(30)).await;

    let flags = ["--nodes=0:1200:workers", "--expander=least-waste", "--scan-interval=1s"];
    let kubeconfig = stage.kubeconfig(None).await?;
    let started = Instant::now();
    let mut program = Autoscaler::start(stage.setup("plimsoll-0", &kubeconfig, &flags))?;
    let first = first_loop(&mut program).await?.duration_since(started);
    println!("start to first decision: {first:?}");
    let (count, sum) = loops(&program).await?;
    tokio::time::sleep(WATCH).await;
    let (count_after, sum_after) = loops(&program).await?;
    let mean = (sum_after - sum) / (count_after - count);
    let median = median(&program).await?;
    let resident = program.resident_bytes()? >> 20;
    println!("idle loop: median {:.1} ms, mean {:.1} ms; resident {resident} MiB", median * 1e3, mean * 1e3);
    program.terminate(Duration::from_secs(30)).await?;

    let proxy = Proxy::serve(&stage.plane).await?;
    let kubeconfig = stage.kubeconfig(Some(&proxy.url())).await?;
    let mut program = Autoscaler::start(stage.setup("plimsoll-1", &kubeconfig, &flags))?;
    first_loop(&mut program).await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (count, _) = loops(&program).await?;
    proxy.take();
    tokio::time::sleep(WATCH).await;
    let asked = proxy.take();
    let (count_after, _) = loops(&program).await?;
    let beside: Vec<_> = asked.iter().filter(|asked| !asked.is_lease()).collect();
    let per_loop = beside.len() as f64 / (count_after - count);
    println!("API requests in an idle loop beside the lease: {per_loop:.2}");
    program.terminate(Duration::from_secs(30)).await?;

    assert!(first <= Duration::from_secs(10), "{first:?} until the first decision");
    assert!(resident <= 200, "{resident} MiB are resident");
    assert!(median <= 0.050, "the median of the idle loop is {median} s");
    assert!(per_loop <= 4.0, "{per_loop} requests in an idle loop");
    stage.done()
}

/// Waits for the end of the first loop, and tells when it was.
async fn first_loop(program: &mut Autoscaler) -> anyhow::Result<Instant> {
    program.answers().await?;
    wait::until("the first loop", Duration::from_secs(120), || async {
        let count = program.metrics().await?.sum(LOOPS, MAIN).unwrap_or_default();
        Ok(if count >= 1.0 { Ok(Instant::now()) } else { Err(program.log()) })
    })
    .await
}

/// How many loops there were, and how long they took together in seconds.
async fn loops(program: &Autoscaler) -> anyhow::Result<(f64, f64)> {
    let metrics = program.metrics().await?;
    let of = |name| metrics.sum(name, MAIN).with_context(|| format!("no {name} in {}", metrics.0));
    Ok((of(LOOPS)?, of("cluster_autoscaler_function_duration_seconds_sum")?))
}

/// The median of all loops, in seconds.
async fn median(program: &Autoscaler) -> anyhow::Result<f64> {
    let metrics = program.metrics().await?;
    let name = "cluster_autoscaler_function_duration_quantile_seconds";
    metrics.sum(name, &["function=\"main\"", "quantile=\"0.5\""]).with_context(|| format!("no {name}"))
}
