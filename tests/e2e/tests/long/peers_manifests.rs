//! Manifests of the Go autoscaler, with nothing changed but the image: the program gets the arguments, the environment, the
//! files and the rights that they give.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_tests_e2e::autoscaler::{Autoscaler, Setup};
use plimsoll_tests_e2e::cloud::{FakeCloud, group};
use plimsoll_tests_e2e::kubelet::Shape;
use plimsoll_tests_e2e::rights;
use plimsoll_tests_e2e::stage::{Options, Stage};
use plimsoll_tests_e2e::workload::deployment;
use plimsoll_tests_e2e::{cluster, stage};
use serde_json::{Value, json};

use crate::LIMIT;

#[tokio::test(flavor = "multi_thread")]
async fn alicloud_manifests_work_with_only_the_image_changed() -> anyhow::Result<()> {
    let options = Options::with_groups(vec![group("asg-workers", 20)]);
    let stage = Stage::set_up(crate::folder("peers_alicloud"), crate::program(), options).await?;
    for (round, manifest) in ["alicloud-standard", "alicloud-rrsa", "alicloud-self-built"].into_iter().enumerate() {
        let mut program = Pod::read(&stage, manifest)?.start(&stage).await?;
        // Each starts where the one before left, and one more machine is needed.
        let pods = u32::try_from(round)? + 1;
        stage.plane.apply(&deployment("web", pods, "3", "1Gi").to_string())?;
        let all = cluster::all_run(&stage.client, "app=web", pods as usize, LIMIT).await;
        all.with_context(|| format!("{manifest}: {}", program.log()))?;
        program.terminate(LIMIT).await?;
        assert_eq!(stage.cloud.complaints().await?, Vec::<String>::new(), "{manifest}");
    }
    stage.done()
}

#[tokio::test(flavor = "multi_thread")]
async fn utho_manifest_works_with_only_the_image_changed() -> anyhow::Result<()> {
    let shape = Shape { cpu_milli: 1_900, memory_mib: 3 * 1_024, pods: 110 };
    let options = Options { utho: true, shape, ..Options::with_groups(vec![]) };
    let stage = Stage::set_up(crate::folder("peers_utho"), crate::program(), options).await?;
    let mut program = Pod::read(&stage, "utho")?.start(&stage).await?;
    stage.plane.apply(&deployment("web", 3, "1500m", "1Gi").to_string())?;
    let all = cluster::all_run(&stage.client, "app=web", 3, LIMIT).await;
    all.with_context(|| program.log())?;
    program.terminate(LIMIT).await?;
    assert_eq!(stage.cloud.complaints().await?, Vec::<String>::new());
    stage.done()
}

/// What the kubelet makes of a manifest's pod.
struct Pod {
    name: String,
    account: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    folder: PathBuf,
}

fn texts(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text<'a>(value: &'a Value, pointer: &str) -> anyhow::Result<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).with_context(|| format!("no {pointer} in {value}"))
}

impl Pod {
    /// Applies a manifest, all but the Deployment, whose pod it reads.
    fn read(stage: &Stage, name: &str) -> anyhow::Result<Self> {
        let path = stage::repository().join(format!("tests/e2e/manifests/{name}.yaml"));
        let objects = rights::objects(&std::fs::read_to_string(&path).with_context(|| path.display().to_string())?)?;
        let (deployments, others): (Vec<Value>, Vec<Value>) =
            objects.into_iter().partition(|object| object["kind"] == "Deployment");
        // As a user would: with what was there before replaced, rules that are gone among it.
        stage.plane.apply(&json!({"apiVersion": "v1", "kind": "List", "items": others}).to_string())?;
        let pod = deployments.first().context("no Deployment")?.pointer("/spec/template/spec").context("no pod")?;
        let container = pod.pointer("/containers/0").context("no container")?;

        let folder = stage.file(name);
        std::fs::create_dir_all(&folder)?;
        let secrets = secrets(&others)?;
        let mounts = mount(pod, container, &secrets, &folder)?;
        let here = |text: String| {
            let mount = mounts.iter().find(|(path, _)| text.contains(path.as_str()));
            mount.map_or_else(|| text.clone(), |(path, real)| text.replace(path.as_str(), real))
        };
        let mut environment = vec![];
        for variable in container.get("env").and_then(Value::as_array).into_iter().flatten() {
            let (of, key) = ("/valueFrom/secretKeyRef/name", "/valueFrom/secretKeyRef/key");
            let secret = secrets.get(text(variable, of)?).context("no such Secret")?;
            let value = secret.get(text(variable, key)?).with_context(|| format!("{variable}: no such key"))?;
            environment.push((text(variable, "/name")?.to_owned(), here(value.clone())));
        }
        let command = texts(container.get("command"));
        assert_eq!(command.first().map(String::as_str), Some("./cluster-autoscaler"));
        let arguments = command.into_iter().skip(1).chain(texts(container.get("args"))).map(here).collect();
        let account = text(pod, "/serviceAccountName")?.to_owned();
        Ok(Self { name: name.to_owned(), account, arguments, environment, folder })
    }

