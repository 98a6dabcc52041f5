//! The program: `plimsoll run` as a child process.

use std::ffi::OsString;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use crate::http_get::{self, Answer};
use crate::wait;

/// How long it may take until it answers on its HTTP address.
const START: Duration = Duration::from_secs(60);

/// How to start it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its name, which tells replicas apart.
    pub name: String,
    /// The binary.
    pub program: PathBuf,
    /// The subcommand, if it must be given.
    pub command: Option<String>,
    /// Arguments after that.
    pub arguments: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// File for its output.
    pub log: PathBuf,
}

/// A running replica; killed when dropped.
pub struct Autoscaler {
    setup: Setup,
    process: Child,
    address: SocketAddr,
    revived: u32,
}

impl Autoscaler {
    /// Start a replica.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(setup: Setup) -> anyhow::Result<Self> {
        let address = free_address()?;
        let process = spawn(&setup, address)?;
        Ok(Self { setup, process, address, revived: 0 })
    }

    /// Start it again if it has ended, as the kubelet does; tells how often that was so.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn revive(&mut self) -> anyhow::Result<u32> {
        if self.process.try_wait()?.is_some() {
            self.process = spawn(&self.setup, self.address)?;
            self.revived += 1;
        }
        Ok(self.revived)
    }

    /// Its name: the pod's, in a cluster.
    pub fn name(&self) -> &str {
        &self.setup.name
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Wait until it answers on its HTTP address.
    ///
    /// # Errors
    /// It ended, or does not answer in time.
    pub async fn answers(&mut self) -> anyhow::Result<()> {
        let address = self.address;
        wait::until("the program's HTTP server", START, || {
            let ended = self.process.try_wait();
            let log = self.setup.log.clone();
            async move {
                if let Some(status) = ended? {
                    return Ok(Err(format!("it ended with {status}: {}", read(&log))));
                }
                http_get::get(address, "/metrics").await.map(|_| Ok(()))
            }
        })
        .await
    }

    /// GET on its HTTP address.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        http_get::get(self.address, path).await
    }

    /// Where its HTTP server is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its metrics.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn metrics(&self) -> anyhow::Result<Metrics> {
        let answer = self.get("/metrics").await?;
        anyhow::ensure!(answer.status == 200, "/metrics: {}", answer.body);
        Ok(Metrics(answer.body))
    }

    /// What it has written so far.
    pub fn log(&self) -> String {
        read(&self.setup.log)
    }

    /// `kill -9`, and wait for the end.
    ///
    /// # Errors
    /// It cannot be killed.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// SIGTERM, and wait for the end.
    ///
    /// # Errors
    /// It does not end in `limit`.
    pub async fn terminate(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        let sent = Command::new("kill").arg("-TERM").arg(self.pid().to_string()).status()?;
        anyhow::ensure!(sent.success(), "kill: {sent}");
        self.ended(limit).await
    }

    /// Wait for its end.
    ///
    /// # Errors
    /// It does not end in `limit`.
    pub async fn ended(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        wait::until("the end of the program", limit, || {
            let ended = self.process.try_wait();
            async move { Ok(ended?.ok_or_else(|| "it runs".to_owned())) }
        })
        .await
    }

    /// Resident memory now, in bytes.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn resident_bytes(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
        Ok(kib * 1024)
    }
}

impl Drop for Autoscaler {
    fn drop(&mut self) {
        // It may be gone already.
        let _killed = self.kill();
    }
}

fn spawn(setup: &Setup, address: SocketAddr) -> anyhow::Result<Child> {
    let log = File::options().create(true).append(true).open(&setup.log)?;
    let mut command = Command::new(&setup.program);
    command.args(&setup.command).args(&setup.arguments).arg(format!("--address={address}"));
    command.env_clear().envs(setup.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    command.spawn().with_context(|| format!("cannot start {command:?}"))
}

fn read(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_else(|error| format!("{}: {error}", log.display()))
}

/// An address that nobody listens on now.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Metrics in Prometheus's text format.
#[derive(Clone, Debug)]
pub struct Metrics(pub String);

impl Metrics {
    /// Sum of the series of a metric whose labels hold all of these texts, such as `direction="up"`; none if there is none.
    pub fn sum(&self, name: &str, labels: &[&str]) -> Option<f64> {
        let of_it = |line: &&str| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' '])) && labels.iter().all(|label| line.contains(label))
        };
        let values: Vec<f64> =
            self.0.lines().filter(of_it).filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// Names of all families that it has a TYPE line for.
    pub fn families(&self) -> Vec<&str> {
        self.0.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect()
    }
}
