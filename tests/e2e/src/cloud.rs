//! The fakes of the clouds behind TLS, in this process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plimsoll_tests_clouds::alicloud::{self, AliCloud};
use plimsoll_tests_clouds::serve::{Options, Server};
use plimsoll_tests_clouds::utho::Utho;
use plimsoll_tests_clouds::{Cloud, UnixMs};
use serde_json::{Value, json};

use crate::http_get;

/// A cloud that is served until the process ends.
#[derive(Clone, Debug)]
pub struct FakeCloud {
    /// Name of the provider, and the hosts that it speaks to.
    provider: (&'static str, &'static str),
    https: SocketAddr,
    http: SocketAddr,
    ca: PathBuf,
}

/// A node as the cloud would have it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// `spec.providerID`.
    pub provider_id: String,
    /// The scaling group of its machine.
    pub group: String,
}

/// Times of a cloud that is quick, so that a test is.
fn timing() -> Value {
    json!({"accept_ms": [100, 400], "boot_ms": [1_000, 3_000], "leave_ms": [500, 1_500], "reconcile_ms": [4_000, 6_000]})
}

/// A scaling group of machines with 4 CPUs and 16 GiB that register soon. It takes requests while others are under way.
pub fn group(id: &str, max: u32) -> Value {
    json!({
        "id": id, "name": id, "min": 0, "max": max, "desired": 0, "cooldown_s": 0, "parallel": true, "script": {"registers_after_ms": 500},
    })
}

/// The role that the ServiceAccount of a cluster may assume, and whose tokens say so.
const ROLE: &str = "acs:ram::1234567890123456:role/autoscaler";
const OIDC_PROVIDER: &str = "acs:ram::1234567890123456:oidc-provider/ack-rrsa-c0123";
const OIDC_SECRET: &str = "oidc-test-secret";

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl FakeCloud {
    /// An Alibaba Cloud with these scaling groups, whose certificate authority is written into `folder`.
    ///
    /// # Errors
    /// A group is not one, or nothing can listen.
    pub async fn alicloud(folder: &Path, groups: &[Value]) -> anyhow::Result<Self> {
        let scenario = json!({
            "start": now(), "seed": 7, "groups": groups, "timing": timing(), "oidc_secret": OIDC_SECRET,
            "roles": [{"arn": ROLE, "oidc_provider": OIDC_PROVIDER}],
        });
        let cloud = AliCloud::start(serde_json::from_value(scenario)?)?;
        Self::serve(("alicloud", "*.aliyuncs.com"), Box::new(cloud), folder).await
    }

    /// A Utho with one pool, `pool-a`, of one machine with 2 CPUs.
    ///
    /// # Errors
    /// Nothing can listen.
    pub async fn utho(folder: &Path) -> anyhow::Result<Self> {
        let scenario = json!({
            "start": now(), "seed": 5,
            "pools": [{"id": "pool-a", "plan": "10045", "min": 1, "max": 20, "count": 1}],
            "script": {"registers_after_ms": 500},
            "switches": {
                "delete_recreates": false, "count_lag_ms": 1_000, "errors_in_200": true, "unknown_node_in_200": true,
                "unknown_size_resizes": false, "size_required": false, "zero_text_refused": true, "stock_checked_late": false,
            },
        });
        let cloud = Utho::start(serde_json::from_value(scenario)?)?;
        Self::serve(("utho", "api.utho.com"), Box::new(cloud), folder).await
    }

    async fn serve(
        provider: (&'static str, &'static str),
        cloud: Box<dyn Cloud + Send>,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let ca = folder.join("cloud-ca.pem");
        let any: SocketAddr = "127.0.0.1:0".parse()?;
        let options = Options { listen: any, listen_plain: any, ca_out: ca.clone(), speed: 1.0 };
        let server = Server::open(cloud, &options).await?;
        let (https, http) = server.addresses()?;
        tokio::spawn(server.run());
        Ok(Self { provider, https, http, ca })
    }

    /// The plug-in configuration with which the provider reaches it; the grants and the credentials are the built-in ones.
    pub fn plugin_config(&self) -> String {
        let (name, hosts) = self.provider;
        let (ca, address) = (self.ca.display(), self.https);
        format!(
            "network:\n  extra-ca-file: {ca}\n  host-aliases: {{'{hosts}': '{address}'}}\nplugins:\n  {name}:\n    cidrs: \
             [127.0.0.0/8]\n"
        )
    }

    /// A token of a ServiceAccount, as the cluster mounts it for the cloud to believe.
    pub fn service_account_token() -> String {
        let expires = UnixMs(jiff::Timestamp::now().as_millisecond() + 7_200_000);
        alicloud::oidc_token(OIDC_SECRET, "sts.aliyuncs.com", expires)
    }

    /// The environment of a pod that has its key in a Secret.
    pub fn environment() -> [(&'static str, &'static str); 3] {
        [("ACCESS_KEY_ID", "testid"), ("ACCESS_KEY_SECRET", "testsecret"), ("REGION_ID", "cn-hangzhou")]
    }

    /// Ask what `/_ctl/WHAT` tells.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn control(&self, what: &str) -> anyhow::Result<Value> {
        let answer = http_get::get(self.http, &format!("/_ctl/{what}")).await?;
        anyhow::ensure!(answer.status == 200, "/_ctl/{what}: {}", answer.body);
        serde_json::from_str(&answer.body).with_context(|| format!("/_ctl/{what}"))
    }

    /// Tell `/_ctl/WHAT` something.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn tell(&self, what: &str, body: &Value) -> anyhow::Result<()> {
        let answer = http_get::send(self.http, "POST", &format!("/_ctl/{what}"), &body.to_string()).await?;
        anyhow::ensure!(answer.status == 200, "/_ctl/{what}: {}", answer.body);
        Ok(())
    }

    /// Nodes that there should be now.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn nodes(&self) -> anyhow::Result<Vec<Wanted>> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let nodes = self.control("nodes").await?;
        let read = |node: &Value| {
            let (name, provider_id, group) = (node.get("name")?, node.get("provider_id")?, node.get("group")?);
            Some(Wanted { name: text(name)?, provider_id: text(provider_id)?, group: text(group)? })
        };
        nodes
            .as_array()
            .into_iter()
            .flatten()
            .map(|node| read(node).with_context(|| format!("no node: {node}")))
            .collect()
    }

    /// What it was asked and what happened.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn journal(&self) -> anyhow::Result<Value> {
        self.control("journal").await
    }

    /// What a well-written client would not have sent, and machines that it took because a request did not say which.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn complaints(&self) -> anyhow::Result<Vec<String>> {
        let violations = self.control("violations").await?;
        let mut complaints: Vec<String> =
            violations.as_array().into_iter().flatten().map(|violation| violation.to_string()).collect();
        let journal = self.journal().await?;
        let events = journal.get("events").and_then(Value::as_array).into_iter().flatten();
        let says = |event: &Value, key: &str, value: &str| event.get(key).and_then(Value::as_str) == Some(value);
        let chosen = events.filter(|event| says(event, "what", "leaving") && says(event, "cause", "chosen"));
        complaints.extend(chosen.map(|event| format!("a machine was taken at random: {event}")));
        Ok(complaints)
    }
}
