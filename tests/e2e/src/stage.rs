//! Everything at once: a control plane, a cloud with its nodes, and the program with the rights that the chart gives it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use kube::Client;
use serde_json::Value;

use crate::autoscaler::{Autoscaler, Setup};
use crate::cloud::FakeCloud;
use crate::kubelet::{Kubelets, Shape};
use crate::plane::{self, Plane};

/// Namespace of the program's own objects.
pub const NAMESPACE: &str = "kube-system";
/// Name of the release, and so of the ServiceAccount.
const RELEASE: &str = "plimsoll";

/// The longest that anything may take on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(120);

/// The peer's flags, with waits that fit a test.
pub const FLAGS: &[&str] = &[
    "--nodes=0:60:workers",
    "--expander=least-waste",
    "--scan-interval=1s",
    "--scale-down-delay-after-add=3s",
    "--scale-down-unneeded-time=3s",
    "--max-scale-down-parallelism=60",
    "--max-drain-parallelism=20",
    "--max-empty-bulk-delete=60",
    "--max-node-provision-time=2m",
    "--kube-client-qps=100",
    "--kube-client-burst=200",
];

/// What differs from test to test.
#[derive(Clone, Debug)]
pub struct Options {
    /// Scaling groups.
    pub groups: Vec<Value>,
    /// What the nodes have.
    pub shape: Shape,
    /// How often a node's lease is renewed.
    pub renew: Duration,
    /// Pods that are bound become Running.
    pub pods_run: bool,
    /// How the control plane is started.
    pub plane: plane::Options,
    /// The cloud is Utho; scaling groups do not matter then.
    pub utho: bool,
}

impl Options {
    /// A small cluster with these scaling groups.
    pub fn with_groups(groups: Vec<Value>) -> Self {
        let renew = Duration::from_secs(10);
        Self { groups, shape: Shape::default(), renew, pods_run: true, plane: plane::Options::default(), utho: false }
    }
}

/// A cluster to try the program on.
pub struct Stage {
    /// The control plane.
    pub plane: Plane,
    /// A client of the administrator.
    pub client: Client,
    /// The cloud.
    pub cloud: FakeCloud,
    folder: PathBuf,
    program: PathBuf,
    kubelets: Kubelets,
    /// How many tokens there have been.
    tokens: u32,
}

/// The root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The chart, rendered with more arguments for `helm template`.
///
/// # Errors
/// Helm refuses.
pub fn chart(arguments: &[&str]) -> anyhow::Result<String> {
    let chart = repository().join("deploy/helm/plimsoll");
    let chart = chart.to_str().context("the path of the chart is no text")?;
    let mut all = vec!["template", RELEASE, chart, "--namespace", NAMESPACE];
    all.extend(arguments);
    plane::helm(&all)
}

/// The values that every test's cloud needs.
pub const CLOUD_VALUES: &[&str] =
    &["--set=cloudProvider=alicloud", "--set=alicloud.region=cn-hangzhou", "--set=alicloud.existingSecret=cloud"];