    /// Starts the program in its place. What the cluster gives every pod, and the way to the cloud, is added.
    async fn start(self, stage: &Stage) -> anyhow::Result<Autoscaler> {
        let program = self.folder.join("cluster-autoscaler");
        symlink(crate::program(), &program)?;
        let kubeconfig = stage.kubeconfig_of(&self.account).await?;
        let mut arguments = self.arguments;
        arguments.push(format!("--kubeconfig={}", kubeconfig.display()));
        arguments.push(format!("--plugin-config={}", stage.file("plugins.yaml").display()));
        let hostname = ("HOSTNAME".to_owned(), self.name.clone());
        let environment =
            self.environment.into_iter().chain([hostname]).map(|(name, value)| (name.into(), value.into())).collect();
        let log = stage.file(&format!("{}.log", self.name));
        let setup = Setup { name: self.name, program, command: None, arguments, environment, log };
        let mut program = Autoscaler::start(setup)?;
        program.answers().await?;
        Ok(program)
    }
}

/// The Secrets among the objects, by name and key.
fn secrets(objects: &[Value]) -> anyhow::Result<BTreeMap<String, BTreeMap<String, String>>> {
    let mut secrets = BTreeMap::new();
    for object in objects.iter().filter(|object| object["kind"] == "Secret") {
        let mut secret = BTreeMap::new();
        for (key, value) in object.get("stringData").and_then(Value::as_object).into_iter().flatten() {
            secret.insert(key.clone(), value.as_str().unwrap_or_default().to_owned());
        }
        for (key, value) in object.get("data").and_then(Value::as_object).into_iter().flatten() {
            let bytes = STANDARD.decode(value.as_str().unwrap_or_default())?;
            secret.insert(key.clone(), String::from_utf8(bytes)?);
        }
        secrets.insert(text(object, "/metadata/name")?.to_owned(), secret);
    }
    Ok(secrets)
}

/// Lays out the volumes below `folder`; tells where each mount path is now.
fn mount(
    pod: &Value,
    container: &Value,
    secrets: &BTreeMap<String, BTreeMap<String, String>>,
    folder: &Path,
) -> anyhow::Result<Vec<(String, String)>> {
    let mut mounts = vec![];
    for mounted in container.get("volumeMounts").and_then(Value::as_array).into_iter().flatten() {
        let (name, path) = (text(mounted, "/name")?, text(mounted, "/mountPath")?);
        let mut volumes = pod.get("volumes").and_then(Value::as_array).into_iter().flatten();
        let volume = volumes.find(|volume| volume["name"] == name).with_context(|| format!("no volume {name}"))?;
        let real = folder.join(name);
        if let Ok(secret) = text(volume, "/secret/secretName") {
            std::fs::create_dir_all(&real)?;
            for (key, value) in secrets.get(secret).with_context(|| format!("no Secret {secret}"))? {
                std::fs::write(real.join(key), value)?;
            }
        } else if let Ok(file) = text(volume, "/projected/sources/0/serviceAccountToken/path") {
            std::fs::create_dir_all(&real)?;
            std::fs::write(real.join(file), FakeCloud::service_account_token())?;
        } else {
            continue; // the machine's certificates: not ours to lay out, and not needed
        }
        mounts.push((path.to_owned(), real.display().to_string()));
    }
    Ok(mounts)
}
