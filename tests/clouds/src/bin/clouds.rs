//! Serves a cloud in memory over TLS, for tests that talk to it through sockets.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use plimsoll_tests_clouds::Cloud;
use plimsoll_tests_clouds::alicloud::AliCloud;
use plimsoll_tests_clouds::serve::{Options, Server};
use plimsoll_tests_clouds::utho::Utho;
use serde::de::DeserializeOwned;

/// Serve a cloud in memory. Prints one line of JSON with its addresses once it listens.
#[derive(Parser, Debug)]
struct Arguments {
    /// Which cloud.
    cloud: Kind,
    /// Address for TLS; port 0 takes any.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Address for plain HTTP, such as of a metadata service; port 0 takes any.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen_plain: SocketAddr,
    /// File for the certificate of the authority that signed the cloud's certificate.
    #[arg(long, value_name = "FILE")]
    ca_out: PathBuf,
    /// What there is at the beginning, as JSON; left out: a small empty cloud.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Virtual seconds in a real second; 0: time moves by POST /_ctl/advance alone.
    #[arg(long, default_value_t = 0.0)]
    speed: f64,
    /// The clock begins with the real time, whatever the scenario says.
    #[arg(long)]
    now: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Alicloud,
    Utho,
}

/// One line per cloud.
fn start(arguments: &Arguments) -> anyhow::Result<Box<dyn Cloud + Send>> {
    let scenario = arguments.scenario.as_deref();
    Ok(match arguments.cloud {
        Kind::Alicloud => Box::new(AliCloud::start(read(scenario, arguments.now)?)?),
        Kind::Utho => Box::new(Utho::start(read(scenario, arguments.now)?)?),
    })
}

/// A scenario; with `now`, its `start` is the real time.
fn read<T: DeserializeOwned>(path: Option<&Path>, now: bool) -> anyhow::Result<T> {
    let text = match path {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?,
        None => "{}".to_owned(),
    };
    let name = path.map_or_else(|| "the empty scenario".to_owned(), |path| path.display().to_string());
    let mut value: serde_json::Value = serde_json::from_str(&text).with_context(|| format!("{name} is not JSON"))?;
    if let (true, Some(fields)) = (now, value.as_object_mut()) {
        let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        fields.insert("start".to_owned(), time.into());
    }
    serde_json::from_value(value).with_context(|| format!("{name} is not a scenario of this cloud"))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let options = Options {
        listen: arguments.listen,
        listen_plain: arguments.listen_plain,
        ca_out: arguments.ca_out.clone(),
        speed: arguments.speed,
    };
    let server = Server::open(start(&arguments)?, &options).await?;
    let (https, http) = server.addresses()?;
    let line = serde_json::json!({"https": https, "http": http, "ca": options.ca_out});
    writeln!(std::io::stdout(), "{line}").context("cannot tell the addresses")?;
    server.run().await;
    Ok(())
}
