//! The rights that the chart gives are enough, and none is too many.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use plimsoll_tests_e2e::autoscaler::Autoscaler;
use plimsoll_tests_e2e::cloud::group;
use plimsoll_tests_e2e::rights::{self, Audit, Right};
use plimsoll_tests_e2e::stage::{self, CLOUD_VALUES, Options, Stage};
use plimsoll_tests_e2e::workload::deployment;
use plimsoll_tests_e2e::{cluster, plane, wait};
use serde_json::{Value, json};

use crate::{FLAGS, LIMIT};

/// Programs that run at a time.
const AT_ONCE: usize = 4;

fn roles() -> anyhow::Result<Vec<Value>> {
    let mut arguments = vec!["--show-only=templates/rbac.yaml"];
    arguments.extend(CLOUD_VALUES);
    rights::objects(&stage::chart(&arguments)?)
}

/// The program grows, drains, tells and ends; the API server writes down what that takes.
#[tokio::test(flavor = "multi_thread")]
async fn the_charts_rights_are_used_and_are_enough() -> anyhow::Result<()> {
    let folder = crate::folder("rights_used");
    std::fs::create_dir_all(folder.parent().expect("it has a parent"))?;
    let policy = folder.with_extension("policy.yaml");
    std::fs::write(&policy, rights::audit_policy("system:serviceaccount:kube-system:plimsoll"))?;
    let plane = plane::Options { audit_policy: Some(policy.clone()) };
    let options = Options { plane, ..Options::with_groups(vec![group("workers", 60)]) };
    let stage = Stage::set_up(folder, crate::program(), options).await?;

    // The same event again is counted up, which is a patch.
    let flags: Vec<&str> = FLAGS.iter().copied().chain(["--record-duplicated-events=true"]).collect();
    let mut program = stage.start("plimsoll-0", &flags).await?;
    stage.plane.apply(&deployment("web", 16, "900m", "1Gi").to_string())?;
    cluster::all_run(&stage.client, "app=web", 16, LIMIT).await?;
    stage.plane.apply(&deployment("huge", 1, "64", "1Gi").to_string())?;
    stage.plane.kubectl(&["scale", "deployment", "web", "--replicas=5"])?;
    cluster::has_nodes(&stage.client, 2, LIMIT).await?;
    let given = rights::given(&roles()?);
    let log = stage.plane.file("audit.log");
    let unused = |audit: &Audit| given.difference(&audit.used).cloned().collect::<BTreeSet<Right>>();
    program.terminate(LIMIT).await?;
    // What is written down comes a little later than what is done.
    wait::until("all rights of the chart to be used", Duration::from_secs(10), || async {
        let audit = Audit::read(&log, &given)?;
        let unused = unused(&audit);
        Ok(if unused.is_empty() { Ok(()) } else { Err(format!("unused: {unused:?}\n{}", program.log())) })
    })
    .await?;
    let audit = Audit::read(&log, &given)?;
    assert!(audit.refused.is_empty(), "refused: {:?}", audit.refused);
    std::fs::remove_file(policy)?;
    stage.done()
}

/// Without one right, the program names it.
#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_is_named() -> anyhow::Result<()> {
    let options = Options::with_groups(vec![group("workers", 60)]);
    let stage = Stage::set_up(crate::folder("rights_missing"), crate::program(), options).await?;
    let roles = roles()?;
    let all: Vec<Right> = rights::given(&roles).into_iter().collect();
    let (seen, written): (Vec<Right>, Vec<Right>) =
        all.into_iter().partition(|right| matches!(right.verb.as_str(), "list" | "watch"));

    // What is read is asked for at the start.
    let reads = seen.iter().enumerate().map(|(number, right)| {
        let (stage, roles) = (&stage, &roles);
        async move {
            let program = deprived(stage, roles, number, right, &["--leader-elect=false"]).await?;
            names(&program, right).await
        }
    });
    stream::iter(reads).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;

    // What is written is asked for when there is something to do, by one program at a time.
    for (number, right) in written.iter().enumerate() {
        let program = deprived(&stage, &roles, 100 + number, right, &[]).await?;
        let size = if number % 2 == 0 { 12 } else { 1 };
        stage.plane.apply(&deployment("web", size, "900m", "1Gi").to_string())?;
        names(&program, right).await?;
    }
    stage.done()
}

/// Waits until the program's log names a right.
async fn names(program: &Autoscaler, right: &Right) -> anyhow::Result<()> {
    wait::until(&format!("a complaint about {right:?}"), LIMIT, || async {
        let log = program.log();
        Ok(if log.contains(&right.complaint()) { Ok(()) } else { Err(log) })
    })
    .await
}

/// Starts the program as a ServiceAccount that has all rights but one.
async fn deprived(
    stage: &Stage,
    roles: &[Value],
    number: usize,
    right: &Right,
    flags: &[&str],
) -> anyhow::Result<Autoscaler> {
    let name = format!("deprived-{number}");
    let mut objects = rights::without(roles, right);
    for object in &mut objects {
        object["metadata"]["name"] = json!(name);
        for key in ["roleRef", "subjects"] {
            match object.get_mut(key) {
                Some(Value::Array(subjects)) => subjects.iter_mut().for_each(|subject| subject["name"] = json!(name)),
                Some(reference) => reference["name"] = json!(name),
                None => {}
            }
        }
    }
    stage.plane.apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string())?;
    let kubeconfig = stage.kubeconfig_of(&name).await?;
    let flags: Vec<&str> = FLAGS.iter().chain(flags).copied().collect();
    Autoscaler::start(stage.setup(&name, &kubeconfig, &flags))
}
