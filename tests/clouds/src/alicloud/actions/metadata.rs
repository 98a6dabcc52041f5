//! The service that tells a machine about itself: its role's temporary key, its region.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::alicloud::AliCloud;
use crate::alicloud::account::{Key, Role};
use crate::alicloud::wire::Incoming;
use crate::answer;
use crate::clock::UnixMs;
use crate::fake::Context;

/// Which requests it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// With or without a token.
    #[default]
    Both,
    /// Only with a token.
    TokenOnly,
    /// It knows no tokens.
    PlainOnly,
}

/// What it knows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metadata {
    /// Which requests it takes.
    pub mode: Mode,
    /// Role of the machine; none: it has no role.
    pub role: Option<String>,
    /// Operations that the role may use; empty: all.
    pub allow: Vec<String>,
    /// How long a temporary key lasts; zero: six hours.
    pub lifetime_s: u32,
    #[serde(skip)]
    tokens: BTreeMap<String, UnixMs>,
    #[serde(skip)]
    current: Option<Key>,
}

const ROOT: &str = "/latest/meta-data/";
const LONGEST_TOKEN_S: u32 = 21_600;

impl Metadata {
    fn lifetime(&self) -> Duration {
        let seconds = if self.lifetime_s == 0 { 6 * 3600 } else { self.lifetime_s };
        Duration::from_secs(u64::from(seconds))
    }
}

fn text(body: impl Into<Bytes>) -> Response<Bytes> {
    answer::response(200, "text/plain", body)
}

fn page(status: u16, title: &str) -> Response<Bytes> {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n<html xmlns=\"http://www.w3.org/1999/xhtml\">\n\
         <head><title>{status} - {title}</title></head>\n<body><h1>{status} - {title}</h1></body>\n</html>\n"
    );
    answer::response(status, "text/html", body)
}

/// Handle a request to the metadata service.
pub(in crate::alicloud) fn serve(
    cloud: &mut AliCloud,
    incoming: &Incoming,
    context: &mut Context<'_>,
) -> Response<Bytes> {
    match (incoming.method.as_str(), incoming.path.as_str()) {
        ("PUT", "/latest/api/token") if cloud.metadata.mode != Mode::PlainOnly => token(cloud, incoming, context),
        ("GET", path) => match path.strip_prefix(ROOT) {
            Some(rest) => match admitted(cloud, incoming, context.now) {
                Ok(()) => read(cloud, rest, context),
                Err(response) => *response,
            },
            None => page(404, "Not Found"),
        },
        _ => page(405, "Method Not Allowed"),
    }
}

fn token(cloud: &mut AliCloud, incoming: &Incoming, context: &mut Context<'_>) -> Response<Bytes> {
    let seconds = incoming.header("x-aliyun-ecs-metadata-token-ttl-seconds").parse::<u32>().ok();
    let Some(seconds) = seconds.filter(|seconds| (1..=LONGEST_TOKEN_S).contains(seconds)) else {
        context.violation("a token is asked for without X-aliyun-ecs-metadata-token-ttl-seconds from 1 to 21600");
        return page(400, "Bad Request");
    };
    let token = context.chance.token(56);
    cloud.metadata.tokens.insert(token.clone(), context.now + Duration::from_secs(u64::from(seconds)));
    text(token)
}

fn admitted(cloud: &AliCloud, incoming: &Incoming, now: UnixMs) -> Result<(), Box<Response<Bytes>>> {
    let sent = incoming.header("x-aliyun-ecs-metadata-token");
    let valid = cloud.metadata.tokens.get(sent).is_some_and(|expires| now < *expires);
    match cloud.metadata.mode {
        Mode::TokenOnly if sent.is_empty() => Err(Box::new(page(403, "Forbidden"))),
        Mode::TokenOnly | Mode::Both if !sent.is_empty() && !valid => Err(Box::new(page(401, "Unauthorized"))),
        _ => Ok(()),
    }
}

fn read(cloud: &mut AliCloud, path: &str, context: &mut Context<'_>) -> Response<Bytes> {
    let region = cloud.kept.world.region.clone();
    match path {
        "region-id" => return text(region),
        "zone-id" => return text(format!("{region}-a")),
        "instance-id" => return text("i-bp1autoscaler"),
        "instance/instance-type" => return text("ecs.g7.xlarge"),
        "vpc-id" => return text("vpc-bp1fake"),
        "private-ipv4" => return text("10.0.0.2"),
        _ => {}
    }
    let (Some(rest), Some(role)) = (path.strip_prefix("ram/security-credentials/"), cloud.metadata.role.clone()) else {
        return page(404, "Not Found");
    };
    match rest {
        "" => text(role),
        name if name == role => credentials(cloud, &role, context),
        _ => page(404, "Not Found"),
    }
}

/// The present temporary key; a new one when the present one has less than a twelfth of its life left.
fn credentials(cloud: &mut AliCloud, role: &str, context: &mut Context<'_>) -> Response<Bytes> {
    let lifetime = cloud.metadata.lifetime();
    let expires = |key: &Key| key.session.as_ref().map(|session| session.expires).unwrap_or_default();
    let fresh = cloud.metadata.current.clone().filter(|key| context.now + lifetime / 12 < expires(key));
    let key = fresh.unwrap_or_else(|| {
        let allow = if cloud.metadata.allow.is_empty() { vec!["*".to_owned()] } else { cloud.metadata.allow.clone() };
        let role = Role {
            arn: format!("acs:ram::1234567890123456:role/{role}"),
            allow,
            max_session_s: 43_200,
            oidc_provider: None,
        };
        cloud.account.issue(&role, "i-bp1autoscaler", lifetime, context.now, context.chance)
    });
    let token = key.session.as_ref().map(|session| session.token.clone()).unwrap_or_default();
    let body = json!({
        "AccessKeyId": key.id, "AccessKeySecret": key.secret, "Expiration": expires(&key).seconds(), "SecurityToken": token,
        "LastUpdated": (expires(&key) - lifetime).seconds(), "Code": "Success",
    });
    cloud.metadata.current = Some(key);
    text(body.to_string())
}
