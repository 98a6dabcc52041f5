//! The control plane: a child process that ends with the test.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// The longest that a start may take on a busy machine.
const START: Duration = Duration::from_secs(120);
/// The longest that an order may take.
const ORDER: Duration = Duration::from_secs(30);

/// The folder of `testplane` and `helm`.
///
/// # Errors
/// `TESTPLANE` does not name it.
pub fn tools() -> anyhow::Result<PathBuf> {
    let folder = std::env::var_os("TESTPLANE")
        .context("TESTPLANE is not set; run the tests by `make e2e`, or set it to what scripts/testplane.sh prints")?;
    Ok(PathBuf::from(folder))
}

/// Run Helm.
///
/// # Errors
/// It failed; the error holds what it said.
pub fn helm(arguments: &[&str]) -> anyhow::Result<String> {
    output(Command::new(tools()?.join("helm")).args(arguments), "")
}

fn output(command: &mut Command, input: &str) -> anyhow::Result<String> {
    let what = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| what.clone())?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let input = input.to_owned();
    // In a thread of its own: a child that writes before it has read all would else wait for us, and we for it.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().with_context(|| what.clone())?;
    // A child that ends early says why on standard error.
    let _closed = writer.join();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    anyhow::ensure!(
        output.status.success(),
        "{what}: {}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(text)
}

/// What a plane is started with.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Audit policy of the API server.
    pub audit_policy: Option<PathBuf>,
}

/// A control plane of its own.
pub struct Plane {
    folder: PathBuf,
    process: Child,
    orders: ChildStdin,
    lines: Receiver<String>,
}

impl Plane {
    /// Start one that keeps everything in `folder`.
    ///
    /// # Errors
    /// It does not come up.
    pub fn start(folder: &Path, options: &Options) -> anyhow::Result<Self> {
        let mut command = Command::new(tools()?.join("testplane"));
        command.args(["up", "--until-eof", "--dir"]).arg(folder);
        if let Some(policy) = &options.audit_policy {
            command.arg("--audit-policy").arg(policy);
        }
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let orders = process.stdin.take().context("no standard input")?;
        let stdout = process.stdout.take().context("no standard output")?;
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let plane = Self { folder: folder.to_owned(), process, orders, lines };
        plane.read_until(|line| line.starts_with("KUBECONFIG="), START)?;
        Ok(plane)
    }

    fn read_until(&self, wanted: impl Fn(&str) -> bool, limit: Duration) -> anyhow::Result<String> {
        let begun = Instant::now();
        let mut seen = VecDeque::new();
        loop {
            match self.lines.recv_timeout(limit.saturating_sub(begun.elapsed())) {
                Ok(line) if wanted(&line) => return Ok(line),
                Ok(line) => seen.push_back(line),
                Err(RecvTimeoutError::Timeout) => anyhow::bail!("the control plane took over {limit:?}: {seen:?}"),
                Err(RecvTimeoutError::Disconnected) => {
                    anyhow::bail!("the control plane ended; logs are in {}: {seen:?}", self.folder.display())
                }
            }
        }
    }

    /// `stop NAME`, `start NAME` or `compact`; returns when it is done.
    ///
    /// # Errors
    /// The control plane refused.
    pub fn order(&mut self, order: &str) -> anyhow::Result<()> {
        writeln!(self.orders, "{order}").with_context(|| format!("cannot order {order:?}"))?;
        let is_answer = |line: &str| line == format!("ok {order}") || line.starts_with(&format!("error {order}:"));
        let answer = self.read_until(is_answer, ORDER)?;
        anyhow::ensure!(answer.starts_with("ok "), "{answer}");
        Ok(())
    }

    /// A file in its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The kubeconfig of the administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.file("admin.kubeconfig")
    }

    /// How to reach the API server as the administrator.
    ///
    /// # Errors
    /// Its kubeconfig cannot be read.
    pub async fn config(&self) -> anyhow::Result<kube::Config> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig())?;
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.proxy_url = None;
        Ok(config)
    }

    /// A client of the administrator.
    ///
    /// # Errors
    /// As [`Plane::config`].
    pub async fn client(&self) -> anyhow::Result<kube::Client> {
        Ok(kube::Client::try_from(self.config().await?)?)
    }

    /// Run kubectl as the administrator.
    ///
    /// # Errors
    /// It failed; the error holds what it said.
    pub fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.kubectl_with(arguments, "")
    }

    /// The same with standard input.
    ///
    /// # Errors
    /// As [`Plane::kubectl`].
    pub fn kubectl_with(&self, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        let mut command = Command::new(tools()?.join("testplane"));
        command.arg("kubectl").args(arguments).env("KUBECONFIG", self.kubeconfig());
        // The cache of discovery would go to the home folder and be shared by all planes.
        command.env("KUBECACHEDIR", self.file("kubectl-cache"));
        output(&mut command, input)
    }

    /// Apply objects, as YAML or JSON.
    ///
    /// # Errors
    /// As [`Plane::kubectl`].
    pub fn apply(&self, objects: &str) -> anyhow::Result<String> {
        self.kubectl_with(&["apply", "--server-side", "-f", "-"], objects)
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        // It may be gone already.
        let _killed = self.process.kill();
        let _reaped = self.process.wait();
    }
}