impl Stage {
    /// Set up in a new folder; `program` is the binary. What is in the folder stays if the test fails.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn set_up(folder: PathBuf, program: &Path, options: Options) -> anyhow::Result<Self> {
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("cannot clear {}", folder.display()))?;
        }
        std::fs::create_dir_all(&folder)?;
        let plane = Plane::start(&folder.join("plane"), &options.plane)?;
        let client = plane.client().await?;
        let cloud = match options.utho {
            true => FakeCloud::utho(&folder).await?,
            false => FakeCloud::alicloud(&folder, &options.groups).await?,
        };
        let kubelets = Kubelets::start(&client, &cloud, options.shape, options.renew, options.pods_run);
        std::fs::write(folder.join("plugins.yaml"), cloud.plugin_config())?;
        let mut stage = Self { plane, client, cloud, folder, program: program.to_owned(), kubelets, tokens: 0 };
        let mut rights = vec!["--show-only=templates/rbac.yaml"];
        rights.extend(CLOUD_VALUES);
        stage.plane.apply(&chart(&rights)?)?;
        stage.renew_token()?;
        Ok(stage)
    }

    /// A file in the test's folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Give the program a new token for its ServiceAccount, as the kubelet does from time to time. The one before stops to be
    /// valid.
    ///
    /// # Errors
    /// The API server gives none.
    pub fn renew_token(&mut self) -> anyhow::Result<()> {
        let bound = |number: u32| format!("token-{number}");
        self.tokens += 1;
        let secret = bound(self.tokens);
        self.plane.kubectl(&["create", "secret", "generic", &secret, "-n", NAMESPACE])?;
        let (kind, name) = ("--bound-object-kind=Secret", format!("--bound-object-name={secret}"));
        let token = self.plane.kubectl(&["create", "token", RELEASE, "-n", NAMESPACE, kind, &name])?;
        // In one step, as the kubelet replaces a file.
        let (new, path) = (self.file("token.new"), self.file("token"));
        std::fs::write(&new, token.trim())?;
        std::fs::rename(new, path)?;
        if self.tokens > 1 {
            self.plane.kubectl(&["delete", "secret", &bound(self.tokens - 1), "-n", NAMESPACE])?;
        }
        Ok(())
    }

    /// A kubeconfig of the program's ServiceAccount for a server; none: the plane's own.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn kubeconfig(&self, server: Option<&str>) -> anyhow::Result<PathBuf> {
        let path = self.file(if server.is_some() { "proxied.kubeconfig" } else { "plimsoll.kubeconfig" });
        self.write_kubeconfig(&path, server, &self.file("token")).await?;
        Ok(path)
    }

    /// A kubeconfig of another ServiceAccount.
    ///
    /// # Errors
    /// It has no token, or it cannot be written.
    pub async fn kubeconfig_of(&self, account: &str) -> anyhow::Result<PathBuf> {
        let token = self.file(&format!("{account}.token"));
        std::fs::write(&token, self.plane.kubectl(&["create", "token", account, "-n", NAMESPACE])?.trim())?;
        let path = self.file(&format!("{account}.kubeconfig"));
        self.write_kubeconfig(&path, None, &token).await?;
        Ok(path)
    }

    async fn write_kubeconfig(&self, path: &Path, server: Option<&str>, token: &Path) -> anyhow::Result<()> {
        let own = self.plane.config().await?.cluster_url.to_string();
        let authority = match server {
            Some(_) => String::new(),
            None => format!(", certificate-authority: {:?}", self.plane.file("ca.crt")),
        };
        let server = server.unwrap_or(&own);
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: {server:?}{authority}}}}}]\nusers: [{{name: \
             u, user: {{tokenFile: {token:?}}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\ncurrent-context: c\n"
        );
        std::fs::write(path, text)?;
        Ok(())
    }

    /// How to start a replica against this cluster.
    pub fn setup(&self, name: &str, kubeconfig: &Path, arguments: &[&str]) -> Setup {
        let mut all = vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--plugin-config={}", self.file("plugins.yaml").display()),
            format!("--namespace={NAMESPACE}"),
            "--cloud-provider=alicloud".to_owned(),
        ];
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let log = self.file(&format!("{name}.log"));
        let mut environment: Vec<(OsString, OsString)> =
            FakeCloud::environment().map(|(name, value)| (name.into(), value.into())).to_vec();
        // As the kubelet sets it: the pod's name, which tells replicas apart.
        environment.push(("HOSTNAME".into(), name.into()));
        environment.extend(std::env::var_os("RUST_LOG").map(|level| ("RUST_LOG".into(), level)));
        let name = name.to_owned();
        Setup { name, program: self.program.clone(), command: Some("run".to_owned()), arguments: all, environment, log }
    }

    /// Start a replica with these flags.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start(&self, name: &str, arguments: &[&str]) -> anyhow::Result<Autoscaler> {
        let kubeconfig = self.kubeconfig(None).await?;
        let mut autoscaler = Autoscaler::start(self.setup(name, &kubeconfig, arguments))?;
        autoscaler.answers().await?;
        Ok(autoscaler)
    }

    /// Run the program's other commands, such as `explain`; returns what it wrote to standard output.
    ///
    /// # Errors
    /// It failed; the error holds what it said.
    pub fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = std::process::Command::new(&self.program).args(arguments).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "plimsoll {arguments:?}: {}\n{text}\n{said}", output.status);
        Ok(text)
    }

    /// The test passed: take everything down and remove the folder.
    ///
    /// # Errors
    /// The folder cannot be removed.
    pub fn done(self) -> anyhow::Result<()> {
        let Self { plane, kubelets, folder, .. } = self;
        drop(kubelets);
        drop(plane);
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
    }
}
